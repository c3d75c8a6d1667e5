# SPDX-License-Identifier: Apache-2.0
"""A handler for tests: a shell script that records each run and then does what the test has told it to."""
import json
import os
import pathlib
import shlex
import shutil

from .schema import check_request
from .setup import small_program
from .wait import wait_until

SCRIPT = """#!/bin/sh
cd {records} || exit 99
run=$({record} $$) || exit 99
REQUEST={records}/$run.request
export REQUEST
trap 'echo $? >"$run.exit"' EXIT
. {behaviour}
"""


class Request:
    """One run: body (the request, parsed), environment, started (seconds), pid, exit_code (None while it runs, or when
    it was killed)."""

    def __init__(self, path):
        self.path = path
        started, pid = path.name[:-len(".request")].split("-")
        self.started, self.pid = float(started), int(pid)
        self.text = path.read_text(encoding="utf-8")
        self.body = check_request(json.loads(self.text)) if self.text.strip() else {}
        pairs = path.with_suffix(".environment").read_text(encoding="utf-8", errors="replace").split("\0")
        self.environment = dict(pair.split("=", 1) for pair in pairs if "=" in pair)

    @property
    def exit_code(self):
        try:
            return int(self.path.with_suffix(".exit").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    @property
    def object(self):
        return self.body.get("object") or {}

    @property
    def metadata(self):
        return self.object.get("metadata", {})

    @property
    def name(self):
        return self.metadata.get("name")

    def __repr__(self):
        body = self.body
        return (f"<{body.get('action')} {self.metadata.get('namespace')}/{self.name} reason={body.get('reason')} "
                f"attempt={body.get('attempt')} exit={self.exit_code}>")


def fits(request, where):
    """A run that lacks what is asked for is another one; it must not hide those that come after it."""
    try:
        return where(request)
    except (LookupError, TypeError):
        return False


class Handler:
    """command     what goes into the configuration's handler.exec
    behave(shell)  from the next run on, this shell text is run after the request is recorded; $REQUEST names the file
                   with the request, $RECONCILED_* are there. Its output is the answer, `exit 75` its exit status.
    answer(object, exit_code=0)
                   behave(), for a fixed answer
    held, let_go() shell text that goes on when let_go() is called
    requests(...)  the runs so far, oldest first
    """

    def __init__(self, sandbox, behaviour="exit 0"):
        self.folder = sandbox.subfolder("handler", mode=0o777)
        self.records = self.folder / "records"
        self.records.mkdir()
        self.records.chmod(0o777)
        self.script = self.folder / "handler"
        self.behaviour = self.folder / "behaviour"
        self.held = f"while [ ! -e {self.folder}/go ]; do sleep 0.02; done"
        self.behave(behaviour)
        record = self.folder / "record"
        shutil.copy(small_program("record"), record)
        record.chmod(0o755)
        self.script.write_text(SCRIPT.format(records=shlex.quote(str(self.records)), record=shlex.quote(str(record)),
                                             behaviour=shlex.quote(str(self.behaviour))), encoding="utf-8")
        self.script.chmod(0o755)
        self.command = [str(self.script)]
        self._known = {}

    def behave(self, shell):
        new = pathlib.Path(f"{self.behaviour}.new")
        new.write_text(f"{shell}\n", encoding="utf-8")
        new.chmod(0o644)
        os.replace(new, self.behaviour)

    def answer(self, answer, exit_code=0):
        self.behave(f"printf '%s\\n' {shlex.quote(json.dumps(answer))}\nexit {exit_code}")

    def let_go(self):
        (self.folder / "go").touch()

    def requests(self, name=None, action=None, where=lambda request: True):
        """Runs of the object `name`, of the action, and for which where(request) is true."""
        found = []
        for path in sorted(self.records.glob("[0-9]*.request"), key=lambda path: path.name):
            if path not in self._known:
                self._known[path] = Request(path)
            request = self._known[path]
            if name is not None and request.name != name:
                continue
            if action is not None and request.body.get("action") != action:
                continue
            if fits(request, where):
                found.append(request)
        return found

    def count(self):
        """How many runs there were; cheap, for tests with thousands."""
        return sum(1 for entry in os.scandir(self.records)
                   if entry.name.endswith(".request"))

    def wait_for(self, name=None, action=None, count=1, where=lambda request: True, deadline=20.0):
        """Waits until there are at least `count` such runs; returns the last one of them."""
        def enough():
            found = self.requests(name, action, where)
            return found if len(found) >= count else None

        return wait_until(enough, lambda: f"{count} handler runs (name={name}, action={action}); "
                          f"all runs: {self.requests()!r}", deadline)[-1]

    def wait_finished(self, **selection):
        """As wait_for(), and that run has ended by itself."""
        request = self.wait_for(**selection)
        wait_until(lambda: request.exit_code is not None, f"the end of {request!r}")
        return request

    def forget(self):
        """Removes what was recorded."""
        self._known.clear()
        for path in self.records.iterdir():
            path.unlink(missing_ok=True)
