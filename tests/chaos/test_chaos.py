# SPDX-License-Identifier: Apache-2.0
"""Chaos: the situations that once broke a promise, for some steps; with ./check --long everything, for a minute and a half; hours,
and other seeds: tests/chaos/run. On a real API server: tests/cluster/test_chaos.py."""
import itertools
import os

import pytest

from harness.setup import SANITIZED

from .driver import Chaos
from .plan import KINDS, Step, steps

SEED = int(os.environ.get("RECONCILED_CHAOS_SEED", "1"))
SECONDS = float(os.environ.get("RECONCILED_CHAOS_SECONDS", "80"))
KNOWN = ("revert", "reuse", "relabel under way", "drop finalizer", "kill", "kill supervisor", "reload", "fault", "watches", "restore")


def test_the_same_seed_makes_the_same_steps():
    def first(seed):
        return list(itertools.islice(steps(seed), 2000))

    assert first(7) == first(7) and first(7) != first(8)
    kinds = {step.what for step in first(7)}
    assert {"create", "delete", "kill", "kill supervisor", "fault"} <= kinds
    assert {step.kind for step in first(7)} == set(KINDS)


def test_the_known_situations_come_right(sandbox):
    chaos = Chaos(sandbox, SEED, only=(*KNOWN, "snapshot", "compact", "stop", "lose store"), say=print).run(steps=500)
    # Some come only where an object is just right for them.
    assert sum(chaos.count[what] > 0 for what in KNOWN) >= len(KNOWN) - 3, chaos.count


def test_a_restore_is_seen_when_the_first_lists_are_refused(sandbox):
    """The driver's own lists too: what it has not seen go back, it would demand for ever."""
    refused = {"match": {"verb": "list"}, "reset": True, "times": 6}
    plan = [Step("create", "held", "o1", {"chance": 0.1}), Step("snapshot", "held", "o1"), Step("update", "held", "o1"),
            Step("fault", "held", "o1", {"fault": refused}), Step("restore", "held", "o1")]
    chaos = Chaos(sandbox, SEED, say=print, given=plan).run()
    assert chaos.count["restore"] == 1 and chaos.things["held", "o1"].went_back, chaos.figures()


@pytest.mark.long
def test_everything_comes_right(sandbox):
    chaos = Chaos(sandbox, SEED, say=print).run(SECONDS)
    assert chaos.count["create"] > 50 and chaos.count["start"] > 3, chaos.figures()
    if not SANITIZED:
        assert len(chaos.gone) > 20, chaos.figures()
