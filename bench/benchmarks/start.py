# SPDX-License-Identifier: Apache-2.0
import time

from . import idle, parts


def start(report):
    """READY with 10 watches and 4 workers on an empty cluster."""
    found = []
    with parts.sandbox() as box:
        server = parts.Server(box, 0)
        operator = parts.operator(box, server, watches=idle.watches(box))
        for _ in range(report.repetitions * 3):
            begin = time.monotonic()
            operator.start()
            ready = operator.wait_notification("READY", "1")
            found.append(1000 * (ready["_received"] - begin))
            operator.wait_synced()
            operator.stop()
    report.row("READY", "ms", found)


def warm_restart(report):
    """A restart with 100,000 stored objects: no LIST, and the time until an event reaches its handler."""
    found, lists = [], 0
    with parts.sandbox() as box:
        server = parts.Server(box, 100_000, 3000)
        operator = parts.operator(box, server, noop_worker=True)
        operator.start_ready().wait_synced(600)
        parts.wait_succeeded(operator, 100_000)
        operator.stop()
        before = server.counts()["lists"]
        for _ in range(report.repetitions):
            watching = server.counts()["watches"]
            begin = time.monotonic()
            operator.start()
            operator.wait_notification("READY", "1")
            while server.counts()["watches"] == watching:
                pass
            server.events(1)
            parts.wait_succeeded(operator, 1)
            found.append(1000 * (time.monotonic() - begin))
            operator.stop()
        # One question about the newest version for each start is no LIST.
        lists = server.counts()["lists"] - before - report.repetitions
    report.row("restart until an event is handled", "ms", found)
    report.row("LISTs of the restarts", "", max(lists, 0))
