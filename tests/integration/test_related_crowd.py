# SPDX-License-Identifier: Apache-2.0
"""Thousands of objects and hundreds of changes of what they depend on: nobody is deaf for it, and nothing of it is lost."""
import json
import signal
import threading

import pytest

from harness import WIDGET_CRD, Devserver, wait_until, watch
from harness.gateway import Gateway

OBJECTS = 4000
CHANGES = 400
DEADLINE = 4  # seconds without a word of the supervisor, and /healthz says 503

# Notes of each request the name, and the level that it was shown.
HANDLER = """
import json, os, sys, time
folder = sys.argv[1]
for line in sys.stdin:
    request = json.loads(line)
    level = "".join(each["data"]["level"] for each in request["related"])
    with open(f"{folder}/{os.getpid()}", "a") as log:
        log.write(f"{request['object']['metadata']['name']} {level}\\n")
    print(json.dumps({"id": request["id"]}), flush=True)
"""


@pytest.fixture
def crowd(sandbox):
    """A devserver that has them all."""
    manifest = sandbox.folder / "crowd.json"
    documents = [json.dumps(WIDGET_CRD)]
    for number in range(OBJECTS):
        metadata = {"name": f"w{number:05}", "namespace": "default"}
        documents.append(json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata}))
    manifest.write_text("\n---\n".join(documents), encoding="utf-8")
    manifest.chmod(0o644)
    return Devserver(sandbox, (), ["--load", str(manifest), "--history", "100000"]).start()


def test_all_are_shown(sandbox, operator, handler):
    """Neither children nor related objects end at a number: a handler that adds them up gets the sum."""
    manifest = sandbox.folder / "many.json"
    documents = [json.dumps(WIDGET_CRD)]
    for number in range(1100):
        metadata = {"name": f"c{number:04}", "namespace": "default"}
        documents.append(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}))
    manifest.write_text("\n---\n".join(documents), encoding="utf-8")
    manifest.chmod(0o644)
    devserver = Devserver(sandbox, (), ["--load", str(manifest)]).start()
    try:
        widgets = devserver.api.resource("example.com/v1", "widgets", "default")
        secrets = devserver.api.resource("v1", "secrets", "default")
        owner = widgets.create("w")["metadata"]
        reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": owner["uid"]}
        for number in range(1100):
            secrets.create(f"s{number}", ownerReferences=[reference])
        operator.configure(devserver, [watch("widgets", handler, related=[{"apiVersion": "v1", "kind": "ConfigMap"}],
                                             owns=[{"apiVersion": "v1", "kind": "Secret"}])])
        operator.start_ready().wait_synced()
        shown = handler.wait_finished(name="w").body
        assert (len(shown["related"]), len(shown["children"])) == (1100, 1100)
        operator.stop()
    finally:
        devserver.close()


class Seen:
    """What the handlers have noted."""

    def __init__(self, operator):
        self.folder = operator.folder / "seen"
        self.folder.mkdir()
        operator.user.give(self.folder, 0o700)
        self.script = operator.folder / "handler.py"
        self.script.write_text(HANDLER, encoding="utf-8")
        operator.user.give(self.script, 0o600)

    def lines(self):
        return [line.split(" ") for path in self.folder.iterdir() for line in path.read_text(encoding="utf-8").split("\n")[:-1]]

    def names(self, level):
        return {name for name, seen in self.lines() if seen == level}


class Health:
    """Asks /healthz all the while."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.answers = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self):
        while not self._over.wait(0.1):
            status, _, text = self.gateway.get("/healthz")
            self.answers.append((status, text))

    def stop(self):
        self._over.set()
        self._thread.join()
        return [answer for answer in self.answers if answer[0] != 200]


@pytest.fixture
def started(crowd, operator):
    """(operator, what handlers have seen, gateway): everybody has run once."""
    socket = operator.runtime_directory / "gateway.sock"
    seen = Seen(operator)
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "for=widgets"}
    widgets = watch("widgets", related=[settings])
    widgets["handler"] = {"serve": ["/usr/bin/python3", str(seen.script), str(seen.folder)]}
    operator.configure(crowd, [widgets], gateway={"listen": f"unix:{socket}"}, workers=2,
                       heartbeat={"interval": "500ms", "deadline": f"{DEADLINE}s"})
    crowd.api.resource("v1", "configmaps", "default").create("settings", labels={"for": "widgets"}, data={"level": "0"})
    operator.start_ready().wait_synced(120)
    wait_until(lambda: len(seen.names("0")) == OBJECTS, lambda: f"everybody to run; {len(seen.names('0'))} have", 240)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 0, "rest", 120)
    return operator, seen, Gateway(socket)


@pytest.mark.slow
@pytest.mark.quiet
def test_related_changes_do_not_silence_the_supervisor(started, crowd):
    operator, seen, gateway = started
    config_maps = crowd.api.resource("v1", "configmaps", "default")
    before, health = len(seen.lines()), Health(gateway)
    for number in range(1, CHANGES):
        config_maps.merge_patch("settings", {"data": {"level": str(number)}})
    config_maps.merge_patch("settings", {"data": {"level": "last"}})
    wait_until(lambda: len(seen.names("last")) == OBJECTS, lambda: f"all to see the last; {len(seen.names('last'))} have", 240)
    assert health.stop() == []
    assert len(health.answers) > 5
    # One run for each that was asked, not one for each change.
    assert len(seen.lines()) - before < OBJECTS * CHANGES / 8
    turns = operator.ctl.status()["turns"]
    assert turns["count"] > 0 and turns["longest"]["took"] >= turns["longestProcessor"]["processor"] > 0
    assert turns["longest"]["what"]
    assert "longest turn" not in operator.ctl.run("status").stdout
    assert "longest turn" in operator.ctl.run("status", "-o", "wide").stdout
    metrics = gateway.metrics()
    assert float(metrics['reconciled_turn_seconds_count{clock="wall"}']) > 0
    assert float(metrics['reconciled_turn_longest_seconds{clock="processor"}']) > 0
    operator.stop()


@pytest.mark.quiet
def test_a_sigkill_in_the_middle_of_related_changes_loses_none(started, crowd):
    operator, seen, _ = started
    config_maps = crowd.api.resource("v1", "configmaps", "default")
    config_maps.merge_patch("settings", {"data": {"level": "last"}})
    wait_until(lambda: seen.names("last"), "the first who sees it")
    operator.popen.send_signal(signal.SIGKILL)
    operator.wait_exit(-signal.SIGKILL)
    done = len(seen.names("last"))
    assert done < OBJECTS
    operator.start_ready().wait_synced(120)
    wait_until(lambda: len(seen.names("last")) == OBJECTS, lambda: f"all to see it; {len(seen.names('last'))} have", 240)
    operator.stop()
