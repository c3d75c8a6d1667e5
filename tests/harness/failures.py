# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest: beside the results (--junitxml=FOLDER/NAME.xml) it writes what failed into FOLDER/NAME.failed.json, from which
tools/run-again runs each of these tests once more, alone.

    {"folder": where pytest was started, "arguments": [option, ...], "environment": {name: value},
     "failed": {test: {"name": as the results call it, "load": at that time, "text": the first failure's output}}}
"""
import json
import os
from pathlib import Path


class Failures:
    def __init__(self, config):
        self._config = config
        self._failed = {}

    def pytest_runtest_logreport(self, report):
        if not report.failed:
            return
        file, _, name = report.nodeid.partition("::")
        text = "\n".join([report.longreprtext, *(f"---- {title}\n{body}" for title, body in report.sections)])
        # Under --dist loadgroup, the name of the group is part of its name; in the results, too.
        grouped = getattr(self._config.option, "dist", "no") == "loadgroup"
        found = self._failed.setdefault(report.nodeid.rpartition("@")[0] if grouped and "@" in report.nodeid else report.nodeid, {
            "name": f"{file.removesuffix('.py').replace('/', '.')}.{name}", "text": "",
            "load": " ".join(f"{load:.1f}" for load in os.getloadavg())})
        found["text"] += f"{report.when}: {text}\n"

    def pytest_sessionfinish(self):
        if not self._failed:
            return
        config = self._config
        Path(config.option.xmlpath).with_suffix(".failed.json").write_text(json.dumps({
            "folder": str(config.invocation_params.dir), "root": str(config.rootpath),
            "arguments": ["-c", str(config.inipath), "--rootdir", str(config.rootpath)],
            "environment": {name: value for name, value in os.environ.items() if name.startswith("RECONCILED_")},
            "failed": self._failed}), encoding="utf-8")


def pytest_configure(config):
    # The processes of pytest-xdist report to the one that started them.
    if config.option.xmlpath and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Failures(config), "failures")
