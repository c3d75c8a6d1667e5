# SPDX-License-Identifier: Apache-2.0
"""What the last run that is over has seen is what the object is: one that is changed and then changed back, while its handler
runs or while we are down, is handled as what it went back to."""
import os
import signal

import pytest

from harness import ledger, wait_until, watch

SOON = {"first": "10ms", "max": "100ms"}
NEVER = {"first": "1h", "max": "1h"}  # what runs again does so for another reason


@pytest.fixture
def a_and_b(devserver, operator, handler, widgets):
    """A running operator that has handled `a` with size 1 (A), and whose handler has begun with size 2 (B), which it ends in
    the way that is asked for once it may go on."""
    def begin(ending="exit 0", first="exit 0", **more):
        more.setdefault("retry", NEVER)
        operator.configure(devserver, [watch("widgets", handler, **more)], stop={"grace": "100ms"})
        handler.behave(f"""case $(cat $REQUEST) in
*'"size":2'*) until [ -e {handler.folder}/go ]; do sleep 0.02; done; {ending};;
*'"name":"a"'*) {first};;
esac""")
        operator.start_ready().wait_synced()
        widgets.create("a", spec={"size": 1})
        handler.wait_finished(name="a")
        wait_until(lambda: is_over(operator), "the record of the first run")
        widgets.merge_patch("a", {"spec": {"size": 2}})
        handler.wait_for(name="a", count=2)

    return begin


def is_over(operator):
    return ledger.read(operator, "SELECT 1 FROM ledger WHERE key = 'default/a' AND ran_result != ''")


def revert(widgets):
    widgets.merge_patch("a", {"spec": {"size": 1}})


def behind(handler, widgets, name="behind"):
    """A later object that was handled: what was there before it has been judged."""
    widgets.create(name, spec={"size": 3})
    handler.wait_finished(name=name)


def go_on(handler):
    (handler.folder / "go").touch()


def sizes(handler):
    return [request.object["spec"]["size"] for request in handler.requests(name="a")]


def seen_again(handler, count=3):
    handler.wait_finished(name="a", count=count)
    assert sizes(handler)[-1] == 1


def kill(operator):
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)


def nothing_more_runs(operator, handler, widgets, name):
    runs = len(handler.requests(name="a"))
    behind(handler, widgets, name)
    operator.stop()
    assert len(handler.requests(name="a")) == runs


@pytest.mark.parametrize("trigger", ["essence", {"jq": ".spec.size"}])
@pytest.mark.parametrize("ending", ["exit 0", "exit 65", "exit 75"])
def test_a_change_that_is_reverted_while_its_handler_runs(a_and_b, operator, handler, widgets, ending, trigger):
    a_and_b(ending, trigger=trigger)
    revert(widgets)
    behind(handler, widgets)
    go_on(handler)
    seen_again(handler)
    nothing_more_runs(operator, handler, widgets, "c")


def test_it_goes_back_to_what_had_failed_for_good(a_and_b, operator, handler, widgets):
    a_and_b(first="exit 65")
    revert(widgets)
    behind(handler, widgets)
    go_on(handler)
    seen_again(handler)
    nothing_more_runs(operator, handler, widgets, "c")


def test_it_goes_back_to_what_waits_for_its_backoff(a_and_b, operator, handler, widgets):
    a_and_b(first="exit 75")
    revert(widgets)
    behind(handler, widgets)
    go_on(handler)
    seen_again(handler)
    nothing_more_runs(operator, handler, widgets, "c")


def test_changes_that_come_during_a_run_of_the_same_are_no_change(a_and_b, operator, handler, widgets):
    """Back and forth, to what the handler has been given: nothing is run for it, and no backoff is passed by."""
    a_and_b("exit 75")
    for _ in range(3):
        revert(widgets)
        widgets.merge_patch("a", {"spec": {"size": 2}})
    behind(handler, widgets)
    go_on(handler)
    handler.wait_finished(name="a", count=2)
    nothing_more_runs(operator, handler, widgets, "c")
    assert sizes(handler) == [1, 2]


# ---- over a restart


def test_its_run_is_cancelled_by_a_stop(a_and_b, operator, handler, widgets):
    a_and_b()
    operator.stop()
    revert(widgets)
    operator.start_ready().wait_synced()
    seen_again(handler)
    nothing_more_runs(operator, handler, widgets, "c")


def test_its_run_is_cancelled_with_its_watch(a_and_b, devserver, operator, handler, widgets):
    a_and_b()
    with_watch = operator.config_file.read_text()
    operator.configure(devserver, [watch("maps", handler, api_version="v1", kind="ConfigMap")], stop={"grace": "100ms"})
    os.kill(operator.pid, signal.SIGHUP)
    wait_until(lambda: [each["name"] for each in operator.ctl.status()["watches"]] == ["maps"], "the watch to be gone")
    revert(widgets)
    go_on(handler)
    operator.write_config(with_watch)
    os.kill(operator.pid, signal.SIGHUP)
    seen_again(handler)
    operator.stop()


def test_its_run_ends_in_a_conflict_after_its_children_were_applied(a_and_b, api, operator, handler, widgets):
    """The child says B, and nobody else would mend that."""
    maps = api.resource("v1", "configmaps", "default")
    child = """printf '{"children":[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"child"},"data":{"size":"%s"}}]%s}'"""
    a_and_b(child + """ 2 ',"patch":{"metadata":{"labels":{"x":"y"}}}'""", first=child + " 1 ''")
    widgets.merge_patch("a", {"status": {"theirs": True}}, subresource="status")
    go_on(handler)
    wait_until(lambda: maps.get("child")["data"] == {"size": "2"}, "the child")
    wait_until(lambda: ledger.read(operator, "SELECT 1 FROM ledger WHERE ran_result = 'conflict'"), "the conflict")
    operator.stop()
    revert(widgets)
    operator.start_ready().wait_synced()
    seen_again(handler)
    wait_until(lambda: maps.get("child")["data"] == {"size": "1"}, "the child")
    operator.stop()
