# SPDX-License-Identifier: Apache-2.0
"""The first minutes of a reader of README.md, who saves the files and types the commands."""
import json

import pytest
import yaml

from harness import wait_until
from harness.session import Document, Session
from harness.setup import BUILD, SOURCE

README = Document("README.md")


@pytest.fixture
def session(sandbox):
    with Session(sandbox, sandbox.subfolder("reader")) as session:
        yield session


def test_an_operator_of_your_own(session):
    session.type(f"cd {SOURCE}")
    for command in README.section("An operator of your own")[-1].commands():
        said = session.type(command.replace("$PWD/build", str(BUILD)).replace("cd /tmp", f"cd {session.folder}"))
    assert "result: success" in said and (session.folder / "notes" / "README.md").exists()


@pytest.mark.long
def test_every_fault(session):
    session.type(f"cd {SOURCE}")
    session.type(f"PATH={BUILD}/ctl:$PATH")
    for command in README.section("Every fault")[-1].commands():
        assert "27 cases, 0 failed" in session.type(command)


def test_a_first_handler_in_a_minute(session):
    folder = session.folder / "widgets"
    replace = (("$PWD/build", str(BUILD)), ("/tmp/widgets", str(folder)))

    def commands(heading):
        for command in README.section(heading)[-1].commands():
            for old, new in replace:
                command = command.replace(old, new)
            yield command

    folder.mkdir(mode=0o700)
    assert set(README.named) == {"handler", "reconciled.yaml"}
    for name, text in README.named.items():
        (folder / name).write_text(text.replace("/tmp/widgets", str(folder)), encoding="utf-8")
    session.type(f"cd {SOURCE}")
    for command in commands("A first handler in a minute"):
        if command.startswith("kubectl get"):
            wait_until(lambda command=command: yaml.safe_load(session.type(command))["status"] == {"phase": "Ready"},
                       lambda: f"the status; {session.errors()}")
        else:
            session.type(command)
        if command.startswith("reconciled-devserver"):
            wait_until((folder / "kubeconfig").exists, lambda: f"the server; {session.errors()}")
    assert json.loads((folder / "apple.json").read_text(encoding="utf-8"))["object"]["spec"] == {"size": 1}
    for command in commands("Trying a handler"):
        assert "result: success" in session.type(command)
    for command in commands("What a new version would change"):
        assert " objects, " in session.type(command)
    for command in commands("Looking at a running operator"):
        # The log of this operator is not in the journal, and the command says so.
        session.type(command, expect=69 if command.startswith("reconciledctl logs") else 0)
    assert "saw apple" in session.errors(), "the handler's standard error is in the log"
    for job in ("%2", "%1"):
        assert f"`kill {job}`" in (SOURCE / "README.md").read_text(encoding="utf-8")
        session.type(f"kill {job}; wait {job}")
