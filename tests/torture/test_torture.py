# SPDX-License-Identifier: Apache-2.0
"""A sample of the faults: one N of each call of each program, once and from then on; all of them: tests/torture/run."""
import os
import random

import pytest

from .driver import MODES, PROGRAMS, Fault, Torture

SEED = int(os.environ.get("RECONCILED_TORTURE_SEED", "1"))


@pytest.mark.plain_only("the library that makes calls fail must come before the sanitizer")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_sample_is_survived(sandbox, program):
    torture = Torture(sandbox)
    generator = random.Random(f"{SEED} {program}")
    faults = [Fault(program, call, generator.randint(1, count), mode)
              for call, count in torture.count(program).items() for mode in MODES if count > 0]
    broken = torture.run_all(faults, say=print)
    assert not broken, "\n".join(f"---- {fault}: {why}" for fault, why in broken.items())
    # The count differs a little from run to run; but most faults must have been met.
    met = sum(number for (_, how), number in torture.results.items() if how != "not met")
    assert met > len(faults) / 2, torture.figures()
