# SPDX-License-Identifier: Apache-2.0
"""One boot for all tests of this suite; each test finds the units as installed, stopped, and without state."""
import pytest

from harness.node import Node, clean
from harness.system import System, unavailable


@pytest.fixture(scope="session")
def booted():
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    system = System()
    try:
        system.boot()
        yield system
    finally:
        system.close()


@pytest.fixture
def node(booted):
    clean(booted)
    booted.start_server()
    booted.mark()
    yield Node(booted)
