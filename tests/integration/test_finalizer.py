# SPDX-License-Identifier: Apache-2.0
"""`finalizer: true`: nothing goes before its handler has cleaned up."""
import json
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.operator import MESSAGE_ID

FINALIZER = "widgets.example.com/finalizer"


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        operator.configure(devserver, [watch("widgets", handler, finalizer=True, **more)])
        return operator.start_ready().wait_synced()

    return start


def finalizers(widgets, name):
    return widgets.get(name)["metadata"].get("finalizers") or []


def gone(widgets, name):
    wait_until(lambda: not widgets.exists(name), f"the end of {name}")


def runs(handler, name):
    return [request.body["action"] for request in handler.requests(name=name)]


def test_added_before_the_first_run_and_removed_after_the_last(start, operator, handler, widgets, devserver):
    start()
    widgets.create("first", finalizers=["example.com/other"])
    request = handler.wait_finished(name="first")
    assert request.metadata["finalizers"] == ["example.com/other", FINALIZER]
    widgets.delete("first")
    request = handler.wait_finished(name="first", action="finalize")
    assert request.metadata["deletionTimestamp"]
    wait_until(lambda: finalizers(widgets, "first") == ["example.com/other"], "ours to go")
    widgets.merge_patch("first", {"metadata": {"finalizers": None}})
    gone(widgets, "first")
    widgets.create("next")
    handler.wait_finished(name="next")
    operator.stop()
    assert runs(handler, "first") == ["reconcile", "finalize"]
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])
    patches = devserver.requests(lambda request: request.get("verb") == "patch" and request.get("name") == "next")
    assert len(patches) == 1


@pytest.mark.parametrize("way", ["stop", "kill"])
@pytest.mark.slow
def test_an_end_before_the_handler_begins_begins_none(devserver, operator, handler, widgets, way):
    """The PATCH that adds it is not answered: what comes after that is for the next start."""
    operator.configure(devserver, [watch("widgets", handler, finalizer=True)], stop={"grace": "100ms"})
    operator.start_ready().wait_synced()
    fault = devserver.fault({"verb": "patch", "resource": "widgets"}, hang=True, times=0)
    widgets.create("first")
    wait_until(lambda: devserver.faults()[fault]["hit"], "the PATCH")
    operator.send_signal(signal.SIGTERM if way == "stop" else signal.SIGKILL)
    operator.wait_exit(expect=0 if way == "stop" else -signal.SIGKILL, deadline=10)
    operator.assert_no_processes()
    devserver.clear_faults(fault)
    assert handler.count() == 0
    operator.start_ready()
    handler.wait_finished(name="first")
    operator.stop()


def test_a_failed_cleanup_never_releases_it(start, operator, handler, widgets):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || [ -e "${0%/*}/clean" ]')
    start()
    widgets.create("held")
    handler.wait_finished(name="held")
    widgets.delete("held")
    wait_until(lambda: runs(handler, "held").count("finalize") >= 3, "attempts")
    assert finalizers(widgets, "held") == [FINALIZER]
    (handler.folder / "clean").touch()
    gone(widgets, "held")
    operator.stop()


@pytest.mark.parametrize("again", ['"requeueAfter": "100ms"', '"requeueAt": "2020-01-01T00:00:00Z"'], ids=["after", "at"])
def test_a_cleanup_that_is_not_done_yet_goes_on(start, operator, handler, widgets, again):
    handler.behave('if [ "$RECONCILED_ACTION" = finalize ] && [ ! -e "${0%/*}/clean" ]; then '
                   f"""echo '{{"done": false, {again}}}'; fi""")
    start()
    widgets.create("slow")
    handler.wait_finished(name="slow")
    widgets.delete("slow")
    wait_until(lambda: runs(handler, "slow").count("finalize") >= 3, "rounds of the cleanup")
    assert finalizers(widgets, "slow") == [FINALIZER]
    (handler.folder / "clean").touch()
    gone(widgets, "slow")
    operator.stop()


def test_deleted_while_the_operator_was_down(start, operator, handler, widgets):
    start()
    widgets.create("first")
    handler.wait_finished(name="first")
    operator.stop()
    widgets.delete("first")
    operator.start_ready()
    handler.wait_finished(name="first", action="finalize")
    gone(widgets, "first")
    operator.stop()


def test_its_deletion_is_seen_in_a_list(make_devserver, operator, handler):
    """A server without initial events, which has forgotten what happened while the operator was down."""
    server = make_devserver(arguments=["--watch-list", "off", "--version-minor", "26"])
    widgets = server.api.resource("example.com/v1", "widgets", "default")
    operator.configure(server, [watch("widgets", handler, finalizer=True)])

    def lists():
        return server.requests(lambda request: request.get("verb") == "list" and request["resource"] == "widgets"
                               and "limit=1" not in request["query"].split("&"))

    operator.start_ready().wait_synced()
    widgets.create("first")
    handler.wait_finished(name="first")
    operator.stop()
    before = len(lists())
    widgets.delete("first")
    server.compact()
    operator.start_ready()
    assert handler.wait_finished(name="first", action="finalize").metadata["deletionTimestamp"]
    gone(widgets, "first")
    operator.stop()
    assert len(lists()) == before + 1 and runs(handler, "first") == ["reconcile", "finalize"]


def test_what_is_already_going_gets_no_finalizer(start, operator, handler, widgets):
    widgets.create("going", finalizers=["example.com/other"])
    widgets.delete("going")
    start()
    widgets.create("other")
    handler.wait_finished(name="other")
    assert finalizers(widgets, "going") == ["example.com/other"]
    widgets.merge_patch("going", {"metadata": {"finalizers": None}})
    gone(widgets, "going")
    operator.stop()
    assert runs(handler, "going") == []


def test_taken_away_by_somebody_else(start, operator, handler, widgets):
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ]')
    start()
    widgets.create("robbed")
    handler.wait_finished(name="robbed")
    widgets.delete("robbed")
    handler.wait_finished(name="robbed", action="finalize")
    widgets.merge_patch("robbed", {"metadata": {"finalizers": None}})
    operator.wait_for_log(message_id=MESSAGE_ID["VANISHED"], key="default/robbed")
    operator.stop()
    assert "deleted" not in runs(handler, "robbed")


def test_deleted_against_our_finalizer(start, operator, handler, widgets, devserver):
    """A DELETE that meets the finalizer's PATCH wins on real servers (kubernetes#77988): the object is gone at once."""
    handler.behave('[ "$RECONCILED_ACTION" = reconcile ] || [ "$RECONCILED_ATTEMPT" -gt 1 ]')
    start()
    widgets.create("raced", spec={"size": 1})
    handler.wait_finished(name="raced")
    body = wait_until(lambda: finalizers(widgets, "raced") and widgets.get("raced"), "the finalizer")
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=0,
                    line=json.dumps({"type": "DELETED", "object": body}))
    devserver.close_watches("clean")
    handler.wait_finished(name="raced", action="finalize", count=2)
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 0, "rest")
    devserver.clear_faults()
    last = handler.requests(name="raced", action="finalize")[-1]
    assert last.metadata["uid"] == body["metadata"]["uid"] and last.object["spec"] == {"size": 1}
    operator.stop()
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


def test_gone_while_the_operator_was_down(start, operator, handler, widgets, devserver):
    """That somebody took our finalizer away is not known: what was handed to a handler is cleaned up."""
    start()
    for name in ("gone", "stays"):
        widgets.create(name)
        handler.wait_finished(name=name)
    operator.stop()
    widgets.merge_patch("gone", {"metadata": {"finalizers": None}})
    widgets.delete("gone")
    devserver.compact()
    operator.start_ready().wait_synced()
    handler.wait_finished(name="gone", action="finalize")
    operator.stop()
    operator.start_ready().wait_synced()
    widgets.create("next")
    handler.wait_finished(name="next")
    operator.stop()
    assert runs(handler, "gone") == ["reconcile", "finalize"] and runs(handler, "stays") == ["reconcile"]


def test_a_change_in_between_is_seen_first(start, operator, handler, widgets, devserver):
    """409 on the finalizer: the newest version is taken."""
    devserver.fault({"verb": "patch", "name": "contended"}, status=409)
    start()
    widgets.create("contended")
    handler.wait_finished(name="contended")
    assert finalizers(widgets, "contended") == [FINALIZER]
    operator.stop()
    assert runs(handler, "contended") == ["reconcile"]


def test_the_answer_to_the_release_is_lost(start, operator, handler, widgets, devserver):
    """The connection breaks in the middle of it. The object is gone, and its cleanup has succeeded."""
    start()
    widgets.create("last")
    handler.wait_finished(name="last")
    devserver.fault({"verb": "patch", "name": "last"}, atByte=20, close="cut")
    widgets.delete("last")
    gone(widgets, "last")
    wait_until(lambda: not ledger.read(operator, "SELECT 1 FROM ledger WHERE key = 'default/last'"), "the end of its row")
    operator.stop()
    assert runs(handler, "last") == ["reconcile", "finalize"]
    assert not operator.logs(message_id=MESSAGE_ID["VANISHED"])


def test_the_answer_is_written_before_it_is_released(start, operator, handler, widgets, devserver):
    handler.answer({"status": {"phase": "seen"}})
    start()
    widgets.create("last", finalizers=["example.com/other"])
    wait_until(lambda: widgets.get("last").get("status") == {"phase": "seen"}, "the status")
    handler.answer({"status": {"phase": "cleaned"}})
    widgets.delete("last")
    wait_until(lambda: finalizers(widgets, "last") == ["example.com/other"], "the release")
    assert widgets.get("last")["status"] == {"phase": "cleaned"}
    widgets.merge_patch("last", {"metadata": {"finalizers": None}})
    gone(widgets, "last")
    operator.stop()
