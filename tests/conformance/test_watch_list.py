# SPDX-License-Identifier: Apache-2.0
"""Initial events of a watch: a current server sends them; one that is too old does not know the wish."""
import json

import pytest


@pytest.fixture
def knows_initial_events(api):
    version = api.request("GET", "/version")
    return "devserver" in version["gitVersion"] or int(version["minor"].rstrip("+")) >= 32


def stream(widgets, **query):
    api = widgets.api
    connection = api.connect(10)
    connection.request("GET", api.url(widgets.path, {"watch": 1, "timeoutSeconds": 3, **query}), headers=api.headers())
    return connection.getresponse()


def events(response):
    return [json.loads(line) for line in response.read().splitlines()]


def test_they_come_and_end_with_a_bookmark(widgets, knows_initial_events):
    for name in ("a", "b"):
        widgets.create(name)
    response = stream(widgets, sendInitialEvents=True, resourceVersionMatch="NotOlderThan", allowWatchBookmarks=True)
    if not knows_initial_events:
        assert response.status == 422, "a match without a version is no option of an old server's watch"
        return
    found = events(response)
    assert [event["type"] for event in found[:2]] == ["ADDED", "ADDED"]
    ends = [event for event in found if event["type"] == "BOOKMARK"
            and (event["object"]["metadata"].get("annotations") or {}).get("k8s.io/initial-events-end") == "true"]
    assert len(ends) == 1 and found.index(ends[0]) == 2
    assert int(ends[0]["object"]["metadata"]["resourceVersion"]) >= max(
        int(event["object"]["metadata"]["resourceVersion"]) for event in found[:2])


@pytest.mark.parametrize("match", [None, "Exact"])
def test_they_need_the_right_match(widgets, knows_initial_events, match):
    response = stream(widgets, sendInitialEvents=True, resourceVersionMatch=match)
    assert (response.status == 422) == (knows_initial_events or match is not None), response.read()


def test_parts_of_objects_are_streamed_as_well(widgets):
    widgets.create("a", spec={"size": 1})
    api = widgets.api
    connection = api.connect(10)
    headers = api.headers(accept="application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
    connection.request("GET", api.url(widgets.path, {"watch": 1, "timeoutSeconds": 2, "resourceVersion": ""}), headers=headers)
    first = events(connection.getresponse())[0]["object"]
    assert first["kind"] == "PartialObjectMetadata" and "spec" not in first and first["metadata"]["name"] == "a"
