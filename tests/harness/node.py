# SPDX-License-Identifier: Apache-2.0
"""A booted system on which the operator runs as a service, and what the tests of the units do with it."""
import shutil

import yaml

from .operator import MESSAGE_ID
from .setup import stretched, watch
from .wait import wait_until

UNITS = ("reconciled.service", "reconciled@second.service")
HANDLER = "/usr/local/bin/handler"


class Node:
    """Whatever a System has, and more."""

    def __init__(self, system):
        self.system = system
        self.unit = UNITS[0]

    def __getattr__(self, name):
        return getattr(self.system, name)

    def configure(self, handler="exit 0", path="/etc/reconciled/reconciled.yaml", handler_options=None, **more):
        """One watch of Widgets, whose handler is this shell script."""
        self.write(HANDLER, f"#!/bin/sh\n{handler}\n", 0o755)
        config = {"operator": "widgets.example.com", "workers": 1,
                  "watches": [watch("widgets", [HANDLER], handler_options=handler_options or {})], **more}
        self.write(path, yaml.safe_dump(stretched(config)))

    def start(self, unit=None):
        self.run("systemctl", "start", unit or self.unit)
        self.wait_synced(unit)

    def wait_synced(self, unit=None):
        return self.wait_journal(f"_SYSTEMD_UNIT={unit or self.unit}", f"MESSAGE_ID={MESSAGE_ID['WATCH_SYNCED']}")

    def kill(self, pid, signal):
        self.run("kill", f"-{signal}", pid)

    def main_pid(self):
        return int(self.show(self.unit, "MainPID"))

    def wait_restarts(self, count, deadline=60.0):
        wait_until(lambda: int(self.show(self.unit, "NRestarts")) >= count and
                   self.show(self.unit, "ActiveState") == "active",
                   lambda: f"restart {count}: {self.run('systemctl', 'status', self.unit, check=False).stdout}", deadline)


def clean(system):
    for unit in UNITS:
        system.run("systemctl", "stop", unit, check=False)
        shutil.rmtree(system.root / f"etc/systemd/system/{unit}.d", ignore_errors=True)
    system.run("systemctl", "stop", "devserver.service", check=False)
    system.run("systemctl", "reset-failed", check=False)
    system.run("sh", "-c", "rm -rf /var/lib/reconciled* /var/lib/private/reconciled* /etc/reconciled/*.yaml "
               "/etc/credstore/* /run/systemd/transient/devserver.service")
    system.run("systemctl", "daemon-reload")
