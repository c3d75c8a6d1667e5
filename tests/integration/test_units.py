# SPDX-License-Identifier: Apache-2.0
"""The units' exposure, as `systemd-analyze security` measures it offline, alone and with each drop-in: docs/systemd.md has it."""
import re
import shutil
import subprocess

import pytest

from harness.setup import BUILD, SOURCE

pytestmark = pytest.mark.only_where(shutil.which("systemd-analyze"), "systemd-analyze")
TABLE = dict(re.findall(r"^\| `([a-z@.-]+(?:\.conf|\.service))` \| ([\d.]+) \|", (SOURCE / "docs/systemd.md").read_text(encoding="utf-8"), re.M))
UNITS = ["reconciled.service", "reconciled@.service"]
DROP_INS = sorted(path.name for path in (SOURCE / "units" / "drop-ins").iterdir())


def exposure(folder, unit):
    said = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", folder / unit], capture_output=True, text=True, check=False)
    found = re.search(r"Overall exposure level for \S+: ([\d.]+)", said.stdout)
    assert found, said.stdout + said.stderr
    return float(found[1])


def test_the_document_names_all_of_them():
    assert set(TABLE) == {*UNITS, *DROP_INS}


@pytest.mark.parametrize("drop_in", [None, *DROP_INS])
@pytest.mark.parametrize("unit", UNITS)
def test_no_unit_is_more_exposed_than_the_document_says(tmp_path, unit, drop_in):
    shutil.copy(BUILD / "units" / unit, tmp_path)
    if drop_in:
        (tmp_path / f"{unit}.d").mkdir()
        shutil.copy(SOURCE / "units" / "drop-ins" / drop_in, tmp_path / f"{unit}.d")
    assert exposure(tmp_path, unit) <= float(TABLE[drop_in or unit])
