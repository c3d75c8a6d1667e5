# SPDX-License-Identifier: Apache-2.0
"""docs/watch.md names a test for each row; each of them exists, and each test here is named there. So does docs/security.md."""
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2]


def named_in(document):
    """`file::test`, the file below tests/."""
    return set(re.findall(r"`([a-z_/.-]+\.(?:py|c))::(test_\w+)`", (SOURCE / "docs" / document).read_text(encoding="utf-8")))


def defined_in(path):
    text = path.read_text(encoding="utf-8")
    pattern = r"^def (test_\w+)" if path.suffix == ".py" else r"^static void (test_\w+)"
    return set(re.findall(pattern, text, re.M))


@pytest.mark.parametrize("document", ["watch.md", "security.md"])
def test_every_test_that_is_named_exists(document):
    named = named_in(document)
    missing = [f"{file}::{test}" for file, test in sorted(named)
               if not (SOURCE / "tests" / file).exists() or test not in defined_in(SOURCE / "tests" / file)]
    assert named and not missing


def test_every_test_of_this_suite_is_named():
    here = {(f"watch/{path.name}", test) for path in Path(__file__).parent.glob("test_*.py") if path.name != "test_table.py"
            for test in defined_in(path)}
    assert here <= named_in("watch.md"), sorted(here - named_in("watch.md"))
