# SPDX-License-Identifier: Apache-2.0
"""The watcher against a server that lies, breaks off and changes: no deletion is lost, none is made up."""
import http.server
import json
import queue
import signal
import threading
import time
import urllib.parse

import pytest
import yaml

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import SANITIZED

RESOURCES = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "example.com/v1", "resources": [
    {"name": "widgets", "singularName": "widget", "namespaced": True, "kind": "Widget",
     "verbs": ["get", "list", "watch", "patch"]},
    {"name": "widgets/status", "singularName": "", "namespaced": True, "kind": "Widget", "verbs": ["get", "patch"]},
    {"name": "planets", "singularName": "planet", "namespaced": False, "kind": "Planet",
     "verbs": ["get", "list", "watch", "patch"]}]}
NOT_FOUND = (404, {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404, "message": "not found",
                   "details": {"name": "the one that was asked for", "kind": "widgets"}})
GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410, "message": "too old"}


def widget(name, version, namespace="default", uid=None, **more):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {},
            "metadata": {"name": name, "namespace": namespace, "uid": uid or f"uid-{name}",
                         "resourceVersion": str(version)}, **more}


class Server:
    """An API server of this test's making. listed: what a LIST shows; pages(request, query) may answer a LIST
    instead; get(name) answers (status, body) to a GET of one object; watches: one queue for each running watch;
    queries: what each was asked with."""

    def __init__(self, folder):
        self.cluster, self.version, self.listed = "cluster-1", 100, []
        self.get = lambda name: next(((200, item) for item in self.listed if item["metadata"]["name"] == name),
                                     NOT_FOUND)
        self.pages = self.watch_error = None
        self.release = NOT_FOUND  # to /version
        self.resources = RESOURCES
        self.requests, self.watches, self.queries = [], [], []
        self.closing = False
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body, short=0):
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data) + short))
                self.end_headers()
                self.wfile.write(data)
                self.close_connection = short > 0

            def do_GET(self):
                outer.answer(self)

            def do_PATCH(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.answer(200, widget("patched", 1))

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.kubeconfig = folder / "kubeconfig-of-the-test"
        self.kubeconfig.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "t",
            "clusters": [{"name": "t", "cluster": {"server": f"http://127.0.0.1:{self.server.server_port}"}}],
            "users": [{"name": "t", "user": {"token": "t"}}],
            "contexts": [{"name": "t", "context": {"cluster": "t", "user": "t"}}]}), encoding="utf-8")

    def close(self):
        self.closing = True
        self.server.shutdown()
        self.server.server_close()

    def count(self, kind):
        return sum(1 for found, _ in self.requests if found == kind)

    def answer(self, request):
        url = urllib.parse.urlsplit(request.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        path = url.path
        tail = path.rsplit("/", 1)[1]
        if path == "/api/v1/namespaces/kube-system":
            request.answer(200, {"metadata": {"name": "kube-system", "uid": self.cluster}})
        elif path == "/apis/example.com/v1":
            request.answer(200, self.resources)
        elif path == "/version":
            request.answer(*self.release)
        elif tail not in ("widgets", "planets"):
            self.requests.append(("get", path))
            request.answer(*self.get(tail))
        elif "watch" in query:
            self.requests.append(("initial" if "sendInitialEvents" in query else "watch", path))
            self.queries.append(query)
            self.stream(request)
        elif query.get("limit") == "1":
            self.requests.append(("probe", path))
            self.answer_list(request, path)
        else:
            self.requests.append(("list", path))
            if not (self.pages and self.pages(request, query)):
                self.answer_list(request, path)

    def answer_list(self, request, path):
        listed = [item for item in self.listed
                  if "/namespaces/" not in path or path.split("/")[-2] == item["metadata"].get("namespace")]
        request.answer(200, {"kind": "WidgetList", "apiVersion": "example.com/v1",
                             "metadata": {"resourceVersion": str(self.version)}, "items": listed})

    def stream(self, request):
        if self.watch_error:
            request.answer(*self.watch_error)
            return
        events = queue.Queue()
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.flush()
        self.watches.append(events)
        while not self.closing:
            try:
                event = events.get(timeout=0.2)
            except queue.Empty:
                continue
            data = event if isinstance(event, bytes) else json.dumps(event).encode() + b"\n" if event else b""
            request.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            if not event:
                break
        request.close_connection = True

    def event(self, kind, item):
        self.watches[-1].put({"type": kind, "object": item})

    def relist(self):
        """Ends the running watch with 410 and waits for the LIST that follows it and the watch behind that."""
        before = len(self.watches)
        self.watches[-1].put({"type": "ERROR", "object": GONE})
        wait_until(lambda: len(self.watches) > before, "the next watch")


@pytest.fixture
def server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture
def start(server, operator, handler):
    def start(**more):
        operator.configure(server, [watch("widgets", handler, **more)])
        operator.start_ready()
        operator.wait_synced()
        wait_until(lambda: server.watches, "the watch")

    return start


def actions(handler):
    return [request.body["action"] for request in handler.requests()]


def test_a_deletion_between_two_lists(server, start, operator, handler):
    server.listed = [widget("a", 1), widget("b", 2)]
    start()
    handler.wait_finished(name="a")
    handler.wait_finished(name="b")
    server.listed = [widget("b", 2)]
    server.version = 200
    server.relist()
    assert handler.wait_finished(action="deleted").name == "a"
    operator.stop()
    assert len(handler.requests(name="b")) == 1


@pytest.mark.slow
def test_an_uncertain_answer_is_no_deletion(server, start, operator, handler):
    """Under a selector a GET decides. A 404 of a server that does not serve the kind, an answer that breaks off and
    one that cannot be read prove nothing; the object's own 404 does."""
    server.listed = [widget("a", 1)]
    start(labelSelector="tier=gold")
    handler.wait_finished(name="a")
    doubtful = [(404, b"404 page not found\n"), (200, b"<html>"), (200, b'{"metadata":{}}', 500), (500, {}),
                (403, {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "get is not granted"})]
    answers = list(doubtful)
    server.get = lambda name: answers.pop(0) if answers else (500, {})
    server.event("DELETED", widget("a", 5))
    wait_until(lambda: server.count("get") > len(doubtful), "a question after each doubtful answer")
    operator.wait_for_log("Grant the verb 'get'")
    assert actions(handler) == ["reconcile"]
    server.get = lambda name: NOT_FOUND
    handler.wait_finished(action="deleted")
    operator.stop()


def test_leaving_the_selection_is_no_deletion(server, start, operator, handler):
    server.listed = [widget("a", 1), widget("b", 2)]
    start(labelSelector="tier=gold")
    handler.wait_finished(name="a")
    server.event("DELETED", widget("a", 5))
    operator.wait_for_log("default/a is no longer selected")
    server.event("ADDED", widget("a", 106, spec={"again": True}))
    handler.wait_finished(name="a", where=lambda request: request.object["spec"] == {"again": True})
    operator.stop()
    assert "deleted" not in actions(handler)


@pytest.mark.slow
def test_another_cluster_behind_the_same_url(server, start, operator, handler):
    server.listed = [widget("a", 1)]
    start()
    handler.wait_finished(name="a")
    server.cluster, server.listed = "cluster-2", []
    server.watches[-1].put({"type": "ERROR", "object": GONE})
    operator.wait_exit(expect=70)
    operator.wait_for_log("another cluster")
    operator.start_ready().wait_synced()
    operator.wait_for_log("is another cluster (cluster-2)", level="error")
    server.relist()
    operator.stop()
    assert "deleted" not in actions(handler)
    server.cluster, server.listed = "cluster-1", [widget("b", 4)]
    operator.start_ready().wait_synced()
    assert handler.wait_finished(action="deleted").metadata["uid"] == "uid-a"
    operator.stop()


@pytest.mark.slow
def test_a_server_that_says_410_to_each_watch_is_not_hammered(server, operator, handler):
    server.listed = [widget("a", 1)]
    server.watch_error = (410, GONE)
    operator.configure(server, [watch("widgets", handler, reconnect={"first": "200ms", "max": "2s"})])
    operator.start_ready()
    handler.wait_finished(name="a")
    begin, before = time.monotonic(), server.count("list")
    wait_until(lambda: server.count("list") >= before + 4, "more LISTs")
    assert time.monotonic() - begin > 1, "the pace slows down although each LIST succeeds"
    operator.stop()


def test_killed_in_the_middle_of_a_list(server, operator, handler):
    """What the LIST that was not finished had shown is gone by the next start: its deletion is found."""
    def pages(request, query):
        if "continue" not in query:
            request.answer(200, {"metadata": {"resourceVersion": "100", "continue": "more"}, "items": [widget("a", 1)]})
            return True
        wait_until(lambda: not server.pages or server.closing, "the end of the test's first part", 60)
        return False

    server.pages = pages
    operator.configure(server, [watch("widgets", handler)])
    operator.start_ready()
    handler.wait_finished(name="a")
    wait_until(lambda: server.count("list") == 2, "the second page")
    operator.child("watcher").kill(signal.SIGKILL)
    operator.wait_exit(expect=70)
    server.pages = None
    operator.start_ready()
    assert handler.wait_finished(action="deleted").name == "a"
    operator.stop()


def test_one_unreadable_object_harms_only_itself(server, start, operator, handler):
    bad = widget("bad/name", 1)
    server.listed = [widget("a", 1), bad, 7, None, {"metadata": {"name": "c"}}, widget("b", 2)]
    server.get = lambda name: NOT_FOUND
    start()
    handler.wait_finished(name="a")
    handler.wait_finished(name="b")
    server.listed = [bad, widget("b", 2)]
    server.version = 200
    server.relist()
    assert handler.wait_finished(action="deleted").name == "a"
    operator.stop()


@pytest.mark.parametrize("strange", [{"uid": "x" * 600}, {"name": "x" * 600}, {"name": "a\u0007b"}, {"name": "a\0b"}],
                         ids=["a long uid", "a long name", "control characters", "a nul"])
def test_an_object_that_is_left_out_hides_no_deletion(server, start, operator, handler, strange):
    """The list is complete for all others: what it does not show is gone, and nobody need be asked."""
    bad = widget(strange.get("name", "bad"), 1, uid=strange.get("uid"))
    server.listed = [widget("a", 1), bad, widget("b", 2)]
    server.get = lambda name: (403, {**NOT_FOUND[1], "code": 403, "reason": "Forbidden"})
    start()
    handler.wait_finished(name="a")
    handler.wait_finished(name="b")
    server.event("MODIFIED", {**bad, "metadata": {**bad["metadata"], "resourceVersion": "150"}})
    server.event("DELETED", {**bad, "metadata": {**bad["metadata"], "resourceVersion": "151"}})
    server.listed, server.version = [bad, widget("b", 2)], 200
    server.relist()
    assert handler.wait_finished(action="deleted").name == "a"
    assert len(operator.logs(message_id=MESSAGE_ID["OBJECT_REFUSED"])) == 1
    operator.stop()


def test_deleted_and_created_again_between_two_lists(server, start, operator, handler):
    server.listed = [widget("a", 1)]
    start()
    handler.wait_finished(name="a")
    server.listed, server.version = [widget("a", 9, uid="second")], 200
    server.relist()
    handler.wait_finished(name="a", where=lambda request: request.metadata["uid"] == "second")
    operator.stop()
    assert [(request.body["action"], request.metadata["uid"]) for request in handler.requests()] == [
        ("reconcile", "uid-a"), ("deleted", "uid-a"), ("reconcile", "second")]


def test_one_stream_a_namespace(server, start, operator, handler):
    server.listed = [widget("a", 1, "one"), widget("b", 2, "two"), widget("c", 3, "three")]
    start(namespaces=["one", "two"])
    handler.wait_finished(name="a")
    handler.wait_finished(name="b")
    server.listed, server.version = [widget("a", 1, "one")], 200
    wait_until(lambda: len(server.watches) == 2, "both watches")
    for events in server.watches[:2]:
        events.put({"type": "ERROR", "object": GONE})
    assert handler.wait_finished(action="deleted").name == "b"
    operator.stop()
    assert len(handler.requests(name="a")) == 1 and not handler.requests(name="c")


def test_another_kind_under_the_same_name_deletes_nothing(server, start, operator, handler):
    server.listed = [widget("a", 1)]
    start()
    handler.wait_finished(name="a")
    operator.stop()
    planet = widget("earth", 5, kind="Planet")
    del planet["metadata"]["namespace"]
    server.listed, server.get = [planet], lambda name: NOT_FOUND
    operator.configure(server, [watch("widgets", handler, kind="Planet")])
    operator.start_ready().wait_synced()
    handler.wait_finished(name="earth")
    operator.wait_for_log("default/a is no longer selected")
    operator.stop()
    assert "deleted" not in actions(handler)


def test_namespaces_of_what_has_none(server, operator, handler):
    operator.configure(server, [watch("planets", handler, kind="Planet", namespaces=["default"])])
    operator.start()
    operator.wait_exit(expect=78)
    operator.wait_for_log("cluster-scoped")


def peak_kib(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))


def anonymous_kib(process):
    """Memory of its own; pages of the mapped store are the kernel's to drop."""
    with open(f"/proc/{process.pid}/smaps_rollup", encoding="utf-8") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))


@pytest.mark.slow
def test_a_group_of_100000_resources(server, operator, handler):
    """22 MB of discovery, the kind last. No heartbeat is missed, and nothing of it is kept."""
    verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
    others = [{"name": f"things{number}", "singularName": f"thing{number}", "namespaced": True, "kind": f"Thing{number}",
               "verbs": verbs, "shortNames": [f"t{number}"]} for number in range(100_000)]
    server.resources = {**RESOURCES, "resources": others + RESOURCES["resources"]}
    server.listed = [widget("a", 1)]
    operator.configure(server, [watch("widgets", handler)], workers=1, heartbeat={"interval": "100ms", "deadline": "2s"})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="a")
    watcher = operator.child("watcher")
    if not SANITIZED:
        assert peak_kib(watcher) < 100_000 and anonymous_kib(watcher) < 4000, (peak_kib(watcher), anonymous_kib(watcher))
    operator.stop()


@pytest.mark.slow
def test_events_pour_in_while_handlers_are_slow(server, operator, make_handler):
    """20,000 objects and ten changes of each, one slow handler: everything is read at once, memory stays bounded, and
    what runs later sees the newest state."""
    handler = make_handler("sleep 0.5")
    count = 20000
    server.listed = [widget(f"w{i:05}", i + 1) for i in range(count)]
    server.version = count
    operator.configure(server, [watch("widgets", handler)], workers=1, pageLimit=10000)
    operator.start_ready()
    operator.wait_synced()
    version = count
    for change in range(10):
        lines = []
        for i in range(count):
            version += 1
            lines.append(json.dumps({"type": "MODIFIED",
                                     "object": widget(f"w{i:05}", version, spec={"change": change})}) + "\n")
        server.watches[-1].put("".join(lines).encode())
    wait_until(lambda: operator.ctl.status()["watches"][0]["events"] == 10 * count, "200,000 events", 120)
    watcher, supervisor = operator.child("watcher"), operator.popen
    if not SANITIZED:
        assert anonymous_kib(watcher) < 16 * 1024 and anonymous_kib(supervisor) < 16 * 1024
    before = len(handler.requests())
    wait_until(lambda: len(handler.requests()) > before + 2, "more runs")
    assert handler.requests()[-1].object["spec"] == {"change": 9}
    operator.stop()


@pytest.mark.slow
def test_a_long_list_leaves_a_small_watcher(server, operator, make_handler):
    """What 4,000 objects of 3 KB needed while they came in is given back: an operator may have many watches."""
    count = 4000
    server.listed = [widget(f"w{i:05}", i + 1, spec={"text": "x" * 3000}) for i in range(count)]
    server.version = count
    operator.configure(server, [watch("widgets", make_handler("sleep 0.5"))], workers=1, pageLimit=500)
    operator.start_ready()
    operator.wait_synced()
    if not SANITIZED:
        # 1.4 MiB are what the libraries are relocated with, and the heap of a watcher that has seen nothing.
        wait_until(lambda: anonymous_kib(operator.child("watcher")) < 2900,
                   lambda: f"{anonymous_kib(operator.child('watcher'))} KiB")
    operator.stop()


def test_a_namespace_that_does_not_exist_is_told(devserver, operator, handler, api):
    """Once in the log, and in the status for as long as it is so; the watch itself goes on and sees what comes."""
    operator.configure(devserver, [watch("widgets", handler, namespaces=["default", "teem-a"])])
    operator.start_ready().wait_synced()
    operator.wait_for_log("namespace teem-a does not exist")
    [record] = operator.logs(message_id=MESSAGE_ID["NAMESPACE_MISSING"])
    assert record["watch"] == "widgets"
    assert operator.ctl.status()["watches"][0]["missingNamespaces"] == "teem-a"
    assert "these namespaces do not exist: teem-a" in operator.ctl.run("status").stdout
    api.resource("v1", "namespaces").create("teem-a")
    api.resource("example.com/v1", "widgets", "teem-a").create("late")
    handler.wait_finished(name="late")
    wait_until(lambda: operator.ctl.status()["watches"][0]["missingNamespaces"] == "", "that it exists")
    operator.wait_for_log("namespace teem-a exists now")
    operator.stop()
    assert operator.output.text().count("does not exist") == 1
    assert not operator.logs(where=lambda found: "namespace default" in found["message"])


@pytest.mark.slow
def test_who_may_not_get_namespaces_is_told_nothing(devserver, operator, handler, widgets):
    devserver.fault(match={"verb": "get", "resource": "namespaces", "name": "teem-a"}, times=0, status=403, reason="Forbidden")
    operator.configure(devserver, [watch("widgets", handler, namespaces=["default", "teem-a"])])
    operator.start_ready().wait_synced()
    widgets.create("w")
    handler.wait_finished(name="w")
    wait_until(lambda: devserver.requests(lambda request: request["status"] == 403), "the question")
    assert operator.ctl.status()["watches"][0]["missingNamespaces"] == ""
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=1, status=410, reason="Expired", message="too old")
    devserver.close_watches("clean")
    widgets.create("later")
    wait_until(lambda: operator.ctl.status()["watches"][0]["relists"] > 0, "another list")
    handler.wait_finished(name="later")
    operator.stop()
    assert "does not exist" not in operator.output.text()
    assert len(devserver.requests(lambda request: request["status"] == 403)) == 1, "asked once"
