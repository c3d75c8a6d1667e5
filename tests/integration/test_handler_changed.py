# SPDX-License-Identifier: Apache-2.0
"""What was given up gets one more attempt: after each reload, and at a start that finds another handler."""
import json
import os
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID

# What its spec says: ok-*, retry-* and permanent-*.
BROKEN = """case $RECONCILED_NAME in retry*) echo no luck >&2; exit 75;; permanent*) echo wrong >&2; exit 65;; esac
printf '{"status":{"by":"broken"}}'"""
MENDED = """printf '{"status":{"by":"mended"}}'"""


@pytest.fixture
def start(devserver, operator, handler):
    """configure(**more): of the watch; start(): and starts it."""
    def configure(command=None, keys=None, top=None, **more):
        settings = {"retry": {"first": "1h", "max": "1h"}, **more}
        entry = watch("widgets", handler, **settings)
        entry["handler"] = {**entry["handler"], **({"exec": command} if command else {}), **(keys or {})}
        operator.configure(devserver, [entry], heartbeat={"interval": "100ms", "deadline": "20s"},
                           gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"}, **(top or {}))
        operator.gateway = Gateway(operator.runtime_directory / "gateway.sock")

    def start(**more):
        configure(**more)
        return operator.start_ready().wait_synced()

    start.configure = configure
    handler.behave(BROKEN)
    return start


def release(handler, number=2):
    """What the handler's program sources is not seen; the program is."""
    new = handler.script.with_suffix(".new")
    new.write_text(handler.script.read_text(encoding="utf-8") + f"# release {number}\n", encoding="utf-8")
    new.chmod(0o755)
    new.replace(handler.script)


def mend(handler):
    handler.behave(MENDED)
    release(handler)


def row(operator):
    return operator.ctl.status()["watches"][0]


def wait_failing(operator, failing, permanent):
    wait_until(lambda: (row(operator)["failing"], row(operator)["permanent"]) == (failing, permanent),
               lambda: f"{failing} failing, {permanent} for good: {row(operator)}")


def given_up(operator, handler, widgets, *names):
    for name in names:
        widgets.create(name)
        handler.wait_finished(name=name)
    wait_failing(operator, len(names), sum(name.startswith("permanent") for name in names))


def by(widgets, name):
    return (widgets.get(name).get("status") or {}).get("by")


def wait_mended(widgets, *names):
    for name in names:
        wait_until(lambda name=name: by(widgets, name) == "mended", lambda name=name: f"{name} to be mended: {widgets.get(name)}")


def said(operator):
    return operator.logs(message_id=MESSAGE_ID["TRIED_AGAIN"])


def recorded(operator):
    """The stamp of the handler, and how far the walk is: \"\" when it is over."""
    return [*ledger.read(operator, "SELECT scope, cluster FROM scope WHERE watch = 'widgets/handler'"), (None, None)][0]


def wait_walked(operator):
    """As the ledger has it on disk."""
    wait_until(lambda: recorded(operator)[0] and not recorded(operator)[1], "the walk to be over")


def test_what_was_given_up_runs_once_more_at_a_reload(start, operator, handler, widgets):
    """Also where the handler is the same. What waits for its backoff goes on waiting."""
    start()
    wait_walked(operator)
    given_up(operator, handler, widgets, "permanent-a", "permanent-b", "retry")
    widgets.create("ok")
    handler.wait_finished(name="ok")
    assert "the operator is reloaded" in operator.ctl.run("explain", "widgets", "default/permanent-a").stdout
    operator.reload()
    for name in ("permanent-a", "permanent-b"):
        handler.wait_finished(name=name, count=2)
    wait_failing(operator, 3, 2)
    runs = handler.requests(name="permanent-a")
    assert [(run.body["reason"], run.body["attempt"]) for run in runs] == [("added", 1), ("handlerChanged", 2)]
    mend(handler)
    operator.reload()
    wait_mended(widgets, "permanent-a", "permanent-b")
    assert len(handler.requests(name="retry")) == 1, "its backoff is an hour"
    assert handler.requests(name="ok")[1:] == [], "it had not failed"
    assert [(line["watch"], line["level"]) for line in said(operator)] == [("widgets", "notice")] * 2
    assert "2 objects of watch widgets that were given up get one more attempt" in said(operator)[0]["message"]
    operator.gateway.wait('reconciled_given_up_tried_total{watch="widgets"}', 4)
    wait_failing(operator, 1, 0)
    operator.stop()


def test_a_reload_by_a_restart_in_place_is_a_reload(start, operator, handler, widgets):
    start()
    wait_walked(operator)
    given_up(operator, handler, widgets, "permanent")
    start.configure(top={"workers": 3})
    operator.reload()
    operator.wait_for_log("has restarted in place")
    handler.wait_finished(name="permanent", count=2)
    operator.stop()
    assert [run.body["reason"] for run in handler.requests(name="permanent")] == ["added", "handlerChanged"]
    assert len(said(operator)) == 1


def test_a_wrong_file_gives_no_attempt(start, operator, handler, widgets):
    start()
    wait_walked(operator)
    given_up(operator, handler, widgets, "permanent")
    start.configure(noSuchKey="all")
    os.kill(operator.pid, signal.SIGHUP)
    operator.wait_for_log("the old one stays in force")
    widgets.create("ok")
    handler.wait_finished(name="ok")
    operator.stop()
    assert len(handler.requests(name="permanent")) == 1 and not said(operator)


def test_the_option_that_went_is_an_unknown_key(start, operator):
    start.configure(onHandlerChange="all")
    done = operator.ctl.run("check", str(operator.config_file))
    assert done.returncode != 0 and "onHandlerChange" in done.stdout + done.stderr


def test_what_was_given_up_runs_at_a_start_with_another_handler(start, operator, handler, widgets):
    start()
    wait_walked(operator)
    given_up(operator, handler, widgets, "permanent", "retry")
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("ok")
    handler.wait_finished(name="ok")
    assert not said(operator), "it is the same one"
    operator.stop()
    assert len(handler.requests(name="permanent")) == 1
    mend(handler)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent")
    assert "its handler has changed" in said(operator)[0]["message"]
    operator.stop()
    assert len(handler.requests(name="permanent")) == 2 and len(handler.requests(name="retry")) == 1


@pytest.mark.parametrize("what", ["script", "argument", "environment", "version"])
def test_all_that_makes_a_handler_counts(start, operator, handler, widgets, what):
    """A script after its interpreter, an argument, the name of a variable, and a version of what lies elsewhere."""
    command = ["/usr/bin/env", "sh", str(handler.script)]
    start(command=command, keys={"environment": {"TOKEN": "secret-one"}, "version": "1"})
    wait_walked(operator)
    given_up(operator, handler, widgets, "permanent")
    operator.stop()
    handler.behave(MENDED)
    more = {"environment": {"TOKEN": "secret-one", **({"MORE": "1"} if what == "environment" else {})},
            "version": "2" if what == "version" else "1"}
    start.configure(command=command + (["-x"] if what == "argument" else []), keys=more)
    if what == "script":
        release(handler)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent")
    operator.stop()
    for file in operator.state_directory.glob("ledger.sqlite*"):
        assert b"secret-one" not in file.read_bytes(), "values may be secret"


CONFIGMAP, SERVICE = {"apiVersion": "v1", "kind": "ConfigMap"}, {"apiVersion": "v1", "kind": "Service"}


# tests/unit/supervisor/test-stamp.c has the other keys.
@pytest.mark.parametrize("answer, refused, allowed", [
    ({"children": [{**CONFIGMAP, "metadata": {"name": "%s"}}]},
     {"children": {"kinds": [SERVICE]}}, {"children": {"kinds": [SERVICE, CONFIGMAP]}}),
    ({"patches": [{**CONFIGMAP, "metadata": {"name": "%s", "namespace": "other"}, "data": {"a": "1"}}]},
     {"patches": [CONFIGMAP], "finalizer": True}, {"patches": [{**CONFIGMAP, "namespaces": ["other"]}], "finalizer": True}),
], ids=["children", "patches"])
def test_what_the_handler_may_write_counts(start, devserver, operator, handler, widgets, answer, refused, allowed):
    """What was refused because of the configuration is tried again at a start with one that allows it."""
    devserver.api.resource("v1", "namespaces").create("other")
    if "patches" in answer:
        for name in ("refused", "refused-too"):
            devserver.api.resource("v1", "configmaps", "other").create(name, data={})
    handler.behave(f"""printf '{json.dumps({**answer, "status": {"by": "mended"}})}' "$RECONCILED_NAME\"""")
    start(**refused)
    wait_walked(operator)
    widgets.create("refused")
    wait_failing(operator, 1, 1)
    assert "add to watch widgets" in operator.ctl.run("explain", "widgets", "default/refused").stdout
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("refused-too")
    wait_failing(operator, 2, 2)
    assert len(handler.requests(name="refused")) == 1, "the same configuration is no reason"
    operator.stop()
    start.configure(**allowed)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "refused", "refused-too")
    operator.stop()


def test_a_version_may_come_from_the_operators_environment(start, operator, handler, widgets):
    """As the tag of its image, which a container is given so."""
    operator.environment["IMAGE_TAG"] = "1"
    start(keys={"version": "release-${IMAGE_TAG}"})
    wait_walked(operator)
    given_up(operator, handler, widgets, "permanent")
    operator.stop()
    operator.environment["IMAGE_TAG"] = "2"
    handler.behave(MENDED)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent")
    operator.stop()
    start.configure(keys={"version": "${NO_SUCH_TAG}"})
    assert "the environment has no variable NO_SUCH_TAG" in operator.ctl.run("check", str(operator.config_file)).stdout


def test_a_mere_restart_runs_nothing(start, operator, handler, widgets):
    start(keys={"environment": {"A": "1", "B": "2"}})
    wait_walked(operator)
    before = recorded(operator)
    given_up(operator, handler, widgets, "permanent")
    for how in ("stop", "kill"):
        if how == "stop":
            operator.stop()
        else:
            os.kill(operator.pid, signal.SIGKILL)
            operator.wait_exit(expect=-signal.SIGKILL)
        start.configure(keys={"environment": {"B": "3", "A": "4"}}, resync="9h")
        operator.start_ready().wait_synced()
        widgets.create(f"ok-{how}")
        handler.wait_finished(name=f"ok-{how}")
    operator.stop()
    assert recorded(operator) == before
    assert len(handler.requests(name="permanent")) == 1 and not said(operator)


def test_attempts_that_are_used_up_get_one_more(start, operator, handler, widgets):
    start(retry={"first": "1ms", "max": "1ms", "attempts": 3})
    wait_walked(operator)
    widgets.create("retry")
    wait_failing(operator, 1, 1)
    assert len(handler.requests(name="retry")) == 3
    operator.reload()
    handler.wait_finished(name="retry", count=4)
    wait_failing(operator, 1, 1)
    widgets.merge_patch("retry", {"spec": {"size": 2}})  # a change begins with the first attempt
    handler.wait_finished(name="retry", count=7)
    wait_failing(operator, 1, 1)
    operator.stop()
    assert [run.body["attempt"] for run in handler.requests(name="retry")][:5] == [1, 2, 3, 4, 1]
    assert len(handler.requests(name="retry")) == 7


@pytest.mark.parametrize("changes, told", [({}, "files and credentials are read again"), ({"workers": 3}, "restarts in place")],
                         ids=["same-configuration", "another"])
def test_a_run_from_before_the_reload_is_not_the_last_word(start, operator, handler, widgets, changes, told):
    gate = handler.folder / "gate"
    handler.behave(f"while [ ! -e {gate} ]; do sleep 0.02; done; {BROKEN}")
    start(top={"stop": {"grace": "60s"}})
    wait_walked(operator)
    widgets.create("permanent")
    handler.wait_for(name="permanent")
    mend(handler)
    start.configure(top={"stop": {"grace": "60s"}, **changes})
    os.kill(operator.pid, signal.SIGHUP)
    operator.wait_for_log(told)
    gate.touch()
    wait_mended(widgets, "permanent")
    wait_failing(operator, 0, 0)
    operator.stop()


@pytest.mark.slow
def test_there_and_back_while_the_operator_is_killed(start, operator, handler, widgets):
    """Each release that the operator gets to see, and SIGKILL as soon as it has: nothing is lost, nothing runs for ever."""
    names = [f"permanent-{number}" for number in range(30)]
    start()
    wait_walked(operator)
    given_up(operator, handler, widgets, *names)
    # A run that ends with the last release before the operator is killed is given up, and MENDED is no release.
    handler.behave(handler.held)
    for number in range(4):
        release(handler, number)
        operator.stop() if number == 0 else None
        before = recorded(operator)
        operator.start()
        # What is done before it is on disk may be undone by the end, and then the next start does it.
        wait_until(lambda: recorded(operator)[0] != before[0], "the release to be recorded")
        os.kill(operator.pid, signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
    handler.behave(MENDED)
    operator.start_ready().wait_synced()
    wait_mended(widgets, *names)
    wait_failing(operator, 0, 0)
    wait_walked(operator)
    operator.stop()


def test_a_walk_goes_on_where_the_last_life_was_killed(start, operator, handler, widgets):
    """Rows and the place of the walk are of one transaction; here the first 10 were made due, and ran, before the end."""
    names = [f"permanent-{number:02}" for number in range(20)]
    start()
    wait_walked(operator)
    given_up(operator, handler, widgets, *names)
    operator.stop()
    with ledger.edit(operator) as database:
        assert database.execute("UPDATE scope SET cluster = '3 10' || char(10) || 'default/permanent-09' || char(10) ||"
                                " 'ffffffff' WHERE watch = 'widgets/handler'").rowcount == 1
    handler.behave(MENDED)
    operator.start_ready().wait_synced()
    wait_mended(widgets, *names[10:])
    wait_failing(operator, 10, 10)
    wait_walked(operator)
    assert not said(operator), "it was said when it began"
    operator.stop()
    assert handler.count() == 30


def test_what_is_in_quarantine_stays_there(start, operator, handler, widgets):
    handler.behave("case $RECONCILED_NAME in poison) kill -KILL $PPID; sleep 60;; esac\n" + BROKEN)
    start(retry={"first": "1ms", "max": "1ms", "attempts": 1}, top={"workers": 1})
    wait_walked(operator)
    given_up(operator, handler, widgets, *(f"permanent-{number}" for number in range(5)))
    widgets.create("poison")
    operator.wait_exit(expect=70)
    for _ in range(2):
        operator.start()
        operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    assert [entry["key"] for entry in operator.ctl.status()["quarantine"]] == ["default/poison"]
    mend(handler)
    operator.reload()
    wait_mended(widgets, *(f"permanent-{number}" for number in range(5)))
    assert [entry["key"] for entry in operator.ctl.status()["quarantine"]] == ["default/poison"]
    operator.ctl.run("release", "widgets", "default/poison")
    wait_mended(widgets, "poison")
    operator.stop()


def put(handler, text):
    new = handler.script.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    new.replace(handler.script)


@pytest.mark.parametrize("how", ["restart", "kill"])
def test_a_release_that_was_taken_back_is_another_file(start, operator, handler, widgets, how):
    """No start has ever seen the bad one, but a handler is started from its file each time."""
    handler.behave(MENDED)
    good = handler.script.read_text(encoding="utf-8")
    start()
    wait_walked(operator)
    put(handler, good + "exit 65\n")
    widgets.create("permanent")
    wait_failing(operator, 1, 1)
    if how == "kill":
        os.kill(operator.pid, signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
    else:
        operator.stop()
    put(handler, good)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent")
    wait_failing(operator, 0, 0)
    operator.stop()


@pytest.mark.parametrize("when", ["before", "during"])
def test_all_objects_run_again_by_hand(start, operator, handler, widgets, when):
    """Also after a restart; what is new waits for none of them."""
    gate = handler.folder / "gate"
    start(top={"workers": 1})
    wait_walked(operator)
    names = [f"ok-{number}" for number in range(60)]
    given_up(operator, handler, widgets, "permanent", "retry")
    for name in names:
        widgets.create(name)
    for name in names:
        handler.wait_finished(name=name)
    handler.behave(f"while [ ! -e {gate} ]; do sleep 0.02; done; {MENDED}")
    assert "62 objects are due now" in operator.ctl.run("retry", "--all", "widgets").stdout
    if when == "during":
        handler.wait_for(name="ok-0", count=2)
        os.kill(operator.pid, signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
        gate.touch()
        operator.start_ready().wait_synced()
    else:
        # A worker is given 16 runs at most.
        wait_until(lambda: row(operator)["queued"] >= 62 - 16, "all of them to be due")
        widgets.create("new")
        wait_until(lambda: row(operator)["queued"] >= 63 - 16, "the new one to be queued")
        gate.touch()
        handler.wait_finished(name="new")
        names_in_order = [request.name for request in handler.requests()]
        assert names_in_order.index("new") < 62 + 62 / 2, "it has overtaken most of them"
    wait_mended(widgets, "permanent", "retry", *names)
    wait_failing(operator, 0, 0)
    wait_walked(operator)
    operator.stop()
    assert {run.body["reason"] for run in handler.requests(name="ok-5")} == {"added", "requested"}


def test_all_objects_are_of_one_watch(start, operator, widgets):
    start()
    for words in (["retry", "--all"], ["retry", "--all", "widgets", "default/a"], ["retry", "--all", "--all-failed", "widgets"]):
        assert operator.ctl.run(*words).returncode == 64
    assert operator.ctl.run("retry", "--all", "gadgets").returncode == 70
    operator.ctl.run("pause", "widgets")
    assert "is paused" in operator.ctl.run("retry", "--all", "widgets").stderr
    operator.stop()


@pytest.mark.parametrize("kind", ["exec", "serve"])
@pytest.mark.parametrize("how", ["away", "not executable"])
@pytest.mark.slow
def test_a_program_that_is_away_for_a_moment_is_no_failure_of_the_object(devserver, operator, make_handler, widgets, kind, how):
    """As while its volume is mounted, or its package upgraded."""
    handler = make_handler(MENDED)
    if kind == "serve":
        put(handler, "#!/bin/sh\nwhile read -r line; do id=${line#*\\\"id\\\":}; id=${id%%[,\\}]*};"
                     " echo \"{\\\"id\\\": $id, \\\"status\\\": {\\\"by\\\": \\\"mended\\\"}}\"; done\n")
    entry = watch("widgets", handler, retry={"first": "20ms", "max": "50ms", "attempts": 2})
    entry["handler"] = {kind: [str(handler.script)]}
    operator.configure(devserver, [entry])
    operator.start_ready().wait_synced()
    wait_walked(operator)
    away = handler.script.with_suffix(".away")
    handler.script.chmod(0o644) if how != "away" else handler.script.rename(away)
    for name in ("a", "b"):
        widgets.create(name)
    wait_until(lambda: row(operator)["failed"] >= 8, "more failures than attempts")
    assert (row(operator)["failing"], row(operator)["permanent"]) == (2, 0)
    line = operator.wait_for_log("cannot be started")["message"]
    assert "does not count as an attempt" in line, line
    handler.script.chmod(0o755) if how != "away" else away.rename(handler.script)
    wait_mended(widgets, "a", "b")
    wait_failing(operator, 0, 0)
    operator.stop()
