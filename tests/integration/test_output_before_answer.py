# SPDX-License-Identifier: Apache-2.0
"""What an exec handler says on its standard output before its answer is logged, and does not cost it the answer."""
import pytest

from harness import wait_until, watch


@pytest.fixture
def start(devserver, operator, make_handler):
    def start(script):
        handler = make_handler(script)
        operator.configure(devserver, [watch("widgets", handler)])
        operator.start_ready()
        return handler

    return start


@pytest.mark.parametrize("answer", ['{"status": {"seen": true}}', '  {\\n"status": {"seen": true}}\\n\\n'])
def test_lines_before_the_answer_are_logged_and_the_answer_counts(start, operator, widgets, answer):
    start(f"echo 'Reading configuration'; echo '[1] warning'; printf '{answer}'")
    widgets.create("a")
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the answer to be carried out")
    assert operator.wait_for_log("Reading configuration")["key"] == "default/a"
    assert operator.wait_for_log("[1] warning")["key"] == "default/a"


def test_an_answer_behind_much_output(start, operator, widgets):
    start("yes 'a line of a verbose program' | head -n 700000; echo '{\"status\": {\"seen\": true}}'")
    widgets.create("a")
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the answer to be carried out")


def test_output_without_an_answer_is_logged_and_done(start, operator, widgets):
    start("echo 'nothing to do'")
    widgets.create("a")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the success")
    assert operator.wait_for_log("nothing to do")["key"] == "default/a"


@pytest.mark.parametrize("script", [
    "echo starting; echo '{\"status\": {\"seen\": true}'",
    "echo starting; echo '{\"status\": {\"seen\": true}}'; echo done",
    "echo '{\"status\": {\"n\": 1}}'; echo '{\"status\": {\"n\": 2}}'",
    "echo starting; printf '{\"status\": \"'; yes a | head -c 2000000 | tr -d '\\n'; echo '\"}'",
], ids=["cut short", "text behind it", "two answers", "too large"])
def test_an_answer_that_cannot_be_read_is_no_success(start, operator, widgets, script):
    start(script)
    widgets.create("a")
    wait_until(lambda: operator.ctl.status()["watches"][0]["failing"] == 1, "the failure")
    assert operator.ctl.status()["watches"][0]["succeeded"] == 0
    assert "status" not in widgets.get("a")
