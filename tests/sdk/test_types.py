# SPDX-License-Identifier: Apache-2.0
"""The types of the kits are those of the schemas."""
import subprocess

from harness.setup import SOURCE


def test_what_is_checked_in_is_what_the_generator_makes():
    done = subprocess.run([SOURCE / "sdk/generate", "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
