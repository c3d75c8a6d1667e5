# SPDX-License-Identifier: Apache-2.0
import os
import pathlib
import signal
import time

from harness import wait_until
from harness.process import start

from . import parts

CACHE = pathlib.Path(os.environ.get("RECONCILED_CACHE", pathlib.Path.home() / ".cache" / "reconciled")) / "peers"
SOURCE = pathlib.Path(__file__).resolve().parents[1] / "peers"
NAMES = ["kopf", "controller-runtime", "kube-rs", "shell-operator"]


class Peer:
    """One peer's operator at work on `server`, with the same interface as Ours."""

    def __init__(self, box, name, server, status):
        self.folder = box.subfolder(name)
        self.folder.chmod(0o777)
        self.count = self.folder / "count"
        environment = {"KUBECONFIG": server.kubeconfig, "BENCH_COUNT": self.count, "BENCH_STATUS": int(status),
                       "HOME": self.folder, "PATH": os.environ["PATH"], **ENVIRONMENT.get(name, lambda *_: {})(self, server)}
        self.log = open(self.folder / "log", "wb")
        self.popen = start(parts.root(), COMMAND[name](), environment, cwd=self.folder, stdout=self.log, stderr=self.log)

    def pid(self):
        return self.popen.pid

    def handled(self):
        return self.count.stat().st_size if self.count.exists() else 0

    def stop(self):
        for found in parts.tree(self.popen.pid):
            try:
                found.kill(signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.popen.wait()
        self.log.close()


def _shell_environment(peer, server):
    hooks = peer.folder / "hooks"
    hooks.mkdir()
    (hooks / "hook.sh").write_bytes((SOURCE / "shell-operator" / "hook.sh").read_bytes())
    (hooks / "hook.sh").chmod(0o755)
    return {"SHELL_OPERATOR_HOOKS_DIR": hooks, "KUBE_CONFIG": server.kubeconfig, "LOG_LEVEL": "error",
            "SHELL_OPERATOR_LISTEN_ADDRESS": "127.0.0.1", "SHELL_OPERATOR_LISTEN_PORT": "0",
            "SHELL_OPERATOR_TMP_DIR": peer.folder}


ENVIRONMENT = {"shell-operator": _shell_environment}
COMMAND = {
    "kopf": lambda: [CACHE / "kopf" / "bin" / "kopf", "run", "-A", "--standalone", "--quiet", SOURCE / "kopf" / "operator.py"],
    "controller-runtime": lambda: [CACHE / "controller-runtime" / "operator"],
    "kube-rs": lambda: [CACHE / "kube-rs" / "operator"],
    "shell-operator": lambda: [CACHE / "shell-operator" / "operator", "start"],
}


class Ours:
    """reconciled with a serve handler in C; beside shell-operator with its shell script, run for each event."""

    def __init__(self, box, name, server, status):
        folder = box.subfolder("ours")
        folder.chmod(0o777)
        self.count = folder / "count"
        if name == "shell-operator":
            script = folder / "handler.sh"
            script.write_text(f'#!/bin/sh\nprintf . >>"{self.count}"\n', encoding="utf-8")
            script.chmod(0o755)
            handler = {"exec": [str(script)]}
        else:
            handler = {"serve": [str(box.program("bench-serve")), str(self.count)] + (["status"] if status else [])}
        watch = parts.watch("widgets")
        watch["handler"] = handler
        self.operator = parts.operator(box, server, watches=[watch], workers=4)
        self.operator.start()

    def pid(self):
        return self.operator.pid

    def handled(self):
        return self.count.stat().st_size if self.count.exists() else 0

    def stop(self):
        self.operator.stop()


def _available(report, name):
    if (CACHE / name / "done").exists() or (CACHE / name).exists():
        return True
    report.open(name, f"bench/peers/build {name} could not get it")
    return False


def _wait_handled(operator, count, deadline=600):
    wait_until(lambda: operator.handled() >= count, lambda: f"{count} handled, {operator.handled()} so far", deadline, 0.005)
    return time.monotonic()


def _sync(kind, name, objects):
    """(seconds until every object was handled once, peak memory of the tree in MiB)"""
    with parts.sandbox() as box:
        server = parts.Server(box, objects, 1000)
        begin = time.monotonic()
        operator = kind(box, name, server, False)
        try:
            taken = _wait_handled(operator, objects) - begin
            memory = sum(parts.peak(each.pid) for each in parts.tree(operator.pid())) / 2**20
        finally:
            operator.stop()
        return taken, memory


def first_sync(report):
    """Peers: from the start until each of 10,000 objects was handled once, and the peak memory of the whole tree."""
    for name in NAMES:
        if not _available(report, name):
            continue
        for objects in (10_000,) + ((100_000,) if report.full else ()):
            ours, theirs = _sync(Ours, name, objects), _sync(Peer, name, objects)
            report.row(f"{objects:,} objects handled, beside {name}", "s", [ours[0]], [theirs[0]], name)
            report.row(f"peak memory with {objects:,} objects, beside {name}", "MiB", [ours[1]], [theirs[1]], name)


def _rate(kind, name, status, events):
    with parts.sandbox() as box:
        server = parts.Server(box, 1000, 1000)
        operator = kind(box, name, server, status)
        try:
            _wait_handled(operator, 1000)
            begin = time.monotonic()
            server.events(events)
            return events / (_wait_handled(operator, 1000 + events) - begin)
        finally:
            operator.stop()


def events(report):
    """Peers: events per second, with and without writing a status field."""
    for name in NAMES:
        if not _available(report, name):
            continue
        for status in (False,) if name == "shell-operator" else (False, True):
            count = 1000 if name in ("kopf", "shell-operator") else 5000
            report.row(f"events{' with a status write' if status else ''}, beside {name}", "1/s",
                       [_rate(Ours, name, status, count)], [_rate(Peer, name, status, count)], name)


def _latencies(kind, name, count):
    with parts.sandbox() as box:
        server = parts.Server(box, 100, 1000)
        operator = kind(box, name, server, False)
        try:
            _wait_handled(operator, 100)
            found = []
            for number in range(1, count + 1):
                begin = time.monotonic()
                server.events(1)
                while operator.handled() < 100 + number:
                    pass
                found.append(1000 * (time.monotonic() - begin))
            return sorted(found)
        finally:
            operator.stop()


def latency(report):
    """Peers: from asking the server for an event until the handler has done its work, idle system, median."""
    for name in NAMES:
        if _available(report, name):
            ours, theirs = _latencies(Ours, name, 50), _latencies(Peer, name, 50)
            report.row(f"latency, beside {name}", "ms", [ours[25]], [theirs[25]], name)


def _idle(kind, name, seconds):
    with parts.sandbox() as box:
        server = parts.Server(box, 10_000, 1000)
        operator = kind(box, name, server, False)
        try:
            _wait_handled(operator, 10_000)
            family = parts.tree(operator.pid())
            before = sum(parts.processor_seconds(each.pid) for each in family)
            time.sleep(seconds)
            processor = sum(parts.processor_seconds(each.pid) for each in family) - before
            return 100 * processor / seconds, sum(parts.anonymous(each.pid) for each in family) / 2**20
        finally:
            operator.stop()


def idle(report):
    """Peers: 10,000 objects, nothing happens: processor time and anonymous memory."""
    for name in NAMES:
        if _available(report, name):
            ours, theirs = _idle(Ours, name, 10), _idle(Peer, name, 10)
            report.row(f"processor time, beside {name}", "%", [ours[0]], [theirs[0]], name)
            report.row(f"anonymous memory, beside {name}", "MiB", [ours[1]], [theirs[1]], name)
