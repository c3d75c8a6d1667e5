# SPDX-License-Identifier: Apache-2.0
"""Two replicas, of which one leads, beside leader election in controller-runtime with its usual times, which are ours as well: a
lead lasts 15 s without a renewal."""
import time

from . import contestants, measure, parts
from .peers import Samples, wait_handled

OURS, PEER = "reconciled, C", "controller-runtime"
OBJECTS = 10_000
EVENTS = 2_000
LATEST = 90  # seconds: a takeover takes no longer
FOLLOWS = 5  # seconds after its start it follows, and rests


def _first_run(replica, since):
    """Seconds until it handles something."""
    growth = measure.Growth(replica.count)
    try:
        return growth.wait(1, LATEST) - since
    finally:
        growth.close()


def _start(name, box, server, is_replica=True):
    replica = contestants.prepare(name, box, server, False, is_replica=is_replica)
    replica.count.touch()
    replica.count.chmod(0o666)
    replica.start()
    return replica


def _make(server, count):
    widgets = server.api.resource("example.com/v1", "widgets", "default")
    for number in range(count):
        widgets.create(f"w{number}", spec={"round": 0})
    return widgets


def _sample(name):
    """Of a leader that was killed: seconds until the first run, and until all have run; of one that was ended in order: until the
    first run; MiB of a follower."""
    with parts.sandbox() as box:
        server = parts.devserver(box)
        _make(server, OBJECTS)
        first = _start(name, box, server)
        wait_handled(first, OBJECTS, LATEST)
        second = _start(name, box, server)
        time.sleep(FOLLOWS)
        memory = sum(measure.proportional(each.pid) for each in measure.tree(second.pid())) / 2**20
        since = time.monotonic()
        first.kill()
        killed = _first_run(second, since)
        all_have = wait_handled(second, OBJECTS, LATEST) - since
        third = _start(name, box, server)
        time.sleep(FOLLOWS)
        since = time.monotonic()
        second.end()
        ended = _first_run(third, since)
        wait_handled(third, OBJECTS, LATEST)
        second.stop()
        third.stop()
    return killed, all_have, ended, memory


def _event(is_replica):
    """Microseconds that all processes of the leader take for an event."""
    with parts.sandbox() as box:
        server = parts.devserver(box)
        widgets = _make(server, EVENTS)
        leader = _start(OURS, box, server, is_replica)
        wait_handled(leader, EVENTS, LATEST)
        follower = _start(OURS, box, server, True) if is_replica else None
        time.sleep(FOLLOWS)
        family = measure.tree(leader.pid())
        before = sum(measure.processor_seconds(each.pid) for each in family)
        for number in range(EVENTS):
            widgets.merge_patch(f"w{number}", {"spec": {"round": 1}})
        wait_handled(leader, 2 * EVENTS, LATEST)
        taken = sum(measure.processor_seconds(each.pid) for each in family) - before
        for replica in filter(None, (follower, leader)):
            replica.stop()
        return taken / EVENTS * 1e6


def replicas(report):
    """A leader of 10,000 objects is killed, or asked to end, until another replica runs a handler: beside leader election.
    Killed: SIGKILL of all its processes; asked: SIGTERM. Until the first handler of the other one, and until it has run for each
    object; on devserver. The memory of a follower is the PSS of all its processes, five seconds after its start. An event is a
    change of another object each, 2,000 in all; beside an operator without `replicas`."""
    samples = Samples(_sample, report.repetitions, (OURS, PEER), too_long=300)
    missing = next((name for name in (OURS, PEER) if name in samples.unmeasured), None)
    for number, (row, unit) in enumerate((("killed, until the first run", "s"), ("killed, until all have run", "s"),
                                          ("ended in order, until the first run", "s"), ("memory of a follower", "MiB"))):
        name = f"{row}, beside {PEER}"
        if missing:
            report.open(name, f"{missing}: {samples.unmeasured[missing]}")
        else:
            report.row(name, unit, *([value[number] for _, value in samples.found[each]] for each in (OURS, PEER)), PEER)
    events = [(_event(True), _event(False)) for _ in range(report.repetitions)]
    report.row("processor time of an event, with a follower", "us", *(list(each) for each in zip(*events)), "no replicas")
