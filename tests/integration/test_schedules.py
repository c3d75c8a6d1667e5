# SPDX-License-Identifier: Apache-2.0
"""`schedules`: a handler runs at its times, for a ConfigMap of the operator's own."""
import datetime
import json

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID

NAME = "widgets.example.com-nightly"
YEARLY = "0 0 1 1 *"


def schedule(handler, **more):
    return {"name": "nightly", "cron": YEARLY, "handler": {"exec": handler.command}, "retry": {"first": "50ms", "max": "1s"}, **more}


@pytest.fixture
def own(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(*schedules, **more):
        operator.configure(devserver, [], namespace="default", schedules=list(schedules) or [schedule(handler)], **more)
        operator.start_ready()
        return operator

    return start


def row(operator, watch_name="nightly"):
    found = ledger.read(operator, f"SELECT key, next_reason, next_realtime, scheduled_realtime FROM ledger WHERE watch = '{watch_name}'")
    return found[0] if found else None


def wait_planned(operator, where=lambda row: True):
    return wait_until(lambda: (found := row(operator)) and found[1] == "scheduled" and where(found) and found, "its plan")


def make_due(operator, seconds_ago=1):
    """While the operator is not there: its time has come meanwhile."""
    with ledger.edit(operator) as database:
        database.execute(f"UPDATE ledger SET next_realtime = next_realtime - (scheduled_realtime - {int(datetime.datetime.now().timestamp() * 1e6)}) "
                         f"- {seconds_ago * 1_000_000}, scheduled_realtime = {int((datetime.datetime.now().timestamp() - seconds_ago) * 1e6)} "
                         "WHERE watch = 'nightly'")


def test_a_new_one_makes_its_object_and_waits_for_its_time(start, operator, handler, own):
    start()
    key, _, _, scheduled = wait_planned(operator)
    assert key == f"default/{NAME}"
    due = datetime.datetime.fromtimestamp(scheduled / 1e6, datetime.timezone.utc)
    assert (due.month, due.day, due.hour, due.minute) == (1, 1, 0, 0) and due > datetime.datetime.now(datetime.timezone.utc)
    assert own.get(NAME)["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "reconciled",
                                                   "app.kubernetes.io/component": "schedule"}
    assert own.get(NAME)["metadata"]["annotations"]["app.kubernetes.io/instance"] == "widgets.example.com"
    operator.stop()
    assert handler.count() == 0


def test_each_minute(start, operator, handler, own):
    start(schedule(handler, cron="* * * * *"))
    request = handler.wait_finished(name=NAME, deadline=90)
    assert request.body["action"] == request.environment["RECONCILED_ACTION"] == "schedule"
    assert (request.body["reason"], request.body["attempt"], request.body["watch"]) == ("scheduled", 1, "nightly")
    assert request.object["kind"] == "ConfigMap" and request.started % 60 < 30
    wait_planned(operator, lambda found: found[3] / 1e6 > request.started)
    operator.stop()


def test_what_was_missed_runs_once_and_then_waits(start, operator, handler):
    start()
    wait_planned(operator)
    operator.stop()
    make_due(operator, 3 * 24 * 3600)
    operator.start_ready()
    assert handler.wait_finished(name=NAME).body["reason"] == "scheduled"
    wait_planned(operator)
    operator.stop()
    assert handler.count() == 1


def test_what_was_missed_is_left_out_where_the_configuration_says_so(start, operator, handler):
    start(schedule(handler, onMissed="skip"))
    wait_planned(operator)
    operator.stop()
    make_due(operator, 3600)
    operator.start_ready()
    assert "onMissed: skip" in operator.wait_for_log(message_id=MESSAGE_ID["SCHEDULE_MISSED"])["message"]
    now = datetime.datetime.now().timestamp() * 1e6
    wait_planned(operator, lambda found: found[3] > now)
    operator.stop()
    assert handler.count() == 0


def test_in_time_is_within_a_minute(start, operator, handler):
    start(schedule(handler, onMissed="skip"))
    wait_planned(operator)
    operator.stop()
    make_due(operator, 5)
    operator.start_ready()
    handler.wait_finished(name=NAME)
    operator.stop()


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_run_that_was_under_way_runs_again(start, operator, handler, kill):
    handler.behave("sleep 300")
    start(schedule(handler, onMissed="skip"), stop={"grace": "50ms"})
    wait_planned(operator)
    operator.stop()
    make_due(operator)
    operator.start_ready()
    handler.wait_for(name=NAME)
    if kill:
        operator.send_signal(9)
        operator.wait_exit()
        operator.assert_no_processes()
    else:
        operator.stop()
    handler.behave("exit 0")
    operator.start_ready()
    handler.wait_finished(name=NAME, count=2)
    wait_planned(operator)
    operator.stop()
    assert handler.count() == 2


def test_a_failure_is_retried(start, operator, handler):
    start()
    wait_planned(operator)
    operator.stop()
    make_due(operator)
    handler.behave('[ "$RECONCILED_ATTEMPT" = 3 ]')
    operator.start_ready()
    assert handler.wait_finished(name=NAME, count=3).body["attempt"] == 3
    wait_planned(operator)
    operator.stop()


def test_what_fails_for_good_waits_for_its_next_time(start, operator, handler):
    start()
    wait_planned(operator)
    operator.stop()
    make_due(operator)
    handler.behave("exit 65")
    operator.start_ready()
    handler.wait_finished(name=NAME)
    now = datetime.datetime.now().timestamp() * 1e6
    wait_planned(operator, lambda found: found[3] > now)
    assert "until its next time" in operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"])["message"]
    operator.stop()
    make_due(operator)
    handler.behave("exit 0")
    operator.start_ready()
    assert handler.wait_finished(name=NAME, count=2).body["attempt"] == 1
    operator.stop()


def test_by_hand(start, operator, handler):
    start()
    wait_planned(operator)
    operator.ctl.run("retry", "nightly", f"default/{NAME}")
    assert handler.wait_finished(name=NAME).body["reason"] == "requested"
    wait_planned(operator)
    assert "scheduled" in operator.ctl.run("explain", "nightly", f"default/{NAME}").stdout
    operator.stop()


def test_children_belong_to_its_object_and_related_ones_come_from_everywhere(devserver, operator, handler, own, widgets, api):
    api.resource("v1", "namespaces").create("other")
    widgets.create("a")
    api.resource("example.com/v1", "widgets", "other").create("b")
    handler.answer({"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "report"}, "stringData": {"a": "b"}}]})
    operator.configure(devserver, [watch("widgets", handler.__class__(operator.sandbox))], namespace="default", schedules=[
        schedule(handler, related=[{"apiVersion": "example.com/v1", "kind": "Widget"}],
                 children={"kinds": [{"apiVersion": "v1", "kind": "Secret"}]})])
    operator.start_ready()
    wait_planned(operator)
    operator.ctl.run("retry", "nightly", f"default/{NAME}")
    request = handler.wait_finished(name=NAME)
    assert sorted(item["metadata"]["name"] for item in request.body["related"]) == ["a", "b"]
    secrets = api.resource("v1", "secrets", "default")
    report = wait_until(lambda: secrets.get("report"), "its child")
    assert report["metadata"]["ownerReferences"][0]["uid"] == own.get(NAME)["metadata"]["uid"]
    widgets.create("c")

    def sees_three():
        operator.ctl.run("retry", "nightly", f"default/{NAME}")
        return handler.requests(where=lambda request: len(request.body["related"]) == 3)

    wait_until(sees_three, "a run that is shown the new one")
    operator.stop()
    assert {request.body["reason"] for request in handler.requests()} == {"requested"}, "a change of what is related is no reason to run"


def test_an_object_that_somebody_deletes_is_made_again(start, operator, handler, own):
    start()
    wait_planned(operator)
    first = own.get(NAME)["metadata"]["uid"]
    own.delete(NAME)
    wait_until(lambda: own.exists(NAME) and own.get(NAME)["metadata"]["uid"] != first, "another one")
    wait_until(lambda: len(ledger.read(operator, "SELECT uid FROM ledger")) == 1
               and ledger.read(operator, "SELECT uid FROM ledger")[0][0] == own.get(NAME)["metadata"]["uid"], "its record")
    wait_planned(operator)
    operator.stop()
    assert handler.count() == 0


def test_one_that_is_deleted_again_and_again_is_not_made_without_a_pause(start, devserver, own):
    start()
    wait_until(lambda: own.exists(NAME), "the ConfigMap")

    def made():
        return [request["time"] for request in devserver.requests(
            lambda request: request["method"] == "POST" and "/configmaps" in request["path"])]

    for number in (1, 2):
        own.delete(NAME)
        wait_until(lambda: len(made()) == number + 1, "it to be made again")
    assert made()[2] - made()[1] > 4


def test_it_runs_while_its_object_is_being_deleted(start, operator, handler, own, api):
    handler.answer({"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "report"}, "stringData": {"a": "b"}}]})
    start(schedule(handler, children={"kinds": [{"apiVersion": "v1", "kind": "Secret"}]}))
    wait_planned(operator)
    own.merge_patch(NAME, {"metadata": {"finalizers": ["example.com/theirs"]}})
    own.delete(NAME)
    operator.stop()
    make_due(operator)
    operator.start_ready()
    assert handler.wait_finished(name=NAME).body["action"] == "schedule"
    now = datetime.datetime.now().timestamp() * 1e6
    wait_planned(operator, lambda found: found[3] > now)
    operator.stop()
    assert handler.count() == 1 and own.get(NAME)["metadata"]["deletionTimestamp"]
    assert api.resource("v1", "secrets", "default").exists("report")


def test_an_edit_is_no_reason_to_run(start, operator, handler, own):
    start()
    wait_planned(operator)
    own.merge_patch(NAME, {"data": {"a": "b"}, "metadata": {"labels": {"theirs": "yes"}}})
    operator.ctl.run("retry", "nightly", f"default/{NAME}")
    handler.wait_finished(name=NAME)
    wait_planned(operator)
    operator.stop()
    assert handler.count() == 1 and own.get(NAME)["data"] == {"a": "b"}


def test_a_reload_takes_another_time_and_another_schedule(start, devserver, operator, handler, own):
    start()
    _, _, _, before = wait_planned(operator)
    operator.configure(devserver, [], namespace="default", schedules=[
        schedule(handler, cron="30 5 1 1 *"), schedule(handler, name="weekly", cron="@weekly", timeZone="Europe/Berlin")])
    operator.reload()
    wait_planned(operator, lambda found: found[3] == before + 5.5 * 3600 * 1_000_000)
    wait_until(lambda: row(operator, "weekly") and row(operator, "weekly")[1] == "scheduled", "the other one's plan")
    assert own.exists("widgets.example.com-weekly")
    operator.configure(devserver, [], namespace="default", schedules=[schedule(handler, name="weekly", cron="@weekly")])
    operator.reload()
    operator.stop()
    assert handler.count() == 0 and own.exists(NAME), "what a schedule has made stays until somebody deletes its object"


def test_the_object_of_another_operator_is_refused(start, operator, handler, own):
    """Of the names of two operators and their schedules the same one may be made: a.b-c with d, and a.b with c-d."""
    made = own.create(NAME, annotations={"app.kubernetes.io/instance": "widgets.example"})
    start()
    wait_planned(operator)
    operator.ctl.run("retry", "nightly", f"default/{NAME}")
    found = wait_until(lambda: operator.ctl.status()["failing"], "the failure")[0]
    assert "of the operator widgets.example " in found["lastError"] and "`namespace`" in found["lastError"], found
    assert handler.count() == 0 and own.get(NAME)["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    own.delete(NAME)
    wait_until(lambda: (there := own.get(NAME)) and there["metadata"]["uid"] != made["metadata"]["uid"], "one of its own")

    def runs():
        operator.ctl.run("retry", "nightly", f"default/{NAME}")
        return handler.count()

    wait_until(runs, "a run of its own one")
    operator.stop()


def test_its_watcher_ends_in_order(start, devserver, operator, handler):
    start()
    wait_planned(operator)
    operator.configure(devserver, [], namespace="default", schedules=[schedule(handler, cron="@weekly")])
    operator.reload()
    wait_planned(operator)
    operator.stop()
    assert "was told to end" not in operator.output.text()


def test_paused_it_does_not_run(start, operator, handler):
    start()
    wait_planned(operator)
    operator.ctl.run("pause", "nightly")
    operator.stop()
    make_due(operator)
    operator.start_ready()
    wait_until(lambda: "paused" in operator.ctl.run("status").stdout, "its pause")
    operator.ctl.run("resume", "nightly")
    handler.wait_finished(name=NAME)
    operator.stop()
    assert handler.count() == 1


def test_without_the_right_to_make_its_object(start, devserver, operator, handler):
    fault = devserver.fault(match={"verb": "create", "resource": "configmaps"}, status=403, times=0)
    start()
    wait_until(lambda: f"ConfigMap default/{NAME}, which the operator keeps for its schedule, cannot be made" in operator.ctl.run("status").stdout,
               "the reason")
    devserver.clear_faults(fault)
    wait_planned(operator)
    operator.stop()


@pytest.mark.parametrize("change, key, mistake", [
    ({"cron": "61 * * * *"}, "cron", "is no minute"), ({"cron": "* * *"}, "cron", "five fields"), ({"cron": "0 0 31 2 *"}, "cron", "never due"),
    ({"cron": "@reboot"}, "cron", "startup"), ({"timeZone": "Mars/Olympus"}, "timeZone", "tzdata"), ({"name": "Nightly"}, "name", "lower-case"),
    ({"onMissed": "twice"}, "onMissed", "none of: once, skip"), ({"kind": "Widget"}, "kind", "is unknown"), ({"cron": None}, "cron", "is missing")])
def test_mistakes_have_a_place(operator, handler, change, key, mistake):
    entry = {name: value for name, value in {**schedule(handler), **change}.items() if value is not None}
    file = operator.configure(namespace="default", schedules=[entry])
    checked = operator.ctl.check(file)
    assert checked.returncode == 78
    line = next(line for line in (checked.stdout + checked.stderr).splitlines() if f": schedules[0].{key}: " in line)
    assert line.startswith(f"{file}:") and line.split(":")[1].isdigit() and mistake in line


def test_a_namespace_is_needed(operator, handler):
    checked = operator.ctl.check(operator.configure(schedules=[schedule(handler)]))
    assert checked.returncode == 78 and "set `namespace: NAME`" in checked.stdout + checked.stderr
    for wrong in ("a b", "${NOT_THERE}"):
        checked = operator.ctl.check(operator.configure(namespace=wrong, schedules=[schedule(handler)]))
        assert checked.returncode == 78 and " namespace: " in checked.stdout + checked.stderr


def test_names_are_those_of_watches_as_well(operator, handler):
    checked = operator.ctl.check(operator.configure(watches=[watch("nightly", handler)], namespace="default", schedules=[schedule(handler)]))
    assert checked.returncode == 78 and '"nightly" is taken by the watch at' in checked.stdout + checked.stderr


def test_the_rights_that_it_needs(operator, handler):
    file = operator.configure(namespace="ops", schedules=[schedule(handler, children={"kinds": [{"apiVersion": "v1", "kind": "Secret"}]})])
    roles = operator.ctl.run("rbac", "--config", str(file), "--json")
    items = json.loads(roles.stdout)["items"]
    role = next(item for item in items if item["kind"] == "Role" and item["metadata"]["namespace"] == "ops")
    assert {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "watch", "create", "patch"]} in [
        {name: value for name, value in rule.items() if name in ("apiGroups", "resources", "verbs")} for rule in role["rules"]]
    assert not any("configmaps/status" in rule["resources"] for rule in role["rules"])


def test_its_handler_is_tried_by_hand(operator, handler):
    handler.answer({"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "report"}, "stringData": {"a": "b"}}]})
    file = operator.configure(namespace="ops", schedules=[schedule(handler, children={"kinds": [{"apiVersion": "v1", "kind": "Secret"}]})])
    tried = operator.ctl.run("run", "--config", str(file), "--watch", "nightly")
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert f"nightly: schedule ops/{NAME}" in tried.stdout and "+ create Secret ops/report" in tried.stdout
    assert handler.wait_finished(name=NAME).body["action"] == "schedule"
    refused = operator.ctl.run("run", "--config", str(operator.configure(watches=[watch("widgets", handler)])), "--watch", "widgets")
    assert refused.returncode == 64 and "--object" in refused.stderr
