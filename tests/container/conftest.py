# SPDX-License-Identifier: Apache-2.0
import pytest

from harness.container import Container, Root, unavailable


@pytest.fixture(scope="session")
def container_root():
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    root = Root()
    yield root
    root.close()


@pytest.fixture
def container(container_root, sandbox):
    return Container(container_root, sandbox)
