# SPDX-License-Identifier: Apache-2.0
"""`startup`: a handler runs once at each start, before any other."""
import pytest

from harness import ledger, wait_until, watch

NAME = "widgets.example.com-startup"


@pytest.fixture
def first(make_handler):
    """The handler of `startup`."""
    return make_handler()


@pytest.fixture
def own(api):
    return api.resource("v1", "configmaps", "default")


def wait_nothing_due(operator, uid):
    """The row of its ConfigMap, which has this uid, is there and waits for nothing."""
    wait_until(lambda: ledger.read(operator, f"SELECT next_realtime FROM ledger WHERE watch = 'startup' AND uid = '{uid}'") == [(0,)],
               "nothing due", deadline=5)


@pytest.fixture
def start(devserver, operator, handler, first):
    def start(ready=True, **more):
        operator.configure(devserver, [watch("widgets", handler)], namespace="default",
                           startup={"handler": {"exec": first.command}, "retry": {"first": "50ms", "max": "1s"}, **more})
        return operator.start_ready().wait_synced() if ready else operator.start()

    return start


def test_all_others_wait_for_it(start, operator, handler, first, widgets):
    first.behave(first.held)
    start()
    request = first.wait_for(name=NAME)
    assert (request.body["action"], request.body["reason"]) == ("startup", "start")
    widgets.create("a")
    explained = wait_until(lambda: "until the handler of `startup` has succeeded" in (
        text := operator.ctl.run("explain", "widgets", "default/a").stdout) and text, "its reason")
    assert "default/a" in explained
    refused = operator.ctl.run("retry", "widgets", "default/a")
    assert refused.returncode != 0 and "startup" in refused.stderr
    assert handler.count() == 0
    first.let_go()
    handler.wait_finished(name="a")
    operator.stop()
    assert first.count() == 1


def test_one_that_kills_its_worker_is_never_in_quarantine(start, operator, handler, first, widgets):
    """Each start is an attempt, however often the operator has died over it."""
    widgets.create("a")
    first.behave("kill -KILL $PPID; sleep 60")
    start(ready=False).wait_exit(70)
    for _ in range(3):  # more than the default of `quarantine.after`
        operator.start().wait_exit(70)
    first.behave("")
    operator.start_ready()
    handler.wait_finished(name="a")
    assert first.count() == 5 and operator.ctl.status()["quarantine"] == []


def test_it_is_retried_and_never_given_up(start, operator, handler, first, widgets):
    widgets.create("a")
    first.behave('[ "$RECONCILED_ATTEMPT" -lt 3 ] && exit 65; [ -s "$REQUEST" ]')
    start(retry={"first": "50ms", "max": "50ms"})
    assert first.wait_finished(name=NAME, count=3).body["attempt"] == 3
    request = handler.wait_finished(name="a")
    assert request.started >= first.requests()[-1].started
    operator.stop()


def test_it_may_end_the_operator(start, operator, handler, first, widgets):
    widgets.create("a")
    first.behave("echo no database >&2; exit 1")
    operator.configure()  # start() waits for a readiness that may not come
    with pytest.raises((AssertionError, RuntimeError)):
        start(onFailure="fatal")
        operator.wait_for_log("never comes", deadline=1)
    operator.wait_exit(expect=70)
    assert "startup.onFailure: fatal" in operator.output.text()
    assert handler.count() == 0
    first.behave("exit 0")
    operator.start_ready()
    handler.wait_finished(name="a")
    operator.stop()


def test_each_start_runs_it_and_a_reload_does_not(start, devserver, operator, handler, first, widgets):
    widgets.create("a")
    start()
    handler.wait_finished(name="a")
    operator.configure(devserver, [watch("widgets", handler, resync="1h")], namespace="default",
                       startup={"handler": {"exec": first.command}})
    operator.reload()
    widgets.create("b")
    handler.wait_finished(name="b")
    assert first.count() == 1
    operator.stop()
    operator.start_ready()
    first.wait_finished(name=NAME, count=2)
    widgets.create("c")
    handler.wait_finished(name="c")
    operator.stop()
    assert first.count() == 2


def test_killed_meanwhile_it_runs_again(start, operator, handler, first, widgets):
    widgets.create("a")
    first.behave("sleep 300")
    start()
    first.wait_for(name=NAME)
    operator.send_signal(9)
    operator.wait_exit()
    operator.assert_no_processes()
    first.behave("exit 0")
    operator.start_ready()
    first.wait_finished(name=NAME, count=2)
    handler.wait_finished(name="a")
    operator.stop()


@pytest.mark.parametrize("failure", ["retry", "fatal"])
def test_its_object_deleted_later_on_runs_nothing(start, operator, handler, first, widgets, own, failure):
    widgets.create("a")
    start(onFailure=failure)
    handler.wait_finished(name="a")
    before = own.get(NAME)["metadata"]["uid"]
    first.behave("exit 1")
    own.delete(NAME)
    wait_until(lambda: own.exists(NAME) and own.get(NAME)["metadata"]["uid"] != before, "another one")
    wait_nothing_due(operator, own.get(NAME)["metadata"]["uid"])
    widgets.create("b")
    handler.wait_finished(name="b")
    assert first.count() == 1
    operator.ctl.run("retry", "startup", f"default/{NAME}")
    first.wait_finished(name=NAME, count=2)
    widgets.create("c")
    handler.wait_finished(name="c")
    operator.stop()


def test_one_that_a_reload_adds_waits_for_the_next_start(devserver, operator, handler, first, widgets, own):
    with_startup = {"startup": {"handler": {"exec": first.command}}}
    operator.configure(devserver, [watch("widgets", handler)], namespace="default")
    operator.start_ready().wait_synced()
    operator.configure(devserver, [watch("widgets", handler)], namespace="default", **with_startup)
    operator.reload()
    wait_until(lambda: own.exists(NAME), "its object")
    wait_nothing_due(operator, own.get(NAME)["metadata"]["uid"])
    widgets.create("a")
    handler.wait_finished(name="a")
    operator.configure(devserver, [watch("widgets", handler, resync="1h")], namespace="default", **with_startup)
    operator.reload()
    widgets.create("b")
    handler.wait_finished(name="b")
    assert first.count() == 0
    operator.stop()
    operator.start_ready()
    first.wait_finished(name=NAME)
    operator.stop()
    assert first.count() == 1


def test_a_reload_before_it_has_succeeded_frees_nobody(devserver, operator, handler, first, widgets):
    def configure(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)], namespace="default", stop={"grace": "50ms"},
                           startup={"handler": {"exec": first.command}})

    configure()
    first.behave(first.held)
    widgets.create("a")
    operator.start_ready().wait_synced()
    first.wait_for(name=NAME)
    configure(resync="1h")
    operator.reload()
    first.wait_for(name=NAME, count=2)
    assert handler.count() == 0
    first.let_go()
    handler.wait_finished(name="a")
    operator.stop()


def test_it_runs_once_whatever_it_asks_for(start, operator, handler, first, widgets, own):
    widgets.create("a")
    first.answer({"requeueAfter": "100ms"})
    start()
    handler.wait_finished(name="a")
    wait_nothing_due(operator, own.get(NAME)["metadata"]["uid"])
    operator.stop()
    assert first.count() == 1


def test_its_object_is_being_deleted(start, operator, handler, first, widgets, own):
    own.create(NAME)
    own.merge_patch(NAME, {"metadata": {"finalizers": ["example.com/theirs"]}})
    own.delete(NAME)
    assert own.get(NAME)["metadata"]["deletionTimestamp"]
    widgets.create("a")
    start()
    handler.wait_finished(name="a")
    own.merge_patch(NAME, {"metadata": {"finalizers": None}})
    wait_until(lambda: own.exists(NAME) and "deletionTimestamp" not in own.get(NAME)["metadata"], "another one")
    wait_nothing_due(operator, own.get(NAME)["metadata"]["uid"])
    operator.stop()
    assert first.count() == 1


def test_deaths_meanwhile_put_it_into_no_quarantine(start, operator, handler, first, widgets):
    widgets.create("a")
    first.behave("sleep 300")
    start()
    for life in range(1, 6):
        first.wait_for(name=NAME, count=life)
        operator.send_signal(9)
        operator.wait_exit()
        operator.assert_no_processes()
        if life == 5:
            first.behave("exit 0")
        operator.start_ready()
    handler.wait_finished(name="a")
    operator.stop()


def test_only_what_the_handler_itself_says_is_fatal(start, operator, devserver, handler, first, widgets, api):
    widgets.create("a")
    fault = devserver.fault(match={"resource": "secrets", "verb": "patch"}, status=422, times=0)
    first.answer({"children": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "good"}, "stringData": {"a": "b"}}]})
    start(onFailure="fatal", children={"kinds": [{"apiVersion": "v1", "kind": "Secret"}]})
    first.wait_finished(name=NAME, count=3)
    assert handler.count() == 0
    devserver.clear_faults(fault)
    handler.wait_finished(name="a")
    assert api.resource("v1", "secrets", "default").exists("good")
    operator.stop()


@pytest.mark.parametrize("behaviour", ["exit 65", "kill -9 $$", """echo '{"error": "no database"}'""", 'echo \'{"children": 7}\'', "sleep 300"],
                         ids=["permanent", "signal", "error", "answer", "timeout"])
def test_what_is_fatal(operator, devserver, handler, first, behaviour):
    first.behave(behaviour)
    operator.configure(devserver, [watch("widgets", handler)], namespace="default",
                       startup={"handler": {"exec": first.command, "timeout": "1s"}, "onFailure": "fatal"})
    operator.start()
    operator.wait_exit(expect=70)
    assert "startup.onFailure: fatal" in operator.output.text()


def test_it_has_no_quarantine(operator, handler, first):
    file = operator.configure(watches=[watch("widgets", handler)], namespace="default",
                              startup={"handler": {"exec": first.command}, "quarantine": {"after": 1}})
    checked = operator.ctl.check(file)
    assert checked.returncode == 78 and "startup.quarantine" in checked.stdout + checked.stderr


def test_the_operator_is_not_ready_before_it_has_succeeded(start, operator, handler, first, widgets):
    widgets.create("a")
    first.behave("echo no database >&2; exit 75")
    start(retry={"first": "50ms", "max": "200ms"})

    def refused():
        health = operator.ctl.run("health", "--ready")
        return health.returncode != 0 and "no database" in health.stdout and health.stdout

    said = wait_until(refused, "the operator to say why it is not ready")
    assert "the handler of `startup` has not succeeded, and all others wait for it: " in said
    assert operator.ctl.run("health").returncode == 0, "it is live"
    assert "no database" in operator.ctl.run("status").stdout
    operator.wait_for_log("all other handlers wait for this one, and have done so for", watch="startup")
    status = operator.ctl.status()
    assert status["startupAwaited"] and "no database" in status["startupError"] and handler.count() == 0
    first.behave("exit 0")
    handler.wait_finished(name="a")
    wait_until(lambda: operator.ctl.run("health", "--ready").returncode == 0, "it to be ready")
    assert not operator.ctl.status()["startupAwaited"]
    operator.stop()


@pytest.mark.slow
def test_related_objects_of_a_tenant_that_are_too_large_hold_it_no_longer_than_they_are_there(devserver, operator, handler, first, widgets, api):
    for number in range(8):
        widgets.create(f"large-{number}", {"text": "x" * 600_000})
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.create("innocent")
    operator.configure(devserver, [watch("maps", handler, api_version="v1", kind="ConfigMap", labelSelector="!app.kubernetes.io/component")],
                       namespace="default",
                       startup={"handler": {"exec": first.command, "requestLimit": "4Mi"}, "retry": {"first": "50ms", "max": "1s"},
                                "related": [{"apiVersion": "example.com/v1", "kind": "Widget"}]})
    operator.start_ready().wait_synced()

    def refused():
        health = operator.ctl.run("health", "--ready")
        return health.returncode != 0 and "its request would take about" in health.stdout

    wait_until(refused, "the operator to say why it is not ready")
    assert first.count() == handler.count() == 0
    for number in range(8):
        widgets.delete(f"large-{number}")
    assert len(first.wait_finished(name=NAME).body["related"]) < 8
    handler.wait_finished(name="innocent")
    operator.stop()
