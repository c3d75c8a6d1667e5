# SPDX-License-Identifier: Apache-2.0
"""How reconciledctl is spoken to: help of each verb, near misses, namespaces, forms of output, lists of what is in trouble."""
import json

import pytest
import yaml

from harness import wait_until, watch

VERBS = ["status", "get", "top", "explain", "history", "logs", "check", "health", "rbac", "retry", "release", "pause", "resume",
         "reload", "step-down", "uninstall", "run", "replay", "torture", "plan"]


@pytest.fixture
def troubled(devserver, operator, handler, widgets):
    """One object that has failed for good, one that waits, one that is well."""
    handler.behave("case $RECONCILED_NAME in bad) exit 65;; late) exit 1;; esac")
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "1h", "max": "1h"})])
    operator.start_ready().wait_synced()
    for name in ("bad", "late", "well"):
        widgets.create(name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["failing"] == 2 and handler.count() == 3, "the runs")
    return operator


def test_every_verb_has_its_help(operator):
    for verb in VERBS:
        done = operator.ctl.run(verb, "--help")
        assert done.returncode == 0 and done.stdout.startswith(f"Usage: reconciledctl {verb} "), done
        assert "--json" in done.stdout and operator.ctl.run(verb, "-h").stdout == done.stdout
    assert "--all-failed" in operator.ctl.run("retry", "--help").stdout
    assert "--all-failed" not in operator.ctl.run("status", "--help").stdout


@pytest.mark.parametrize("word, meant", [("statsu", "status"), ("explian", "explain"), ("log", "logs")])
def test_a_verb_that_is_nearly_right(operator, word, meant):
    done = operator.ctl.run(word)
    assert done.returncode == 64 and f"did you mean {meant}?" in done.stderr


def test_a_verb_that_is_none(operator):
    for word in ("foo", "zap", "x"):
        done = operator.ctl.run(word)
        assert done.returncode == 64 and "did you mean" not in done.stderr and "there is no verb " + word in done.stderr, done


def test_a_forgotten_namespace_is_hinted_at(troubled):
    def said(*words, code):
        done = troubled.ctl.run(*words)
        assert done.returncode == code, done
        return done.stdout + done.stderr

    hint = "a key is NAMESPACE/NAME (or give -n NAMESPACE)"
    assert hint in said("explain", "widgets", "bad", code=70)
    assert hint in said("history", "widgets", "bad", code=70)
    assert hint in said("retry", "widgets", "bad", code=70)
    assert hint in said("release", "widgets", "bad", code=70)
    assert hint not in said("retry", "widgets", "default/none", code=70)
    assert hint not in said("explain", "widgets", "default/none", code=70)
    assert "failed for good" in said("explain", "-n", "default", "widgets", "bad", code=0)
    assert "failed for good" in said("explain", "--namespace", "elsewhere", "widgets", "default/bad", code=0)
    assert said("retry", "widgets", "bad", "-n", "default", code=0) == "default/bad of watch widgets runs as soon as a worker is free\n"


def test_who_is_refused_is_named(troubled):
    for words, said in ((["retry"], "no object default/none of watch widgets has ever run"),
                        (["release"], "no object default/none of watch widgets is in quarantine or doubtful"),
                        (["release", "--finalizer", "--yes", "--reason", "x"], "no object default/none of watch widgets is known")):
        done = troubled.ctl.run(*words, "widgets", "default/none")
        assert done.returncode == 70 and done.stderr == f"reconciledctl: {said}\n", done
    long = "default/" + 1000 * "x"
    assert f"no object {long} of watch widgets has ever run" in troubled.ctl.run("retry", "widgets", long).stderr
    done = troubled.ctl.run("release", "--finalizer", "widgets", "default/bad")
    assert done.returncode == 64 and "release --finalizer needs --reason TEXT" in done.stderr
    done = troubled.ctl.run("uninstall")
    assert done.returncode == 64 and done.stderr == "reconciledctl: nothing was done; repeat with --yes\n", done


def test_get(troubled):
    def keys(*words):
        return [item["key"] for item in json.loads(troubled.ctl.run("get", *words, "-o", "json").stdout)["objects"]]

    assert keys("failing") == ["default/bad", "default/late"] == keys("failing", "widgets")
    assert keys("waiting") == ["default/late"], "the resync of the third one is no waiting"
    assert keys("quarantined") == []
    assert keys("failing", "-n", "default") == ["default/bad", "default/late"]
    assert keys("failing", "-n", "defaul") == keys("waiting", "-n", "default-x") == []
    text = troubled.ctl.run("get", "failing").stdout
    assert "a change" in text and "default/late" in text and "exit status 65" in text or "65" in text
    assert "no object is quarantined" in troubled.ctl.run("get", "quarantined").stdout
    wrong = troubled.ctl.run("get", "broken")
    assert wrong.returncode == 70 and "there is no list broken; the lists are failing, waiting or quarantined" in wrong.stderr
    assert "there is no watch" in troubled.ctl.run("get", "failing", "gadgets").stderr


def test_forms_of_the_status(troubled):
    def same(status):
        return {key: value for key, value in status.items() if key not in ("slowest", "watches", "workers", "events", "turns")}

    as_json = json.loads(troubled.ctl.run("status", "-o", "json").stdout)
    assert same(yaml.safe_load(troubled.ctl.run("status", "-o", "yaml").stdout)) == same(as_json) == same(troubled.ctl.status())
    wide = troubled.ctl.run("status", "-o", "wide").stdout
    assert "SUCCEEDED" in wide and "Widget.example.com/v1" in wide
    assert "SUCCEEDED" not in troubled.ctl.run("status").stdout
    assert "wide, json or yaml" in troubled.ctl.run("status", "-o", "xml").stderr
