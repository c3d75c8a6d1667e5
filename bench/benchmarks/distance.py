# SPDX-License-Identifier: Apache-2.0
"""An API server that is not on this machine: bench/relay.c makes each byte take half a round trip."""
import statistics

from . import contestants, measure, parts
from .peers import Samples, wait_written
from .row import shown

OURS = ("reconciled, C", 4)  # as many workers as it has by default
PEERS = ("controller-runtime", "kube-rs")  # those that say how many objects at once
AT_ONCE = (4, 64, 256)
OBJECTS = 10_000
EVENTS = {4: 2_000}  # as many at once: a peer takes a round trip for each four of them
DEADLINE = 900
TOO_LONG = 15  # seconds: who waits for round trips waits for the same each time


def _processor_seconds(found, server):
    """(the contestant's, the server's and the relay's), so far."""
    return (sum(measure.processor_by_program(measure.tree(found.pid())).values()),
            measure.processor_seconds(server.popen.pid) + measure.processor_seconds(server.server.popen.pid))


def _sample(key):
    """(seconds until each object was handled and its status written, events a second with a status write, microseconds of processor
    time an event of the contestant, and of the server with the relay)"""
    name, at_once, milliseconds = key
    events = OBJECTS if key[:2] == OURS else EVENTS.get(at_once, OBJECTS)
    with parts.sandbox() as box:
        server = parts.Far(box, parts.Server(box, OBJECTS, 1000), milliseconds)
        found = contestants.prepare(name, box, server, True, at_once)
        found.start()
        try:
            begin = wait_written(server, 1, DEADLINE)  # a start is no distance
            synced = wait_written(server, OBJECTS, DEADLINE)
            before = _processor_seconds(found, server)
            server.events(events)
            end = wait_written(server, OBJECTS + events, DEADLINE)
            after = _processor_seconds(found, server)
        finally:
            found.stop()
        return synced - begin, events / (end - synced), *(1e6 * (now - then) / events for now, then in zip(after, before))


def _take(report, keys):
    """{key: (all values of the first number, ... the last number of a sample)}, all in turn."""
    samples = Samples(_sample, report.repetitions, keys, TOO_LONG)
    broken = [f"{key}: {samples.unmeasured[key]}" for key in keys if key in samples.unmeasured]
    if broken:
        raise RuntimeError("; ".join(broken))
    return {key: [list(values) for values in zip(*(value for _, value in samples.found[key]))] for key in keys}


def _rows(report, what, ours, other, other_name, note=""):
    report.row(f"{what}: sync", "s", ours[0], other[0], other_name)
    report.row(f"{what}: events", "1/s", ours[1], other[1], other_name, note)


def distance(report):
    """10,000 objects, each with a status write, and as many events: by the round trip to the API server, beside loopback."""
    near = (*OURS, 0)
    far = {milliseconds: (*OURS, milliseconds) for milliseconds in (1, 5, 10, 20)}
    samples = _take(report, [near, *far.values()])
    for milliseconds, key in far.items():
        _rows(report, f"4 workers, {milliseconds} ms", samples[key], samples[near], "loopback")


def _best(theirs):
    """The quickest sync, and the most events, however many objects at once that took."""
    return [min((each[0] for each in theirs), key=statistics.median),
            *max((each[1:] for each in theirs), key=lambda each: statistics.median(each[0]))]


def _processor_time(ours, other):
    return "processor time an event, and the server's: " + " beside ".join(
        " + ".join(shown(statistics.median(values)) for values in each[2:]) for each in (ours, other)) + " us"


def beside(report):
    """The same, ours with the 4 workers that it has by default, beside operators that take 4, 64 or 256 objects at once; what takes
    a round trip for each four objects is measured once, with 2,000 events."""
    missing = contestants.unavailable()
    peers = [peer for peer in PEERS if peer not in missing]
    for peer in set(PEERS) - set(peers):
        report.open(f"beside {peer}", missing[peer])
    for milliseconds in (1, 5, 20):
        samples = _take(report, [(*OURS, milliseconds), *((peer, at_once, milliseconds) for at_once in AT_ONCE for peer in peers)])
        ours = samples[*OURS, milliseconds]
        for peer in peers:
            theirs = [samples[peer, at_once, milliseconds] for at_once in AT_ONCE]
            for at_once, found in zip(AT_ONCE[:2], theirs):
                _rows(report, f"{milliseconds} ms, beside {peer}, {at_once} at once", ours, found, peer)
            best = _best(theirs)
            _rows(report, f"{milliseconds} ms, beside {peer} at its best", ours, best, peer,
                  _processor_time(ours, best))
