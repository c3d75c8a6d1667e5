# SPDX-License-Identifier: Apache-2.0
"""Objects are held against the schema of their definition, and definitions against the rules for schemas: the same requests
go to the devserver and to a real server, and the answers must agree. What differs on purpose is told in docs/devserver.md."""
import itertools
import json
import re

import pytest

from harness import Devserver, Sandbox, wait_until
from harness.cluster import servers

from .conftest import OLDER, Server

_number = itertools.count(1)
MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "schema.example.org"  # what other tests of the folder see of theirs stays as it is
TEXT, INTEGER = {"type": "string"}, {"type": "integer"}


def of_type(kind, **more):
    return {"type": kind, **{name.replace("_", "-"): value for name, value in more.items()}}


def objects(**properties):
    return {"type": "object", "properties": properties}


LIST_TYPE, MAP_KEYS, PRESERVE = ("x-kubernetes-list-type", "x-kubernetes-list-map-keys",
                                 "x-kubernetes-preserve-unknown-fields")
SPEC = objects(
    size=of_type("integer", minimum=1, maximum=5),
    ratio=of_type("number", minimum=1.5, exclusiveMinimum=True, maximum=10, exclusiveMaximum=True),
    even=of_type("integer", multipleOf=2),
    name=of_type("string", minLength=2, maxLength=4, pattern="^[a-zü]+$"),
    mode=of_type("string", enum=["a", "b"], default="a"),
    level=of_type("integer", enum=[1, 2]),
    list=of_type("array", items=TEXT, minItems=2, maxItems=3),
    set={**of_type("array", items=TEXT), LIST_TYPE: "set"},
    map={**of_type("array", items={**objects(key=TEXT, value=INTEGER), "required": ["key"]}), LIST_TYPE: "map",
         MAP_KEYS: ["key"]},
    ports={**of_type("array", items={**objects(port=INTEGER, protocol=of_type("string", default="TCP")),
                                     "required": ["port"]}), LIST_TYPE: "map", MAP_KEYS: ["port", "protocol"]},
    labels=of_type("object", additionalProperties=INTEGER, minProperties=1, maxProperties=2),
    anything=of_type("object", additionalProperties=True),
    free={**objects(known=objects(x=INTEGER)), PRESERVE: True},
    either={"x-kubernetes-int-or-string": True},
    nothing=of_type("string", nullable=True),
    given=of_type("string", default="d"),
    maybe=of_type("string", default="d", nullable=True),
    flag=of_type("boolean"),
    time=of_type("string", format="date-time"),
    address=of_type("string", format="ipv4"),
    one={**objects(a=TEXT, b=TEXT), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    some={**objects(a=TEXT, b=INTEGER),
          "anyOf": [{"required": ["a"], "properties": {"a": {"minLength": 2}}}, {"required": ["b"]}]},
    all=of_type("string", allOf=[{"minLength": 3}, {"pattern": "x"}]),
    no=of_type("string", **{"not": {"enum": ["bad"]}}),
    deep=objects(a={**objects(b=of_type("integer", default=7)), "default": {}}),
    embedded={"type": "object", "x-kubernetes-embedded-resource": True, PRESERVE: True},
    atomic={**objects(a=TEXT, b=TEXT), "x-kubernetes-map-type": "atomic"})
SPEC["required"] = ["size"]
SCHEMA = objects(spec=SPEC, status={**objects(phase=of_type("string", enum=["A"]), n=INTEGER), "default": {"n": 1}})

SPECS = [
    {"size": 1}, {}, None, "text", 5, [],
    {"size": "text"}, {"size": None}, {"size": 0}, {"size": 6}, {"size": 1.5}, {"size": 2.0}, {"size": True},
    {"size": 1, "ratio": 1.5}, {"size": 1, "ratio": 10}, {"size": 1, "ratio": 2.25}, {"size": 1, "ratio": "x"},
    {"size": 1, "even": 3}, {"size": 1, "even": 4},
    {"size": 1, "name": "a"}, {"size": 1, "name": "üüüüü"}, {"size": 1, "name": "üüüü"}, {"size": 1, "name": "A\"\\\n<"},
    {"size": 1, "name": ["a"]}, {"size": 1, "name": 1.5},
    {"size": 1, "mode": "c"}, {"size": 1, "mode": None}, {"size": 1, "level": 3}, {"size": 1, "level": 2},
    {"size": 1, "list": ["a"]}, {"size": 1, "list": list("abcd")}, {"size": 1, "list": ["a", 1]},
    {"size": 1, "list": {"a": 1}}, {"size": 1, "set": list("abaa")},
    {"size": 1, "map": [{"key": "a"}, {"key": "b"}, {"key": "a", "value": 2}]}, {"size": 1, "map": [{"value": 1}]},
    {"size": 1, "map": ["a"]}, {"size": 1, "ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}]},
    {"size": 1, "ports": [{"port": 1}, {"port": 1, "protocol": "TCP"}]},
    {"size": 1, "labels": {}}, {"size": 1, "labels": {"a": 1, "b": 2, "c": 3}}, {"size": 1, "labels": {"a": "x"}},
    {"size": 1, "labels": {"a": None}},
    {"size": 1, "anything": {"a": {"b": 1}, "c": [{"d": 1}], "e": 2}},
    {"size": 1, "free": {"unknown": {"b": 1}, "known": {"x": 1, "y": 2}}}, {"size": 1, "free": {"known": {"x": "a"}}},
    {"size": 1, "either": 1}, {"size": 1, "either": "1"}, {"size": 1, "either": True}, {"size": 1, "either": 1.5},
    {"size": 1, "nothing": None}, {"size": 1, "name": None, "given": None, "maybe": None},
    {"size": 1, "flag": "true"}, {"size": 1, "time": "x"}, {"size": 1, "time": "2026-01-02T03:04:05Z"}, {"size": 1, "address": "1.2.3"}, {"size": 1, "address": "1.2.3.4"},
    {"size": 1, "one": {}}, {"size": 1, "one": {"a": "x"}}, {"size": 1, "one": {"a": "x", "b": "y"}},
    {"size": 1, "some": {}}, {"size": 1, "some": {"a": "x"}}, {"size": 1, "some": {"b": 1}},
    {"size": 1, "all": "a"}, {"size": 1, "all": "abc"}, {"size": 1, "all": "abx"},
    {"size": 1, "no": "bad"}, {"size": 1, "no": "good"},
    {"size": 1, "deep": {}}, {"size": 1, "deep": {"a": {"b": 1}}}, {"size": 1, "deep": {"unknown": 1}, "unknown": [{}]},
    {"size": 1, "embedded": {}}, {"size": 1, "embedded": {"apiVersion": "v1", "kind": "Pod", "spec": {"x": 1}}},
    {"size": "x", "name": "a", "mode": "z", "list": [1], "flag": 1},
]

# What goes into a definition that is refused, or taken with a warning: of the spec, or of the whole under "root".
SCHEMAS = {
    "no type": {"properties": {"a": TEXT}},
    "a field without a type": objects(a={"description": "x"}, b=TEXT),
    "items without a type": of_type("array", items={}),
    "no items": of_type("array"),
    "another type": objects(a=of_type("str")),
    "a null type": of_type("null"),
    "unknown keywords": {**objects(a=of_type("string", minimun=3)), "any": []},
    "a default of another type": objects(a=of_type("string", default=5)),
    "a default that is none of the values": objects(a=of_type("string", default="z", enum=["a"])),
    "a default with unknown fields": {**objects(a=TEXT), "default": {"z": 1}},
    "a default that lacks something": {**objects(a=TEXT), "required": ["a"], "default": {}},
    "a default of null": objects(a=of_type("string", default=None)),
    "a pattern that looks ahead": objects(a=of_type("string", pattern="(?=x)")),
    "a pattern with a reference": objects(a=of_type("string", pattern="(a)\\1")),
    "a pattern with a possessive repeat": objects(a=of_type("string", pattern="a++")),
    "a pattern that repeats too often": objects(a=of_type("string", pattern="a{1001}")),
    "a pattern with an unknown escape": objects(a=of_type("string", pattern="\\h")),
    "patterns": objects(a=of_type("string", pattern="(?i)^(?P<n>[^]a]+?)(?:b|\\pL)*[[:alpha:]]{2,}\\Q(\\E\\z$")),
    "unique items": of_type("array", uniqueItems=True, items=TEXT),
    "properties and others": {**objects(a=TEXT), "additionalProperties": TEXT},
    "a reference": {"type": "object", "$ref": "#/x"},
    "what is not supported": of_type("object", patternProperties={"a": TEXT}, definitions={"a": TEXT}, id="x",
                                     dependencies={"a": ["b"]}, additionalItems=True),
    "items by place": of_type("array", items=[TEXT]),
    "preserve: false": {"type": "object", PRESERVE: False},
    "int-or-string": objects(a={"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, TEXT]},
                             b={"anyOf": [INTEGER, TEXT]},
                             c={"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [INTEGER, TEXT]}, {"pattern": "x"}]}),
    "a combined type": of_type("string", anyOf=[{**TEXT, "description": "x", "default": "y", "nullable": True, PRESERVE: True}]),
    "list types": objects(a={**TEXT, LIST_TYPE: "set"}, b={**of_type("array", items=objects(k=TEXT)), LIST_TYPE: "map"},
                          c={**of_type("array", items=objects(k=TEXT)), LIST_TYPE: "map", MAP_KEYS: ["k"]},
                          d={**of_type("array", items=TEXT), LIST_TYPE: "other"},
                          e={**of_type("array", items=objects(k=TEXT)), LIST_TYPE: "set"},
                          f={**of_type("array", items=TEXT), MAP_KEYS: ["k"]},
                          g={**of_type("array", items=TEXT), LIST_TYPE: "map", MAP_KEYS: ["k"]}),
    "root: no type": {"properties": {}},
    "root: metadata": objects(metadata=objects(labels=of_type("object"))),
    "root: a name": objects(metadata=objects(name=of_type("string", pattern="^a"))),
    "root: what a status would be left out of": {**objects(a=TEXT), "anyOf": [{"required": ["a"]}]},
    "a length that is a text": objects(a=of_type("string", minLength="x")),
    "properties in a list": {"type": "object", "properties": []},
}
# What differs in words alone.
OWN_WORDS = {"a length that is a text", "properties in a list", "root: what a status would be left out of"}


@pytest.fixture(autouse=True)
def server_survives():
    """In the place of the one of this folder, which would run each test on each server alone."""


class Kind:
    """The same definition on both servers."""

    def __init__(self, both, schema, **more):
        self.both, self.name = both, f"schema{next(_number)}"
        self.kind, self.path = self.name.capitalize(), f"/apis/{GROUP}/v1/{self.name}s"
        version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                   "schema": {"openAPIV3Schema": schema}, **more}
        self.definition = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{self.name}s.{GROUP}"},
            "spec": {"group": GROUP, "scope": "Cluster", "names": {"plural": f"{self.name}s", "kind": self.kind},
                     "versions": [version]}}

    def define(self):
        for answer in self.both.send("POST", DEFINITIONS, self.definition):
            assert answer.code == 201, answer
        self.both.defined.append(f"{self.name}s.{GROUP}")
        self.both.wait(lambda api: api.raw("GET", self.path).code == 200, self.name)
        return self

    def object(self, name, **more):
        return {"apiVersion": f"{GROUP}/v1", "kind": self.kind, "metadata": {"name": name}, **more}

    def create(self, name, query=None, **more):
        return self.both.compare("POST", self.path, self.object(name, **more), query)

    def merge(self, name, patch, subresource="", query=None):
        return self.both.compare("PATCH", f"{self.path}/{name}{subresource}", patch, query, MERGE)

    def apply(self, name, subresource="", query=None, manager="m", **more):
        return self.both.compare("PATCH", f"{self.path}/{name}{subresource}", self.object(name, **more),
                                 {"fieldManager": manager, **(query or {})}, APPLY)

    def change(self, schema):
        """The definition gets another schema, which both servers then use."""
        self.definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = schema
        for answer in self.both.send("PATCH", f"{DEFINITIONS}/{self.name}s.{GROUP}", {"spec": self.definition["spec"]},
                                     content_type=MERGE):
            assert answer.code == 200, answer


class Both:
    def __init__(self, devserver, real):
        self.devserver, self.real = devserver, real
        self.is_current = real.started.is_current
        self.different, self.defined = [], []

    def done(self):
        for name in self.defined:
            self.send("DELETE", f"{DEFINITIONS}/{name}")

    def send(self, method, path, body=None, query=None, content_type=None):
        return [server.api.raw(method, path, body, content_type=content_type, query=query)
                for server in (self.devserver, self.real)]

    def wait(self, condition, what):
        for server in (self.devserver, self.real):
            wait_until(lambda server=server: condition(server.api), what)

    def compare(self, method, path, body=None, query=None, content_type=None, own_words=False):
        """The answers of both; that they differ is kept for the end."""
        ours, theirs = self.send(method, path, body, query, content_type)
        shown = [self.seen(answer, own_words) for answer in (ours, theirs)]
        if shown[0] != shown[1]:
            self.different.append(f"{method} {path} {query or ''} {json.dumps(body)}\n  devserver {shown[0]}\n  real      {shown[1]}")
        return ours

    def seen(self, answer, own_words):
        """What must be the same. An old server has other words and reasons, names no elements, and does not warn."""
        body = answer.body if isinstance(answer.body, dict) else {}
        warnings = sorted(answer.headers.get_all("Warning") or []) if self.is_current else None
        if body.get("kind") == "CustomResourceDefinition":
            return answer.code, warnings
        if body.get("kind") != "Status":
            return answer.code, {name: body.get(name) for name in ("spec", "status")}, warnings
        if answer.code == 500:  # before an apply; only the first mistake is told by the devserver
            return answer.code, bool(re.match(r"failed to create typed patch object \(/.*; schema.example.org/v1, Kind=.*\): ", body["message"]))
        causes = (body.get("details") or {}).get("causes") or []
        if not self.is_current or own_words:
            return answer.code, sorted({re.sub(r"<nil>|\[\d+\]", "", cause["field"]) for cause in causes})
        words = [(cause["reason"], cause["field"], cause["message"]) for cause in causes]
        message = body["message"] if len(causes) == 1 else sorted(re.split(r", (?=unknown)|: (?=unknown)", body["message"])) \
            if not causes else len(body["message"])
        return answer.code, body.get("reason"), message, sorted(words), warnings

    def check(self):
        assert not self.different, "\n".join(self.different)


only_with_a_current_server = pytest.mark.only_where("kube-apiserver-current" in servers(), "a current kube-apiserver")


def start(name, programs, make_cluster):
    sandbox = Sandbox(programs, "schema")
    return sandbox, Both(Server("devserver", Devserver(sandbox).start()), Server(name, make_cluster(name)))


@pytest.fixture(params=[*OLDER, servers()[-1]])
def both(request, programs, make_cluster):
    sandbox, found = start(request.param, programs, make_cluster)
    yield found
    found.done()
    sandbox.close()


@pytest.fixture
def newest(programs, make_cluster):
    """For what older servers do otherwise, or not at all."""
    sandbox, found = start(servers()[-1], programs, make_cluster)
    yield found
    found.done()
    sandbox.close()


def test_objects_that_are_created(both):
    kind = Kind(both, SCHEMA).define()
    for number, spec in enumerate(SPECS):
        kind.create(f"o{number}", spec=spec, status={"phase": "A"})
    kind.create("none")
    kind.create("more", more=1)
    both.check()


def test_objects_that_are_changed(both):
    kind = Kind(both, SCHEMA).define()
    kind.create("o", spec={"size": 1, "unknown": 1})
    for patch in ({"size": "x"}, {"size": None}, {"unknown": 1}, {"mode": None}, {"name": None}, {"deep": {"a": None}},
                  {"map": [{"key": "a"}, {"key": "a"}]}, {"set": ["a", "b"]}, {"set": ["a", "a"]}, {"nothing": None}):
        kind.merge("o", {"spec": patch})
    for status in ({"phase": "A"}, {"phase": "B", "n": "x", "unknown": 1}, "text", None, {"n": 2}):
        kind.merge("o", {"status": status}, "/status")
        kind.merge("o", {"status": status})
    kind.merge("o", {"status": {"phase": "A"}, "spec": {"size": "x"}}, "/status")
    both.compare("GET", f"{kind.path}/o")
    both.check()


@only_with_a_current_server
def test_what_is_unknown_is_told_as_is_asked_for(newest):
    kind = Kind(newest, SCHEMA).define()
    spec = {"size": 1, "unknown": 1, "deep": {"other": 1}}
    for number, wanted in enumerate(("Strict", "Warn", "Ignore", "")):
        kind.create(f"o{number}", {"fieldValidation": wanted}, spec=spec, more=1)
    kind.create("sound", {"fieldValidation": "Strict"}, spec={"size": 1})
    kind.merge("sound", {"spec": {"unknown": 1}, "metadata": {"foo": 1}}, query={"fieldValidation": "Warn"})
    answers = newest.send("PATCH", f"{kind.path}/sound", {"spec": {"unknown": 1}}, {"fieldValidation": "Strict"}, MERGE)
    for answer in answers:
        assert (answer.code, answer.body["reason"]) == (422, "Invalid")
        assert [cause["field"] for cause in answer.body["details"]["causes"]] == ["patch"]
        assert 'strict decoding error: unknown field "spec.unknown"' in answer.body["message"]
    newest.check()


@only_with_a_current_server
def test_objects_that_are_applied(newest):
    kind = Kind(newest, SCHEMA).define()
    for number, spec in enumerate(SPECS):
        spec = {name: value for name, value in spec.items() if name not in ("time", "embedded")} if isinstance(spec, dict) else spec
        kind.apply(f"o{number}", spec=spec)
    for spec in ({"size": 1, "unknown": 1}, {"size": 1, "map": [{"key": "a", "unknown": 1}]}, {"size": 1, "free": {"x": {"y": 1}}},
                 {"size": 1, "labels": {"a": True}}, {"size": 1, "atomic": {"c": 1}},
                 {"size": 1, "atomic": "x"}, {"size": 1, "deep": ["a"]}, {"size": 1, "map": [{"value": 1}]}):
        kind.apply("x", spec=spec)
    kind.apply("x", metadata={"name": "x", "foo": 1}, spec={"size": 1})
    kind.apply("x", more=1)
    kind.apply("o0", status={"phase": "A"}, subresource="/status")
    kind.apply("o0", status={"phase": "B"}, subresource="/status")
    kind.apply("o0", status={"unknown": "B"}, subresource="/status")
    newest.check()


@only_with_a_current_server
def test_lists_and_maps_are_merged_by_the_schema(newest):
    kind = Kind(newest, SCHEMA).define()
    one = {"map": [{"key": "a", "value": 1}], "set": ["a"], "list": ["a", "b"], "atomic": {"a": "x"}, "ports": [{"port": 1}]}
    kind.apply("o", spec={"size": 1, **one})
    kind.apply("o", manager="two", spec={"map": [{"key": "b", "value": 2}], "set": ["b"], "ports": [{"port": 1, "protocol": "UDP"}]})
    conflicts = newest.send("PATCH", f"{kind.path}/o", kind.object("o", spec={
        "map": [{"key": "a", "value": 3}], "list": ["c", "d"], "atomic": {"b": "x"}}), {"fieldManager": "two"}, APPLY)
    ours, theirs = (sorted(cause["field"] for cause in answer.body["details"]["causes"]) for answer in conflicts)
    assert ours == theirs == [".spec.atomic", ".spec.list", '.spec.map[key="a"].value']
    kind.apply("o", spec={"size": 1})
    newest.compare("GET", f"{kind.path}/o")
    newest.check()


def test_what_is_stored_is_read_by_the_new_schema(both):
    kind = Kind(both, objects(spec=objects(a=TEXT, b=TEXT, list=of_type("array", items=TEXT)))).define()
    kind.create("o", spec={"a": "x", "b": "y", "list": ["a"]})
    versions = [answer.body["metadata"]["resourceVersion"] for answer in both.send("GET", f"{kind.path}/o")]
    kind.change(objects(spec=objects(a=INTEGER, c=of_type("string", default="new"),
                                     list=of_type("array", items=of_type("string", minLength=2)))))
    both.wait(lambda api: "c" in api.raw("GET", f"{kind.path}/o").body["spec"], "the new schema")
    answers = both.send("GET", f"{kind.path}/o")
    assert [answer.body["metadata"]["resourceVersion"] for answer in answers] == versions
    both.compare("GET", f"{kind.path}/o")
    for answer in both.send("GET", kind.path):
        assert answer.body["items"][0]["spec"] == {"a": "x", "c": "new", "list": ["a"]}
    if both.is_current:  # what was there, and is wrong now, may stay
        kind.merge("o", {"metadata": {"labels": {"a": "b"}}})
        kind.merge("o", {"spec": {"c": "other"}})
        kind.merge("o", {"spec": {"a": "y"}})
    kind.merge("o", {"spec": {"a": 1, "list": ["a", "bb"]}})
    kind.merge("o", {"spec": {"a": 1, "list": ["bb"]}})
    both.check()


@pytest.mark.parametrize("name", SCHEMAS)
def test_definitions(both, name):
    schema = SCHEMAS[name] if name.startswith("root") else objects(spec=SCHEMAS[name])
    kind = Kind(both, schema)
    both.compare("POST", DEFINITIONS, kind.definition, {"dryRun": "All"}, own_words=name in OWN_WORDS)
    both.check()
