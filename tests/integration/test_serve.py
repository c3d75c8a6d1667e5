# SPDX-License-Identifier: Apache-2.0
"""`serve` handlers: one process a worker, a request a line, an answer a line."""
import json
import os
import signal

import pytest

from harness import wait_until, watch
from harness.schema import check_request

PROGRAM = """#!/usr/bin/python3 -u
# Notes each request and obeys spec.do of its object.
import json, os, signal, subprocess, sys
print("started", file=sys.stderr)
for line in sys.stdin:
    request = json.loads(line)
    with open({folder!r} + "/requests", "a+") as file:
        file.seek(0)
        earlier = [json.loads(line) for line in file]
        if any(os.path.exists("/proc/%d" % other["pid"]) for other in earlier if other["pid"] != os.getpid()
               and other["object"]["metadata"]["uid"] == request["object"]["metadata"]["uid"]):
            open({folder!r} + "/meeting", "w").close()
        file.write(json.dumps({{**request, "pid": os.getpid()}}) + "\\n")
    answer = {{"id": request["id"]}}
    do = request["object"].get("spec", {{}}).get("do")
    if do == "die":
        sys.exit(3)
    if do == "hang":
        signal.pause()
    if do == "stay":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()
    if do == "fork":
        subprocess.Popen(["setsid", "sleep", "1000"])
    if do == "keep":
        subprocess.run(["sh", "-c", "sleep 1001 &"])
    if do == "fail":
        answer["error"] = "no luck"
    if do == "fail for good":
        answer.update(error="never", permanent=True)
    if do == "write":
        answer["status"] = {{"seen": request["object"]["metadata"]["generation"]}}
    if do == "wrong":
        answer["statsu"] = 1
    if do == "chatter":
        print("this is no answer")
        print(json.dumps({{"id": 999999, "status": {{}}}}))
    if do == "long line":
        sys.stdout.write("x" * (3 << 20) + "\\n")
    if do == "long answer":
        answer["status"] = {{"text": "x" * (2 << 20)}}
    if do == "nul":
        sys.stdout.write("one\\0two\\n")
    if do == "many lines":
        for number in range(1500):
            print(f"line {{number}} of {{request['object']['metadata']['name']}}", file=sys.stderr)
    if do == "twice":
        both = "".join(json.dumps({{"id": request["id"], "status": {{"answer": n}}}}) + "\\n" for n in (1, 2))
        os.write(1, both.encode())
        continue
    if do == "again":
        print(json.dumps({{**answer, "status": {{"answer": 1}}}}))
        sys.stdout.write((json.dumps(answer) + "\\n") * 3000)
        sys.stdout.flush()
        continue
    if do == "half":
        os.write(1, b"half a line")
        sys.exit(3)
    if do == "grow":
        globals()["memory"] = bytearray(64 << 20)
    print(json.dumps(answer))
    if do == "late":
        open({folder!r} + "/say").close()  # a FIFO: until the test has it open
        print("about", request["object"]["metadata"]["name"], file=sys.stderr)
    if do == "deaf":
        os.close(0)
        signal.pause()
"""


class Served:
    def __init__(self, sandbox, user):
        self.folder = sandbox.subfolder("serve", user)
        self.program = self.folder / "serve"
        self.program.write_text(PROGRAM.format(folder=str(self.folder)), encoding="utf-8")
        self.program.chmod(0o755)
        os.mkfifo(self.folder / "say")
        (self.folder / "say").chmod(0o666)

    def requests(self, name=None):
        path = self.folder / "requests"
        if not path.exists():
            return []
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
        return [check_request(request) for request in found if name in (None, request["object"]["metadata"]["name"])]

    def wait(self, name, count=1):
        return wait_until(lambda: len(self.requests(name)) >= count and self.requests(name),
                          lambda: f"{count} requests for {name}: {self.requests()}")

    def pids(self):
        return [request["pid"] for request in self.requests()]


@pytest.fixture
def served(sandbox, operator):
    return Served(sandbox, operator.user)


@pytest.fixture
def start(devserver, operator, served):
    def start(workers=1, **options):
        entry = watch("widgets")
        entry["handler"] = {"serve": [str(served.program)], **options}
        operator.configure(devserver, [entry], workers=workers)
        operator.start_ready().wait_synced()
        return operator

    return start


def test_one_process_for_many_runs(start, served, widgets):
    operator = start()
    for number in range(20):
        widgets.create(f"widget-{number}", spec={"do": "write"})
    wait_until(lambda: all(item.get("status") == {"seen": 1} for item in widgets.list()["items"]), "every status")
    assert len(set(served.pids())) == 1
    request = served.requests("widget-0")[0]
    assert (request["action"], request["attempt"], request["watch"]) == ("reconcile", 1, "widgets")
    operator.stop()
    operator.assert_no_processes()
    assert len(served.requests()) == 20


def test_one_process_a_worker(start, served, widgets):
    operator = start(workers=2)
    for number in range(50):
        widgets.create(f"widget-{number}")
    wait_until(lambda: len(served.requests()) == 50, "the runs")
    assert len(set(served.pids())) == 2
    operator.stop()


def test_failures_and_wrong_answers(start, served, widgets, operator):
    start()
    widgets.create("retried", spec={"do": "fail"})
    assert served.wait("retried", 3)[-1]["lastError"] == "the handler has failed: no luck"
    widgets.create("final", spec={"do": "fail for good"})
    operator.wait_for_log("never", key="default/final")
    widgets.create("wrong", spec={"do": "wrong"})
    operator.wait_for_log("statsu: is unknown", key="default/wrong")
    operator.stop()
    assert len(served.requests("final")) == 1 and len(served.requests("wrong")) == 1


def test_a_death_is_not_explained_by_what_was_said_of_another_object(start, served, widgets, operator):
    start(workers=1)
    widgets.create("talks", spec={"do": "many lines"})
    served.wait("talks")
    operator.wait_for_log("line 9 of talks")
    widgets.create("deadly", spec={"do": "die"})
    said = operator.wait_for_log("exited with 3 before it had answered", key="default/deadly")["message"]
    assert "talks" not in said
    operator.stop()


def test_it_dies_and_is_started_again(start, served, widgets, operator):
    start()
    widgets.create("deadly", spec={"do": "die"})
    operator.wait_for_log("exited with 3 before it had answered", key="default/deadly")
    served.wait("deadly", 2)
    widgets.create("other")
    served.wait("other")
    operator.stop()
    assert len(set(served.pids())) >= 2


def test_objects_over_which_it_dies_delay_no_other_watch(devserver, operator, served, handler, widgets, api):
    """Of a namespace that has many of them, and all of them are due again and again."""
    def deaths():
        return sum(request["object"]["spec"]["do"] == "die" for request in served.requests())

    entry = watch("widgets", retry={"first": "1ms", "max": "1ms"})
    entry["handler"] = {"serve": [str(served.program)]}
    operator.configure(devserver, [entry, watch("accounts", handler, api_version="v1", kind="ServiceAccount")], workers=1)
    for number in range(20):
        widgets.create(f"deadly-{number}", spec={"do": "die"})
    operator.start_ready().wait_synced()
    wait_until(lambda: deaths() >= 20, "its first deaths")
    before = deaths()
    api.resource("v1", "serviceaccounts", "default").create("healthy")
    handler.wait_finished(name="healthy")
    assert deaths() - before <= 10
    operator.stop()


def test_killed_while_idle_the_next_run_has_another(start, served, widgets, operator):
    start()
    widgets.create("first")
    pid = served.wait("first")[0]["pid"]
    wait_until(lambda: all(entry["running"] == 0 for entry in operator.ctl.status()["watches"]), "rest")
    os.kill(pid, signal.SIGKILL)
    operator.wait_for_log("the next run starts another one")
    widgets.create("second")
    assert served.wait("second")[0]["pid"] != pid
    operator.stop()


def test_a_run_over_its_timeout_costs_the_process_its_life(start, served, widgets, operator):
    start(timeout="300ms", grace="100ms")
    # The first request waits for the process to start: let another object's do that.
    widgets.create("first")
    served.wait("first")
    widgets.create("slow", spec={"do": "hang"})
    operator.wait_for_log("did not answer within its timeout", key="default/slow")
    served.wait("slow")
    widgets.merge_patch("slow", {"spec": {"do": None}})
    wait_until(lambda: served.requests("slow")[-1]["object"]["spec"] == {}, "the run of the change")
    operator.stop()
    assert len(set(served.pids())) >= 2


@pytest.mark.slow
@pytest.mark.quiet
def test_two_runs_of_one_object_never_meet(start, served, widgets, operator):
    """A process that takes its time to end still works on the object: nobody else begins with it until it is gone."""
    start(workers=2, timeout="1s", grace="4s")
    widgets.create("slow", spec={"do": "stay"})
    served.wait("slow")
    for name in ("next", "last"):  # one keeps the other worker busy, one is what the first worker takes next
        widgets.create(name, spec={"do": "hang"})
    served.wait("slow", 2)
    operator.stop()
    assert not (served.folder / "meeting").exists()


def test_one_that_does_not_listen_any_more_is_replaced(start, served, widgets, operator):
    start(grace="100ms")
    widgets.create("deaf", spec={"do": "deaf"})
    pid = served.wait("deaf")[0]["pid"]
    wait_until(lambda: not os.path.lexists(f"/proc/{pid}/fd/0"), "its stdin to be closed")
    widgets.create("next")
    assert served.wait("next")[-1]["pid"] != pid
    operator.stop()


def test_recycled_after_so_many_runs(start, served, widgets, operator):
    start(recycle={"runs": 5})
    for number in range(12):
        widgets.create(f"widget-{number}")
    wait_until(lambda: len(served.requests()) == 12, "the runs")
    operator.stop()
    pids = served.pids()
    assert [pids.count(pid) for pid in dict.fromkeys(pids)] == [5, 5, 2]


def test_recycled_above_so_much_memory(start, served, widgets, operator):
    start(recycle={"memory": "48Mi"})
    widgets.create("big", spec={"do": "grow"})
    served.wait("big")
    widgets.create("small")
    served.wait("small")
    operator.stop()
    assert len(set(served.pids())) == 2


def test_what_is_no_answer_is_output(start, served, widgets, operator):
    start()
    widgets.create("chatty", spec={"do": "chatter"})
    assert operator.wait_for_log("this is no answer")["key"] == "default/chatty"
    operator.wait_for_log("started")
    widgets.create("next")
    served.wait("next")
    operator.stop()


def test_a_line_above_the_bound_is_cut_and_the_process_lives_on(start, served, widgets, operator):
    start()
    widgets.create("long", spec={"do": "long line"})
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "its success")
    assert operator.wait_for_log("xxxx", key="default/long")["message"] == "x" * 2048
    widgets.create("next", spec={"do": "write"})
    wait_until(lambda: widgets.get("next").get("status") == {"seen": 1}, "the next run")
    operator.stop()
    assert len(served.requests("long")) == 1 and len(set(served.pids())) == 1


def test_an_answer_above_the_bound_is_permanent_and_names_it(start, served, widgets, operator):
    start()
    widgets.create("long", spec={"do": "long answer"})
    operator.wait_for_log("the handler's answer is larger than 1048576 bytes", key="default/long")
    widgets.create("next", spec={"do": "write"})
    wait_until(lambda: widgets.get("next").get("status") == {"seen": 1}, "the next run")
    operator.stop()
    assert len(served.requests("long")) == 1 and len(set(served.pids())) == 1


def test_a_nul_in_a_line_does_not_cut_it(start, served, widgets, operator):
    start()
    widgets.create("nul", spec={"do": "nul"})
    assert operator.wait_for_log("one?two", key="default/nul")


def test_a_second_answer_to_one_request_is_told(start, served, widgets, operator):
    start()
    widgets.create("twice", spec={"do": "twice"})
    record = operator.wait_for_log("a second time", key="default/twice")
    assert record["level"] == "warning" and record["watch"] == "widgets"
    widgets.create("next", spec={"do": "write"})
    wait_until(lambda: widgets.get("next").get("status") == {"seen": 1}, "the next run")
    assert widgets.get("twice")["status"] == {"answer": 1}, "the first answer counts"
    assert len(served.requests("twice")) == 1


def test_what_is_said_of_one_object_explains_no_failure_of_another(start, served, widgets, operator):
    start()
    widgets.create("talks", spec={"do": "late"})
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "its answer")
    os.close(os.open(served.folder / "say", os.O_WRONLY))
    operator.wait_for_log("about talks")
    widgets.create("dies", spec={"do": "die"})
    record = operator.wait_for_log("exited with 3 before it had answered", key="default/dies")
    operator.stop()
    assert "about" not in record["message"], record


def test_an_answer_without_end_is_told_once_and_logged_within_bounds(start, served, widgets, operator):
    start()
    widgets.create("again", spec={"do": "again"})
    operator.wait_for_log("a second time", key="default/again")
    widgets.create("next", spec={"do": "write"})
    wait_until(lambda: widgets.get("next").get("status") == {"seen": 1}, "the next run")
    operator.stop()
    assert len(operator.logs(where=lambda record: "a second time" in record["message"])) == 1
    assert len(operator.logs(where=lambda record: record["message"].startswith('{"id"'))) == 1000
    assert len(set(served.pids())) == 1


def test_the_bounds_of_what_is_logged_are_of_a_run(start, served, widgets, operator):
    start()
    for name in ("a", "b", "c"):
        widgets.create(name, spec={"do": "many lines"})
        operator.wait_for_log(f"line 998 of {name}", key=f"default/{name}")
    operator.wait_for_log("(500 more lines of output were not logged)", key="default/c")
    assert not operator.logs(where=lambda record: "line 1000 of" in record["message"])


def test_what_it_says_without_a_newline_before_its_death_is_logged(start, served, widgets, operator):
    start()
    widgets.create("half", spec={"do": "half"})
    operator.wait_for_log("half a line", key="default/half")


@pytest.mark.slow
def test_exec_runs_beside_it_do_not_end_it(devserver, operator, served, handler, widgets):
    """One worker does both; what an exec handler leaves behind is ended, the one that serves is not."""
    handler.behave("setsid sleep 1000 & exit 0")
    entry = watch("served", labelSelector="kind=served")
    entry["handler"] = {"serve": [str(served.program)]}
    operator.configure(devserver, [entry, watch("run", handler, id="run", labelSelector="kind=run")], workers=1)
    operator.start_ready().wait_synced()
    widgets.create("keeps", labels={"kind": "served"}, spec={"do": "keep"})
    [kept] = wait_until(lambda: [found for found in operator.processes() if found.command == ["sleep", "1001"]], "its helper")
    for number in range(3):
        widgets.create(f"served-{number}", labels={"kind": "served"})
        served.wait(f"served-{number}")
        widgets.create(f"run-{number}", labels={"kind": "run"})
        handler.wait_finished(name=f"run-{number}")
    assert len(set(served.pids())) == 1
    wait_until(lambda: not [found for found in operator.processes() if found.command == ["sleep", "1000"]], "leftovers to end")
    assert kept.alive(), "a helper without a parent is still its own"
    os.kill(served.pids()[0], signal.SIGKILL)
    wait_until(lambda: not kept.alive(), "its helper to end with it")
    operator.stop()
    operator.assert_no_processes()


@pytest.mark.slow
def test_its_death_does_not_end_an_exec_run_beside_it(devserver, operator, served, handler, widgets):
    """One worker does both; what the one that served leaves behind is ended, the run of another watch is not."""
    handler.behave(handler.held)
    entry = watch("served", labelSelector="kind=served")
    entry["handler"] = {"serve": [str(served.program)]}
    operator.configure(devserver, [entry, watch("run", handler, id="run", labelSelector="kind=run")], workers=1)
    operator.start_ready().wait_synced()
    widgets.create("served", labels={"kind": "served"}, spec={"do": "fork"})
    pid = served.wait("served")[0]["pid"]
    widgets.create("run", labels={"kind": "run"})
    handler.wait_for(name="run")
    left = [found for found in operator.processes() if found.command == ["sleep", "1000"] and found.ppid == pid]
    assert left
    os.kill(pid, signal.SIGKILL)
    operator.wait_for_log("the next run starts another one")
    wait_until(lambda: not left[0].alive(), "what it left behind to end")
    handler.let_go()
    assert handler.wait_finished(name="run").exit_code == 0
    operator.stop()
    assert len(handler.requests(name="run")) == 1


def test_nothing_survives_the_supervisor(start, served, widgets, operator):
    start()
    widgets.create("forks", spec={"do": "fork"})
    served.wait("forks")
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    operator.assert_no_processes()


@pytest.mark.parametrize("handler, said", [({"serve": ["/bin/true"], "exec": ["/bin/true"]}, "has more than one of exec, serve"),
                                           ({"timeout": "1s"}, "needs one of exec, serve and plugin"),
                                           ({"exec": ["/bin/true"], "recycle": {"runs": 1}}, "recycle is for serve"),
                                           ({"serve": ["/bin/true"], "recycle": {"memory": "lots"}}, "is not a size"),
                                           ({"serve": ["/nonexistent"]}, "handler.serve: /nonexistent")])
def test_mistakes(devserver, operator, handler, said):
    entry = watch("widgets")
    entry["handler"] = handler
    operator.configure(devserver, [entry])
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 78 and said in result.stdout, result.stdout
