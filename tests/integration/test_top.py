# SPDX-License-Identifier: Apache-2.0
"""reconciledctl top: live on a terminal, once elsewhere."""
import json
import re
import signal

import pytest

from harness import wait_until, watch
from harness.terminal import Terminal

BEHAVIOUR = """case $RECONCILED_NAME in
retry*) echo the disk is full >&2; exit 75;;
permanent*) echo wrong size >&2; exit 65;;
slow*) while [ ! -e {folder}/go ]; do sleep 0.02; done;;
esac"""


@pytest.fixture
def running(devserver, operator, handler):
    handler.behave(BEHAVIOUR.format(folder=handler.folder))
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "1h", "max": "1h"})])
    return operator.start_ready().wait_synced()


@pytest.fixture
def top(operator):
    opened = []

    def top(*options, **more):
        command = [operator.sandbox.program("reconciledctl"), "--runtime-directory", operator.runtime_directory, "top", *options]
        terminal = Terminal(operator.user, command, cwd=operator.sandbox.folder, **more)
        opened.append(terminal)
        return terminal

    yield top
    for terminal in opened:
        terminal.close()


def given_back(screen):
    wait_until(lambda: screen.text.rstrip().endswith("\x1b[?25h\x1b[?1049l"), lambda: repr(screen.text[-200:]))
    assert screen.is_as_before()


def test_live(running, top, widgets, handler):
    screen = top("--interval", "100ms")
    screen.wait_screen("widgets.example.com", "running, up", "WATCH", "widgets", "in-sync")
    assert "\x1b[?1049h" in screen.text, "a screen of its own"
    for name in ("a", "retry", "permanent", "slow"):
        widgets.create(name)
    screen.wait_screen("2 failing", "default/slow  widgets  runs in worker", "default/retry  widgets  1x", "disk is full")
    lines = screen.screen()
    failing = [line for line in lines if "  1x: " in line]
    assert "never" in failing[0] and "default/permanent" in failing[0] and "wrong size" in failing[0], "the worst first"
    assert "default/retry" in failing[1] and re.search(r"59m|1h", failing[1])
    handler.let_go()
    wait_until(lambda: any("default/slow  widgets  success" in line for line in screen.screen()), "the slowest run")
    screen.press("q")
    assert screen.wait_exit() == 0
    given_back(screen)


def test_long_names_keep_the_columns(devserver, operator, handler, top):
    name = "widgets-of-the-whole-cluster"
    operator.configure(devserver, [watch(name, handler, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])])
    operator.start_ready().wait_synced()
    screen = top("--interval", "100ms", columns=160)
    screen.wait_screen(f"{name}.owns.ConfigMap.0", "STATE")
    head, *rows = [text for text in screen.screen() if text.startswith(("WATCH", name))]
    assert len(rows) == 2 and {text[head.index("STATE"):].split()[0] for text in rows} == {"in-sync"}, rows


def test_it_fits_the_terminal(running, top, widgets, handler):
    for number in range(40):
        widgets.create(f"permanent-{number}")
    wait_until(lambda: running.ctl.status()["watches"][0]["failing"] == 40, "the failures")
    screen = top("--interval", "100ms", rows=15, columns=40)
    screen.wait_screen("FAILING")
    assert len(screen.screen()) <= 15 and all(len(line) <= 40 for line in screen.screen())
    screen.resize(40, 100)
    wait_until(lambda: len(screen.screen()) > 30, "more lines")
    screen.press("q")
    assert screen.wait_exit() == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_screen_back(running, top, number):
    screen = top("--interval", "1h")
    screen.wait_screen("widgets")
    screen.popen.send_signal(number)
    assert screen.wait_exit() == 0
    given_back(screen)


def test_it_waits_for_the_operator(running, top):
    screen = top("--interval", "100ms")
    screen.wait_screen("in-sync")
    running.stop()
    screen.wait_screen("no operator is running")
    running.start_ready().wait_synced()
    screen.wait_screen("in-sync", "runs/s")
    screen.press("q")
    assert screen.wait_exit() == 0


def test_no_colours_where_nobody_wants_them(running, top):
    screen = top("--interval", "100ms", environment={"NO_COLOR": "1"})
    screen.wait_screen("in-sync")
    screen.press("q")
    assert screen.wait_exit() == 0
    assert not re.search(r"\x1b\[[0-9]+m", screen.text)


def test_once_where_there_is_no_terminal(running, widgets):
    widgets.create("permanent")
    wait_until(lambda: running.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    done = running.ctl.run("top")
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert "default/permanent  widgets  1x: " in done.stdout and "runs/s" not in done.stdout
    slowest = json.loads(running.ctl.run("top", "--json").stdout)["slowest"]
    assert [run["key"] for run in slowest] == ["default/permanent"] and slowest[0]["took"] > 0
    assert running.ctl.run("top", "--interval", "1ms").returncode == 64
    running.stop()
    assert running.ctl.run("top").returncode == 69
