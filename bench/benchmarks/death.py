# SPDX-License-Identifier: Apache-2.0
import signal
import time

from harness import wait_until

from . import parts


def _wait_idle(operator):
    wait_until(lambda: all(entry["running"] + entry["queued"] == 0 for entry in operator.ctl.status()["watches"]), "rest")


def death(report):
    """SIGKILL of a child until the supervisor has gone, everything idle."""
    found = []
    with parts.sandbox() as box:
        server = parts.Server(box, 100, 1000)
        operator = parts.operator(box, server)
        for _ in range(report.repetitions * 2):
            operator.start_ready().wait_synced()
            _wait_idle(operator)
            begin = time.monotonic()
            operator.child("watcher").kill(signal.SIGKILL)
            operator.popen.wait(60)
            found.append(1000 * (time.monotonic() - begin))
            operator.wait_exit(70)
    report.row("SIGKILL of a watcher until the exit", "ms", found)


def _relist(server, operator):
    """Seconds from a 410 until the LIST was read, of an operator that is started for it: of several in a row each waits longer."""
    watches = server.counts()["watches"]
    operator.start()
    wait_until(lambda: server.counts()["watches"] > watches, "the watch", 60, 0.002)
    operator.wait_ready()
    begin = time.monotonic()
    server.ask("gone")
    wait_until(lambda: server.counts()["watches"] > watches + 1, "the watch behind the LIST", 120, 0.002)
    taken = time.monotonic() - begin
    _wait_idle(operator)
    operator.stop()
    return taken


def relist(report):
    """A 410 with 100,000 unchanged objects: a LIST of them all, and not one run."""
    objects = 100_000
    with parts.sandbox() as box:
        server = parts.Server(box, objects, 3000)
        operator = parts.operator(box, server, noop_worker=True)
        operator.start_ready().wait_synced(600)
        parts.wait_succeeded(operator, objects)
        operator.stop()
        runs, lists = operator.runs.value, server.counts()["lists"]
        found = [_relist(server, operator) for _ in range(report.repetitions)]
        # And one question about the newest version for each start.
        assert server.counts()["lists"] - lists >= 2 * len(found), "there was a LIST each time"
    report.row("relist of 100,000 unchanged objects", "s", found)
    report.row("runs because of it", "", operator.runs.value - runs)
