# SPDX-License-Identifier: Apache-2.0
"""What the last run that is over has seen is what the object is: one that is changed and then changed back, while its handler
runs or while we are down, is handled as what it went back to."""
import os
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID

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
*'"size":2'*) {handler.held}; {ending};;
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
    handler.let_go()


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


@pytest.mark.parametrize("trigger", ["essence", {"jq": ".spec.size"}])
def test_the_supervisor_is_killed_in_its_run(a_and_b, operator, handler, widgets, trigger):
    a_and_b(trigger=trigger)
    kill(operator)
    revert(widgets)
    operator.start_ready().wait_synced()
    seen_again(handler)
    nothing_more_runs(operator, handler, widgets, "c")


def test_a_child_dies_in_its_run(a_and_b, operator, handler, widgets):
    a_and_b()
    os.kill(operator.child("credential").pid, signal.SIGKILL)
    operator.wait_exit(expect=70)
    revert(widgets)
    operator.start_ready().wait_synced()
    seen_again(handler)
    nothing_more_runs(operator, handler, widgets, "c")


def test_a_name_of_the_greatest_length(devserver, operator, handler, widgets):
    name = "a" * 253
    operator.configure(devserver, [watch("w" * 63, handler)])
    operator.start_ready().wait_synced()
    widgets.create(name, spec={"size": 1})
    handler.wait_finished(name=name)
    handler.behave("sleep 60")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "the end of the first run")
    widgets.merge_patch(name, {"spec": {"size": 2}})
    handler.wait_for(name=name, count=2)
    kill(operator)
    widgets.merge_patch(name, {"spec": {"size": 1}})
    handler.behave("exit 0")
    operator.start_ready().wait_synced()
    assert handler.wait_finished(name=name, count=3).object["spec"] == {"size": 1}
    operator.stop()


# ---- what cannot be told apart


def another_boot(file):
    with file.open("r+b") as open_file:
        open_file.seek(8)
        open_file.write(b"another boot's I")


def another_mode(file):
    file.chmod(0o644)


def nothing_in_it(file):
    os.truncate(file, 0)


UNTOLD = [another_boot, os.unlink, another_mode, nothing_in_it]


def under_way(operator):
    return operator.state_directory / "under-way"


def told(operator):
    return operator.logs(message_id=MESSAGE_ID["UNSURE"])


@pytest.mark.parametrize("spoil", UNTOLD)
def test_what_was_under_way_is_not_known(a_and_b, operator, handler, widgets, spoil):
    """What has another version than at its last run runs once, and nothing else does; also when that start is killed."""
    a_and_b()
    behind(handler, widgets, "same")
    behind(handler, widgets, "other")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 1, "the end of the other runs")
    kill(operator)
    spoil(under_way(operator))
    revert(widgets)
    widgets.merge_patch("other", {"status": {"theirs": True}}, subresource="status")
    operator.start_ready()
    seen_again(handler)
    handler.wait_finished(name="other", count=2)
    assert len(told(operator)) == 1
    wait_until(lambda: not operator.ctl.status()["watches"][0]["unsure"], "the watch to be looked through")
    nothing_more_runs(operator, handler, widgets, "c")
    operator.start_ready().wait_synced()
    behind(handler, widgets, "d")
    assert len(handler.requests(name="same")) == 1 and len(handler.requests(name="other")) == 2
    assert not told(operator)
    operator.stop()


@pytest.mark.parametrize("ending", ["exit 65", "exit 75"])
def test_what_was_given_up_before_it_ever_succeeded_stays_so(devserver, operator, handler, widgets, ending):
    """It has the version that its last run has read, so it was not changed and changed back."""
    operator.configure(devserver, [watch("widgets", handler, retry={**NEVER, "attempts": 1})])
    handler.behave(f"""case $(cat $REQUEST) in *'"name":"a"'*) {ending};; esac""")
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    behind(handler, widgets, "b")
    wait_until(lambda: is_over(operator), "the record of its run")
    kill(operator)
    another_boot(under_way(operator))
    operator.start_ready()
    wait_until(lambda: not operator.ctl.status()["watches"][0]["unsure"], "the watch to be looked through")
    nothing_more_runs(operator, handler, widgets, "c")
    assert len(handler.requests(name="a")) == 1


def test_it_is_as_little_known_to_the_next_start(a_and_b, devserver, operator, handler, widgets):
    """The watch is paused when we begin, or not even configured: what was in doubt stays so until it was looked at."""
    a_and_b()
    kill(operator)
    another_boot(under_way(operator))
    with_watch = operator.config_file.read_text()
    operator.configure(devserver, [watch("maps", handler, api_version="v1", kind="ConfigMap")])
    operator.start_ready().wait_synced()
    operator.stop()
    revert(widgets)
    operator.write_config(with_watch)
    operator.start_ready().wait_synced()
    seen_again(handler)
    nothing_more_runs(operator, handler, widgets, "c")


@pytest.mark.parametrize("spoil", [another_boot, os.unlink])
def test_after_an_end_in_order_nothing_is_in_doubt(devserver, operator, handler, widgets, spoil):
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    handler.wait_finished(name="a")
    operator.stop()
    spoil(under_way(operator))
    widgets.merge_patch("a", {"status": {"theirs": True}}, subresource="status")
    operator.start_ready().wait_synced()
    nothing_more_runs(operator, handler, widgets, "c")
    assert not told(operator)
