# SPDX-License-Identifier: Apache-2.0
"""One line of what was measured, and how it is shown."""
import statistics


class Row:
    """What was measured of ours and of what it is compared with, sample by sample; or why it was not."""

    def __init__(self, name, unit="", ours=(), other=(), other_name="limit", note="", unmeasured=""):
        self.name, self.unit, self.note, self.other_name = name, unit, note, other_name
        self.ours, self.other, self.unmeasured = list(ours), list(other), unmeasured

    @property
    def value(self):
        return statistics.median(self.ours)

    @property
    def other_value(self):
        return statistics.median(self.other) if self.other else None

    @property
    def ratio(self):
        if not self.other:
            return None
        if self.other_value == 0:
            return 1.0 if self.value == 0 else float("inf")
        return self.value / self.other_value

    def measured(self):
        """What a threshold is about: the ratio where there is something to compare with."""
        return self.ratio if self.other else self.value

    @property
    def more_is_better(self):
        return self.unit == "1/s"


def within(value, bounds):
    low, high = bounds
    return (low is None or value >= low) and (high is None or value <= high)


def shown(value):
    if value == 0 or 0.01 <= abs(value) < 1000:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2g}"


def said(bounds):
    return " ".join(f"{word} {shown(value)}" for word, value in zip(("at least", "at most"), bounds) if value is not None)


def goal_text(row, goal):
    return f"{said(goal)}: {'met' if within(row.measured(), goal) else 'SHORT'}" if said(goal) else ""


def demand_text(row, bounds):
    return f"{'ok' if within(row.measured(), bounds) else 'WORSE'} ({said(bounds)})" if said(bounds) else ""


def ratio_text(row):
    return f"{row.ratio:.2f}" if row.ratio is None or row.ratio >= 0.1 else f"{row.ratio:.2g}"


def terminal_text(row, bounds, goal):
    parts = [f"{row.name:44} {shown(row.value):>9} {row.unit:6}"]
    if row.other:
        parts.append(f"{row.other_name} {shown(row.other_value):>9}   ratio {ratio_text(row)}")
    if len(row.ours) > 1:
        parts.append(f"[{shown(min(row.ours))} .. {shown(max(row.ours))}, n={len(row.ours)}]")
    goal = goal_text(row, goal)
    return "  ".join(parts + [demand_text(row, bounds), goal and f"goal {goal}", row.note]).rstrip()
