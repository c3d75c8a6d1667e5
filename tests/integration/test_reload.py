# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: any change of the configuration is a restart in place, the same configuration only reads files again, and a wrong
one changes nothing."""
import os
import re
import shutil
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID
from harness.setup import stage

FAST = {"heartbeat": {"interval": "100ms", "deadline": "3s"}}
pytestmark = pytest.mark.slow


def maps(handler, name="maps", **more):
    return watch(name, handler, api_version="v1", kind="ConfigMap", **more)


@pytest.fixture
def other(make_handler):
    return make_handler()


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator.start_ready().wait_synced()


@pytest.fixture
def both(devserver, operator, handler, other):
    operator.configure(devserver, [watch("widgets", handler), maps(other)])
    return operator.start_ready().wait_synced()


def said(operator, what, count):  # the log comes another way than the notifications, and may come later
    wait_until(lambda: len(operator.logs(message_id=MESSAGE_ID[what])) >= count, lambda: operator.output.text())
    return operator.logs(message_id=MESSAGE_ID[what])


def restarted(operator, count=1):
    """Why, by the last of so many restarts in place; and for how long no run began is told."""
    why, told = said(operator, "RELOADING", count), said(operator, "RELOADED", count)
    assert len(why) == len(told) == count, operator.output.text()
    assert re.search(r"restarted in place: no run began for [0-9.ms]+", told[-1]["message"]), told
    return why[-1]["message"]


def untouched(operator, count=1):
    """The configuration was the same."""
    told = said(operator, "RELOADED", count)
    assert len(told) == count and not operator.logs(message_id=MESSAGE_ID["RELOADING"]), operator.output.text()
    assert "has not changed" in told[-1]["message"]


def rows(operator, kind="watches"):
    return {row.get("name", row.get("index")): row for row in operator.ctl.status()[kind]}


def pid(operator, name):
    return rows(operator)[name]["pid"]


def pids(operator):
    return {child.pid for child in operator.children()}


def wait_state(operator, name, state="in-sync"):
    wait_until(lambda: rows(operator).get(name, {}).get("state") == state, lambda: f"{name} {state}: {rows(operator)}")


def lists(devserver):
    return [request for request in devserver.requests() if request["method"] == "GET" and request["path"].endswith("/widgets")
            and "watch=" not in request["query"] and "limit=1&" not in request["query"] + "&"]


# ---- watches come, change and go

def test_a_watch_is_added(configured, devserver, handler, other, widgets, config_maps):
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    supervisor, listed, restarts = configured.pid, len(lists(devserver)), configured.ctl.status()["restarts"]
    config_maps.create("a")
    configured.configure(devserver, [maps(other), watch("widgets", handler)])
    configured.reload()
    assert "because `watches` has changed" in restarted(configured)
    other.wait_for(name="a")
    widgets.create("b", spec={})
    handler.wait_for(name="b")
    assert configured.pid == supervisor and configured.popen.poll() is None
    assert len(handler.requests(name="a")) == 1, "what was handled before is not handled again"
    assert len(lists(devserver)) == listed, "a watch goes on from its store"
    assert configured.ctl.status()["restarts"] == restarts, "a reload is no start"
    assert len(configured.children("watcher")) == 2 and len(configured.children("worker")) == 2
    told = [message for message in configured.notifications if "RELOADING" in message]
    assert len(told) == 1 and int(told[0]["MONOTONIC_USEC"]) > 0 and int(told[0]["EXTEND_TIMEOUT_USEC"]) > 0
    assert not any("STOPPING" in message for message in configured.notifications)
    wait_until(lambda: configured.status_text.startswith("2 watches in sync"), "systemd's status line")


def test_a_watch_is_removed_and_comes_back(both, devserver, handler, other, widgets, config_maps):
    for name in ("gone", "kept"):
        config_maps.create(name)
        other.wait_finished(name=name)
    both.configure(devserver, [watch("widgets", handler)])
    both.reload()
    assert list(rows(both)) == ["widgets"] and len(both.children("watcher")) == 1
    assert "there is no watch maps; the watches are widgets" in both.ctl.run("pause", "maps").stderr
    assert len(ledger.read(both, "SELECT * FROM ledger WHERE watch = 'maps'")) == 2, "what is known of its objects stays"
    config_maps.delete("gone")
    config_maps.create("new")
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    both.configure(devserver, [watch("widgets", handler), maps(other)])
    both.reload()
    other.wait_finished(name="new")
    other.wait_finished(name="gone", action="deleted")
    wait_state(both, "maps")
    assert [request.name for request in other.requests()].count("kept") == 1, "it was handled before"
    assert "`watches` has changed" in restarted(both, 2)


def test_a_watch_changes(both, devserver, handler, other, config_maps):
    config_maps.create("a", labels={"tier": "gold"})
    other.wait_finished(name="a")
    both.configure(devserver, [watch("widgets", handler), maps(other, labelSelector="tier=gold")])
    both.reload()
    assert "because `watches[maps].labelSelector` has changed" in restarted(both)
    config_maps.create("b", labels={"tier": "iron"})
    config_maps.create("c", labels={"tier": "gold"})
    other.wait_finished(name="c")
    assert not other.requests(name="b") and len(other.requests(name="a")) == 1


def test_a_run_ends_with_its_own_handler(configured, devserver, handler, make_handler, widgets):
    handler.behave(handler.held + "; printf '{\"status\":{\"by\":\"first\"}}'")
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    second = make_handler("printf '{\"status\":{\"by\":\"second\"}}'")
    configured.configure(devserver, [watch("widgets", second)])
    before = configured.begin_reload()
    configured.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    widgets.create("b", spec={})
    handler.let_go()
    configured.end_reload(before)
    assert widgets.get("a")["status"] == {"by": "first"}
    second.wait_finished(name="b")
    assert len(handler.requests()) == 1 and "`watches[widgets].handler.exec`" in restarted(configured)


def test_what_runs_of_a_removed_watch_may_finish(both, devserver, handler, other, config_maps):
    other.behave(other.held + "; printf '{\"patch\":{\"data\":{\"done\":\"yes\"}}}'")
    for name in "abc":
        config_maps.create(name)
    other.wait_for(count=2)
    both.configure(devserver, [watch("widgets", handler)])
    before = both.begin_reload()
    both.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    other.let_go()
    both.end_reload(before)
    assert list(rows(both)) == ["widgets"]
    assert sum(config_maps.get(name).get("data") == {"done": "yes"} for name in "abc") == 2
    assert other.count() == 2, "what only waited is forgotten"


def test_what_runs_for_too_long_is_cut_and_runs_again_uncounted(devserver, operator, handler, widgets):
    limits = {"stop": {"grace": "500ms"}}
    operator.configure(devserver, [watch("widgets", handler, handler_options={"grace": "100ms"}, retry={"first": "10m"})], **limits)
    operator.start_ready().wait_synced()
    handler.behave("sleep 600")
    widgets.create("a", spec={})
    wait_until(lambda: any(process.program == "sleep" for process in operator.processes()), "the handler to be at it")
    handler.behave("exit 0")
    operator.configure(devserver, [watch("widgets", handler, handler_options={"grace": "100ms"}, retry={"first": "9m"})], **limits)
    operator.reload()
    again = handler.wait_finished(name="a", count=2)
    assert again.body["attempt"] == 1, "no failed attempt, and no backoff"
    wait_until(lambda: ledger.read(operator, "SELECT attempts, crashes FROM ledger WHERE key = 'default/a'") == [(0, 0)], "its row")
    assert not any(process.program == "sleep" for process in operator.processes())
    assert "retry.first" in restarted(operator)


def test_a_backoff_goes_on(both, devserver, handler, other, config_maps):
    other.behave("exit 1")
    slow = {"first": "3s", "max": "3s"}
    both.configure(devserver, [watch("widgets", handler), maps(other, retry=slow)])
    both.reload()
    config_maps.create("a")
    other.wait_finished(name="a")
    first = other.requests()[0].started
    both.configure(devserver, [watch("widgets", handler), maps(other, retry=slow, labelSelector="!x")])
    both.reload()
    second = other.wait_for(name="a", count=2)
    assert second.body["attempt"] == 2 and second.started - first >= 3
    assert rows(both)["maps"]["failing"] == 1


def test_owned_and_related_kinds_come_and_go_with_their_watch(devserver, operator, handler, other, widgets, config_maps):
    owns = {"owns": [{"apiVersion": "v1", "kind": "ConfigMap"}], "related": [{"apiVersion": "v1", "kind": "Secret"}]}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}
    names = {"widgets", "widgets.owns.ConfigMap.0", "widgets.related.Secret.0"}
    handler.answer({"children": [child]})
    operator.configure(devserver, [watch("widgets", handler, **owns), maps(other)])
    operator.start_ready()
    wait_until(lambda: set(rows(operator)) == names | {"maps"}, "the watches")
    widgets.create("w", spec={})
    handler.wait_finished(name="w")
    operator.configure(devserver, [watch("widgets", handler, labelSelector="!x", **owns), maps(other)])
    operator.reload()
    for name in names:
        wait_state(operator, name)
    config_maps.delete("child")
    wait_until(lambda: config_maps.exists("child"), "it to come back")
    operator.configure(devserver, [maps(other)])
    operator.reload()
    assert list(rows(operator)) == ["maps"] and len(operator.children("watcher")) == 1
    owns["owns"][0]["labelSelector"] = "!y"
    operator.configure(devserver, [watch("widgets", handler, **owns), maps(other)])
    operator.reload()
    for name in names:
        wait_state(operator, name)
    owns["owns"][0]["labelSelector"] = "!z"
    operator.configure(devserver, [watch("widgets", handler, **owns), maps(other)])
    operator.reload()
    assert "`watches[widgets].owns.labelSelector`" in restarted(operator, 4)


def test_a_reload_is_no_start(both, devserver, handler, other, widgets, config_maps):
    """`onStart: all`."""
    for name in ("a", "b"):
        widgets.create(name, spec={})
        handler.wait_finished(name=name)
    both.stop()
    watches = [watch("widgets", handler, onStart="all", concurrency=1), maps(other)]
    both.configure(devserver, watches)
    handler.behave(handler.held)
    both.start_ready()
    assert handler.wait_for(where=lambda request: request.body["reason"] == "start")
    both.configure(devserver, watches[:1])
    before = both.begin_reload()
    both.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    handler.let_go()
    both.end_reload(before)
    # The start owes a run to the object that has had none yet, and nothing to the other one.
    for name in ("a", "b"):
        handler.wait_finished(name=name, count=2)
    both.configure(devserver, watches)
    both.reload()
    wait_state(both, "widgets")
    widgets.create("c", spec={})
    handler.wait_finished(name="c")
    # Runs that a start owes come last.
    wait_until(lambda: (lambda row: row["queued"] + row["running"] == 0)(rows(both)["widgets"]), "rest")
    assert [len(handler.requests(name=name)) for name in "abc"] == [2, 2, 1]


def test_a_paused_watch_stays_paused(both, devserver, handler, other, config_maps):
    assert both.ctl.run("pause", "maps").returncode == 0
    both.configure(devserver, [watch("widgets", handler), maps(other, labelSelector="!x")])
    both.reload()
    wait_state(both, "maps")
    config_maps.create("a")
    wait_until(lambda: rows(both)["maps"]["queued"] == 1, "it to be known")
    assert rows(both)["maps"]["pausedSince"] > 0 and not other.requests()
    assert both.ctl.run("resume", "maps").returncode == 0
    other.wait_for(name="a")


@pytest.mark.parametrize("role", ["watcher", "worker"])
def test_what_does_not_end_is_killed(devserver, operator, handler, other, widgets, role):
    operator.configure(devserver, [watch("widgets", handler), maps(other)], stop={"grace": "500ms"})
    operator.start_ready().wait_synced()
    found = pid(operator, "maps") if role == "watcher" else operator.children("worker")[0].pid
    os.kill(found, signal.SIGSTOP)
    operator.configure(devserver, [watch("widgets", handler)])
    operator.reload()
    assert operator.wait_for_log("did not end in time and is killed", level="warning")
    assert found not in pids(operator)
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    wait_state(operator, "widgets")
    assert not operator.logs(level="critical")


def test_a_crash_after_a_reload_blames_the_right_object(devserver, operator, handler, other, widgets, config_maps):
    operator.configure(devserver, [watch("widgets", handler), maps(other)], **FAST)
    operator.start_ready().wait_synced()
    operator.configure(devserver, [maps(other, name="first", id="first"), maps(other)], **FAST)
    operator.reload()
    other.behave("sleep 600")
    config_maps.create("a")
    other.wait_for(name="a")  # for one of the two watches: the other one waits for the end of that run
    busy = next(row for row in rows(operator, "workers").values() if row.get("watch"))
    os.kill(busy["pid"], signal.SIGKILL)
    operator.wait_exit(expect=70)
    assert operator.logs(level="critical")[0]["key"] == "default/a"
    assert ledger.read(operator, "SELECT watch, key, crashes FROM ledger WHERE crashes > 0") == [(busy["watch"], "default/a", 1)]


def test_metrics_follow(devserver, operator, handler, other, widgets):
    listen = {"gateway": {"listen": f"unix:{operator.runtime_directory}/gateway.sock"}, **FAST}
    gateway = Gateway(operator.runtime_directory / "gateway.sock")
    operator.configure(devserver, [watch("widgets", handler), maps(other)], **listen)
    operator.start_ready().wait_synced()
    starts = gateway.metrics()["reconciled_starts_total"]
    handler.behave(handler.held + "; sleep 1")
    widgets.create("w", spec={})
    handler.wait_for(name="w")
    operator.configure(devserver, [watch("widgets", handler), maps(other, name="more")], **listen)
    before = operator.begin_reload()
    operator.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    wait_until(lambda: gateway.get("/readyz")[0] == 503, "no readiness meanwhile")
    assert gateway.get("/readyz")[2].strip() == "reloading" and gateway.get("/healthz")[0] == 200
    handler.let_go()
    operator.end_reload(before)
    gateway.wait('reconciled_watch_synced{watch="more"}', 1)
    # The pause ends when all children run, which may be later.
    wait_until(lambda: float(gateway.metrics()["reconciled_last_reload_pause_seconds"]) >= 1, "the time in which nothing began")
    found = gateway.metrics()
    assert not [sample for sample in found if '"maps"' in sample]
    assert found["reconciled_starts_total"] == starts
    wait_until(lambda: gateway.get("/readyz")[0] == 200, "readiness")
    assert gateway.get("/healthz")[0] == 200
    name = "reconciled_config_last_reload_successful"
    assert float(found[name]) == 1
    operator.configure(devserver, [watch("widgets", handler, nonsense=1)], **listen)
    operator.reload()
    gateway.wait(name, 0)


def test_nothing_is_lost_while_watches_come_and_go(both, devserver, handler, other, widgets, config_maps):
    """Each round changes one watch, takes it out and brings it back, while its objects come, change and go."""
    resources = {"widgets": (widgets, handler), "maps": (config_maps, other)}
    gone, kept = {"widgets": [], "maps": []}, {"widgets": [], "maps": []}
    for number in range(12):
        selection = {"labelSelector": f"!nothing-{number}"} if number % 3 else {}
        watches = [watch("widgets", handler), maps(other, **selection)]
        both.configure(devserver, watches[:1] if number % 3 == 2 else watches)
        before = both.begin_reload()
        for name, (resource, runs) in resources.items():
            for key in (f"gone-{number}", f"kept-{number}"):
                resource.create(key, data={"a": "1"}) if name == "maps" else resource.create(key, spec={"a": 1})
            # What was never handed to a handler leaves nothing to be told.
            for key in [key for key in gone[name] if resource.exists(key) and runs.requests(name=key)]:
                resource.delete(key)
            gone[name].append(f"gone-{number}")
            kept[name].append(f"kept-{number}")
        both.end_reload(before)
    both.configure(devserver, [watch("widgets", handler), maps(other)])
    both.reload()
    for name, (resource, runs) in resources.items():
        for key in gone[name] + kept[name]:
            runs.wait_for(name=key, action="reconcile")
        for key in gone[name]:
            if resource.exists(key):
                resource.delete(key)
            runs.wait_for(name=key, action="deleted")
    for name, (_, runs) in resources.items():
        for key in gone[name]:
            assert len(runs.requests(name=key, action="deleted")) == 1, (name, key)
        assert not [request for request in runs.requests(action="deleted") if request.name in kept[name]]
    assert not both.logs(level="error")


# ---- the same configuration

def test_the_same_again_touches_no_process(configured, devserver, handler):
    before, listed = pids(configured), len(lists(devserver))
    configured.reload()
    untouched(configured)
    # Nor does what means the same.
    configured.write_config("# another word\n" + configured.config_file.read_text(encoding="utf-8"))
    configured.reload()
    configured.configure(devserver, [watch("widgets", handler, finalizer=False)])
    configured.reload()
    untouched(configured, 3)
    assert pids(configured) == before and len(lists(devserver)) == listed


def test_a_program_that_serves_and_is_another_one_is_a_change(devserver, operator, sandbox, widgets):
    """Their program may be another one under the same name: that is why somebody reloads."""
    program = sandbox.subfolder("program", mode=0o755) / "serve"

    def install(version):
        program.with_suffix(".new").write_text(
            "#!/usr/bin/python3 -u\nimport json, sys\nfor line in sys.stdin:\n"
            f"    print(json.dumps({{'id': json.loads(line)['id'], 'status': {{'by': '{version}'}}}}))\n", encoding="utf-8")
        program.with_suffix(".new").chmod(0o755)
        program.with_suffix(".new").rename(program)

    install("first")
    operator.configure(devserver, [{**watch("widgets"), "handler": {"serve": [str(program)]}}])
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"by": "first"}, "the first version")
    before = pids(operator)
    operator.reload()
    untouched(operator)
    assert pids(operator) == before
    told = "runs on with the old code"

    def shown():
        return [told in operator.ctl.run(*words).stdout for words in (("status",), ("top",), ("explain", "widgets", "default/a"))]

    assert not rows(operator)["widgets"]["handlerStale"] and not any(shown())
    install("second")
    assert rows(operator)["widgets"]["handlerStale"] and all(shown())
    done = operator.ctl.run("reload")
    assert done.returncode == 0 and "has restarted in place with new programs of handlers; no run" in done.stdout, done
    assert not rows(operator)["widgets"]["handlerStale"] and not any(shown())
    operator.wait_for_log("because the program of the handler of watch widgets has changed", message_id=MESSAGE_ID["RELOADING"])
    widgets.create("b", spec={})
    wait_until(lambda: widgets.get("b").get("status") == {"by": "second"}, "the second version")


def test_many_times(configured, devserver, handler, widgets):
    for number in range(10):
        configured.configure(devserver, [watch("widgets", handler, concurrency=1 + number // 2)])
        configured.reload()
        assert len(os.listdir(f"/proc/{configured.pid}/fd")) < 30
        widgets.create(f"w{number}", spec={})
        handler.wait_for(name=f"w{number}")


def test_a_watcher_that_dies_after_a_reload_ends_the_operator(configured, devserver, handler, widgets):
    """The next start has the new configuration."""
    configured.configure(devserver, [watch("widgets", handler, concurrency=1)])
    configured.reload()
    os.kill(pid(configured, "widgets"), signal.SIGKILL)
    configured.wait_exit(expect=70)
    assert "watcher of watch widgets" in configured.logs(level="critical")[0]["message"]
    configured.start_ready().wait_synced()
    widgets.create("a", spec={})
    handler.wait_for(name="a")


# ---- how it restarts

@pytest.mark.parametrize("stopped", [False, True], ids=["alone", "and a stop behind it"])
def test_another_version_of_the_program(configured, devserver, make_handler, widgets, sandbox, stopped):
    """Which a supervisor that can execute nothing cannot begin: whoever started it does, unless it was to stop."""
    configured.stop()
    folder = sandbox.subfolder("programs")
    sandbox.programs = stage(folder)
    slow = make_handler()
    slow.behave(slow.held)
    configured.configure(devserver, [watch("widgets", slow)])
    configured.start_ready().wait_synced()
    program = sandbox.program("reconciled")
    copy = program.with_suffix(".new")
    shutil.copy(program, copy)
    program.unlink()
    widgets.create("a", spec={})
    slow.wait_for(name="a")
    os.kill(configured.pid, signal.SIGHUP)
    configured.wait_for_log("has been replaced by another version", message_id=MESSAGE_ID["PROGRAM_REPLACED"])
    copy.rename(program)
    if stopped:
        configured.send_signal(signal.SIGTERM)
        configured.wait_for_log("asked to stop")
    slow.let_go()
    configured.wait_exit(expect=0 if stopped else 70)
    configured.assert_no_processes()
    assert not configured.logs(level="critical")
    configured.start_ready().wait_synced()
    widgets.create("b", spec={})
    slow.wait_finished(name="b")
    assert len(slow.requests(name="a")) == 1, "what ran was finished and recorded"


@pytest.mark.parametrize("more, key", [
    ({"operator": "gadgets.example.com"}, "operator"),
    ({"heartbeat": {"interval": "1s"}}, "heartbeat.interval"),
    ({"pageLimit": 100}, "pageLimit"),
    ({"workers": 3}, "workers"),
    ({"gateway": {}}, "gateway"),
    ({"stop": {"grace": "29s"}}, "stop.grace"),
])
def test_keys_of_the_whole(configured, devserver, handler, more, key):
    if key == "gateway":
        more = {"gateway": {"listen": f"unix:{configured.runtime_directory}/gateway.sock"}}
    configured.configure(devserver, [watch("widgets", handler)], **more)
    configured.reload()
    assert f"because `{key}` has changed" in restarted(configured)


@pytest.mark.parametrize("more, key", [
    ({"namespaces": ["default"]}, "namespaces"),
    ({"concurrency": 1}, "concurrency"),
    ({"handler_options": {"environment": {"A": "b"}}}, "handler.environment"),
    ({"trigger": {"jq": ".spec"}}, "trigger"),
    ({"children": {"kinds": [{"apiVersion": "v1", "kind": "ConfigMap"}]}}, "children.kinds"),
])
def test_keys_of_a_watch(configured, devserver, handler, more, key):
    configured.configure(devserver, [watch("widgets", handler, **more)])
    configured.reload()
    assert f"because `watches[widgets].{key}` has changed" in restarted(configured)


def test_a_restart_waits_for_what_runs(configured, devserver, handler, widgets):
    handler.behave(handler.held + "; sleep 1; printf '{\"status\":{\"done\":true}}'")
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    configured.configure(devserver, [watch("widgets", handler)], workers=3)
    before = configured.begin_reload()
    configured.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    handler.let_go()
    configured.end_reload(before)
    assert widgets.get("a")["status"] == {"done": True}


def test_a_stop_in_the_middle_of_a_restart(configured, devserver, handler, widgets):
    handler.behave(handler.held + "; printf '{\"status\":{\"done\":true}}'")
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    configured.configure(devserver, [watch("widgets", handler)], workers=3)
    os.kill(configured.pid, signal.SIGHUP)
    configured.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    configured.send_signal(signal.SIGTERM)
    configured.wait_notification("STOPPING", "1")
    handler.let_go()
    configured.wait_exit(expect=0)
    configured.assert_no_processes()
    assert widgets.get("a")["status"] == {"done": True}
    configured.wait_for_log(message_id=MESSAGE_ID["STOPPED"])


def test_a_kill_in_the_middle(both, devserver, handler, other, config_maps):
    other.behave("sleep 600")
    config_maps.create("a")
    other.wait_for(name="a")
    both.configure(devserver, [watch("widgets", handler)])
    os.kill(both.pid, signal.SIGHUP)
    both.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
    os.kill(both.pid, signal.SIGKILL)
    both.wait_exit(expect=-signal.SIGKILL)
    both.assert_no_processes()
    both.start_ready().wait_synced()
    assert list(rows(both)) == ["widgets"]
