# SPDX-License-Identifier: Apache-2.0
"""`parallel`: a process that serves has several requests at a time, and answers in any order."""
import json
import os
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.together import is_done, row, wait_done

PROGRAM = """#!/usr/bin/python3 -u
# A thread for each request, which obeys spec.do of its object. What begins and ends is noted.
import json, os, sys, threading
lock = threading.Lock()

def note(*words):
    with lock, open({folder!r} + "/notes", "a") as file:
        file.write(json.dumps([os.getpid(), *words]) + "\\n")

def say(answer):
    with lock:
        os.write(1, (json.dumps(answer) + "\\n").encode())

def handle(request):
    name = request["object"]["metadata"]["name"]
    do = request["object"].get("spec", {{}}).get("do", "")
    note("begin", name, request["attempt"], request["lastError"], request["reason"])
    if do == "talk":
        print("about " + name, file=sys.stderr)
    if do in ("wait", "hang", "talk"):
        open({folder!r} + "/go").close()  # a FIFO: until the test has it open
    if do == "die later":
        open({folder!r} + "/go").close()
    if do in ("die", "die later"):
        os._exit(3)
    if do == "late":
        say({{"id": request["id"], "status": {{"seen": name}}}})
        open({folder!r} + "/say").close()  # a FIFO: until the test has it open
        print("about " + name, file=sys.stderr)
        return
    if do == "hang":
        threading.Event().wait()
    if do == "unknown":
        say({{"id": 999999, "status": {{}}}})
    if do == "long":
        say({{"id": request["id"], "status": {{"text": "x" * (2 << 20)}}}})
        return
    if do == "nameless":
        say({{"status": {{"text": "x" * (2 << 20)}}, "id": request["id"]}})
        return
    if do == "large line":
        say({{"id": request["id"], "status": {{"seen": name}}}})
        say({{"text": "x" * (2 << 20)}})
        return
    if do == "endless":
        os.write(1, b"{{" + b"x" * (3 << 20))
        return
    if do == "nul":
        os.write(1, b'{{"id": %d}}' % request["id"] + bytes(1000000) + b"\\n")
        return
    if do == "leave" and os.fork() == 0:
        threading.Event().wait(60)
    if do == "fail":
        say({{"id": request["id"], "error": "no luck", "permanent": True}})
        return
    note("end", name)
    for _ in range(2 if do == "twice" else 1):
        say({{"id": request["id"], "status": {{"seen": name}}}})

for line in sys.stdin:
    threading.Thread(target=handle, args=(json.loads(line),), daemon=True).start()
"""


class Served:
    def __init__(self, sandbox, user):
        self.folder = sandbox.subfolder("serve", user)
        self.program = self.folder / "serve"
        self.program.write_text(PROGRAM.format(folder=str(self.folder)), encoding="utf-8")
        self.program.chmod(0o755)
        for name in ("go", "say"):
            os.mkfifo(self.folder / name)
            (self.folder / name).chmod(0o666)

    def notes(self, what=None, name=None):
        """[pid, what, name, ...] of each."""
        path = self.folder / "notes"
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]] if path.exists() else []
        return [note for note in found if what in (None, note[1]) and name in (None, note[2])]

    def wait_begun(self, count):
        wait_until(lambda: len({note[2] for note in self.notes("begin")}) >= count, lambda: f"{count} begun: {self.notes()}")

    def most(self):
        """As many as ever were under way in one process."""
        under_way, most = {}, 0
        for pid, what, name, *_ in self.notes():
            running = under_way.setdefault(pid, set())
            (running.add if what == "begin" else running.discard)(name)
            most = max(most, len(running))
        return most

    def go(self):
        """From now on nothing waits."""
        self._going = os.open(self.folder / "go", os.O_RDWR)


@pytest.fixture
def served(sandbox, operator):
    return Served(sandbox, operator.user)


@pytest.fixture
def start(devserver, operator, served):
    def start(parallel=8, workers=1, top=None, more=(), keys=None, **options):
        entry = watch("widgets", **(keys or {}))
        entry["handler"] = {"serve": [str(served.program)], "parallel": parallel, **options}
        operator.configure(devserver, [entry, *more], workers=workers, **(top or {}))
        operator.start_ready().wait_synced()
        return operator

    return start


def create(widgets, count, do="wait", prefix="widget"):
    names = [f"{prefix}-{number}" for number in range(count)]
    for name in names:
        widgets.create(name, spec={"do": do})
    return names


def test_as_many_at_a_time_as_it_takes(start, served, widgets):
    operator = start(parallel=8)
    names = create(widgets, 12)
    served.wait_begun(8)
    wait_until(lambda: (row(operator)["running"], row(operator)["queued"]) == (8, 4), "the others to wait")
    worker = operator.ctl.status()["workers"][0]
    assert (worker["state"], worker["together"], worker["writing"]) == ("running", 7, 0), "and one that has the worker"
    assert "of watch widgets, for" in (shown := operator.ctl.run("status").stdout) and "; 7 in handlers for several" in shown
    served.go()
    wait_done(widgets, *names)
    assert served.most() == 8 and len(served.notes("begin")) == 12
    assert len({note[0] for note in served.notes()}) == 1
    operator.stop()


def test_each_worker_has_as_many(start, served, widgets):
    operator = start(parallel=4, workers=2)
    names = create(widgets, 12)
    served.wait_begun(8)
    wait_until(lambda: (row(operator)["running"], row(operator)["queued"]) == (8, 4), "the others to wait")
    served.go()
    wait_done(widgets, *names)
    assert served.most() == 4
    operator.stop()


def test_concurrency_holds_for_all_workers_together(start, served, widgets):
    operator = start(parallel=4, workers=2, keys={"concurrency": 3})
    names = create(widgets, 8)
    served.wait_begun(3)
    wait_until(lambda: (row(operator)["running"], row(operator)["queued"]) == (3, 5), "the others to wait")
    served.go()
    wait_done(widgets, *names)
    operator.stop()


def test_answers_come_in_any_order(start, served, widgets):
    operator = start()
    names = create(widgets, 3)
    served.wait_begun(3)
    assert operator.ctl.status()["workers"][0]["state"] == "running"
    later = create(widgets, 3, do="", prefix="later")
    wait_done(widgets, *later)
    assert not any(is_done(widgets, name) for name in names)
    served.go()
    wait_done(widgets, *names)
    operator.stop()


def test_a_failure_is_of_one_object(start, served, widgets, operator):
    start()
    names = create(widgets, 3)
    served.wait_begun(3)
    widgets.create("failing", spec={"do": "fail"})
    operator.wait_for_log("no luck", key="default/failing")
    served.go()
    wait_done(widgets, *names)
    operator.stop()
    assert len({note[0] for note in served.notes()}) == 1


def test_a_second_and_an_unknown_answer_change_nothing(start, served, widgets, operator):
    start()
    names = create(widgets, 2)
    served.wait_begun(2)
    widgets.create("twice", spec={"do": "twice"})
    operator.wait_for_log("a second time")
    widgets.create("unknown", spec={"do": "unknown"})
    wait_done(widgets, "twice", "unknown")
    assert not any(is_done(widgets, name) for name in names)
    served.go()
    wait_done(widgets, *names)
    operator.stop()


def test_an_answer_that_is_too_long_and_of_nobody_ends_its_process_at_once(start, served, widgets, operator):
    """Its id is lost with its end. Nobody waits for the timeout; each is asked again, alone, and it fails alone."""
    start(timeout="1h")
    names = create(widgets, 2)
    served.wait_begun(2)
    widgets.create("nameless", spec={"do": "nameless"})
    operator.wait_for_log("does not begin with its id")
    served.go()
    operator.wait_for_log("the handler's answer is larger than", key="default/nameless")
    wait_done(widgets, *names)
    assert row(operator)["failed"] == 1
    assert all(note[3] == 1 for note in served.notes("begin"))
    operator.stop()


@pytest.mark.parametrize("parallel", [1, 8])
def test_a_line_that_is_too_long_fails_no_other_object(start, served, widgets, operator, parallel):
    start(parallel=parallel, timeout="1h")
    operator.ctl.run("pause", "--reason", "both at once", "widgets")
    widgets.create("large", spec={"do": "large line"})
    create(widgets, 3, do="wait")
    wait_until(lambda: row(operator)["queued"] == 4, "all to be queued")
    operator.ctl.run("resume", "widgets")
    wait_done(widgets, "large")
    served.go()
    wait_done(widgets, *(f"widget-{number}" for number in range(3)))
    assert row(operator)["failed"] == 0, [(r["time"], r["message"][:200]) for r in operator.logs() if r["level"] == "warning"]
    assert all(note[3] == 1 for note in served.notes("begin"))
    operator.stop()


def test_what_is_said_of_one_object_explains_no_failure_of_another(start, served, widgets, operator):
    start()
    widgets.create("dies", spec={"do": "die later"})
    served.wait_begun(1)
    widgets.create("talks", spec={"do": "late"})
    wait_done(widgets, "talks")
    os.close(os.open(served.folder / "say", os.O_WRONLY))
    operator.wait_for_log("about talks")
    served.go()
    record = operator.wait_for_log("exited with 3 before it had answered", key="default/dies")
    operator.stop()
    assert "about" not in record["message"], record


def test_an_answer_that_is_too_long_fails_its_object(start, served, widgets, operator):
    start()
    names = create(widgets, 2)
    served.wait_begun(2)
    widgets.create("long", spec={"do": "long"})
    operator.wait_for_log("the handler's answer is larger than", key="default/long")
    served.go()
    wait_done(widgets, *names)
    operator.stop()


def test_what_several_say_names_the_watch_alone(start, served, widgets, operator):
    start()
    create(widgets, 1)
    served.wait_begun(1)
    widgets.create("talks", spec={"do": "talk"})
    said = operator.wait_for_log("about talks")
    assert said["watch"] == "widgets" and not said.get("key")
    operator.stop()


def test_an_object_over_which_it_dies_costs_no_other_an_attempt(start, served, widgets, operator):
    """Again and again: the others are served, and what it is told of its failure is told to it alone."""
    start(parallel=8)
    names = create(widgets, 5)
    served.wait_begun(5)
    widgets.create("deadly", spec={"do": "die"})
    operator.wait_for_log("were without an answer: they run again, one at a time")
    served.go()
    wait_done(widgets, *names)
    wait_until(lambda: len(served.notes("begin", "deadly")) >= 4, "it to be tried again")
    more = create(widgets, 20, do="", prefix="more")
    wait_done(widgets, *more)
    operator.stop()
    for name in [*names, *more]:
        assert all(note[3:5] == [1, ""] for note in served.notes("begin", name)), served.notes("begin", name)
    attempts = [note[3] for note in served.notes("begin", "deadly")]
    assert attempts == [1, *range(1, len(attempts))], "the first death counted for nobody"
    assert served.notes("begin", "deadly")[-1][4].startswith("the handler's process exited with 3")
    # Alone from then on: in no process that it has ended was anybody else under way.
    for pid in [note[0] for note in served.notes("begin", "deadly")][1:]:
        begun = [note[2] for note in served.notes() if note[0] == pid and note[1] == "begin"]
        ended = [note[2] for note in served.notes() if note[0] == pid and note[1] == "end"]
        assert sorted(begun) == sorted([*ended, "deadly"])
    assert ledger.read(operator, "SELECT count(*) FROM ledger WHERE attempts > 0") == [(1,)]


@pytest.mark.slow
def test_more_of_them_than_it_remembers_cost_no_other_an_attempt(start, served, widgets, operator):
    """It knows the last sixteen. One that it has forgotten takes others with it once more, and that counts for none of them."""
    start(parallel=8, keys=PATIENT)
    deadly = create(widgets, 18, do="die", prefix="deadly")
    wait_until(lambda: row(operator)["failed"] == len(deadly), "each to have failed alone")
    widgets.create("healthy", spec={"do": ""})
    wait_done(widgets, "healthy")
    names = create(widgets, 3)
    served.wait_begun(len(deadly) + 4)
    deadly.sort(key=[note[2] for note in served.notes("begin") if note[2] in deadly][::-1].index, reverse=True)
    widgets.merge_patch(deadly[0], {"spec": {"again": True}})  # whose failure is the longest ago
    operator.wait_for_log("and 4 objects were without an answer: they run again, one at a time")
    for name in deadly[1:]:
        widgets.merge_patch(name, {"spec": {"again": True}})
    served.go()
    wait_done(widgets, *names)
    more = create(widgets, 10, do="", prefix="more")
    wait_done(widgets, *more)
    wait_until(lambda: all(len(served.notes("begin", name)) >= 2 for name in deadly), "each to run once more")
    wait_until(lambda: row(operator)["running"] + row(operator)["queued"] == 0, "all to be over")
    operator.stop()
    for name in [*names, *more]:
        assert all(note[3:5] == [1, ""] for note in served.notes("begin", name)), served.notes("begin", name)
    assert ledger.read(operator, "SELECT count(*) FROM ledger WHERE attempts > 0") == [(len(deadly),)]


def test_after_a_death_several_have_it_again(start, served, widgets, operator):
    start(parallel=4)
    widgets.create("deadly", spec={"do": "die"})
    operator.wait_for_log("exited with 3 before it had answered", key="default/deadly")
    widgets.merge_patch("deadly", {"spec": {"do": ""}})
    wait_done(widgets, "deadly")
    create(widgets, 4, prefix="after")
    served.wait_begun(5)
    wait_until(lambda: served.most() == 4, "four at a time")
    operator.stop()


@pytest.mark.quiet
def test_a_timeout_counts_for_the_object_that_has_it_alone(start, served, widgets, operator):
    start(parallel=4, timeout="700ms", grace="100ms")
    widgets.create("first")
    wait_done(widgets, "first")
    widgets.create("hanging", spec={"do": "hang"})
    served.go()
    names = create(widgets, 3, do="hang", prefix="other")
    served.wait_begun(5)
    for name in names:
        widgets.merge_patch(name, {"spec": {"do": ""}})
    wait_done(widgets, *names)
    operator.wait_for_log("did not answer within its timeout", key="default/hanging")
    operator.stop()
    for name in names:
        assert all(note[3:5] == [1, ""] for note in served.notes("begin", name))


def test_it_is_recycled_when_it_has_answered_all(start, served, widgets, operator):
    start(parallel=4, recycle={"runs": 2})
    names = create(widgets, 2)
    served.wait_begun(2)
    done = create(widgets, 2, do="", prefix="done")
    wait_done(widgets, *done)
    widgets.create("next", spec={"do": ""})
    wait_until(lambda: row(operator)["queued"] + row(operator)["running"] == 3, "the next one to wait")
    served.go()
    wait_done(widgets, *names, "next")
    operator.stop()
    first = served.notes("begin", names[0])[0][0]
    assert served.notes("begin", "next")[0][0] != first
    assert [note[0] for note in served.notes("end", names[0])] == [first], "it was not cut off"


def test_another_watch_gets_its_turn_beside_it(start, served, handler, widgets, api):
    operator = start(parallel=4, more=[watch("accounts", handler, api_version="v1", kind="ServiceAccount")])
    create(widgets, 3)
    served.wait_begun(3)
    api.resource("v1", "serviceaccounts", "default").create("healthy")
    handler.wait_finished(name="healthy")
    assert not served.notes("end")
    operator.stop()


def start_beside(start, handler, api, **options):
    """A watch of another kind beside it, and how to see that its runs begin."""
    operator = start(more=[watch("accounts", handler, api_version="v1", kind="ServiceAccount")], **options)
    accounts = api.resource("v1", "serviceaccounts", "default")

    def check_others_run(name):
        accounts.create(name)
        handler.wait_finished(name=name)

    return operator, check_others_run


def is_given(operator, name):
    """A worker has it."""
    shown = json.loads(operator.ctl.run("explain", "widgets", f"default/{name}", "--json").stdout)
    return shown["queue"]["state"].startswith("running")


PATIENT = {"retry": {"first": "1h", "max": "1h"}}  # no attempt comes by itself


def let_it_die(operator, widgets):
    """From then on `deadly` shares no process, and the others do again."""
    widgets.create("deadly", spec={"do": "die"})
    operator.wait_for_log("exited with 3 before it had answered", key="default/deadly")
    widgets.create("healthy", spec={"do": ""})
    wait_done(widgets, "healthy")


def test_one_that_shares_no_process_holds_no_other_watch_up(start, served, handler, widgets, api):
    """It waits until those in flight are over: meanwhile other watches run, and nothing else of its own does before it."""
    operator, check_others_run = start_beside(start, handler, api, parallel=4, keys=PATIENT)
    let_it_die(operator, widgets)
    names = create(widgets, 2)
    served.wait_begun(4)
    widgets.merge_patch("deadly", {"spec": {"do": ""}})
    wait_until(lambda: is_given(operator, "deadly"), "it to wait in the worker")
    check_others_run("first")
    later = create(widgets, 3, do="", prefix="later")
    for number in range(5):
        check_others_run(f"more-{number}")
    assert not served.notes("begin", "later-0") and not is_done(widgets, "deadly")
    wait_until(lambda: row(operator)["queued"] == 3, "the others to wait for it, in no worker")
    served.go()
    wait_done(widgets, "deadly", *names, *later)
    ended = [note[2] for note in served.notes("end")][1:]
    assert set(ended[:2]) == set(names) and ended[2] == "deadly"
    operator.stop()


def test_another_worker_has_what_one_holds_back(start, served, widgets):
    """Only the worker whose process an object has ended keeps others out of it."""
    operator = start(parallel=4, workers=2, keys=PATIENT)
    let_it_die(operator, widgets)
    names = create(widgets, 4)
    served.wait_begun(6)
    widgets.merge_patch("deadly", {"spec": {"do": ""}})
    wait_until(lambda: is_given(operator, "deadly") or is_done(widgets, "deadly"), "it to be in a worker")
    later = create(widgets, 3, do="", prefix="later")
    wait_done(widgets, *later)
    served.go()
    wait_done(widgets, "deadly", *names)
    operator.stop()


@pytest.mark.parametrize("parallel", [2, 4])
def test_a_process_that_is_to_be_replaced_holds_no_other_watch_up(start, served, handler, widgets, api, parallel):
    """It has one request left, which takes long: what waits for the next process waits outside."""
    operator, check_others_run = start_beside(start, handler, api, parallel=parallel, recycle={"runs": 1})
    names = create(widgets, 1)
    served.wait_begun(1)
    widgets.create("last", spec={"do": ""})
    wait_done(widgets, "last")
    next_ones = create(widgets, parallel, do="", prefix="next")
    wait_until(lambda: row(operator)["queued"] + row(operator)["running"] == parallel + 1, "the next ones to wait")
    for number in range(5):
        check_others_run(f"more-{number}")
    assert not any(is_done(widgets, name) for name in [*names, *next_ones])
    served.go()
    wait_done(widgets, *names, *next_ones)
    operator.stop()


def test_a_stop_waits_for_all_that_it_has(start, served, widgets, operator):
    start(top={"stop": {"grace": "30s"}})
    names = create(widgets, 4)
    served.wait_begun(4)
    operator.send_signal(signal.SIGTERM)
    operator.wait_for_log("asked to stop")
    served.go()
    operator.wait_exit(expect=0)
    assert all(is_done(widgets, name) for name in names)
    operator.assert_no_processes()


def test_a_stop_cuts_off_what_takes_longer(start, served, widgets, operator):
    start(top={"stop": {"grace": "200ms"}}, grace="100ms")
    names = create(widgets, 4)
    served.wait_begun(4)
    operator.send_signal(signal.SIGTERM)
    operator.wait_exit(expect=0)
    operator.assert_no_processes()
    assert ledger.read(operator, "SELECT count(*) FROM ledger WHERE attempts > 0") == [(0,)]
    served.go()
    operator.start_ready().wait_synced()
    wait_done(widgets, *names)
    operator.stop()


def test_a_reload_while_requests_are_under_way_loses_none(start, served, widgets, operator, devserver):
    start(top={"stop": {"grace": "200ms"}}, grace="100ms")
    names = create(widgets, 4)
    served.wait_begun(4)
    entry = watch("widgets")
    entry["handler"] = {"serve": [str(served.program)], "parallel": 2, "grace": "100ms"}
    operator.configure(devserver, [entry], workers=1, stop={"grace": "200ms"})
    operator.reload()
    served.go()
    wait_done(widgets, *names)
    assert all(note[3] == 1 for note in served.notes("begin"))
    operator.stop()


def test_a_killed_worker_makes_suspects_of_all(start, served, widgets, operator):
    start()
    create(widgets, 4)
    served.wait_begun(4)
    os.kill(operator.child("worker").pid, signal.SIGKILL)
    operator.wait_exit(expect=70)
    assert ledger.read(operator, "SELECT crashes, crashed_realtime > 0 FROM ledger") == [(0, 1)] * 4
    served.go()
    operator.start_ready().wait_synced()
    wait_until(lambda: len(served.notes("end")) == 4, "each to run once more")
    operator.stop()


@pytest.mark.parametrize("top,entry,options,said", [
    ({}, {}, {"exec": ["/bin/true"], "parallel": 2}, "handler.parallel: is for serve"),
    ({}, {"concurrency": 1}, {"serve": ["/bin/true"], "parallel": 2}, "contradicts `concurrency: 1`"),
    ({"window": 4}, {}, {"serve": ["/bin/true"], "parallel": 5}, "5 is more than `window`"),
    ({}, {}, {"serve": ["/bin/true"], "parallel": 33}, "set window: 33"),
    ({}, {}, {"serve": ["/bin/true"], "parallel": 129}, "handler.parallel: "),
])
def test_mistakes(devserver, operator, top, entry, options, said):
    operator.configure(devserver, [{**watch("widgets"), **entry, "handler": options}], **top)
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 78 and said in result.stdout, result.stdout


@pytest.mark.parametrize("parallel", [1, 8])
@pytest.mark.parametrize("do, said", [
    ("nul", "is not valid JSON"), ("endless", "did not answer within its timeout"), ("leave", None)])
def test_what_one_answer_leaves_behind_harms_no_other(start, served, widgets, do, said, parallel):
    """NULs behind it; a line that has no end; a process that has ended, but for a child that holds its output."""
    operator = start(parallel=parallel, timeout="1s")
    widgets.create("bad", spec={"do": do})
    if do == "leave":
        wait_done(widgets, "bad")
        ended = served.notes()[0][0]
        os.kill(ended, signal.SIGKILL)
        wait_until(lambda: not os.path.exists(f"/proc/{ended}"), "the worker to have seen its end")
    else:
        operator.wait_for_log(said, key="default/bad")
    wait_done(widgets, *create(widgets, 3, do=""))
    assert (row(operator)["failed"] == 0) == (do == "leave")
    assert all(note[3] == 1 for note in served.notes("begin") if note[2] != "bad")
    operator.stop()
