# SPDX-License-Identifier: Apache-2.0
"""One run of an operator in which one call fails (fault-switch.c), and what must be true of it."""
import collections
import contextlib
import os
import re
import shutil
import struct
import threading
from dataclasses import dataclass, field

from harness import ApiError, Devserver, Operator, WIDGET_CRD, wait_until, watch
from harness.process import find_processes
from harness.setup import BUILD
from harness.wait import ENDED, Timeout

PROGRAMS = ("reconciled", "reconciled-spawner", "reconciled-credential", "reconciled-watcher", "reconciled-worker",
            "reconciled-gateway")
# In the order of enum call in fault-switch.c.
CALLS = ("memory", "open", "read", "write", "sync", "space", "map", "receive", "send", "socket", "connect", "pipe", "fork",
         "exec", "event", "name", "status", "lock", "thread")
# What follows them in struct counts.
ENDS = ("hits", "ends", "leaked", "unknown", "descriptors")
MODES = ("once", "always")
NOT_MET = "not met"
MISSED = 4  # seconds until a heartbeat is missed

# Ends in order when asked to, or with one of these and a cause (lib/base/exit-code.h). Not 64 and 78: systemd would not
# start it again, although the next time may be better.
_PLACES_MAX = 1 << 16
NAMED = {69, 70, 74, 77}
CRASH = re.compile(r"was killed by signal (SEGV|BUS|ABRT|FPE|ILL|SYS|TRAP)")
# This one dies of a failed allocation by itself (the first frame that is not libc's is its own); the operator ends with 70
# all the same.
LIBRARY = re.compile(r"libfault-switch\.so\([^\n]*\n(?:[^\n]*/libc\.so[^\n]*\n)+[^\n]*/libcurl[^/]*\.so")
# OpenSSL, when it cannot be set up, leaves behind what it had of itself.
_LEAK = re.compile(r"^leaked: allocation.*\n((?:/.*\n?)*)", re.M)
_OWN_LEAK = re.compile(r"(?:\S*/lib(?:fault-switch|c)\.so.*\n)*\S*/libcrypto\.so")
_PLAIN = """#!/bin/sh
case $RECONCILED_ACTION in reconcile) printf '{"status":{"seen":true}}' ;; esac
"""
_FULL = """#!/bin/sh
case $RECONCILED_ACTION in reconcile) cat <<END ;; esac
{"status": {"seen": true}, "message": "well", "conditions": [{"type": "Fine", "status": "True", "reason": "Tried"}],
 "events": [{"reason": "Tried", "note": "once"}], "patch": {"metadata": {"labels": {"tried": "true"}}},
 "children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "$RECONCILED_NAME"}, "data": {"a": "b"}}]}
END
"""
_SERVED = """#!/bin/sh
while read -r line; do
        id=${line#*'"id":'}
        case $line in *'"name":"b"'* | *'"name":"a"'*) status=',"status":{"seen":true}' ;; *) status= ;; esac
        echo "{\\"id\\":${id%%[,\\}]*}$status}"
done
"""


@dataclass(frozen=True)
class Life:
    handler: str
    watch: dict = field(default_factory=lambda: {"finalizer": True})
    kind: str = "exec"
    crowd: int = 0  # of other objects, so many that a worker is given several at once


LIVES = {"plain": Life(_PLAIN),
         "full": Life(_FULL, {"finalizer": True, "owns": [{"apiVersion": "v1", "kind": "ConfigMap"}], "trigger": {"jq": ".spec"}}),
         "served": Life(_SERVED, {}, "serve", 40)}


@dataclass(frozen=True)
class Fault:
    program: str
    call: str
    nth: int
    mode: str

    def __str__(self):
        return f"{self.program} {self.call} {self.nth} {self.mode}"


def read_counts(file):
    return dict(zip(CALLS + ENDS, struct.unpack(f"{len(CALLS) + len(ENDS)}Q", file.read_bytes())))


class Leak(AssertionError):
    """It did what it must, but left something behind."""


class Torture:
    """A devserver, and runs beside each other, each in a namespace of its own. `life` says what the operator does."""

    def __init__(self, sandbox, life="plain"):
        self.sandbox = sandbox
        self.life = LIVES[life]
        self.library = next(iter(sandbox.programs.values())).parents[1] / "libfault-switch.so"
        shutil.copy(BUILD / "tests" / "torture" / self.library.name, self.library)
        self.library.chmod(0o755)
        # Tens of thousands of runs would make a very long log.
        self.devserver = Devserver(sandbox, load=[WIDGET_CRD], arguments=["--request-log", "/dev/null"]).start()
        folder = sandbox.subfolder("torture", mode=0o755)
        self.handler = folder / "handler"
        self.handler.write_text(self.life.handler, encoding="utf-8")
        self.handler.chmod(0o755)
        self.results = collections.Counter()  # (program, how it ended): runs
        self._lock = threading.Lock()
        self._number = 0
        self._free = []  # namespaces in which nothing is left
        self._descriptors = {}  # program: how many are open at the end of a life without a fault

    def count(self, program):
        """{call: how often a run without a fault makes it}"""
        how, counts = self._run_one(Fault(program, CALLS[0], 0, "once"))
        assert how == "clean", f"{program} without a fault: {how}, {counts}"
        # The supervisor kills its spawner, which holds nothing.
        assert counts["ends"] or program == "reconciled-spawner", f"{program} has not come to its end: {counts}"
        self._descriptors[program] = counts["descriptors"]
        return {call: counts[call] for call in CALLS}

    def places(self, program, call):
        """The number of the first call from each place, a place being a stack of functions, in a run without a fault."""
        file = self.sandbox.folder / f"places-{program}-{call}"
        file.write_bytes(bytes(8 * _PLACES_MAX))
        file.chmod(0o666)
        counts = self._run_one(Fault(program, call, 0, "once"), RECONCILED_FAULT_PLACES=file)[1]
        first = {}
        for number, (place,) in enumerate(struct.iter_unpack("Q", file.read_bytes()[:8 * counts[call]]), 1):
            first.setdefault(place, number)
        return sorted(first.values())

    def run(self, fault):
        """(how it ended, what was counted); AssertionError: not as it must."""
        if fault.program not in self._descriptors:
            self.count(fault.program)
        try:
            how, counts = self._run_one(fault)
        except Leak as leak:
            # Where it came from, and whether it is a library's own: asked for only now, because that takes long.
            if "RECONCILED_FAULT_TRACE" in os.environ:
                raise
            try:
                how, counts = self._run_one(fault, RECONCILED_FAULT_TRACE="1")
            except AssertionError as traced:
                raise traced from leak
        with self._lock:
            self.results[fault.program, how] += 1
        return how, counts

    def _namespace(self):
        if self._free:
            return self._free.pop()
        self._number += 1
        self.devserver.api.resource("v1", "namespaces").create(f"t{self._number}")
        return f"t{self._number}"

    def _run_one(self, fault, **environment):
        with self._lock:
            run = Run(self, fault, self._namespace(), environment)
        try:
            how = run.run()
            counts = run.counts()
            run.assert_nothing_is_left(counts, self._descriptors.get(fault.program, 1024))
        finally:
            run.close()
        with self._lock:
            self._free.append(run.namespace)
        return NOT_MET if fault.nth > 0 and counts["hits"] == 0 else how, counts

    def run_all(self, faults, jobs=3, say=lambda fault, how: None):
        """The faults that were not survived: {fault: why}. Each fault is asked for when its turn has come."""
        broken = {}
        faults, turn, enough = iter(faults), threading.Lock(), threading.Event()

        def work():
            while True:
                with turn:
                    fault = next(faults, None)
                if fault is None or enough.is_set():
                    return
                try:
                    how = self.run(fault)[0]
                except Exception as error:  # each must get its turn
                    broken[fault] = f"{type(error).__name__}: {error}"
                    how = f"BROKEN: {broken[fault]}"
                say(fault, how)

        workers = [threading.Thread(target=work) for _ in range(jobs)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except BaseException:  # an interrupt: those under way end first
            enough.set()
            for worker in workers:
                worker.join()
            raise
        return broken


class Run:
    def __init__(self, torture, fault, namespace, environment):
        self.fault = fault
        self.namespace = namespace
        self.widgets = torture.devserver.api.resource("example.com/v1", "widgets", namespace)
        self.full = torture.life == LIVES["full"]
        self.crowd = [f"c{i}" for i in range(torture.life.crowd)]
        self.config_maps = torture.devserver.api.resource("v1", "configmaps", namespace)
        self.operator = Operator(torture.sandbox)
        self.operator.configure(torture.devserver, [
            watch("widgets", namespaces=[namespace], quarantine={"after": 1000}, retry={"first": "20ms", "max": "200ms"},
                  reconnect={"first": "20ms", "max": "200ms"}, **torture.life.watch)
            | {"handler": {torture.life.kind: [str(torture.handler)]}}],
            workers=1, heartbeat={"interval": "100ms", "deadline": f"{MISSED}s"}, stop={"grace": "2s"},
            gateway={"listen": f"unix:{self.operator.runtime_directory}/gateway"})
        self.file = self.operator.folder / "counts"
        self.file.write_bytes(bytes(8 * (len(CALLS) + len(ENDS))))
        self.operator.user.give(self.file, 0o600)
        self._since = 0
        self._environment = {"LD_PRELOAD": torture.library, "RECONCILED_FAULT": str(fault),
                             "RECONCILED_FAULT_COUNTS": self.file,
                             "RECONCILED_FAULT_TRACE": os.environ.get("RECONCILED_FAULT_TRACE"), **environment}

    def counts(self):
        """How often each call was made, and what is known about the program's processes that came to their end."""
        return read_counts(self.file)

    def assert_nothing_is_left(self, counts, descriptors):
        """By processes that came to their end; a process that was killed says nothing."""
        assert counts["unknown"] == 0, "what it left behind could not be found out"
        told = _LEAK.findall(self.first_output)
        if counts["leaked"] > len(told) or not all(_OWN_LEAK.match(frames) for frames in told):
            raise Leak(f"{counts['leaked']} blocks of memory leaked:\n{self.first_output}")
        if counts["descriptors"] > descriptors:
            raise Leak(f"{counts['descriptors']} of its descriptors were open at the end, without a fault {descriptors}:\n"
                       f"{self.first_output}")

    def run(self):
        for name in (*self.crowd, "a"):
            self.widgets.create(name, spec={})
        self.operator.environment.update(self._environment)
        self._since = self.operator.start().pid
        how = self._live()
        code = self._end()
        output = self.first_output = self.operator.output.text()
        crash = CRASH.search(output)
        assert not crash or LIBRARY.search(output), f"{crash.group()}:\n{output}"
        wait_until(lambda: not self._processes(), lambda: f"the end of {self._processes()!r}", ENDED)
        if code != 0 or how != "clean":
            how = f"{how}, " if how != "clean" else ""
            how = f"exit {code}" if code else f"{how}in order"
            self._live_again()
        return how

    def _progress(self, condition):
        """True: it came; False: it has ended, or does not come."""
        def look():
            return "ended" if self.operator.popen.poll() is not None else condition()

        # For locks SQLite waits ten seconds by itself when it opens a database.
        patience = 10 if self.fault.mode == "once" else 20 if self.fault.call == "lock" else 5
        try:
            return wait_until(look, "progress", patience) != "ended"
        except Timeout:
            if self.fault.mode == "once":
                raise AssertionError(f"it lives, and does nothing:\n{self.operator.output.text()}") from None
            # A heartbeat that does not come is missed after its deadline, and the first one was some time after the start.
            wait_until(lambda: self.operator.popen.poll() is not None or self._said(),
                       lambda: f"what does nothing to say so:\n{self.operator.output.text()}", 2 * MISSED)
            return False

    def _said(self):
        return [record for record in self.operator.output.records()
                if record.get("level") in ("warning", "error", "critical") and "not separated" not in record["message"]]

    def _processes(self):
        """What it has started, and still runs. Looks only at what is younger than the operator, as a full search costs
        more than its whole life; the sandbox makes one at the end."""
        return [found for found in find_processes(self.operator.user.owns, since=self._since) if not found.zombie]

    def _live(self):
        """A life: what is there, what comes, what goes."""
        done = self._progress(lambda: self._seen("a"))
        if done:
            for name in self.crowd:
                self.widgets.merge_patch(name, {"spec": {"n": 1}})
            self.widgets.create("b", spec={})
            self.widgets.delete("a")
            if self.full:
                self.operator.ctl.run("status")
            done = self._progress(lambda: self._seen("b")) and self._progress(lambda: not self.widgets.exists("a"))
        return "clean" if done else "stuck and said so"

    def _seen(self, name):
        return (self.widgets.get(name).get("status") or {}).get("seen") and (not self.full or self.config_maps.exists(name))

    def _end(self):
        """The exit code, asked for where it has not ended; with a cause, when it is one."""
        operator = self.operator
        asked = operator.popen.poll() is None
        code = operator.stop(expect=None, deadline=20) if asked else operator.wait_exit()
        output = operator.output.text()
        assert code in NAMED | ({0} if asked else set()), f"exit code {code}:\n{output}"
        # Where nothing can be written, nothing can be said.
        silent = self.fault.program == "reconciled" and (self.fault.call, self.fault.mode) == ("write", "always")
        assert code == 0 or silent or any(record.get("level") in ("error", "critical") for record in operator.output.records()) or \
            "reconciled" in output, f"exit code {code}, and no reason:\n{output}"
        return code

    def _live_again(self):
        """Without faults, from what is left: nothing may be lost."""
        for name in self._environment:
            del self.operator.environment[name]
        for name, change in (("b", self.widgets.create), ("a", self.widgets.delete)):
            try:
                change(name)
            except ApiError as error:
                assert error.code in (404, 409), error
        self.operator.start_ready()
        wait_until(lambda: self._seen("b"), lambda: f"b after the restart:\n{self.operator.output.text()}")
        wait_until(lambda: not self.widgets.exists("a"), lambda: f"the end of a:\n{self.operator.output.text()}")
        self.operator.stop()

    def close(self):
        """What has gone wrong is told already."""
        try:
            self.operator.close()
        except AssertionError:
            pass
        self.operator.sandbox.forget(self.operator)
        for process in self._processes():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        wait_until(lambda: not self._processes(), "the end of what was left")
        self.operator.sandbox.give_back(self.operator.user)
        shutil.rmtree(self.operator.folder, ignore_errors=True)
        for name in ("a", "b", *self.crowd):
            with contextlib.suppress(ApiError):
                self.widgets.merge_patch(name, {"metadata": {"finalizers": None}})
                self.widgets.delete(name)
            with contextlib.suppress(ApiError):
                self.config_maps.delete(name)
