# SPDX-License-Identifier: Apache-2.0
"""bench/results.json, what was measured last by each benchmark, and docs/performance.md, which is made from it."""
import json
import os
import pathlib
import textwrap

from .row import Row, goal_text, ratio_text, said, shown, within

BENCH = pathlib.Path(__file__).resolve().parents[1]
RESULTS = BENCH / "results.json"
PAGE = BENCH.parent / "docs" / "performance.md"

HEAD = """# Performance

`bench/run --write` makes this page from its measurements (bench/results.json); only the reasons (bench/thresholds.toml) are
written by hand. Values are medians of n samples; ours and those of the limit or peer are taken in turn. The ratio to the limit
or the peer of the same run counts. Limits are small programs of the bench's own (bench/limits). Peers are the smallest
operators of other frameworks that do the same work on the same server (bench/peers). `bench/run` exits with 1 when a row is
worse than bench/thresholds.toml demands or, on a quiet machine, by more than its slack worse than the value on this page.

"""

COLUMNS = ("what", "ratio", "reconciled", "compared with", "n", "goal", "note")


class Results:
    """What was measured last of each benchmark: first as the file has it, then as benchmarks of this run replace it."""

    def __init__(self, path=RESULTS):
        self.path = path
        self.sections = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self.last = dict(self.sections)

    @staticmethod
    def _rows(section):
        return [Row(**fields) for fields in section.get("rows", [])]

    def rows(self, name):
        return self._rows(self.sections.get(name, {}))

    def before(self, name, row, machine):
        """The row of last time, if it can be held against this one: a ratio, or a value of the same machine."""
        section = self.last.get(name, {})
        found = next((each for each in self._rows(section) if (each.name, each.unit) == (row.name, row.unit)), None)
        if found is None or found.unmeasured or bool(found.other) != bool(row.other):
            return None
        return found if row.other or section["machine"] == machine else None

    def put(self, name, rows, about):
        self.sections[name] = {**about, "rows": [vars(row) for row in rows]}

    def write(self, benchmarks, thresholds):
        """Both files, each whole or not at all."""
        ordered = {name: self.sections[name] for name in benchmarks if name in self.sections}
        _replace(self.path, json.dumps(ordered, indent=1) + "\n")
        _replace(PAGE, self.page(benchmarks, thresholds))

    def page(self, benchmarks, thresholds):
        text = [HEAD + self._summary(benchmarks, thresholds)]
        for name, function in benchmarks.items():
            table = _table(self._cells(name, thresholds))
            text.append(f"\n## {name}\n\n{_prose(function.__doc__)}\n\n{_prose(self._about(name))}\n\n{table}")
        return "".join(text)

    def _about(self, name):
        about = self.sections.get(name)
        if about is None:
            return "Not measured yet."
        others, attempts = about.get("others_percent"), about.get("attempts", 1)
        text = f"`{about['command']}` on {about['date']}: {about['machine']}"
        if others is not None:
            text += f"; other programs took {others} % of the processors meanwhile"
        if attempts > 1:
            text += f"; attempt {attempts}, for in those before it a row was worse than demanded"
        return text + "."

    def _cells(self, name, thresholds):
        if name not in self.sections:
            return [["all of it", "", "not measured", "", "", "", "not run yet"]]
        return [_row_cells(name, row, thresholds) for row in self.rows(name)]

    def _summary(self, benchmarks, thresholds):
        """How the goals stand; every one that is not met is named, so that nobody has to look for it."""
        met, short, unmeasured = 0, [], []
        for name in benchmarks:
            for row in self.rows(name) or [Row("all of it", unmeasured="not run yet")]:
                if row.unmeasured:
                    unmeasured.append(f"{name}: {row.name}")
                elif said(thresholds.goal(name, row)):
                    met += (good := within(row.measured(), thresholds.goal(name, row)))
                    short += [] if good else [f"{name}: {row.name}"]
        lines = [f"Goals: {met} met, {len(short)} short, {len(unmeasured)} rows not measured."]
        lines += [f"- short: {each}" for each in short] + [f"- not measured: {each}" for each in unmeasured]
        return "\n".join(lines[:1] + [""] + lines[1:]) + "\n"


def _table(rows):
    """Without the columns that are empty."""
    head, *rows = zip(*(column for column in zip(COLUMNS, *rows) if any(column[1:])))
    return f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n" + "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _prose(text):
    return textwrap.fill(" ".join(text.split()), 128, break_long_words=False, break_on_hyphens=False)


def _row_cells(name, row, thresholds):
    if row.unmeasured:
        return [row.name, "", "not measured", "", "", "", _cell(row.unmeasured)]
    goal = thresholds.goal(name, row)
    short = bool(said(goal)) and not within(row.measured(), goal)
    other = f"{shown(row.other_value)} ({row.other_name})" if row.other else ""
    note = "; ".join(text for text in (row.note, thresholds.why(name, row) if short else "") if text)
    return [row.name, ratio_text(row) if row.other else "", f"{shown(row.value)} {row.unit}".rstrip(), other, _samples(row),
            goal_text(row, goal), _cell(note)]


def _samples(row):
    ours, other = len(row.ours), len(row.other)
    return f"{ours}" if other in (0, ours) else f"{ours} and {other}"


def _cell(text):
    return text.replace("|", "/").replace("\n", " ")


def _replace(path, text):
    new = path.with_name(path.name + ".new")
    new.write_text(text, encoding="utf-8")
    os.replace(new, path)
