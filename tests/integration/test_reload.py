# SPDX-License-Identifier: Apache-2.0
"""SIGHUP: a new configuration is taken watch by watch, and what has not changed is not touched; where it concerns the
whole operator, it restarts in place; a wrong one changes nothing."""
import os
import shutil
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID
from harness.setup import stage

FAST, NEVER_ENDS = {"heartbeat": {"interval": "100ms", "deadline": "3s"}}, "def f: f; if .spec.poison then f else true end"
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


def taken(operator, count=1):
    """What was said about reloads without a restart."""
    found = said(operator, "RELOADED", count)
    assert len(found) == count and not operator.logs(message_id=MESSAGE_ID["RELOADING"]), operator.output.text()
    return found[-1]["message"]


def restarted(operator):
    found = said(operator, "RELOADING", 1)[-1]["message"]
    return found if not operator.logs(message_id=MESSAGE_ID["RELOADED"]) else pytest.fail(operator.output.text())


def rows(operator, kind="watches"):
    return {row.get("name", row.get("index")): row for row in operator.ctl.status()[kind]}


def pid(operator, name):
    return rows(operator)[name]["pid"]


def wait_state(operator, name, state="in-sync"):
    wait_until(lambda: rows(operator).get(name, {}).get("state") == state, lambda: f"{name} {state}: {rows(operator)}")


def lists(devserver):
    return [request for request in devserver.requests() if request["path"].endswith("/widgets")
            and "watch=" not in request["query"] and "limit=1&" not in request["query"] + "&"]


def reads(devserver, resource):
    """What a watcher asks: lists, watches and probes."""
    return len(devserver.requests(lambda request: request["method"] == "GET" and "watcher" in request.get("user_agent", "")
                                  and request["path"].endswith(f"/{resource}")))


# ---- watch by watch

def test_a_watch_is_added(configured, devserver, handler, other, widgets, config_maps):
    before, asked, restarts = pid(configured, "widgets"), reads(devserver, "widgets"), configured.ctl.status()["restarts"]
    supervisor = configured.pid
    assert asked > 0
    config_maps.create("a")
    configured.configure(devserver, [maps(other), watch("widgets", handler)])
    configured.reload()
    assert "added maps; every worker" in taken(configured)
    other.wait_for(name="a")
    widgets.create("b", spec={})
    handler.wait_for(name="b")
    assert pid(configured, "widgets") == before and configured.pid == supervisor and configured.popen.poll() is None
    assert reads(devserver, "widgets") == asked, "its stream was not opened again"
    assert configured.ctl.status()["restarts"] == restarts
    assert len(configured.children("watcher")) == 2 and len(configured.children("worker")) == 2
    told = [message for message in configured.notifications if "RELOADING" in message]
    assert len(told) == 1 and int(told[0]["MONOTONIC_USEC"]) > 0 and int(told[0]["EXTEND_TIMEOUT_USEC"]) > 0
    assert not any("STOPPING" in message for message in configured.notifications)
    wait_until(lambda: configured.status_text.startswith("2 watches in sync"), "systemd's status line")


def test_a_watch_is_removed_and_comes_back(both, devserver, handler, other, widgets, config_maps):
    for name in ("gone", "kept"):
        config_maps.create(name)
        other.wait_finished(name=name)
    before, leaver, asked = pid(both, "widgets"), pid(both, "maps"), reads(devserver, "widgets")
    both.configure(devserver, [watch("widgets", handler)])
    both.reload()
    assert "removed maps; every worker" in taken(both)
    assert list(rows(both)) == ["widgets"] and pid(both, "widgets") == before
    assert leaver not in {child.pid for child in both.children()}
    assert "there is no such watch: maps; there are widgets" in both.ctl.run("pause", "maps").stderr
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
    assert pid(both, "widgets") == before and reads(devserver, "widgets") == asked


def test_a_changed_watch_alone_starts_anew(both, devserver, handler, other, widgets, config_maps):
    config_maps.create("a", labels={"tier": "gold"})
    other.wait_finished(name="a")
    before, changed, asked = pid(both, "widgets"), pid(both, "maps"), reads(devserver, "widgets")
    both.configure(devserver, [watch("widgets", handler), maps(other, labelSelector="tier=gold")])
    both.reload()
    assert "started anew maps; every worker" in taken(both)
    config_maps.create("b", labels={"tier": "iron"})
    config_maps.create("c", labels={"tier": "gold"})
    other.wait_finished(name="c")
    assert not other.requests(name="b") and len(other.requests(name="a")) == 1
    assert pid(both, "maps") != changed and pid(both, "widgets") == before
    assert reads(devserver, "widgets") == asked


def test_a_changed_handler_touches_no_watcher(configured, devserver, handler, make_handler, widgets):
    handler.behave(handler.held + "; printf '{\"status\":{\"by\":\"first\"}}'")
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    before, asked, workers = pid(configured, "widgets"), reads(devserver, "widgets"), rows(configured, "workers")
    busy = next(row for row in workers.values() if row["state"] == "running")
    second = make_handler("printf '{\"status\":{\"by\":\"second\"}}'")
    configured.configure(devserver, [watch("widgets", second, concurrency=1)])
    configured.reload()
    assert "no watch is started or ended; every worker" in taken(configured)
    # Nobody waits for the run: the one that was idle knows the new handler already.
    assert rows(configured, "workers")[busy["index"]]["pid"] == busy["pid"]
    handler.let_go()
    wait_until(lambda: widgets.get("a").get("status") == {"by": "first"}, "the run to end with its own handler")
    widgets.create("b", spec={})
    second.wait_for(name="b")
    wait_until(lambda: not {row["pid"] for row in workers.values()} & {row["pid"] for row in
                                                                      rows(configured, "workers").values()},
               "the worker that was busy to be replaced")
    assert pid(configured, "widgets") == before and reads(devserver, "widgets") == asked
    assert len(handler.requests()) == 1


def test_other_numbers_are_in_force_at_once(configured, devserver, handler, widgets):
    before = pid(configured, "widgets")
    configured.configure(devserver, [watch("widgets", handler, concurrency=1, retry={"first": "1ms", "attempts": 2})])
    configured.reload()
    handler.behave(handler.held + "; exit 1")
    for name in ("a", "b"):
        widgets.create(name, spec={})
    handler.wait_for()
    wait_until(lambda: rows(configured)["widgets"]["queued"] == 1, "the other one to be known")
    assert rows(configured)["widgets"]["running"] == 1
    handler.let_go()
    wait_until(lambda: rows(configured)["widgets"]["permanent"] == 2, "both to be given up after two attempts")
    assert handler.count() == 4 and pid(configured, "widgets") == before


def test_serving_handlers_start_anew(devserver, operator, sandbox, widgets):
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
    install("second")
    operator.reload()
    widgets.create("b", spec={})
    wait_until(lambda: widgets.get("b").get("status") == {"by": "second"}, "the second version")


def test_what_runs_of_a_removed_watch_may_finish(both, devserver, handler, other, config_maps):
    other.behave(other.held + "; printf '{\"patch\":{\"data\":{\"done\":\"yes\"}}}'")
    config_maps.create("a")
    config_maps.create("b")
    config_maps.create("c")
    other.wait_for(count=2)
    both.configure(devserver, [watch("widgets", handler)])
    before = both.begin_reload()
    wait_state(both, "maps", "leaving")
    other.let_go()
    both.end_reload(before)
    assert list(rows(both)) == ["widgets"]
    assert sum(config_maps.get(name).get("data") == {"done": "yes"} for name in "abc") == 2
    assert other.count() == 2, "what only waited is forgotten"
    taken(both)


def test_what_runs_for_too_long_is_ended(devserver, operator, handler, other, config_maps, widgets):
    operator.configure(devserver, [watch("widgets", handler), maps(other, handler_options={"grace": "100ms"})],
                       stop={"grace": "500ms"})
    operator.start_ready().wait_synced()
    other.behave("sleep 600")
    config_maps.create("a")
    other.wait_for(name="a")
    operator.configure(devserver, [watch("widgets", handler)], stop={"grace": "300ms"})
    operator.reload()
    operator.wait_for_log("a run of default/a has not ended within stop.grace")
    assert list(rows(operator)) == ["widgets"]
    wait_until(lambda: not any(process.program == "sleep" for process in operator.processes()), "the end of the handler")
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    taken(operator)


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


def test_owned_and_related_kinds_go_with_their_watch(devserver, operator, handler, other, widgets, config_maps):
    owns = {"owns": [{"apiVersion": "v1", "kind": "ConfigMap"}], "related": [{"apiVersion": "v1", "kind": "Secret"}]}
    child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}
    names = {"widgets", "widgets.owns.ConfigMap.0", "widgets.related.Secret.0"}
    handler.answer({"children": [child]})
    operator.configure(devserver, [watch("widgets", handler, **owns), maps(other)])
    operator.start_ready()
    wait_until(lambda: set(rows(operator)) == names | {"maps"}, "the watches")
    widgets.create("w", spec={})
    handler.wait_finished(name="w")
    before = rows(operator)
    # Another handler: none of them.
    operator.configure(devserver, [watch("widgets", handler, handler_options={"timeout": "1m"}, **owns), maps(other)])
    operator.reload()
    assert {name: row["pid"] for name, row in rows(operator).items()} == {name: row["pid"] for name, row in before.items()}
    # Another selection of owners: all three, and nothing else.
    operator.configure(devserver, [watch("widgets", handler, labelSelector="!x", **owns), maps(other)])
    operator.reload()
    after = rows(operator)
    assert {name for name in after if after[name]["pid"] == before[name]["pid"]} == {"maps"}
    for name in names:
        wait_state(operator, name)
    config_maps.delete("child")
    wait_until(lambda: config_maps.exists("child"), "it to come back")
    # None at all.
    operator.configure(devserver, [maps(other)])
    operator.reload()
    assert list(rows(operator)) == ["maps"] and len(operator.children("watcher")) == 1
    operator.configure(devserver, [watch("widgets", handler, **owns), maps(other)])
    operator.reload()
    for name in names:
        wait_state(operator, name)
    assert pid(operator, "maps") == before["maps"]["pid"]
    assert not operator.logs(message_id=MESSAGE_ID["RELOADING"])


def test_on_start_means_the_start_of_the_watch(both, devserver, handler, other, widgets, config_maps):
    widgets.create("a", spec={})
    config_maps.create("a")
    handler.wait_finished(name="a")
    other.wait_finished(name="a")
    both.configure(devserver, [watch("widgets", handler, onStart="all"), maps(other, onStart="all", labelSelector="!x")])
    both.reload()
    assert other.wait_finished(name="a", count=2).body["reason"] == "start"
    widgets.create("b", spec={})
    handler.wait_finished(name="b")
    assert len(handler.requests(name="a")) == 1, "its watch has not started"
    assert len(other.requests()) == 2


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


def test_places_serve_one_watch_after_the_other(both, devserver, handler, other, widgets, config_maps):
    before, descriptors = pid(both, "widgets"), len(os.listdir(f"/proc/{both.pid}/fd"))
    for number in range(25):
        config_maps.create(f"m{number}")
        both.configure(devserver, [watch("widgets", handler), maps(other, name=f"maps-{number}")])
        both.reload()
        other.wait_for(name=f"m{number}")
        assert list(rows(both)) == ["widgets", f"maps-{number}"]
    taken(both, 25)
    assert pid(both, "widgets") == before and len(os.listdir(f"/proc/{both.pid}/fd")) <= descriptors + 2


def test_one_reload_in_the_middle_of_another(both, devserver, handler, other, config_maps):
    other.behave(other.held)
    config_maps.create("a")
    other.wait_for(name="a")
    before = rows(both)
    both.configure(devserver, [watch("widgets", handler)])
    os.kill(both.pid, signal.SIGHUP)
    wait_until(lambda: rows(both).get("maps", {}).get("state") == "leaving", "it to leave")
    both.configure(devserver, [watch("widgets", handler), maps(other), maps(other, name="more", id="more")])
    os.kill(both.pid, signal.SIGHUP)
    wait_state(both, "maps", "leaving")  # answered after the signal
    other.let_go()
    for name in ("maps", "more"):
        wait_state(both, name)
    after = rows(both)
    assert after["widgets"]["pid"] == before["widgets"]["pid"] and after["maps"]["pid"] != before["maps"]["pid"]
    wait_until(lambda: other.count() == 2, "the run of the third watch")
    taken(both, 2)


def test_a_stop_in_the_middle(both, devserver, handler, other, config_maps):
    other.behave(other.held + "; printf '{\"patch\":{\"data\":{\"done\":\"yes\"}}}'")
    config_maps.create("a")
    other.wait_for(name="a")
    both.configure(devserver, [watch("widgets", handler)])
    os.kill(both.pid, signal.SIGHUP)
    wait_until(lambda: rows(both).get("maps", {}).get("state") == "leaving", "it to leave")
    both.send_signal(signal.SIGTERM)
    both.wait_notification("STOPPING", "1")
    other.let_go()
    both.wait_exit(expect=0)
    both.assert_no_processes()
    assert config_maps.get("a")["data"] == {"done": "yes"}


@pytest.mark.parametrize("role", ["watcher", "worker"])
def test_what_does_not_end_is_killed(both, devserver, handler, other, widgets, role):
    found = pid(both, "maps") if role == "watcher" else both.children("worker")[0].pid
    os.kill(found, signal.SIGSTOP)
    both.configure(devserver, [watch("widgets", handler)])
    both.reload()
    assert both.wait_for_log("did not end in time and is killed", level="warning")
    assert found not in {child.pid for child in both.children()}
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    assert rows(both)["widgets"]["state"] == "in-sync" and not both.logs(level="critical")


def test_who_dies_in_a_place_that_was_another_ones_is_blamed_himself(devserver, operator, handler, other, widgets, config_maps):
    """The slots that tell over which object a watcher hangs have the numbers of places."""
    operator.configure(devserver, [watch("widgets", handler), maps(other)], **FAST)
    operator.start_ready().wait_synced()
    config_maps.create("a")
    other.wait_finished(name="a")
    operator.configure(devserver, [maps(other)], **FAST)
    operator.reload()
    operator.configure(devserver, [maps(other), watch("again", handler, filter=NEVER_ENDS)], **FAST)
    operator.reload()
    widgets.create("poison", spec={"poison": True})
    operator.wait_exit(expect=70)
    doubtful = operator.logs(message_id=MESSAGE_ID["DOUBTFUL"])
    assert [(record["watch"], record["key"]) for record in doubtful] == [("again", "default/poison")]
    operator.start_ready().wait_synced()
    handler.wait_finished(name="poison")


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
    handler.answer({"status": {"done": True}})
    for number in range(5):
        widgets.create(f"w{number}", spec={})
        handler.wait_finished(name=f"w{number}")
    gateway.wait('reconciled_runs_total{watch="widgets",result="success"}', 5)
    requests = 'rest_client_requests_total{code="2xx"}'
    wait_until(lambda: float(gateway.metrics()[requests]) > 10, "the workers' requests to be counted")
    counted = float(gateway.metrics()[requests])
    operator.configure(devserver, [watch("widgets", handler), maps(other, name="more")], **listen)
    operator.reload()
    gateway.wait('reconciled_watch_synced{watch="more"}', 1)
    found = gateway.metrics()
    assert not [sample for sample in found if '"maps"' in sample]
    assert float(found['reconciled_runs_total{watch="widgets",result="success"}']) == 5
    assert float(found[requests]) >= counted, "a counter never falls because a process was replaced"
    wait_until(lambda: gateway.get("/readyz")[0] == 200, "readiness")
    assert gateway.get("/healthz")[0] == 200
    name = "reconciled_config_last_reload_successful"
    assert float(found[name]) == 1
    operator.configure(devserver, [watch("widgets", handler, nonsense=1)], **listen)
    operator.reload()
    gateway.wait(name, 0)
    # A watch that starts anew keeps what was counted of it.
    operator.configure(devserver, [watch("widgets", handler, labelSelector="!x"), maps(other, name="more")], **listen)
    operator.reload()
    widgets.create("more", spec={})
    handler.wait_finished(name="more")
    gateway.wait('reconciled_runs_total{watch="widgets",result="success"}', 6)


def test_nothing_is_lost_while_watches_come_and_go(both, devserver, handler, other, widgets, config_maps):
    """Each round changes one watch, takes it out and brings it back, while its objects come, change and go."""
    resources = {"widgets": (widgets, handler), "maps": (config_maps, other)}
    gone, kept = {"widgets": [], "maps": []}, {"widgets": [], "maps": []}
    for number in range(30):
        selection = {"labelSelector": f"!nothing-{number}"} if number % 3 else {}
        watches = [watch("widgets", handler), maps(other, **selection)]
        both.configure(devserver, watches[:1] if number % 3 == 2 else watches)
        os.kill(both.pid, signal.SIGHUP)
        # Taken over, not carried out: the next one comes in the middle of it.
        wait_until(lambda: len(both.logs(message_id=MESSAGE_ID["RELOADED"])) == number + 1, "it to be read")
        for name, (resource, runs) in resources.items():
            for key in (f"gone-{number}", f"kept-{number}"):
                resource.create(key, data={"a": "1"}) if name == "maps" else resource.create(key, spec={"a": 1})
            # What was never handed to a handler leaves nothing to be told.
            if gone[name]:
                for key in [key for key in gone[name] if resource.exists(key) and runs.requests(name=key)]:
                    resource.delete(key)
            gone[name].append(f"gone-{number}")
            kept[name].append(f"kept-{number}")
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
    assert not both.logs(message_id=MESSAGE_ID["RELOADING"]) and not both.logs(level="error")


def test_the_same_again_touches_no_watcher(configured, devserver):
    before, pids = len(lists(devserver)), pid(configured, "widgets")
    configured.reload()
    assert "no watch is started or ended" in taken(configured)
    wait_state(configured, "widgets")
    assert len(lists(devserver)) == before and pid(configured, "widgets") == pids


def test_many_times(configured, handler, widgets):
    for number in range(10):
        configured.reload()
        assert len(os.listdir(f"/proc/{configured.pid}/fd")) < 30
        widgets.create(f"w{number}", spec={})
        handler.wait_for(name=f"w{number}")


def test_the_kept_watch_is_as_robust_as_before(configured, devserver, handler, widgets):
    """After a reload a watcher that dies still ends the operator, and the next start has the new configuration."""
    configured.configure(devserver, [watch("widgets", handler, concurrency=1)])
    configured.reload()
    os.kill(pid(configured, "widgets"), signal.SIGKILL)
    configured.wait_exit(expect=70)
    assert "watcher of watch widgets" in configured.logs(level="critical")[0]["message"]
    configured.start_ready().wait_synced()
    widgets.create("a", spec={})
    handler.wait_for(name="a")


# ---- the whole operator

def test_what_concerns_all_restarts_in_place(configured, devserver, make_handler, handler, widgets):
    before, watcher = configured.pid, pid(configured, "widgets")
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    second = make_handler()
    configured.configure(devserver, [watch("widgets", handler), watch("again", second, id="again")], workers=3)
    configured.reload()
    assert configured.pid == before and configured.popen.poll() is None
    second.wait_for(name="a")
    assert "restart in place, because `workers` has changed" in restarted(configured)
    assert len(configured.children("watcher")) == 2 and len(configured.children("worker")) == 3
    assert pid(configured, "widgets") != watcher
    assert not any("STOPPING" in message for message in configured.notifications)
    widgets.create("b", spec={})
    handler.wait_for(name="b")
    # What was handled before is not handled again.
    assert len(handler.requests(name="a")) == 1


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
    ({"gateway": {}}, "gateway"),
])
def test_which_keys_concern_all(configured, devserver, handler, more, key):
    if key == "gateway":
        more = {"gateway": {"listen": f"unix:{configured.runtime_directory}/gateway.sock"}}
    configured.configure(devserver, [watch("widgets", handler)], **more)
    configured.reload()
    assert f"because `{key}` has changed" in restarted(configured)


def test_the_shortest_deadline_concerns_all(configured, devserver, handler):
    configured.configure(devserver, [watch("widgets", handler, deadline="1m")])
    configured.reload()
    assert "because the shortest `deadline`" in restarted(configured)


def test_a_restart_lists_nothing(configured, devserver, handler):
    before = len(lists(devserver))
    configured.configure(devserver, [watch("widgets", handler)], workers=3)
    configured.reload()
    wait_state(configured, "widgets")
    assert len(lists(devserver)) == before and "workers" in restarted(configured)


def test_more_watches_than_there_is_room_for(configured, devserver, handler, other):
    many = [maps(other, name=f"maps-{number}", id=str(number)) for number in range(17)]
    configured.configure(devserver, [watch("widgets", handler), *many])
    configured.reload()
    assert "no room for 18 watches" in restarted(configured)
    wait_until(lambda: len(configured.children("watcher")) == 18, "all of them")


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
    wait_until(lambda: rows(both).get("maps", {}).get("state") == "leaving", "it to leave")
    os.kill(both.pid, signal.SIGKILL)
    both.wait_exit(expect=-signal.SIGKILL)
    both.assert_no_processes()
    both.start_ready().wait_synced()
    assert list(rows(both)) == ["widgets"]
