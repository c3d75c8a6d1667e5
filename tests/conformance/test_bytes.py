# SPDX-License-Identifier: Apache-2.0
"""The devserver answers byte for byte as a real API server does: the same requests go to both. What must differ is masked;
what differs on purpose is told in docs/devserver.md."""
import itertools
import json
import re

import pytest

from harness import Devserver, Sandbox
from harness.cluster import servers

from .conftest import Server

_number = itertools.count(1)

JSON, MERGE, JSON_PATCH, APPLY = ("application/json", "application/merge-patch+json", "application/json-patch+json",
                                  "application/apply-patch+yaml")
WIDGETS = "/apis/example.com/v1/namespaces/{namespace}/widgets"
CONFIG_MAPS = "/api/v1/namespaces/{namespace}/configmaps"


def widget(name, **more):
    return json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, **more})


def config_map(name, **more):
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, **more})


ODD = {"zebra": 1, "apple": {"b": [], "a": {}}, "text": "<a href=\"&\">ü 世 \u2028 \t \x7f</a>", "none": None,
       "numbers": [1.0, 1e21, 1e20, 1e-7, 0.1, 9007199254740993, -0, 18446744073709551615]}

EVENTS = "/apis/events.k8s.io/v1/namespaces/{namespace}/events"
CORE_EVENTS = "/api/v1/namespaces/{namespace}/events"
REGARDING = {"kind": "Widget", "namespace": "{namespace}", "name": "a", "uid": "u-1", "apiVersion": "example.com/v1"}


def event(name, **more):
    """As reconciled writes it."""
    return json.dumps({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": name},
                       "eventTime": "2026-01-02T03:04:05.678901Z", "reportingController": "widgets.example.com",
                       "reportingInstance": "node-1", "action": "Reconcile", "reason": "Failed", "type": "Warning",
                       "regarding": REGARDING, "note": "it failed", **more})


def core_event(name, **more):
    """As older clients write it."""
    return json.dumps({"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": REGARDING,
                       "source": {"component": "old.example.com", "host": "node-2"}, "type": "Normal",
                       "firstTimestamp": "2026-01-02T03:04:05Z", "lastTimestamp": "2026-01-02T03:04:06Z", "count": 2,
                       "message": "it works", "reason": "Works", **more})


SERIES = json.dumps({"series": {"count": 2, "lastObservedTime": "2026-01-02T03:05:06.000000Z"}})

# name, method, path, body, content type
REQUESTS = [
    ("namespace", "POST", "/api/v1/namespaces?fieldManager=m", '{"metadata":{"name":"{namespace}"}}', JSON),
    ("an empty list", "GET", WIDGETS, None, None),
    ("an empty list of a core kind", "GET", CONFIG_MAPS, None, None),
    ("create", "POST", WIDGETS + "?fieldManager=m", widget("a", spec=ODD, status={"dropped": True}), JSON),
    ("create again", "POST", WIDGETS + "?fieldManager=m", widget("a"), JSON),
    ("create of a core kind", "POST", CONFIG_MAPS + "?fieldManager=m",
     config_map("a", data={"z": "1", "a": "<&>\u2028"}, binaryData={"b": "AAA="}), JSON),
    ("create a second", "POST", WIDGETS + "?fieldManager=m", widget("b"), JSON),
    ("create without a name", "POST", WIDGETS, '{"apiVersion":"example.com/v1","kind":"Widget","metadata":{}}', JSON),
    ("create what is no JSON", "POST", WIDGETS, "{", JSON),
    ("create with a bad name", "POST", WIDGETS, widget("Not_A_Name"), JSON),
    ("create in no namespace", "POST", WIDGETS.replace("{namespace}", "nowhere"), widget("x"), JSON),
    ("get", "GET", WIDGETS + "/a", None, None),
    ("get of a core kind", "GET", CONFIG_MAPS + "/a", None, None),
    ("get nothing", "GET", WIDGETS + "/none", None, None),
    ("get nothing of a core kind", "GET", CONFIG_MAPS + "/none", None, None),
    ("get the status", "GET", WIDGETS + "/a/status", None, None),
    ("get of a cluster kind", "GET", "/apis/example.com/v1/gadgets/none", None, None),
    ("list", "GET", WIDGETS, None, None),
    ("list of a core kind", "GET", CONFIG_MAPS + "?fieldSelector=metadata.name%3Da", None, None),
    ("a page", "GET", WIDGETS + "?limit=1", None, None),
    ("the last page", "GET", WIDGETS + "?limit=1&continue={continue}", None, None),
    ("selected", "GET", WIDGETS + "?labelSelector=a%3Db", None, None),
    ("partial", "GET", WIDGETS + "/a", None, "accept:application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
    ("partial list", "GET", WIDGETS, None, "accept:application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"),
    ("merge patch", "PATCH", WIDGETS + "/a?fieldManager=p", '{"metadata":{"labels":{"b":"1","a":"2"}},"spec":{"more":1.50}}', MERGE),
    ("merge patch of nothing", "PATCH", WIDGETS + "/a?fieldManager=p", "{}", MERGE),
    ("patch the status", "PATCH", WIDGETS + "/a/status?fieldManager=s", '{"status":{"b":2,"a":1}}', MERGE),
    ("finalizers", "PATCH", WIDGETS + "/b?fieldManager=p", '{"metadata":{"finalizers":["example.com/f"]}}', MERGE),
    ("patch of a core kind", "PATCH", CONFIG_MAPS + "/a?fieldManager=p", '{"data":{"c":"2"}}', MERGE),
    ("JSON patch", "PATCH", WIDGETS + "/a?fieldManager=p", '[{"op":"add","path":"/spec/x","value":1}]', JSON_PATCH),
    ("a patch that is stale", "PATCH", WIDGETS + "/a", '{"metadata":{"resourceVersion":"1"},"spec":{"x":7}}', MERGE),
    ("a patch of another uid", "PATCH", CONFIG_MAPS + "/a", '{"metadata":{"uid":"x"}}', MERGE),
    ("a patch of nothing", "PATCH", WIDGETS + "/none", "{}", MERGE),
    ("a patch of no type", "PATCH", WIDGETS + "/a", "{}", "text/plain"),
    ("apply anew", "PATCH", WIDGETS + "/applied?fieldManager=one",
     widget("applied", spec={"list": [{"b": 1, "a": 2}], "n": 1}), APPLY),
    ("apply", "PATCH", WIDGETS + "/applied?fieldManager=one", widget("applied", spec={"n": 2}), APPLY),
    ("apply in conflict", "PATCH", WIDGETS + "/applied?fieldManager=two", widget("applied", spec={"n": 3}), APPLY),
    ("apply by force", "PATCH", WIDGETS + "/applied?fieldManager=two&force=true", widget("applied", spec={"n": 3}), APPLY),
    ("apply of a core kind", "PATCH", CONFIG_MAPS + "/applied?fieldManager=one", config_map("applied", data={"a": "b"}), APPLY),
    ("apply without a manager", "PATCH", WIDGETS + "/applied", widget("applied"), APPLY),
    ("replace", "PUT", CONFIG_MAPS + "/a?fieldManager=m", config_map("a", data={"only": "this"}), JSON),
    ("replace without a version", "PUT", WIDGETS + "/a", widget("a"), JSON),
    ("replace nothing", "PUT", CONFIG_MAPS + "/none", config_map("none"), JSON),
    ("an Event", "POST", EVENTS + "?fieldManager=m", event("new"), JSON),
    ("an Event of its other group", "POST", CORE_EVENTS + "?fieldManager=m", core_event("old"), JSON),
    ("a trial of an Event", "POST", EVENTS + "?fieldManager=m&dryRun=All", event("trial"), JSON),
    ("the same Event again", "POST", CORE_EVENTS, core_event("new"), JSON),
    ("a series", "PATCH", EVENTS + "/new?fieldManager=m", SERIES, MERGE),
    ("a patch of nothing of an Event", "PATCH", EVENTS + "/new?fieldManager=m", "{}", MERGE),
    ("a patch through the other group", "PATCH", EVENTS + "/old?fieldManager=p", '{"metadata":{"labels":{"a":"b"}}}', MERGE),
    ("an Event's other form", "GET", CORE_EVENTS + "/new", None, None),
    ("an old Event's other form", "GET", EVENTS + "/old", None, None),
    ("Events", "GET", EVENTS, None, None),
    ("Events of the core", "GET", CORE_EVENTS, None, None),
    ("Events of an object", "GET", CORE_EVENTS + "?limit=500&fieldSelector=involvedObject.name%3Da%2CinvolvedObject.namespace"
     "%3D{namespace}%2CinvolvedObject.kind%3DWidget%2CinvolvedObject.uid%3Du-1", None, None),
    ("Events of no object", "GET", CORE_EVENTS + "?fieldSelector=involvedObject.uid%3Dother", None, None),
    ("Events by what they regard", "GET", EVENTS + "?fieldSelector=regarding.name%3Da%2Cregarding.uid%3Du-1", None, None),
    ("Events by source", "GET", CORE_EVENTS + "?fieldSelector=source%3Dold.example.com", None, None),
    ("Events by controller as source", "GET", CORE_EVENTS + "?fieldSelector=source%3Dwidgets.example.com", None, None),
    ("Events by component", "GET", CORE_EVENTS + "?fieldSelector=reportingComponent%3Dwidgets.example.com", None, None),
    ("Events by controller", "GET", EVENTS + "?fieldSelector=reportingController%3Dwidgets.example.com", None, None),
    ("Events by the core's name for it", "GET", EVENTS + "?fieldSelector=involvedObject.name%3Da", None, None),
    ("Events by the group's name for it", "GET", CORE_EVENTS + "?fieldSelector=regarding.name%3Da", None, None),
    ("a watch of Events", "GET", EVENTS + "?watch=1&resourceVersion=0&timeoutSeconds=1", None, None),
    ("a watch of Events of the core", "GET", CORE_EVENTS + "?watch=1&resourceVersion=0&timeoutSeconds=1"
     "&fieldSelector=involvedObject.name%3Da", None, None),
    ("delete through the core", "DELETE", CORE_EVENTS + "/new", None, None),
    ("deleted in both", "GET", EVENTS + "/new", None, None),
    ("delete with another uid", "DELETE", WIDGETS + "/a", '{"preconditions":{"uid":"x"}}', JSON),
    ("delete", "DELETE", WIDGETS + "/a", None, None),
    ("delete of a core kind", "DELETE", CONFIG_MAPS + "/a", None, None),
    ("delete what is held", "DELETE", WIDGETS + "/b", None, None),
    ("a finalizer for what is going", "PATCH", WIDGETS + "/b", '{"metadata":{"finalizers":["example.com/f","example.com/g"]}}', MERGE),
    ("release", "PATCH", WIDGETS + "/b?fieldManager=p", '{"metadata":{"finalizers":null}}', MERGE),
    ("delete nothing", "DELETE", WIDGETS + "/none", None, None),
    ("no such kind", "GET", "/apis/example.com/v1/namespaces/{namespace}/nothings", None, None),
    ("no such group", "GET", "/apis/none.example.com/v1", None, None),
    ("no such core kind", "GET", "/api/v1/namespaces/{namespace}/nothings", None, None),
    ("a bad selector", "GET", WIDGETS + "?labelSelector=a%3D%3D%3Db", None, None),
    ("a bad limit", "GET", WIDGETS + "?limit=x", None, None),
    ("a watch", "GET", WIDGETS + "?watch=1&resourceVersion=0&timeoutSeconds=1", None, None),
    ("a watch of a core kind", "GET", CONFIG_MAPS + "?watch=1&resourceVersion=0&timeoutSeconds=1"
     "&fieldSelector=metadata.name%3Dapplied", None, None),
    ("a watch of metadata", "GET", WIDGETS + "?watch=1&resourceVersion=0&timeoutSeconds=1", None,
     "accept:application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"),
    ("discovery of a group", "GET", "/apis/example.com", None, None),
    ("discovery of a version", "GET", "/apis/example.com/v1", None, None),
    ("healthz", "GET", "/healthz", None, None),
    ("readyz", "GET", "/readyz", None, None),
    ("livez", "GET", "/livez", None, None),
]

# Refusals whose words are the devserver's own: code, reason and form are the same.
OWN_WORDS = {"create what is no JSON", "create with a bad name", "a patch of another uid", "apply without a manager",
             "replace without a version", "delete with another uid", "a finalizer for what is going", "a bad selector",
             "a bad limit"}


@pytest.fixture(autouse=True)
def server_survives():
    """In the place of the one of this folder, which would run each test on each server alone."""


class Both:
    def __init__(self, devserver, real):
        self.devserver, self.real = devserver, real
        self.namespace = f"bytes-{next(_number)}"
        self.tokens = {}

    def send(self, server, method, path, body, kind):
        accept = "application/json"
        if kind and kind.startswith("accept:"):
            accept, kind = kind[len("accept:"):], None
        path = path.replace("{continue}", self.tokens.get(server, "")).replace("{namespace}", self.namespace)
        body = body.replace("{namespace}", self.namespace) if body else None
        response = server.api.raw(method, path, body, content_type=kind, accept=accept)
        token = re.search(r'"continue":"([^"]+)"', response.text)
        if token:
            self.tokens[server] = token.group(1)
        return response


MASKS = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r'"resourceVersion":"\d+"', '"resourceVersion":"VERSION"'),
    (r'"continue":"[^"]+"', '"continue":"TOKEN"'),
    (r',"storageVersionHash":"[^"]*"', ""),
    # Who owns what the devserver knows less exactly (docs/devserver.md); that it is said, and where, is the same.
    (r',"labels":\{"kubernetes.io/metadata.name":"[^"]*"\}', ""),  # of namespaces, from 1.21 on
    (r',"managedFields":\[(?:[^\[\]]|\[\])*\]', ""),
]


def in_order(text):
    """A real server names the definitions of a version in the order of a map, another one each time."""
    found = re.findall(r'\{"name":"[^{}]*\}', text)
    if '"kind":"APIResourceList"' not in text or not found:
        return text
    resource = re.compile(r'"name":"([^"/]*)')
    return text.replace(",".join(found), ",".join(sorted(found, key=lambda each: resource.search(each).group(1))))


def masked(response, own_words):
    text = in_order(response.text)
    if own_words:
        text = re.sub(r'"message":".*(,"reason":"[^"]*")(,"details":.*)?(,"code":)', r'\1\3', text)
    for pattern, mask in MASKS:
        text = re.sub(pattern, mask, text)
    length = response.headers["Content-Length"]
    return {"code": response.code, "type": response.headers["Content-Type"],
            "framing": response.headers["Transfer-Encoding"] or ("length" if length else None),
            "retry": response.headers["Retry-After"], "body": text}


@pytest.fixture(params=servers())
def both(request, programs, make_cluster):
    sandbox = Sandbox(programs, "bytes")
    found = Both(Server("devserver", Devserver(sandbox).start()), Server(request.param, make_cluster(request.param)))
    yield found
    sandbox.close()


def test_answers(both):
    different = []
    for name, method, path, body, kind in REQUESTS:
        ours, theirs = (masked(both.send(server, method, path, body, kind), name in OWN_WORDS)
                        for server in (both.devserver, both.real))
        for part in theirs:
            if ours[part] != theirs[part]:
                different.append(f"{name}: {part}\n  devserver {ours[part]!r}\n  real      {theirs[part]!r}")
    assert not different, "\n".join(different)
