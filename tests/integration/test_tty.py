# SPDX-License-Identifier: Apache-2.0
"""`reconciledctl run --tty`, and what docs/debugging.md says: a handler has the terminal, and all the time that it wants."""
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import termios
import time

import pytest
import yaml

from harness import wait_until
from harness.process import clean_environment
from harness.session import Document
from harness.setup import BUILD, SOURCE
from harness.wait import scaled

KITS, PAGE = Document("docs/kits.md"), Document("docs/debugging.md")
RUN = ["run", "--config", "reconciled.yaml", "--object", "widget.yaml"]


class Terminal:
    """A program on a terminal of its own; what it shows is in `shown`."""

    def __init__(self, command, folder, environment):
        self.master, slave = os.openpty()
        self.shown = ""
        self.process = subprocess.Popen(command, cwd=folder, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                                        env=environment, preexec_fn=self._enter)
        os.close(slave)

    @staticmethod
    def _enter():
        """As a login does it. What a shell starts in the background ignores Ctrl-C, and so would all that it starts."""
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def read(self):
        """False: it has ended."""
        if not select.select([self.master], [], [], scaled(30))[0]:
            raise AssertionError(f"nothing more is shown after: {self.shown}")
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: nobody has the other side any more
            data = b""
        self.shown += data.decode(errors="replace").replace("\r\n", "\n")
        return bool(data)

    def expect(self, text):
        """Waits until it is shown, behind what was expected before."""
        while text not in self.shown:
            assert self.read(), f"it has not shown {text!r}: {self.shown}"
        self.shown = self.shown.partition(text)[2]

    def type(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """(exit code, what was shown last)"""
        while self.read():
            pass
        return self.process.wait(scaled(30)), self.shown

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)


@pytest.fixture
def folder(sandbox):
    """With the configuration and the object of docs/kits.md; the handler is the test's."""
    folder = sandbox.subfolder("handler")
    for name in ("reconciled.yaml", "widget.yaml"):
        (folder / name).write_text(KITS.named[name], encoding="utf-8")
    return folder


def save(folder, handler, kind="serve", **options):
    path = folder / "handler.py"
    path.write_text(handler, encoding="utf-8")
    path.chmod(0o755)
    config = yaml.safe_load(KITS.named["reconciled.yaml"])
    config["watches"][0]["handler"] = {kind: ["./handler.py"], **options}
    (folder / "reconciled.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


@pytest.fixture
def environment(folder, sandbox):
    return clean_environment(sandbox.user(), {"HOME": str(folder), "TERM": "dumb"})


@pytest.fixture
def terminal(folder, programs, environment):
    """terminal(*words): reconciledctl run --tty with these words behind."""
    opened = []

    def terminal(*words):
        opened.append(Terminal([str(programs["reconciledctl"]), *RUN, "--tty", *words], folder, environment))
        return opened[-1]

    yield terminal
    for each in opened:
        each.close()


PLAIN = """#!/usr/bin/python3
import json, pdb, sys
for line in sys.stdin:
    request = json.loads(line)
    size = request["object"]["spec"]["size"]
    pdb.Pdb(stdin=open("/dev/tty"), stdout=open("/dev/tty", "w")).set_trace()
    print(json.dumps({"id": request["id"], "status": {"size": size}}), flush=True)
"""


def test_a_debugger_in_a_handler(folder, terminal):
    save(folder, PLAIN)
    shell = terminal()
    shell.expect("(Pdb) ")
    shell.type("size = size + 39\n")
    shell.expect("(Pdb) ")
    shell.type("\x03")  # for the handler alone
    shell.expect("(Pdb) ")
    shell.type("c\n")
    code, shown = shell.end()
    assert code == 0 and "status.size: 42" in shown and "result: success" in shown, shown


def test_the_kit_s_handler_stops_at_a_breakpoint(folder, terminal):
    shutil.copytree(SOURCE / "sdk/python/reconciled", folder / "reconciled")
    save(folder, KITS.named["handler.py"].replace('    if size < 0:', '    breakpoint()\n    if size < 0:', 1))
    shell = terminal()
    shell.expect("(Pdb) ")
    shell.type("size = -1\n")
    shell.expect("(Pdb) ")
    shell.type("c\n")
    code, shown = shell.end()
    assert code == 1 and "result: permanent" in shown and "spec.size is negative" in shown, shown


def test_neither_timeout_nor_limits(folder, terminal):
    """And the exit status counts."""
    save(folder, "#!/bin/sh\nsleep 1\nulimit -d >&2\necho '{\"error\": \"no\"}'\nexit 65\n", "exec", timeout="100ms",
         limits={"memory": "64Mi"})
    code, shown = terminal().end()
    assert code == 1 and "unlimited" in shown and "the handler exited with 65" in shown, shown


def test_a_command_in_its_place(folder, terminal):
    save(folder, "#!/bin/sh\nexit 1\n", "exec", environment={"REGION": "north"})
    shell = terminal("--", "sh")
    shell.type("echo \"$RECONCILED_NAME of $REGION in $PWD\"\n")
    shell.expect(f"apple of north in {folder}")
    shell.type("jq -r '\"to \\(.action)\"' $RECONCILED_REQUEST\n")
    shell.expect("to reconcile")
    shell.type("echo '{\"status\": {\"by\": \"hand\"}}' >$RECONCILED_ANSWER; exit\n")
    code, shown = shell.end()
    assert code == 0 and 'status.by: "hand"' in shown, shown


def test_the_end_of_the_terminal_is_that_of_the_handler(folder, terminal):
    save(folder, f"#!/bin/sh\necho $$ >{folder}/pid.new && mv {folder}/pid.new {folder}/pid\nexec sleep 1000\n", "exec")
    shell = terminal()
    wait_until((folder / "pid").exists, lambda: f"the handler; {shell.shown}")
    shell.process.terminate()
    assert shell.end()[0] == 128 + 15
    wait_until(lambda: not os.path.exists(f"/proc/{(folder / 'pid').read_text().strip()}"), "the end of the handler")


@pytest.mark.parametrize("words, handler, why", [
    (["--tty"], {"exec": ["./handler.py"]}, "standard input is no terminal"),
    (["--", "sh"], {"exec": ["./handler.py"]}, "with --tty only"),
])
def test_wrong_usage(folder, programs, words, handler, why):
    save(folder, "#!/bin/sh\n")
    done = subprocess.run([programs["reconciledctl"], *RUN, *words], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False)
    assert done.returncode == 64 and why in done.stderr, done


def test_a_plugin_has_no_terminal(folder, terminal):
    config = yaml.safe_load(KITS.named["reconciled.yaml"])
    plugin = next(BUILD.glob("**/*.so"))
    config["watches"][0]["handler"] = {"plugin": str(plugin)}
    (folder / "reconciled.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    code, shown = terminal().end()
    assert code == 64 and "a plugin has no process of its own" in shown, shown


def test_one_request_by_hand(folder, environment):
    """The section of that name: `One request by hand`."""
    shutil.copytree(SOURCE / "sdk/python/reconciled", folder / "reconciled")
    save(folder, KITS.named["handler.py"])
    take, give, shown = PAGE.section("One request by hand")
    environment["PATH"] = f"{BUILD}/ctl:{environment['PATH']}"
    subprocess.run(["sh", "-ec", take.text], cwd=folder, env=environment, check=True)
    done = subprocess.run(["sh", "-ec", give.text], cwd=folder, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == {**json.loads(shown.text), "id": json.loads(done.stdout)["id"]}


def test_the_commands_of_the_page():
    """Those of the section `With the terminal` are what the tests above run."""
    for example in PAGE.section("With the terminal"):
        words = example.text.split()
        assert words[:3] == ["reconciledctl", "run", "--tty"] and words[3:7] == RUN[1:], example
