# SPDX-License-Identifier: Apache-2.0
"""What the operator has done to children, in `history` and `explain`. Names of fields, never values."""
import json
import signal

import pytest
import yaml

from harness import wait_until, watch


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, **{"retry": {"first": "1h", "max": "1h"}, **more})])
        return operator.start_ready().wait_synced()

    return start


def runs(operator, *words):
    done = operator.ctl.run("history", "widgets", *words, "-o", "json")
    found = json.loads(done.stdout)["runs"]
    assert done.returncode == (0 if found or "/" not in words[0] else 70), done
    return found


def wait_runs(operator, key, condition):
    wait_until(lambda: condition(runs(operator, key)), lambda: f"the runs: {runs(operator, key)}")
    return runs(operator, key)


def last_run(operator, key):
    return json.loads(operator.ctl.run("explain", "--json", "widgets", key).stdout)["objects"][0]["lastRun"]


def written(run):
    return [(write["what"], write["object"], write["fields"]) for write in run["writes"]]


def test_the_writes_of_runs(start, operator, handler, widgets):
    handler.answer({"children": [config_map("a", word="swordfish"), config_map("b", x="1")]})
    start(finalizer=True)
    widgets.create("w")
    [first] = wait_runs(operator, "default/w", lambda found: len(found) == 1)
    assert (first["result"], first["reason"], first["action"], first["attempt"]) == ("success", "added", "reconcile", 1)
    assert written(first) == [("created", "ConfigMap default/a", ""), ("created", "ConfigMap default/b", "")]
    assert first["took"] > 0 and first["times"] == 1 and first["uid"] == widgets.get("w")["metadata"]["uid"]
    handler.answer({"children": [config_map("a", word="marlin")]})
    widgets.merge_patch("w", {"spec": {"size": 2}})
    second = wait_runs(operator, "default/w", lambda found: len(found) == 2)[1]
    assert written(second) == [("changed", "ConfigMap default/a", "data.word"), ("deleted", "ConfigMap default/b", "")]
    assert last_run(operator, "default/w")["writes"] == second["writes"]
    explained = operator.ctl.run("explain", "widgets", "default/w").stdout
    assert "            changed ConfigMap default/a: data.word\n            deleted ConfigMap default/b\n" in explained
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    handler.answer({})
    operator.start_ready().wait_synced()
    assert runs(operator, "default/w")[:2] == [first, second]
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end")
    last = wait_runs(operator, "default/w", lambda found: found[-1]["action"] == "finalize" and found[-1]["writes"])[-1]
    assert written(last) == [("deleted", "ConfigMap default/a", "")], "the row is gone, and the history tells who did it"
    text = operator.ctl.run("history", "widgets").stdout
    assert "\n    created ConfigMap default/a\n" in text and "\n    changed ConfigMap default/a: data.word\n" in text
    assert yaml.safe_load(operator.ctl.run("history", "widgets", "w", "-n", "default", "-o", "yaml").stdout)["runs"][0] == first
    operator.stop()
    files = operator.state_directory.glob("ledger.sqlite*")
    everything = text + explained + operator.output.text() + "".join(each.read_bytes().decode("latin-1") for each in files)
    assert "swordfish" not in everything and "marlin" not in everything


def test_failures_and_what_follows(start, operator, handler, widgets):
    handler.behave("echo the disk is full >&2; exit 75")
    start()
    widgets.create("w")
    wait_runs(operator, "default/w", lambda found: len(found) == 1)
    operator.ctl.run("retry", "widgets", "default/w")
    [failed] = wait_runs(operator, "default/w", lambda found: found[0]["times"] == 2)
    assert failed["result"] == "retry" and "the disk is full" in failed["error"] and failed["attempt"] == 2
    assert "retry (2 times): " in operator.ctl.run("history", "widgets", "default/w").stdout
    handler.behave("exit 0")
    operator.ctl.run("retry", "widgets", "default/w")
    found = wait_runs(operator, "default/w", lambda found: len(found) == 2)
    assert (found[1]["result"], found[1]["attempt"], found[1]["error"]) == ("success", 3, "")
    operator.ctl.run("retry", "widgets", "default/w")
    found = wait_runs(operator, "default/w", lambda found: len(found) == 3)
    assert found[2]["result"] == "success" and "attempt" not in found[2], "of those that did nothing, the last"
    operator.ctl.run("retry", "widgets", "default/w")
    wait_until(lambda: handler.count() == 5 and runs(operator, "default/w")[2]["endedAt"] > found[2]["endedAt"], "the next one")
    assert runs(operator, "default/w")[:2] == found[:2] and len(runs(operator, "default/w")) == 3
    assert len(runs(operator)) == 2


def test_there_are_bounds(start, operator, handler, widgets):
    handler.answer({"children": [config_map(f"c{number}") for number in range(23)]})
    start()
    widgets.create("w")
    [first] = wait_runs(operator, "default/w", lambda found: len(found) == 1)
    assert len(first["writes"]) == 20 and first["writesLeftOut"] == 3
    assert "... and 3 more" in operator.ctl.run("history", "widgets", "default/w").stdout
    for number in range(21):
        handler.answer({"children": [config_map("c0", number=str(number))]})
        count = handler.count()
        operator.ctl.run("retry", "widgets", "default/w")
        wait_until(lambda: handler.count() == count + 1 and operator.ctl.status()["watches"][0]["running"] == 0, "the run")
    found = wait_runs(operator, "default/w", lambda found: len(found) == 20)
    assert all(written(run) == [("changed", "ConfigMap default/c0", "data.number")] for run in found[2:])
    unknown = [operator.ctl.run("history", "widgets", *key) for key in (["default/none"], ["w"])]
    assert [done.returncode for done in unknown] == [70, 70]
    assert unknown[0].stdout == "no run of default/none is known\n"
    assert unknown[1].stdout == "no run of w is known; a key is NAMESPACE/NAME (or give -n NAMESPACE)\n"
