# SPDX-License-Identifier: Apache-2.0
"""What reconciled-devserver does wrong when it is asked to, as a client sees it on the wire."""
import base64
import concurrent.futures
import http.client
import json
import time

import pytest

from harness import ApiError, wait_until
from harness.api import Api, Kubeconfig

WATCH = {"verb": "watch", "resource": "widgets"}
LIST = {"verb": "list", "resource": "widgets"}


def stream(api, timeout=20, **query):
    """An open watch of widgets: the HTTPResponse."""
    connection = api.connect(timeout)
    connection.request("GET", api.url("/apis/example.com/v1/widgets", {"watch": 1, **query}), headers=api.headers())
    return connection.getresponse()


def stream_of_list(api):
    connection = api.connect(timeout=0.3)
    connection.request("GET", api.url("/apis/example.com/v1/widgets"), headers=api.headers())
    return connection.getresponse()


def line(response):
    return json.loads(response.readline())


@pytest.fixture
def version(widgets):
    return lambda: widgets.list()["metadata"]["resourceVersion"]


# In the place of the answer

def test_a_status_at_the_nth_request(devserver, widgets):
    number = devserver.fault(LIST, after=1, times=2, status=503, retryAfter=7, message="maintenance")
    widgets.list()
    for _ in range(2):
        with pytest.raises(ApiError) as caught:
            widgets.list()
        assert (caught.value.code, caught.value.reason, caught.value.message) == (503, "ServiceUnavailable", "maintenance")
        assert caught.value.response.headers["Retry-After"] == "7"
    widgets.list()
    assert (devserver.faults()[number]["seen"], devserver.faults()[number]["hit"]) == (4, 2)


def test_causes_and_other_bodies(devserver, widgets):
    devserver.fault(LIST, status=504, reason="Timeout", causes=[{"reason": "ResourceVersionTooLarge"}])
    devserver.fault(LIST, after=1, status=429, body="slow down", retryAfter=1)
    with pytest.raises(ApiError) as caught:
        widgets.list()
    assert caught.value.causes == [{"reason": "ResourceVersionTooLarge"}]
    response = widgets.api.raw("GET", widgets.path)
    assert (response.code, response.text, response.headers["Content-Type"]) == (429, "slow down", "text/plain")


def test_matching(devserver, api, widgets):
    widgets.create("one")
    for match in ({"verb": "get", "name": "two"}, {"resource": "widgets/status"}, {"namespace": "other"},
                  {"path": "/api/v1/*"}, {"verb": "list", "continue": True}):
        devserver.fault(match, times=0, status=500)
    widgets.get("one")
    widgets.list(limit=1)
    with pytest.raises(ApiError):
        api.request("GET", "/api/v1/namespaces/default")
    assert sorted(entry["hit"] for entry in devserver.faults().values()) == [0, 0, 0, 0, 1]
    devserver.clear_faults()
    assert devserver.faults() == {}


def test_a_reset_and_a_hang(devserver, api):
    devserver.fault({"path": "/version"}, reset=True)
    devserver.fault({"path": "/version"}, after=1, hang=True)
    connection = api.connect()
    connection.request("GET", "/version")
    with pytest.raises((ConnectionResetError, http.client.RemoteDisconnected)):
        connection.getresponse()
    connection = api.connect(timeout=0.3)
    connection.request("GET", "/version")
    with pytest.raises(TimeoutError):
        connection.getresponse()
    connection.close()
    assert api.raw("GET", "/version").code == 200


def test_a_lost_answer_of_a_write_that_took_place(devserver, widgets):
    create = {"verb": "create", "userAgent": "tes*"}
    devserver.fault({**create, "userAgent": "kubectl*"}, status=503, times=0)
    devserver.fault(create, carriedOut=True, reset=True)
    devserver.fault(create, carriedOut=True, status=500, after=1)
    for name, failure in (("reset", ConnectionResetError), ("refused", None)):
        connection = widgets.api.connect()
        connection.request("POST", widgets.path, json.dumps(widgets.object(name)), {"User-Agent": "tests", **widgets.api.headers()})
        if failure:
            with pytest.raises(failure):
                connection.getresponse()
        else:
            assert connection.getresponse().status == 500
        connection.close()
    widgets.merge_patch("reset", {})
    made = [widgets.get(name)["metadata"]["resourceVersion"] for name in ("reset", "refused")]
    wrote = [(entry["status"], entry.get("wrote")) for entry in devserver.requests(lambda entry: entry.get("resource") == "widgets")
             if entry["verb"] in ("create", "patch")]
    assert wrote == [(0, made[0]), (500, made[1]), (200, None)]
    with pytest.raises(AssertionError, match="carriedOut: only beside status, hang and reset"):
        devserver.fault(create, carriedOut=True)


# On the body

def test_an_error_inside_the_stream(devserver, api, widgets, version):
    devserver.fault(WATCH, atEvent=2, error={"kind": "Status", "code": 410})
    with stream(api, resourceVersion=version()) as seen:
        widgets.create("first")
        assert line(seen)["type"] == "ADDED"
        assert line(seen) == {"type": "ERROR", "object": {"kind": "Status", "code": 410}}
        assert seen.read() == b""


def test_an_error_at_once(devserver, api):
    devserver.fault(WATCH, error={"code": 500})
    with stream(api, resourceVersion="1000000") as seen:
        assert line(seen)["type"] == "ERROR"


def test_a_stream_cut_in_the_middle_of_a_line(devserver, api, widgets, version):
    start = version()
    widgets.create("first")
    devserver.fault(WATCH, atByte=20, close="cut")
    with stream(api, resourceVersion=start) as seen, pytest.raises(http.client.IncompleteRead) as caught:
        seen.read()
    assert len(caught.value.partial) == 20


def test_a_list_cut_at_a_byte(devserver, api, widgets):
    widgets.create("first")
    devserver.fault(LIST, atByte=30, close="cut")
    connection = api.connect()
    connection.request("GET", "/apis/example.com/v1/widgets", headers=api.headers())
    with pytest.raises(http.client.IncompleteRead) as caught:
        connection.getresponse().read()
    assert len(caught.value.partial) == 30


def test_a_stall_and_a_clean_end(devserver, api, widgets, version):
    start = version()
    devserver.fault(WATCH, atEvent=2, stall=True)
    devserver.fault(WATCH, after=1, atEvent=2, close="clean")
    widgets.create("first")
    widgets.create("second")
    with stream(api, timeout=0.5, resourceVersion=start) as seen:
        assert line(seen)["object"]["metadata"]["name"] == "first"
        with pytest.raises(TimeoutError):
            seen.readline()
    with stream(api, resourceVersion=start) as seen:
        assert len(seen.read().splitlines()) == 1


def test_lines_and_bytes_put_in(devserver, api, widgets, version):
    start = version()
    widgets.create("first")
    devserver.fault(WATCH, line="no event", close=False)
    devserver.fault(WATCH, atEvent=2, bytes=base64.b64encode(b"\xff\xfe\n").decode(), close="clean")
    with stream(api, resourceVersion=start) as seen:
        assert seen.readline() == b"no event\n"
        assert line(seen)["type"] == "ADDED"
        assert seen.read() == b"\xff\xfe\n"


def test_small_pieces_and_slow_bytes(devserver, api, widgets):
    widgets.create("first", spec={"text": "Grüße, 世界"})
    whole = widgets.api.raw("GET", widgets.path).text
    devserver.fault(LIST, pieces=1)
    devserver.fault(LIST, after=1, bytesPerSecond=2000)
    assert widgets.api.raw("GET", widgets.path).text == whole
    assert widgets.api.raw("GET", widgets.path).text == whole


# Late answers

def test_a_late_answer_holds_up_nobody_else(devserver, widgets):
    devserver.fault({"verb": "create"}, latency="700ms")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        begin = time.monotonic()
        late = pool.submit(widgets.create, "late")
        wait_until(lambda: widgets.exists("late"), "the object, which is there before its answer")
        assert not late.done()
        assert late.result()["metadata"]["name"] == "late"
        assert time.monotonic() - begin >= 0.7


def test_late_answers_go_with_others_and_survive_their_clients(devserver, api, widgets):
    devserver.fault(LIST, latency="50ms", status=503)
    with pytest.raises(ApiError) as caught:
        widgets.list()
    assert caught.value.code == 503
    devserver.fault(LIST, latency="1h")
    with pytest.raises(TimeoutError):
        stream_of_list(api)
    widgets.list()
    for wrong in (0, 20, "", "0s", "2h", "soon"):
        with pytest.raises(AssertionError, match="latency: a time"):
            devserver.fault(LIST, latency=wrong)


# Initial events and bookmarks

def test_initial_events_and_their_end(api, widgets):
    widgets.create("first")
    query = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": True}
    with stream(api, **query) as seen:
        assert line(seen)["type"] == "ADDED"
        end = line(seen)
        assert end["type"] == "BOOKMARK"
        assert end["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        widgets.create("second")
        assert line(seen)["object"]["metadata"]["name"] == "second"


def test_initial_events_without_their_end_and_without_bookmarks(devserver, api, widgets):
    devserver.fault(WATCH, times=0, initialEventsEnd=False, bookmarks=False)
    widgets.create("first")
    query = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan", "allowWatchBookmarks": True}
    with stream(api, **query) as seen:
        assert line(seen)["type"] == "ADDED"
        widgets.create("second")
        assert line(seen)["type"] == "ADDED"


def test_a_server_without_initial_events(make_devserver):
    server = make_devserver(arguments=["--watch-list", "off"])
    query = {"sendInitialEvents": True, "resourceVersionMatch": "NotOlderThan"}
    with stream(server.api, **query) as seen:
        assert seen.status == 422
    assert server.api.request("GET", "/version")["minor"] == "33"


# The server itself

def test_compaction(devserver, widgets, version):
    start = version()
    widgets.create("first")
    widgets.create("second")
    token = widgets.list(limit=1)["metadata"]["continue"]
    widgets.create("third")
    devserver.compact()
    with pytest.raises(ApiError) as caught:
        widgets.list(limit=1, **{"continue": token})
    assert caught.value.code == 410
    with stream(widgets.api, resourceVersion=start) as seen:
        assert line(seen)["object"]["code"] == 410


def test_a_database_from_a_backup(devserver, api, widgets, version):
    widgets.create("kept")
    saved, number = version(), devserver.snapshot()
    widgets.create("lost")
    widgets.merge_patch("kept", {"spec": {"size": 2}})
    with stream(api, resourceVersion=version()) as seen:
        devserver.restore(number)
        with pytest.raises((http.client.IncompleteRead, ConnectionError)):
            seen.read()
            raise http.client.IncompleteRead(b"")  # the connection may break between two chunks
    assert widgets.names() == ["kept"] and version() == saved
    assert "size" not in (widgets.get("kept").get("spec") or {})


def test_another_cluster(devserver, api):
    def identity():
        return api.request("GET", "/api/v1/namespaces/kube-system")["metadata"]["uid"]

    before = identity()
    devserver.another_cluster()
    assert identity() != before


def test_another_certificate(make_devserver):
    server = make_devserver(arguments=["--tls"])
    old = Api(Kubeconfig(server.kubeconfig))
    server.new_certificate("same")
    assert old.raw("GET", "/version").code == 200
    server.new_certificate("new")
    with pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        Api(old.kubeconfig).raw("GET", "/version")
    assert server.api.raw("GET", "/version").code == 200


def test_another_token(make_devserver):
    server = make_devserver(arguments=["--token", "first"])
    old = Api(Kubeconfig(server.kubeconfig))
    server.set_token("second")
    assert old.raw("GET", "/version").code == 401
    assert Kubeconfig(server.kubeconfig).token == "first"
    server.set_token("third", kubeconfig=True)
    assert Api(Kubeconfig(server.kubeconfig)).raw("GET", "/version").code == 200


@pytest.mark.parametrize("how", ["clean", "cut"])
def test_running_watches_are_ended(devserver, api, how, version):
    with stream(api, resourceVersion=version()) as seen:
        devserver.close_watches(how, {"resource": "gadgets"})
        devserver.close_watches(how, WATCH)
        if how == "clean":
            assert seen.read() == b""
        else:
            with pytest.raises(http.client.IncompleteRead):
                seen.read()


# Mistakes

@pytest.mark.parametrize("fault, text", [
    ({"statsu": 500}, "statsu is unknown"),
    ({"status": "500"}, "status: an HTTP status"),
    ({"status": 500, "hang": True}, "exclude each other"),
    ({"match": {"verb": "lst"}, "status": 500}, "match.verb: list, watch"),
    ({"match": {"kind": "Widget"}, "status": 500}, "match.kind is unknown"),
    ({"match": {}}, "it does nothing"),
    ({"atEvent": 0, "close": "cut"}, "atEvent: the number of an event"),
    ({"atEvent": 2, "atByte": 2, "close": "cut"}, "exclude each other"),
    ({"close": "rude"}, "close: \"clean\", \"cut\" or false"),
    ({"bytes": "%%"}, "bytes: base64"),
    ([{"status": 500}, {"after": -1}], "after: a number"),
])
def test_a_wrong_fault_is_refused_by_name(devserver, fault, text):
    answer = devserver.api.raw("POST", "/devserver/faults", body=fault)
    assert answer.code == 400 and text in answer.body["message"]
    assert devserver.faults() == {}


def test_faults_from_a_file(sandbox, make_devserver):
    path = sandbox.folder / "faults.yaml"
    path.write_text("- match: {verb: list, resource: widgets}\n  status: 500\n", encoding="utf-8")
    server = make_devserver(arguments=["--faults", str(path)])
    widgets = server.api.resource("example.com/v1", "widgets", "default")
    with pytest.raises(ApiError):
        widgets.list()
    widgets.list()


def test_a_wrong_file_of_faults_is_told_with_its_line(sandbox, make_devserver):
    path = sandbox.folder / "faults.yaml"
    path.write_text("- status: 500\n\n- {match: {verb: lst}, status: 500}\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match=r"faults.yaml:3: match.verb"):
        make_devserver(arguments=["--faults", str(path)])


def test_requests_are_logged_without_secrets(make_devserver):
    server = make_devserver(arguments=["--token", "secret-token"])
    widgets = server.api.resource("example.com/v1", "widgets", "default")
    server.fault(LIST, status=500)
    with pytest.raises(ApiError):
        widgets.list(limit=5)
    entry = wait_until(lambda: server.requests(lambda request: request.get("verb") == "list"), "the request")[-1]
    assert entry["resource"] == "widgets" and entry["namespace"] == "default" and entry["query"] == "limit=5"
    assert entry["authorization"] == "Bearer" and entry["status"] == 500 and entry["faults"] == [1]
    assert "secret-token" not in server.request_log.read_text(encoding="utf-8")
