# SPDX-License-Identifier: Apache-2.0
"""kit: each kit whose toolchain is at hand, built. Tests of one kit run in one process, which builds it once."""
import pathlib
import shutil
import tempfile

import pytest

import kits


@pytest.fixture(scope="session", params=[kits.parameter(name) for name in kits.KITS])
def kit(request):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-kit-"))
    folder.chmod(0o755)
    yield kits.build(request.param, folder)
    shutil.rmtree(folder)


@pytest.fixture
def probe(kit):
    """The kit's probe, which serves."""
    running = kits.Running(kit)
    yield running
    running.close()
