# SPDX-License-Identifier: Apache-2.0
"""One run of an operator in which one call fails (fault-switch.c), and what must be true of it."""
import collections
import concurrent.futures
import contextlib
import os
import re
import shutil
import struct
import threading
from dataclasses import dataclass

from harness import ApiError, Devserver, Operator, WIDGET_CRD, wait_until, watch
from harness.setup import BUILD
from harness.wait import Timeout

PROGRAMS = ("reconciled", "reconciled-credential", "reconciled-watcher", "reconciled-worker", "reconciled-gateway")
# In the order of enum call in fault-switch.c.
CALLS = ("memory", "open", "read", "write", "sync", "space", "map", "receive", "send", "socket", "connect", "pipe", "fork",
         "exec", "event", "name")
MODES = ("once", "always")

# Ends in order when asked to, or with one of these and a cause (base/exit-code.h). Not 64 and 78: systemd would not
# start it again, although the next time may be better.
NAMED = {69, 70, 74, 77}
CRASH = re.compile(r"was killed by signal (SEGV|BUS|ABRT|FPE|ILL|SYS|TRAP)")
# These die of a failed allocation by themselves (the first frame that is not libc's is theirs); the operator ends with 70
# all the same.
LIBRARY = re.compile(r"libfault-switch\.so\([^\n]*\n(?:[^\n]*/libc\.so[^\n]*\n)+[^\n]*/lib(seccomp|curl)\.so")
_HANDLER = """#!/bin/sh
case $RECONCILED_ACTION in reconcile) printf '{"status":{"seen":true}}' ;; esac
"""


@dataclass(frozen=True)
class Fault:
    program: str
    call: str
    nth: int
    mode: str

    def __str__(self):
        return f"{self.program} {self.call} {self.nth} {self.mode}"


class Torture:
    """A devserver, and runs beside each other, each in a namespace of its own."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.library = next(iter(sandbox.programs.values())).parents[1] / "libfault-switch.so"
        shutil.copy(BUILD / "tests" / "torture" / self.library.name, self.library)
        self.library.chmod(0o755)
        self.devserver = Devserver(sandbox, load=[WIDGET_CRD]).start()
        folder = sandbox.subfolder("torture", mode=0o755)
        self.handler = folder / "handler"
        self.handler.write_text(_HANDLER, encoding="utf-8")
        self.handler.chmod(0o755)
        self.results = collections.Counter()  # (program, how it ended): runs
        self._lock = threading.Lock()
        self._number = 0

    def count(self, program):
        """{call: how often a run without a fault makes it}"""
        return dict(zip(CALLS, self.run(Fault(program, CALLS[0], 0, "once"))[1]))

    def run(self, fault):
        """(how it ended, what was counted); AssertionError: not as it must."""
        with self._lock:
            self._number += 1
            run = Run(self, fault, f"t{self._number}")
        try:
            how = run.run()
            counts = run.counts()
            if fault.nth > 0 and counts[-1] == 0:
                how = "not met"
        finally:
            run.close()
        with self._lock:
            self.results[fault.program, how] += 1
        return how, counts

    def run_all(self, faults, jobs=3, say=lambda text: None):
        """The faults that were not survived: {fault: why}."""
        broken = {}

        def one(fault):
            try:
                say(f"{fault}: {self.run(fault)[0]}")
            except Exception as error:  # each must get its turn
                broken[fault] = f"{type(error).__name__}: {error}"
                say(f"{fault}: BROKEN: {broken[fault]}")

        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            list(pool.map(one, faults))
        return broken

    def figures(self):
        lines = []
        for program in PROGRAMS:
            ends = {how: number for (name, how), number in sorted(self.results.items()) if name == program}
            lines.append(f"{program}: {sum(ends.values())} runs, " + ", ".join(f"{how}: {n}" for how, n in ends.items()))
        return "\n".join(lines)


class Run:
    def __init__(self, torture, fault, namespace):
        self.fault = fault
        self.api = torture.devserver.api
        self.api.resource("v1", "namespaces").create(namespace)
        self.widgets = self.api.resource("example.com/v1", "widgets", namespace)
        self.operator = Operator(torture.sandbox)
        self.operator.configure(torture.devserver, [
            watch("widgets", [str(torture.handler)], namespaces=[namespace], finalizer=True,
                  quarantine={"after": 1000}, retry={"first": "20ms", "max": "200ms"},
                  reconnect={"first": "20ms", "max": "200ms"})],
            workers=1, heartbeat={"interval": "100ms", "deadline": "2s"}, stop={"grace": "2s"},
            gateway={"listen": f"unix:{self.operator.runtime_directory}/gateway"})
        self.file = self.operator.folder / "counts"
        self.file.write_bytes(bytes(8 * (len(CALLS) + 1)))
        self.operator.user.give(self.file, 0o600)
        self._environment = {"LD_PRELOAD": torture.library, "RECONCILED_FAULT": str(fault),
                             "RECONCILED_FAULT_COUNTS": self.file,
                             "RECONCILED_FAULT_TRACE": os.environ.get("RECONCILED_FAULT_TRACE")}

    def counts(self):
        """How often each call was made; last: how often one failed."""
        return struct.unpack(f"{len(CALLS) + 1}Q", self.file.read_bytes())

    def run(self):
        self.widgets.create("a", spec={})
        self.operator.environment.update(self._environment)
        self.operator.start()
        how = self._live()
        code = self._end()
        output = self.operator.output.text()
        crash = CRASH.search(output)
        assert not crash or LIBRARY.search(output), f"{crash.group()}:\n{output}"
        self.operator.assert_no_processes(deadline=1.5)
        if code != 0 or how != "clean":
            how = f"{how}, " if how != "clean" else ""
            how = f"exit {code}" if code else f"{how}in order"
            self._live_again()
        return how

    def _progress(self, condition):
        """True: it came; False: it has ended, or does not come."""
        def look():
            return "ended" if self.operator.popen.poll() is not None else condition()

        try:
            return wait_until(look, "progress", 10 if self.fault.mode == "once" else 5) != "ended"
        except Timeout:
            if self.fault.mode == "once":
                raise AssertionError(f"it lives, and does nothing:\n{self.operator.output.text()}") from None
            said = [record for record in self.operator.output.records()
                    if record.get("level") in ("warning", "error", "critical") and "not separated" not in record["message"]]
            assert said, f"it lives, does nothing, and does not say so:\n{self.operator.output.text()}"
            return False

    def _live(self):
        """A life: what is there, what comes, what goes."""
        done = self._progress(lambda: self._seen("a"))
        if done:
            self.widgets.create("b", spec={})
            self.widgets.delete("a")
            done = self._progress(lambda: self._seen("b")) and self._progress(lambda: not self.widgets.exists("a"))
        return "clean" if done else "stuck and said so"

    def _seen(self, name):
        return (self.widgets.get(name).get("status") or {}).get("seen")

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
        for process in self.operator.processes():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        wait_until(lambda: not self.operator.processes(), "the end of what was left")
        self.operator.sandbox.give_back(self.operator.user)
