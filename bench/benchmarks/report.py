# SPDX-License-Identifier: Apache-2.0
"""What a benchmark reports to: its rows are told on the terminal as they come and held against what is demanded."""
import os
import resource
import sys
import time

from harness.wait import Timeout

from .row import Row, said, shown, terminal_text, within
from .thresholds import Thresholds

ATTEMPTS = 3
QUIET = 10  # percent of the processors that others may take: with more, what is slower than last time tells nothing


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as meminfo:
        memory = int(meminfo.readline().split()[1]) // (1024 * 1024)
    return f"{model}, {os.cpu_count()} processors, {memory} GiB, Linux {os.uname().release}"


class Others:
    """How much of the processors other programs have taken since then, in percent: 0 is a quiet machine."""

    def __init__(self):
        self.begin = self._now()

    @staticmethod
    def _now():
        with open("/proc/stat", encoding="utf-8") as stat:
            field = [int(word) / os.sysconf("SC_CLK_TCK") for word in stat.readline().split()[1:9]]
        own = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(field), sum(field) - field[3] - field[4] - own

    def percent(self):
        total, others = (now - then for now, then in zip(self._now(), self.begin))
        return max(0, round(100 * others / total)) if total else 0


class Report:
    """row() adds a line, open() one that could not be measured; full and repetitions say how thorough to be."""

    def __init__(self, full, results):
        self.full = full
        self.results = results
        self.thresholds = Thresholds()
        self.machine = machine()
        self.failed = []
        self._name, self._rows = "", []
        self._worse, self._slower = [], []  # than demanded anywhere; than last time, on a quiet machine
        print(f"{self.machine}\n")

    @property
    def repetitions(self):
        return 7 if self.full else 3

    def section(self, name, function):
        """Runs a benchmark. One with a row that is worse than demanded is run again: somebody else who took the machine
        is unlikely to have done so three times."""
        for attempt in range(1, ATTEMPTS + 1):
            print(f"== {name}: {function.__doc__.strip().splitlines()[0]}")
            self._name, self._rows, self._worse, self._slower = name, [], [], []
            begin, others = time.monotonic(), Others()
            broken = self._run(function)
            taken, percent = round(time.monotonic() - begin), others.percent()
            print(f"   ({taken} s; others took {percent} % of the processors)\n", flush=True)
            if percent > QUIET and self._slower:
                print(f"   others took more than {QUIET} %: what is worse than last time is not held against it\n", flush=True)
                self._slower = []
            if broken or not self._worse + self._slower:
                break
        self.failed += broken + self._worse + self._slower
        self.results.put(name, self._rows, {
            "command": " ".join(["bench/run", *sys.argv[1:]]), "date": time.strftime("%Y-%m-%d %H:%M"), "machine": self.machine,
            "others_percent": percent, "seconds": taken, "attempts": attempt})

    def _run(self, function):
        """What went wrong, if anything: a benchmark that breaks off leaves the rows that it has and one that says why."""
        try:
            function(self)
        except (Timeout, AssertionError, OSError, RuntimeError, ValueError) as error:
            text = str(error) or type(error).__name__
            print(text, file=sys.stderr)
            self.open("the rest of it", f"it broke off: {text.splitlines()[0][:300]}")
            return [f"{self._name} broke off: {text.splitlines()[0][:300]}"]
        return []

    def row(self, name, unit, ours, other=None, other_name="limit", note=""):
        row = Row(name, unit, ours if isinstance(ours, list) else [ours], other or [], other_name, note)
        self._rows.append(row)
        bounds = self.thresholds.demanded(self._name, row, self.results.before(self._name, row, self.machine))
        if not within(row.measured(), bounds):
            passes = within(row.measured(), self.thresholds.bounds(self._name, row)) and not self.thresholds.always(self._name, row)
            text = f"{self._name}: {row.name} is {shown(row.measured())}, demanded: {said(bounds)}"
            (self._slower if passes else self._worse).append(text)
        print("   " + terminal_text(row, bounds, self.thresholds.goal(self._name, row)), flush=True)

    def open(self, name, why):
        self._rows.append(Row(name, unmeasured=why))
        print(f"   {name:44} not measured: {why}", flush=True)

    def finish(self):
        for text in self.failed:
            print(f"WORSE THAN DEMANDED: {text}")
        return 1 if self.failed else 0
