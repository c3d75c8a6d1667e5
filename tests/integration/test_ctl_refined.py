# SPDX-License-Identifier: Apache-2.0
"""What reconciledctl prints: whole numbers, errors of its own output, and what it makes of mistakes."""
import re
import subprocess

import pytest

from harness import wait_until, watch
from harness.process import clean_environment
from harness.wait import scaled


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator


def test_times_are_integers(configured, widgets, handler):
    handler.behave("exit 65")
    configured.start_ready().wait_synced()
    widgets.create("a")
    wait_until(lambda: configured.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    for words in (["status"], ["explain", "widgets", "default/a"]):
        text = configured.ctl.run(*words, "--json").stdout
        assert not re.findall(r":\s*-?[0-9.]+[eE.][+0-9]*", text), text
    assert isinstance(configured.ctl.status()["startedAt"], int)


@pytest.mark.parametrize("words", [["status"], ["status", "--json"], ["check"], ["--help"], ["--version"]])
def test_output_that_cannot_be_written_is_an_error(configured, words):
    configured.start_ready()
    command = [configured.sandbox.program("reconciledctl"), "--runtime-directory", configured.runtime_directory, *words]
    command += [str(configured.config_file)] if words == ["check"] else []
    for name in ("/dev/full", "closed pipe"):
        if name == "/dev/full":
            output = open(name, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        else:
            closed = subprocess.Popen(["true"], stdin=subprocess.PIPE)
            closed.wait()
            output = closed.stdin
        with output:
            # SIGPIPE stays ignored, as a service manager leaves it.
            done = subprocess.run(configured.user.command(command), stdout=output, stderr=subprocess.PIPE, text=True,
                                  check=False, timeout=scaled(30), env=clean_environment(configured.user),
                                  stdin=subprocess.DEVNULL, cwd=configured.sandbox.folder, restore_signals=False)
        assert done.returncode == 74 and "output cannot be written" in done.stderr, (name, done)
