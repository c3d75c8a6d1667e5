# SPDX-License-Identifier: Apache-2.0
"""A minute and a half of chaos, with a seed of its own; hours, and other seeds: tests/chaos/run. On a real API server:
tests/cluster/test_chaos.py."""
import itertools
import os

from harness.setup import SANITIZED

from .driver import Chaos
from .plan import KINDS, steps

SEED = int(os.environ.get("RECONCILED_CHAOS_SEED", "1"))
SECONDS = float(os.environ.get("RECONCILED_CHAOS_SECONDS", "80"))


def test_the_same_seed_makes_the_same_steps():
    def first(seed):
        return list(itertools.islice(steps(seed), 2000))

    assert first(7) == first(7) and first(7) != first(8)
    kinds = {step.what for step in first(7)}
    assert {"create", "delete", "kill", "kill supervisor", "fault"} <= kinds
    assert {step.kind for step in first(7)} == set(KINDS)


def test_everything_comes_right(sandbox):
    chaos = Chaos(sandbox, SEED, say=print).run(SECONDS)
    assert chaos.count["create"] > 50 and chaos.count["start"] > 3, chaos.figures()
    if not SANITIZED:
        assert len(chaos.gone) > 20, chaos.figures()
