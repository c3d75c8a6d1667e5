# SPDX-License-Identifier: Apache-2.0
"""bench/run: what it holds against what, when it ends with 1, and that docs/performance.md is what was measured."""
import json
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))

from benchmarks import BENCHMARKS, PEERS, report  # noqa: E402
from benchmarks.page import PAGE, Results  # noqa: E402
from benchmarks.row import said, within  # noqa: E402
from benchmarks.thresholds import Thresholds  # noqa: E402

KNOWN = {**BENCHMARKS, **PEERS}
# Of bench/thresholds.toml: a ratio to a limit that must be at least 0.3, and not below last time's by more than 1.2.
SECTION, ROW = "exec-rate", "runs of a C program, of the limit"


@pytest.fixture
def run(tmp_path, monkeypatch):
    """run(rates, last=None, others=0): how a run ends whose attempts measure these rates against a limit of 100 a second,
    where last time it was `last`; and how many attempts it took."""
    def run(rates, last=None, others=0):
        path = tmp_path / "results.json"
        path.write_text(json.dumps({} if last is None else {SECTION: {"machine": "another", "rows": [
            {"name": ROW, "unit": "1/s", "ours": [last], "other": [100], "other_name": "limit", "note": "", "unmeasured": ""}]}}))
        monkeypatch.setattr(report.Others, "percent", lambda self: others)
        found, left = report.Report(False, Results(path)), list(rates)

        def benchmark(into):
            """One row."""
            rate = left.pop(0)
            if rate is None:
                raise RuntimeError("it does not start")
            into.row(ROW, "1/s", [0, rate, 1000], [1, 100, 5000])

        found.section(SECTION, benchmark)
        return found.finish(), len(rates) - len(left)

    return run


@pytest.mark.parametrize("rates, last, others, expected", [
    ([31], None, 0, (0, 1)),
    ([29, 29, 29], None, 0, (1, 3)),  # below what is demanded anywhere, three times
    ([29, 31], None, 0, (0, 2)),  # somebody took the machine for a moment
    ([80], 90, 0, (0, 1)),
    ([70, 70, 70], 90, 0, (1, 3)),  # a fifth below last time
    ([70], 90, 50, (0, 1)),  # ... which tells nothing where others take half of the machine
    ([29, 29, 29], 90, 50, (1, 3)),
    ([None], None, 0, (1, 1)),
])
def test_when_it_ends_with_1(run, capsys, rates, last, others, expected):
    assert run(rates, last, others) == expected
    assert ("WORSE THAN DEMANDED" in capsys.readouterr().out) == (expected[0] == 1)


def test_the_page_is_what_was_measured():
    assert Results().page(KNOWN, Thresholds()) == PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", KNOWN)
def test_all_is_measured_and_what_falls_short_has_its_reason(name):
    results, thresholds = Results(), Thresholds()
    rows = results.rows(name)
    assert rows and not [row.name for row in rows if row.unmeasured]
    for row in rows:
        goal = thresholds.goal(name, row)
        assert not said(goal) or within(row.measured(), goal) or "why" in thresholds.of(name, row), f"{row.name} has no reason"


def test_what_is_demanded_names_rows_that_there_are():
    """A row with another name would be held against nothing."""
    results, table = Results(), Thresholds().table
    assert table.keys() <= KNOWN.keys()
    for name, entries in table.items():
        rows = [row.name for row in results.rows(name)]
        unknown = [entry for entry in entries if not any(
            row == entry or (entry.startswith("*") and row.endswith(entry[1:])) for row in rows)]
        assert not unknown, f"{name}: {unknown}"
