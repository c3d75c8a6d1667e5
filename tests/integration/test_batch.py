# SPDX-License-Identifier: Apache-2.0
"""`batch`: one call of an exec handler for several objects, a line each, and an answer for each."""
import json
import os
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.together import is_done, row, wait_done
from harness.schema import check_request

PROGRAM = """#!/usr/bin/python3 -u
# Notes its requests, and obeys spec.do of each, the last one first.
import json, os, signal, sys
folder = {folder!r}
requests = [json.loads(line) for line in sys.stdin]
requests.sort(key=lambda request: request["object"].get("spec", {{}}).get("do") != "last")

def note(*words):
    with open(folder + "/notes", "a") as file:
        file.write(json.dumps([os.getpid(), *words]) + "\\n")

def do_of(request):
    return request["object"].get("spec", {{}}).get("do", "")

def say(answer):
    print(json.dumps(answer))

with open(folder + "/requests", "a") as file:
    file.writelines(json.dumps(request) + "\\n" for request in requests)
note("begin", [[request["object"]["metadata"]["name"], request["attempt"], request["lastError"]] for request in requests],
     sorted(name for name in os.environ if name.startswith("RECONCILED_")))
status = 0
for request in reversed(requests):
    name, do = request["object"]["metadata"]["name"], do_of(request)
    answer = {{"id": request["id"], "status": {{"seen": name}}}}
    if do in ("wait", "slow"):
        open(folder + "/go").close()  # a FIFO: until the test has it open
    if do == "talk":
        print("about " + name)
        print("aloud about " + name, file=sys.stderr)
    if do == "die":
        os.kill(os.getpid(), 9)
    if do == "hang":
        signal.pause()
    if do == "fail":
        answer = {{"id": request["id"], "error": "no luck", "permanent": True}}
    if do == "unknown":
        say({{"id": 999999, "status": {{}}}})
    if do == "wrong":
        answer["statsu"] = 1
    if do in ("silent", "permanent", "error"):
        status = {{"silent": 0, "permanent": 65, "error": 3}}[do]
        continue
    failed = json.dumps({{"id": request["id"], "error": "no luck", "permanent": True}})
    raw = {{"half": '{{"id": %d, "status": {{"seen": tr\\n' % request["id"], "text": failed.replace('"id": ', '"id": "7') .replace(', "error', '", "error') + "\\n",
           "nul": '{{"id": %d}}' % request["id"] + 1000000 * "\\0" + "\\n", "glued": failed,
           "late": json.dumps({{"status": {{"text": "x" * (2 << 20)}}, "id": request["id"]}}) + "\\n",
           "lines": failed.replace(", ", ",\\n") + "\\n"}}
    if do in raw:
        sys.stdout.write(raw[do])
        continue
    say(answer)
    if do == "twice":
        say(answer)
    if do == "large line":
        say({{"text": "x" * (2 << 20)}})
note("end")
if any(do_of(request) == "linger" for request in requests):
    signal.pause()
sys.exit(status)
"""


class Called:
    def __init__(self, sandbox, user):
        self.folder = sandbox.subfolder("batch", user)
        self.program = self.folder / "handler"
        self.program.write_text(PROGRAM.format(folder=str(self.folder)), encoding="utf-8")
        self.program.chmod(0o755)
        os.mkfifo(self.folder / "go")
        (self.folder / "go").chmod(0o666)

    def _lines(self, name):
        path = self.folder / name
        return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]] if path.exists() else []

    def requests(self):
        return [check_request(request) for request in self._lines("requests")]

    def calls(self):
        """[[name, attempt, lastError], ...] of each."""
        return [note[2] for note in self._lines("notes") if note[1] == "begin"]

    def names(self):
        return [[entry[0] for entry in call] for call in self.calls()]

    def notes(self):
        return self._lines("notes")

    def of(self, name):
        return [entry for call in self.calls() for entry in call if entry[0] == name]

    def go(self):
        """From now on nothing waits."""
        self._going = os.open(self.folder / "go", os.O_RDWR)


@pytest.fixture
def called(sandbox, operator):
    return Called(sandbox, operator.user)


@pytest.fixture
def configured(devserver, operator, called):
    def configured(batch=None, workers=1, top=None, more=(), handler=None, **options):
        entry = watch("widgets", **options)
        entry["handler"] = {"exec": [str(called.program)], "batch": batch or {"max": 20, "wait": "500ms"}, **(handler or {})}
        operator.configure(devserver, [entry, *more], workers=workers, **(top or {}))
        return operator

    return configured


@pytest.fixture
def start(configured):
    def start(*arguments, **options):
        return configured(*arguments, **options).start_ready().wait_synced()

    return start


def create(widgets, count, do="", prefix="widget"):
    names = [f"{prefix}-{number:02}" for number in range(count)]
    for name in names:
        widgets.create(name, spec={"do": do})
    return names


def begun_together(configured, widgets, called, *named, others=4, **options):
    """All of them in one call: they are there when the operator starts. Returns the names of the others."""
    names = create(widgets, others)
    for name, do in named:
        widgets.create(name, spec={"do": do})
    configured(**options).start_ready().wait_synced()
    wait_until(called.calls, "a call")
    assert set(called.names()[0]) == {*names, *(name for name, _ in named)}
    return names


def test_what_waits_goes_together(configured, called, widgets, operator):
    names = create(widgets, 12)
    configured().start_ready().wait_synced()
    wait_done(widgets, *names)
    assert [sorted(call) for call in called.names()] == [names]
    ids = [request["id"] for request in called.requests()]
    assert len({*ids, *(number + 1 for number in ids)}) == 24, "nobody guesses the next one"
    assert all(request["attempt"] == 1 for request in called.requests())
    variables = called.notes()[0][3]
    assert "RECONCILED_WATCH" in variables and "RECONCILED_NAME" not in variables
    operator.stop()


def test_no_more_than_max_and_it_does_not_wait_when_it_is_full(configured, called, widgets, operator):
    names = create(widgets, 10)
    configured(batch={"max": 5, "wait": "1s"}).start_ready().wait_synced()
    wait_done(widgets, *names)
    assert [len(call) for call in called.names()] == [5, 5]
    operator.stop()


def test_a_single_object_waits_no_longer_than_it_may(start, called, widgets, operator):
    start(batch={"max": 5, "wait": "0s"})
    widgets.create("single")
    wait_done(widgets, "single")
    assert called.names() == [["single"]]
    operator.stop()


def test_answers_are_carried_out_as_they_come(start, called, widgets, operator):
    """In any order: the handler answers the last one first. Only the first object waits until the program has ended."""
    start(batch={"max": 4, "wait": "1s"})
    widgets.create("first", spec={"do": "slow"})
    names = create(widgets, 3)
    wait_done(widgets, *names)
    assert not is_done(widgets, "first") and len(called.calls()) == 1
    called.go()
    wait_done(widgets, "first")
    operator.stop()


def test_a_failure_is_of_one_object(configured, called, widgets, operator):
    names = begun_together(configured, widgets, called, ("failing", "fail"), ("wrong", "wrong"))
    operator.wait_for_log("no luck", key="default/failing")
    operator.wait_for_log("statsu: is unknown", key="default/wrong")
    wait_done(widgets, *names)
    operator.stop()
    assert len(called.calls()) == 1


def test_who_is_not_answered_is_done_if_it_ends_well(configured, called, widgets, operator):
    names = begun_together(configured, widgets, called, ("silent", "silent"))
    wait_done(widgets, *names)
    wait_until(lambda: row(operator)["succeeded"] == 5, "all to have succeeded")
    operator.stop()
    assert len(called.calls()) == 1


@pytest.mark.parametrize("do", ["half", "text", "nul", "glued", "late", "lines"])
def test_what_cannot_be_read_or_found_is_no_success(configured, called, widgets, operator, do):
    """Nor does it cost another object its answer: the first one's has no end of line, and the next one's stands behind it."""
    names = begun_together(configured, widgets, called, ("bad", do), retry={"first": "1h", "max": "1h"})
    wait_until(lambda: ledger.read(operator, "SELECT key FROM ledger WHERE permanent") == [("default/bad",)], "its failure")
    wait_done(widgets, *names)
    operator.stop()
    assert all(entry[1:] == [1, ""] for call in called.calls() for entry in call)


def test_the_last_line_needs_no_end(configured, called, widgets, operator):
    configured(retry={"first": "1h", "max": "1h"}).start_ready().wait_synced()
    widgets.create("bad", spec={"do": "glued"})
    assert "no luck" in operator.wait_for_log("no luck", key="default/bad")["message"]
    operator.stop()


@pytest.mark.parametrize("do,said", [("permanent", "the handler exited with 65 (permanent)"),
                                     ("error", "the handler exited with 3")])
def test_an_exit_status_is_of_the_one_that_is_not_answered(configured, called, widgets, operator, do, said):
    names = begun_together(configured, widgets, called, ("bad", do), retry={"first": "1h", "max": "1h"})
    operator.wait_for_log(said, key="default/bad")
    wait_done(widgets, *names)
    operator.stop()
    assert len(called.calls()) == 1


def test_of_several_that_are_not_answered_each_is_asked_alone(configured, called, widgets, operator):
    names = begun_together(configured, widgets, called, ("bad", "error"), ("good", "silent"), retry={"first": "1h", "max": "1h"})
    operator.wait_for_log("2 objects were without an answer")
    operator.wait_for_log("the handler exited with 3", key="default/bad")
    wait_until(lambda: row(operator)["succeeded"] == 5, "the other one to have succeeded")
    wait_done(widgets, *names)
    operator.stop()
    assert sorted(map(sorted, called.names()[1:])) == [["bad"], ["good"]]
    assert all(entry[1:] == [1, ""] for call in called.calls() for entry in call)


@pytest.mark.quiet
def test_one_that_lingers_is_ended_and_what_it_answered_counts(configured, called, widgets, operator):
    names = begun_together(configured, widgets, called, ("lingers", "linger"), handler={"timeout": "1s", "grace": "100ms"})
    operator.wait_for_log("did not end within its timeout after it had answered all its requests")
    wait_done(widgets, *names, "lingers")
    operator.stop()
    assert len(called.calls()) == 1


def test_a_line_that_is_too_long_fails_no_other_object(configured, called, widgets, operator):
    begun_together(configured, widgets, called, ("large", "large line"), ("other", "last"), others=0)
    wait_done(widgets, "large", "other")
    assert row(operator)["failed"] == 0
    assert called.of("other")[0][1:] == [1, ""]
    operator.stop()


def test_a_second_and_an_unknown_answer_change_nothing(configured, called, widgets, operator):
    names = begun_together(configured, widgets, called, ("twice", "twice"), ("unknown", "unknown"))
    operator.wait_for_log("a second time")
    wait_done(widgets, *names, "twice", "unknown")
    operator.stop()
    assert len(called.calls()) == 1


def test_what_it_says_names_the_watch_alone(configured, called, widgets, operator):
    begun_together(configured, widgets, called, ("talks", "talk"))
    for text in ("about talks", "aloud about talks"):
        said = operator.wait_for_log(text)
        assert said["watch"] == "widgets" and not said.get("key")
    operator.stop()


@pytest.mark.parametrize("do", ["die", pytest.param("hang", marks=pytest.mark.quiet)])
def test_a_hostile_object_costs_no_other_an_attempt(configured, called, widgets, operator, do):
    """Again and again. The first that is answered is the last in the line, so what stands before it has no answer."""
    names = create(widgets, 3, prefix="a")
    widgets.create("hostile", spec={"do": do})
    names += create(widgets, 3, prefix="z")
    configured(handler={"timeout": "700ms", "grace": "100ms"} if do == "hang" else {},
               batch={"max": 20, "wait": "100ms"}).start_ready().wait_synced()
    wait_done(widgets, *names)
    wait_until(lambda: len(called.of("hostile")) >= 4, "it to be tried again")
    more = create(widgets, 10, prefix="more")
    wait_done(widgets, *more)
    operator.stop()
    for name in [*names, *more]:
        assert all(entry[1:] == [1, ""] for entry in called.of(name)), called.of(name)
    attempts = [entry[1] for entry in called.of("hostile")]
    assert attempts == [1, *range(1, len(attempts))], "the first death counted for nobody"
    assert all(call == ["hostile"] for call in called.names()[1:] if "hostile" in call)
    assert ledger.read(operator, "SELECT count(*) FROM ledger WHERE attempts > 0") == [(1,)]
    operator.assert_no_processes()


def test_after_that_they_go_together_again(configured, called, widgets, operator):
    begun_together(configured, widgets, called, ("deadly", "die"), retry={"first": "1h", "max": "1h"})
    operator.wait_for_log("was killed by signal 9", key="default/deadly")
    widgets.merge_patch("deadly", {"spec": {"do": ""}})
    wait_done(widgets, "deadly")
    wait_until(lambda: row(operator)["running"] + row(operator)["queued"] == 0, "rest")
    before = len(called.calls())
    names = create(widgets, 10, prefix="more")
    wait_done(widgets, *names)
    assert max(len(call) for call in called.names()[before:]) > 1
    operator.stop()


def test_each_worker_has_one_call_and_others_take_what_waits(start, called, widgets, operator):
    start(workers=2, batch={"max": 4, "wait": "100ms"})
    widgets.create("slow", spec={"do": "slow"})
    wait_until(called.calls, "the first call")
    names = create(widgets, 12)
    wait_done(widgets, *names)
    assert not is_done(widgets, "slow")
    called.go()
    wait_done(widgets, "slow")
    operator.stop()


def test_concurrency_bounds_the_objects(configured, called, widgets, operator):
    create(widgets, 8, do="wait")
    configured(concurrency=3, workers=2).start_ready().wait_synced()
    wait_until(lambda: sum(map(len, called.names())) == 3, "three of them")
    wait_until(lambda: (row(operator)["running"], row(operator)["queued"]) == (3, 5), "the others to wait")
    called.go()
    wait_until(lambda: row(operator)["succeeded"] == 8, "all")
    operator.stop()


def test_another_watch_has_its_turn_while_a_batch_gathers(start, called, handler, widgets, api, operator):
    start(batch={"max": 20, "wait": "1s"}, more=[watch("accounts", handler, api_version="v1", kind="ServiceAccount")])
    widgets.create("gathers")
    wait_until(lambda: row(operator)["running"] == 1, "the batch to gather")
    api.resource("v1", "serviceaccounts", "default").create("healthy")
    handler.wait_finished(name="healthy")
    wait_done(widgets, "gathers")
    operator.stop()


def test_an_object_that_is_too_large_holds_back_no_other(configured, called, widgets, operator, api):
    """Its request would exceed handler.requestLimit; no request is made of it."""
    names = create(widgets, 2)
    big = widgets.create("big", spec={"size": 1})
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "big", "uid": big["metadata"]["uid"]}
    for number in range(6):
        api.resource("v1", "configmaps", "default").create(
            f"child-{number}", data={"text": "x" * 900_000}, metadata={"ownerReferences": [owner]})
    configured(handler={"requestLimit": "4Mi"}, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}]).start_ready().wait_synced()
    operator.wait_for_log("handler.requestLimit allows", key="default/big")
    wait_done(widgets, *names)
    assert not called.of("big")
    operator.stop()


def test_a_program_that_is_not_there_fails_none(start, called, widgets, operator):
    start(batch={"max": 3, "wait": "1s"})
    away = called.program.rename(called.folder / "away")
    names = create(widgets, 3)
    operator.wait_for_log("cannot be started")
    away.rename(called.program)
    wait_done(widgets, *names)
    assert all(entry[1] == 1 for call in called.calls() for entry in call)
    operator.stop()


def test_a_stop_waits_for_the_call(configured, called, widgets, operator):
    names = create(widgets, 4, do="wait")
    configured(top={"stop": {"grace": "30s"}}).start_ready().wait_synced()
    wait_until(called.calls, "the call")
    operator.send_signal(signal.SIGTERM)
    operator.wait_for_log("asked to stop")
    called.go()
    operator.wait_exit(expect=0)
    assert all(is_done(widgets, name) for name in called.names()[0]) and len(called.calls()) == 1
    assert set(called.names()[0]) == set(names)
    operator.assert_no_processes()


def test_a_stop_and_a_reload_cut_off_what_takes_longer(configured, called, widgets, operator):
    names = create(widgets, 4, do="wait")
    options = {"top": {"stop": {"grace": "200ms"}}, "handler": {"grace": "100ms"}}
    configured(**options).start_ready().wait_synced()
    wait_until(called.calls, "the call")
    configured(batch={"max": 10, "wait": "100ms"}, **options)
    operator.reload()
    wait_until(lambda: len(called.calls()) == 2, "another call")
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)
    operator.assert_no_processes()
    assert ledger.read(operator, "SELECT count(*) FROM ledger WHERE attempts > 0") == [(0,)]
    called.go()
    operator.start_ready().wait_synced()
    wait_done(widgets, *names)
    operator.stop()
    assert all(entry[1] == 1 for call in called.calls() for entry in call)


def test_a_killed_worker_makes_suspects_of_all(configured, called, widgets, operator):
    create(widgets, 4, do="wait")
    configured().start_ready().wait_synced()
    wait_until(called.calls, "the call")
    os.kill(operator.child("worker").pid, signal.SIGKILL)
    operator.wait_exit(expect=70)
    assert ledger.read(operator, "SELECT crashes, crashed_realtime > 0 FROM ledger") == [(0, 1)] * 4
    called.go()
    operator.start_ready().wait_synced()
    wait_until(lambda: row(operator)["succeeded"] == 4, "each to run once more")
    operator.stop()


@pytest.mark.parametrize("top,entry,options,said", [
    ({}, {}, {"serve": ["/bin/true"], "batch": {"max": 2}}, "handler.batch: is for exec"),
    ({}, {"concurrency": 1}, {"exec": ["/bin/true"], "batch": {"max": 2}}, "contradicts `concurrency: 1`"),
    ({"window": 4}, {}, {"exec": ["/bin/true"], "batch": {"max": 5}}, "5 is more than `window`"),
    ({}, {}, {"exec": ["/bin/true"], "batch": {"max": 33}}, "set window: 33"),
    ({}, {}, {"exec": ["/bin/true"], "batch": {"wait": "1s"}}, "handler.batch.max: is missing"),
    ({}, {}, {"exec": ["/bin/true"], "batch": {"max": 2, "wait": "2s"}}, "handler.batch.wait: "),
])
def test_mistakes(devserver, operator, top, entry, options, said):
    operator.configure(devserver, [{**watch("widgets"), **entry, "handler": options}], **top)
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 78 and said in result.stdout, result.stdout
