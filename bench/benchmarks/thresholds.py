# SPDX-License-Identifier: Apache-2.0
"""bench/thresholds.toml: what a row must be (min, max), what it is meant to be (goal_min, goal_max), and by what factor it may be
worse than what was written last (slack)."""
import pathlib
import tomllib

PATH = pathlib.Path(__file__).resolve().parents[1] / "thresholds.toml"
SLACK = 1.3


class Thresholds:
    def __init__(self, path=PATH):
        with open(path, "rb") as file:
            self.table = tomllib.load(file)

    def of(self, section, row):
        """The entry of the row; an entry "*TEXT" is for all rows that end with TEXT and have none of their own."""
        table = self.table.get(section, {})
        if row.name in table:
            return table[row.name]
        return next((entry for name, entry in table.items() if name.startswith("*") and row.name.endswith(name[1:])), {})

    def bounds(self, section, row):
        entry = self.of(section, row)
        return entry.get("min"), entry.get("max")

    def goal(self, section, row):
        entry = self.of(section, row)
        return entry.get("goal_min"), entry.get("goal_max")

    def why(self, section, row):
        return self.of(section, row).get("why", "the reason has not been looked for")

    def always(self, section, row):
        return self.of(section, row).get("always", False)

    def demanded(self, section, row, before):
        """(lowest, highest) that passes; `before`: the row of last time, None where there is none to compare with."""
        low, high = self.bounds(section, row)
        entry = self.of(section, row)
        if before is None or not entry or not 0 < before.measured() < float("inf"):
            return low, high
        slack = entry.get("slack", SLACK)
        if row.more_is_better:
            return max(before.measured() / slack, low or 0), high
        worst = before.measured() * slack
        return low, worst if high is None else min(worst, high)
