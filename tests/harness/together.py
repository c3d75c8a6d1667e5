# SPDX-License-Identifier: Apache-2.0
"""What tests of handlers that are given several objects at a time ask of their widgets."""
from . import wait_until


def row(operator):
    return operator.ctl.status()["watches"][0]


def is_done(widgets, name):
    return widgets.get(name).get("status") == {"seen": name}


def wait_done(widgets, *names):
    wait_until(lambda: all(is_done(widgets, name) for name in names), f"{names} to be done")
