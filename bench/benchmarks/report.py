# SPDX-License-Identifier: Apache-2.0
"""What was measured: told on the terminal as it comes, compared with bench/thresholds.toml, written for people."""
import os
import pathlib
import platform
import statistics
import sys
import time
import tomllib

THRESHOLDS = pathlib.Path(__file__).resolve().parents[1] / "thresholds.toml"


def machine():
    model = "unknown processor"
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/meminfo", encoding="utf-8") as meminfo:
        memory = int(meminfo.readline().split()[1]) // (1024 * 1024)
    return f"{model}, {os.cpu_count()} processors, {memory} GiB, Linux {platform.release()}"


def shown(value):
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2g}"


def said(low, high):
    return " ".join(f"{word} {value:g}" for word, value in (("at least", low), ("at most", high)) if value is not None)


class Row:
    """One line of the report: medians of ours and of what it is compared with, or one of ours against a bound."""

    def __init__(self, name, unit, ours, other=None, other_name="limit", note=""):
        self.name, self.unit, self.note, self.other_name = name, unit, note, other_name
        self.ours = statistics.median(ours)
        self.other = statistics.median(other) if other else None
        self.count = len(ours)
        self.spread = (min(ours), max(ours))
        self.verdict = self.goal = ""

    @property
    def ratio(self):
        return self.ours / self.other if self.other else None

    def measured(self):
        """What a threshold is about: the ratio where there is one."""
        return self.ratio if self.other is not None else self.ours

    def text(self):
        parts = [f"{self.name:44} {shown(self.ours):>9} {self.unit:10}"]
        if self.other is not None:
            parts.append(f"{self.other_name} {shown(self.other):>9}   ratio {self.ratio:.2f}")
        if self.count > 1:
            parts.append(f"[{shown(self.spread[0])} .. {shown(self.spread[1])}, n={self.count}]")
        return "  ".join(parts + [self.verdict, self.goal and f"goal {self.goal}", self.note]).rstrip()

    def cells(self):
        other = f"{shown(self.other)} ({self.other_name})" if self.other is not None else ""
        ratio = f"{self.ratio:.2f}" if self.other is not None else ""
        return [self.name, ratio, f"{shown(self.ours)} {self.unit}", other, self.goal, self.verdict, self.note]


HEAD = """# Performance

Written by `bench/run --write`; medians (sections that begin with "By hand" excepted). What counts is the ratio to the limit or the peer of the same run: limits are small
programs of the bench's own (bench/limits), peers the smallest operators of other frameworks that do the same work on the same
server (bench/peers). A row that is short of its goal says why. `bench/run` ends with 1 when a row is worse than what
bench/thresholds.toml demands.
"""


def written_sections(path):
    if not path.exists():
        return {}
    parts = path.read_text(encoding="utf-8").split("\n## ")[1:]
    return {part.splitlines()[0]: f"## {part.rstrip()}\n" for part in parts}


class Report:
    """report.row(...) adds a line; report.open(name, why) one that could not be measured."""

    def __init__(self, full, order):
        self.full = full
        self.order = order  # of all benchmarks
        self.sections = []
        self.failed = []
        with open(THRESHOLDS, "rb") as file:
            self.thresholds = tomllib.load(file)
        print(f"{machine()}\n")

    @property
    def repetitions(self):
        return 7 if self.full else 3

    def section(self, name, function):
        print(f"== {name}: {function.__doc__.strip().splitlines()[0]}")
        self.sections.append((name, function.__doc__.strip(), []))
        start = time.monotonic()
        function(self)
        print(f"   ({time.monotonic() - start:.0f} s)\n", flush=True)

    def row(self, name, unit, ours, other=None, other_name="limit", note=""):
        row = Row(name, unit, ours if isinstance(ours, list) else [ours], other, other_name, note)
        row.verdict = self._judge(row)
        self._hold_against_goal(row)
        self.sections[-1][2].append(row.cells())
        print("   " + row.text(), flush=True)
        return row

    def open(self, name, why):
        self.sections[-1][2].append([name, "", "not measured", "", "", "", why])
        print(f"   {name:44} not measured: {why}", flush=True)

    def _bound(self, row):
        return self.thresholds.get(self.sections[-1][0], {}).get(row.name, {})

    def _judge(self, row):
        bound = self._bound(row)
        low, high = bound.get("min"), bound.get("max")
        if low is None and high is None:
            return ""
        good = (low is None or row.measured() >= low) and (high is None or row.measured() <= high)
        text = said(low, high)
        if not good:
            self.failed.append(f"{self.sections[-1][0]}: {row.name} is {row.measured():.3g}, demanded: {text}")
        return f"{'ok' if good else 'WORSE'} ({text})"

    def _hold_against_goal(self, row):
        """Short of its goal a row says why: in words that are committed beside the threshold."""
        bound = self._bound(row)
        low, high = bound.get("goal_min"), bound.get("goal_max")
        if low is None and high is None:
            return
        met = (low is None or row.measured() >= low) and (high is None or row.measured() <= high)
        row.goal = f"{said(low, high)}: {'met' if met else 'SHORT'}"
        if not met and bound.get("why"):
            row.note = bound["why"]

    def write(self, path):
        """Puts what was measured in the place of what stood there; the other sections stay."""
        sections = written_sections(path)
        for name, text, rows in self.sections:
            lines = [f"## {name}", "", text, "",
                     f"`{' '.join(['bench/run', *sys.argv[1:]])}` on {time.strftime('%Y-%m-%d')}: {machine()}; load {os.getloadavg()[1]:.1f}.",
                     "", "| what | ratio | reconciled | compared with | goal | demanded | |", "|---|---|---|---|---|---|---|"]
            sections[name] = "\n".join(lines + ["| " + " | ".join(cells) + " |" for cells in rows]) + "\n"
        order = [name for name in self.order if name in sections]
        path.write_text("\n".join([HEAD] + [sections[name] for name in order]), encoding="utf-8")
        print(f"written: {path}")

    def finish(self):
        for text in self.failed:
            print(f"WORSE THAN ITS THRESHOLD: {text}")
        return 1 if self.failed else 0
