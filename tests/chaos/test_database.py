# SPDX-License-Identifier: Apache-2.0
"""The operator of examples/database among people and faults, for some steps; for hours, and with other seeds: tests/chaos/run
--database."""
import itertools
import os

import pytest

from harness.setup import SANITIZED

from .database import Databases, steps

SEED = int(os.environ.get("RECONCILED_CHAOS_SEED", "1"))


def test_the_same_seed_makes_the_same_steps():
    first, other, again = (list(itertools.islice(steps(seed), 500)) for seed in (7, 8, 7))
    assert first == again != other


@pytest.mark.slow
def test_the_log_tells_the_story_of_each_child(sandbox):
    print(f"seed {SEED}")
    databases = Databases(sandbox, SEED, say=print).run(count=200)
    assert databases.count["lose state"] == 1 and databases.count["start"] > 3, databases.figures()
    if not SANITIZED:
        assert databases.count["kill at write"] > 1, databases.figures()
