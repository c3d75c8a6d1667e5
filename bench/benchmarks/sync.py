# SPDX-License-Identifier: Apache-2.0
import time

from . import measure, parts

SIZE = 3000


def _limit(box, server, objects):
    user = box.user()
    folder = box.subfolder("limit", user)
    folder.chmod(0o777)
    return sum(parts.limit(box, "limit-first-sync", server.url, 500, objects, SIZE, folder))


def _ours(box, server, objects):
    """Seconds from the first request to every object stored and every key with the supervisor; the watcher's memory; microseconds
    of processor time an object, by program, until each was handled."""
    operator = parts.operator(box, server, noop_worker=True)
    operator.start_ready()
    begin = time.monotonic()
    record = operator.wait_for_log(role="supervisor", message_id=parts.SYNCED, deadline=600)
    first = next((entry["_received"] for entry in operator.logs(role="supervisor")), begin)
    watcher = operator.child("watcher").pid
    memory = measure.anonymous(watcher)
    taken = record["_received"] - min(first, begin)
    operator.runs.wait(objects)
    parts.wait_succeeded(operator, objects)
    cost = {name: 1e6 * seconds / objects for name, seconds in measure.processor_by_program(measure.tree(operator.pid)).items()}
    operator.stop()
    return taken, memory, cost


def first_sync(report):
    """100,000 objects of 3 KB: LIST, store, and every key known, against curl to /dev/null plus a bare LMDB write."""
    ours, limits, memory, costs = [], [], [], []
    for _ in range(report.repetitions):
        with parts.sandbox() as box:
            server = parts.Server(box, 100_000, SIZE)
            limits.append(_limit(box, server, 100_000))
            taken, anonymous, cost = _ours(box, server, 100_000)
            ours.append(taken)
            costs.append(cost)
            memory.append(anonymous / 2**20)
    report.row("100,000 objects of 3 KB in sync", "s", ours, limits)
    for name in ("reconciled", "reconciled-watcher"):
        report.row(f"{name}, an object", "us", [each[name] for each in costs], note="processor time until it was handled")
    report.row("watcher's anonymous memory", "MiB", memory)
    with parts.sandbox() as box:
        server = parts.Server(box, 10_000, 30_000)
        _, anonymous, _ = _ours(box, server, 10_000)
        report.row("the same with objects of 30 KB", "MiB", anonymous / 2**20)
