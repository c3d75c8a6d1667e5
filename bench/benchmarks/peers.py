# SPDX-License-Identifier: Apache-2.0
"""Beside the operators of other frameworks (bench/peers), each of which does the same work on the same server as ours."""
import contextlib
import statistics
import time

from harness import wait_until
from harness.wait import Timeout

from . import contestants, measure, parts

EVENTS = {"kopf": 1_000, "shell-operator": 2_000, "reconciled, shell": 2_000, contestants.BATCHES: 2_000}
EVENTS_OTHERWISE = 20_000
LATENCIES = {"kopf": 30}  # it waits a tenth of a second before it looks at an event
LATENCIES_OTHERWISE = 100
TOO_LONG = 30  # seconds: a sample that takes longer is not taken again


def wait_handled(found, count, deadline=120.0):
    wait_until(lambda: found.handled() >= count, lambda: f"{count} handled, {found.handled()} so far", deadline, 0.002)
    return time.monotonic()


@contextlib.contextmanager
def _at_work(name, objects, status=False, sent=False):
    """(contestant, server, moment of its start)"""
    with parts.sandbox() as box:
        server = parts.Server(box, objects, 1000, sent=sent)
        found = contestants.prepare(name, box, server, status)
        begin = time.monotonic()
        found.start()
        try:
            yield found, server, begin
        finally:
            found.stop()


class Samples:
    """What was found of each contestant, all of them in turn; of those that could not do it, why not."""

    def __init__(self, sample, repetitions, names=None, too_long=TOO_LONG):
        self.too_long = too_long
        self.found, self.unmeasured, self.names = {}, {}, names or contestants.in_turn()
        for name, why in contestants.unavailable().items():
            self.unmeasured[name] = why
        for _ in range(repetitions):
            for name in self.names:
                if name not in self.unmeasured:
                    self._take(name, sample)

    def _take(self, name, sample):
        begin = time.monotonic()
        if self.found.get(name) and self.found[name][-1][0] > self.too_long:
            return
        try:
            value = sample(name)
        except Timeout as error:
            self.unmeasured[name] = str(error).splitlines()[0].split("; last seen")[0]
            return
        self.found.setdefault(name, []).append((time.monotonic() - begin, value))

    def rows(self, report, what, unit, pick=lambda value: value, note=""):
        """A row for each peer; pick: which number of a sample."""
        for peer, ours, how in contestants.PAIRS:
            if ours not in self.names and ours not in self.unmeasured:
                continue
            name = f"{what}{how}, beside {peer}"
            missing = next((each for each in (ours, peer) if each in self.unmeasured), None)
            if missing:
                report.open(name, f"{missing}: {self.unmeasured[missing]}")
                continue
            report.row(name, unit, [pick(value) for _, value in self.found[ours]],
                       [pick(value) for _, value in self.found[peer]], peer, note)
        broken = set(self.unmeasured) & set(contestants.OURS) - set(contestants.unavailable())
        if broken:
            raise RuntimeError("; ".join(f"{name}: {self.unmeasured[name]}" for name in sorted(broken)))


# ---- the first sync

def _sync(objects, deadline):
    def sample(name):
        with _at_work(name, objects) as (found, _, begin):
            peak = measure.PeakMemory(found.pid())
            taken = wait_handled(found, objects, deadline) - begin
            return taken, peak.stop() / 2**20
    return sample


def _sync_rows(report, objects, deadline):
    samples = Samples(_sync(objects, deadline), report.repetitions, contestants.in_turn(batches=True))
    samples.rows(report, f"{objects:,} objects handled", "s", lambda value: value[0])
    samples.rows(report, f"peak memory with {objects:,} objects", "MiB", lambda value: value[1])


def sync(report):
    """From the start until each of 10,000 objects of 1 KB was handled once, and the peak until then of the anonymous memory of the
    whole tree: the largest sum over all its processes at one moment, looked at every 20 ms."""
    _sync_rows(report, 10_000, 180)


def sync_large(report):
    """The same with 100,000 objects. The bench does not wait for operators that need more than five minutes (--full: 15)."""
    _sync_rows(report, 100_000, 900 if report.full else 300)


# ---- events

def wait_written(server, count, deadline=120.0):
    """A status is written after the handler has ended."""
    wait_until(lambda: server.counts()["writes"] >= count, lambda: f"{count} writes, {server.counts()['writes']} so far", deadline)
    return time.monotonic()


def _rate(status):
    def sample(name):
        count = EVENTS.get(name, EVENTS_OTHERWISE)
        with _at_work(name, count, status) as (found, server, _):
            wait_handled(found, count)
            if status:
                wait_written(server, count)
            before = server.counts()["writes"]
            begin = time.monotonic()
            server.events(count)
            end = wait_handled(found, 2 * count)
            return count / ((wait_written(server, before + count) if status else end) - begin)
    return sample


def events(report):
    """Events per second, each to another object, all given at once: without, and with writing a status field."""
    names = contestants.in_turn(batches=True)
    Samples(_rate(False), report.repetitions, names).rows(report, "events", "1/s")
    Samples(_rate(True), report.repetitions, names).rows(report, "events with a status write", "1/s")


# ---- latency

def _latencies(name):
    """Sorted milliseconds."""
    count = LATENCIES.get(name, LATENCIES_OTHERWISE)
    with _at_work(name, 100, sent=True) as (found, server, _):
        wait_handled(found, 100)
        growth, seen = measure.Growth(found.count), []
        try:
            for number in range(1, count + 1):
                server.events(1)
                seen.append(growth.wait(100 + number))
        finally:
            growth.close()
        sent = parts.lines_of(server.sent)
        return sorted(1000 * (end - at / 1e9) for end, at in zip(seen, sent))


def latency(report):
    """From the server's write until the handler has done its work, one event at a time, idle system."""
    samples = Samples(_latencies, report.repetitions)
    samples.rows(report, "latency p50", "ms", statistics.median)
    samples.rows(report, "latency p90", "ms", lambda values: values[int(0.9 * len(values))])


# ---- start

def _start(name):
    with _at_work(name, 1) as (found, _, begin):
        return 1000 * (wait_handled(found, 1) - begin)


def start(report):
    """From the start of the program until the only object that there is was handled."""
    Samples(_start, 2 * report.repetitions + 1).rows(report, "start until the first run", "ms")


# ---- idle

def _idle_figures(family, seconds, before):
    taken = sum(measure.processor_seconds(each.pid) for each in family) - before
    return (100 * taken / seconds, sum(measure.anonymous(each.pid) for each in family) / 2**20,
            sum(measure.proportional(each.pid) for each in family) / 2**20)


def idle(report):
    """10,000 objects, nothing happens: all of them at the same time, each with a server of its own. Memory is looked at in the end;
    resident memory counts page cache as well (our store's file, everybody's programs), shared pages in proportion."""
    seconds = 120 if report.full else 30
    unmeasured = contestants.unavailable()
    names = [name for name in contestants.in_turn() if name not in unmeasured]
    with contextlib.ExitStack() as stack:
        running = {name: stack.enter_context(_at_work(name, 10_000))[0] for name in names}
        for found in running.values():
            wait_handled(found, 10_000, 300)
        # What the first sync has left to be tidied up is not idleness.
        time.sleep(10)
        family = {name: measure.tree(found.pid()) for name, found in running.items()}
        before = {name: sum(measure.processor_seconds(each.pid) for each in family[name]) for name in names}
        time.sleep(seconds)
        figures = {name: _idle_figures(family[name], seconds, before[name]) for name in names}
    samples = Samples(figures.get, 1, names)
    for number, (what, unit) in enumerate((("processor time", "%"), ("anonymous memory", "MiB"), ("resident memory", "MiB"))):
        samples.rows(report, what, unit, lambda value, number=number: value[number])
