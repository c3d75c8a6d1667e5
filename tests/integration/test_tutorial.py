# SPDX-License-Identifier: Apache-2.0
"""docs/tutorial.md, followed by a reader who saves each file and types each command."""
import pytest

from harness import wait_until
from harness.session import Document, Session
from harness.setup import BUILD, SOURCE

TUTORIAL = Document("docs/tutorial.md")
FILES = ("crd.yaml", "page.yaml", "handler.py", "reconciled.yaml", "test_handler.py")


@pytest.fixture
def session(sandbox):
    with Session(sandbox, sandbox.subfolder("reader")) as session:
        yield session


@pytest.mark.slow
def test_the_tutorial_up_to_the_container(session):
    folder = session.folder / "pages"
    replace = (("$PWD/build", str(BUILD)), ("/tmp/pages", str(folder)))
    session.type(f"cd {SOURCE}")
    session.follow(TUTORIAL.section("1. A folder"), replace)
    for name in FILES:
        (folder / name).write_text(TUTORIAL.named[name], encoding="utf-8")
    for heading in ("4. A configuration", "5. A test, without a cluster"):
        session.follow(TUTORIAL.section(heading), replace)
    assert "OK" in session.errors(), "the handler's own tests"
    start, *rest = TUTORIAL.section("6. A running operator")
    devserver, operator = start.commands()
    assert devserver.endswith(" &") and operator.endswith(" &")
    session.type(devserver)
    wait_until((folder / "kubeconfig").exists, lambda: f"the server; {session.errors()}")
    session.type(operator)
    wait_until(lambda: session.type("reconciledctl health --ready") == "\n", lambda: f"the operator; {session.errors()}")
    gone = next(number for number, example in enumerate(rest) if "kubectl delete page" in example.text)
    session.follow(rest[:gone])
    assert "hello is in the index" in session.errors(), "the handler's standard error is in the log"
    wait_until(lambda: "hello is listed" in session.errors(), lambda: f"the other handler; {session.errors()}")
    index = folder / "index"
    wait_until(lambda: [file.read_text(encoding="utf-8") for file in index.iterdir()] == ["hello\n"], "the entry, which each run writes")
    delete, show, children = rest[gone].commands()
    session.type(delete)
    assert session.type(show) + session.type(children) == "\n\n", "the entry and the children went first"
    session.follow(rest[gone + 1:])


def test_the_files_are_all_of_use():
    assert set(TUTORIAL.named) == {*FILES, "Containerfile", "operator.yaml"}
