# SPDX-License-Identifier: Apache-2.0
"""An API server that is not on this machine: bench/relay.c makes each byte take half a round trip."""
from . import contestants, parts
from .peers import wait_written

OURS = "reconciled, C"
PEERS = ("controller-runtime", "kube-rs")  # those that say how many objects at once
AT_ONCE = (4, 64)
ROUND_TRIPS = (1, 5, 10, 20)  # milliseconds
DEADLINE = 900


def _sample(objects, name, at_once, milliseconds):
    """(seconds until each object was handled and its status written, events a second with a status write)"""
    with parts.sandbox() as box:
        server = parts.Server(box, objects, 1000)
        found = contestants.prepare(name, box, parts.Far(box, server, milliseconds), True, at_once)
        found.start()
        try:
            begin = wait_written(server, 1, DEADLINE)  # a start is no distance
            synced = wait_written(server, objects, DEADLINE)
            server.events(objects)
            end = wait_written(server, 2 * objects, DEADLINE)
        finally:
            found.stop()
        return synced - begin, objects / (end - synced)


def _samples(report, name, at_once, milliseconds):
    objects = 10_000 if report.full else 2_000
    found = [_sample(objects, name, at_once, milliseconds) for _ in range(max(1, report.repetitions // 3))]
    return [sync for sync, _ in found], [rate for _, rate in found]


def _rows(report, what, ours, other, other_name):
    report.row(f"{what}: sync", "s", ours[0], other[0], other_name)
    report.row(f"{what}: events", "1/s", ours[1], other[1], other_name)


def distance(report):
    """2,000 objects (--full: 10,000), each with a status write, and as many events: by the round trip to the API server, beside
    loopback."""
    near = _samples(report, OURS, 4, 0)
    for milliseconds in ROUND_TRIPS:
        _rows(report, f"4 workers, {milliseconds} ms", _samples(report, OURS, 4, milliseconds), near, "loopback")


def _best(by_count):
    return min((each[0] for each in by_count.values()), key=min), max((each[1] for each in by_count.values()), key=max)


def beside(report):
    """The same beside operators that say how many objects they take at once: with as many workers, and each at its best."""
    missing = contestants.unavailable()
    for milliseconds in (5, 20):
        ours = {count: _samples(report, OURS, count, milliseconds) for count in AT_ONCE}
        for peer in PEERS:
            if peer in missing:
                report.open(f"{milliseconds} ms, beside {peer}", missing[peer])
                continue
            theirs = {count: _samples(report, peer, count, milliseconds) for count in AT_ONCE}
            for count in AT_ONCE:
                _rows(report, f"{count} at once, {milliseconds} ms, beside {peer}", ours[count], theirs[count], peer)
            _rows(report, f"each at its best, {milliseconds} ms, beside {peer}", _best(ours), _best(theirs), peer)
