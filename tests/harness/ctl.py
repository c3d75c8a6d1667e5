# SPDX-License-Identifier: Apache-2.0
"""reconciledctl, run as the operator's user."""
import json
import subprocess

from .process import clean_environment
from .wait import scaled


class Ctl:
    """Ctl(operator).run("status", "--json"); Ctl(operator).status() is that, parsed."""

    def __init__(self, operator):
        self.operator = operator

    def run(self, *arguments, user=None, environment=None):
        """Returns the CompletedProcess, stdout and stderr as text."""
        command = [self.operator.sandbox.program("reconciledctl"), "--runtime-directory", self.operator.runtime_directory,
                   *arguments]
        user = user or self.operator.user
        return subprocess.run(user.command(command), env=clean_environment(user, environment), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=scaled(30), check=False,
                              cwd=self.operator.sandbox.folder)

    def status(self):
        result = self.run("status", "--json")
        if result.returncode != 0:
            raise AssertionError(f"reconciledctl status --json: exit {result.returncode}: {result.stderr}")
        return json.loads(result.stdout)

    def check(self, path):
        return self.run("check", str(path))
