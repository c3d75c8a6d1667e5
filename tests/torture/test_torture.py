# SPDX-License-Identifier: Apache-2.0
"""A sample of the faults: one N of each call of each program, once and from then on; all of them: tests/torture/run."""
import os
import random
import subprocess

import pytest

from harness.setup import BUILD

from .driver import CALLS, ENDS, MODES, PROGRAMS, Fault, Torture, read_counts

SEED = int(os.environ.get("RECONCILED_TORTURE_SEED", "1"))


@pytest.mark.plain_only("the library that counts must come before the sanitizer")
def test_what_is_left_behind_is_found(tmp_path):
    file = tmp_path / "counts"
    file.write_bytes(bytes(8 * (len(CALLS) + len(ENDS))))
    folder = BUILD / "tests" / "torture"
    result = subprocess.run([folder / "leaky"], stderr=subprocess.PIPE, text=True, check=True,
                            env={"LD_PRELOAD": folder / "libfault-switch.so", "RECONCILED_FAULT": "leaky memory 0 once",
                                 "RECONCILED_FAULT_COUNTS": file, "RECONCILED_FAULT_TRACE": "1"})
    counts = read_counts(file)
    assert [counts[name] for name in ("ends", "leaked", "unknown", "descriptors")] == [1, 2, 0, 1], result.stderr
    assert "8 bytes" in result.stderr and "200 bytes" in result.stderr and "100 bytes" not in result.stderr, result.stderr


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
    assert met > len(faults) / 2, torture.results


@pytest.mark.plain_only("the library that makes calls fail must come before the sanitizer")
def test_runs_that_are_not_sent(sandbox):
    """Where a worker is given several at once."""
    torture = Torture(sandbox, "served")
    count = torture.count("reconciled")["send"]
    faults = [Fault("reconciled", "send", nth, mode) for nth in range(count // 2, count, count // 6) for mode in MODES]
    broken = torture.run_all(faults, say=print)
    assert not broken, "\n".join(f"---- {fault}: {why}" for fault, why in broken.items())
    assert sum(number for (_, how), number in torture.results.items() if how != "not met") > 1, torture.results
