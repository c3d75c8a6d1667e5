# SPDX-License-Identifier: Apache-2.0
import signal
import time

from harness import wait_until

from . import parts


def death(report):
    """SIGKILL of a child until the supervisor has gone, everything idle."""
    found = []
    with parts.sandbox() as box:
        server = parts.Server(box, 100, 1000)
        operator = parts.operator(box, server)
        for _ in range(report.repetitions * 2):
            operator.start_ready().wait_synced()
            wait_until(lambda: all(entry["running"] + entry["queued"] == 0 for entry in operator.ctl.status()["watches"]),
                       "rest")
            begin = time.monotonic()
            operator.child("watcher").kill(signal.SIGKILL)
            operator.popen.wait(60)
            found.append(1000 * (time.monotonic() - begin))
            operator.wait_exit(70)
    report.row("SIGKILL of a watcher until the exit", "ms", found)


def relist(report):
    """A 410 with 100,000 unchanged objects: a LIST of them all, and not one run."""
    objects, found = 100_000, []
    with parts.sandbox() as box:
        server = parts.Server(box, objects, 3000)
        operator = parts.operator(box, server, noop_worker=True)
        operator.start_ready().wait_synced(600)
        parts.wait_succeeded(operator, objects)
        for number in range(report.repetitions):
            begin = time.monotonic()
            server.ask("gone")
            wait_until(lambda: len(operator.logs(message_id=parts.SYNCED)) >= number + 2
                       or server.counts()["watches"] >= number + 2, "the LIST", 120)
            found.append(time.monotonic() - begin)
        runs = parts.succeeded(operator) - objects
        operator.stop()
    report.row("relist of 100,000 unchanged objects", "s", found)
    report.row("runs because of it", "", runs)
