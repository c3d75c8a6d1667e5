# SPDX-License-Identifier: Apache-2.0
"""LIST: order, paging, selectors, resourceVersion."""
import pytest

from harness import ApiError


def fill(resource, count, prefix="item"):
    return [resource.create(f"{prefix}-{number:03}", spec={"n": number})["metadata"]["name"] for number in range(count)]


def test_empty(api, widgets):
    found = widgets.list()
    assert found["kind"] == "WidgetList" and found["apiVersion"] == "example.com/v1"
    assert found["items"] == []
    assert found["metadata"]["resourceVersion"].isdigit()
    assert "continue" not in found["metadata"] or found["metadata"]["continue"] == ""


def test_items_are_ordered_by_name(widgets):
    for name in ("c", "a", "b", "a-1", "a.1", "a0"):
        widgets.create(name)
    names = widgets.names()
    assert names == sorted(names)


def test_across_namespaces_in_the_order_of_namespace_and_name(server, api):
    first, second = server.namespace(), server.namespace()
    for namespace in (first, second):
        for name in ("y", "x"):
            api.resource("example.com/v1", "widgets", namespace).create(name, labels={"pair": first})
    found = api.resource("example.com/v1", "widgets").list(labelSelector=f"pair={first}")["items"]
    keys = [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in found]
    assert keys == sorted((namespace, name) for namespace in (first, second) for name in ("x", "y"))


def test_list_version_is_not_older_than_its_items(widgets):
    fill(widgets, 3)
    found = widgets.list()
    assert int(found["metadata"]["resourceVersion"]) >= max(int(item["metadata"]["resourceVersion"])
                                                            for item in found["items"])


def test_list_version_grows_with_writes_elsewhere(widgets, configmaps):
    before = int(widgets.list()["metadata"]["resourceVersion"])
    created = int(configmaps.create("a")["metadata"]["resourceVersion"])
    assert created > before
    assert int(widgets.list()["metadata"]["resourceVersion"]) >= created


def test_items_of_custom_resources_have_kind_and_api_version(widgets):
    widgets.create("a")
    item = widgets.list()["items"][0]
    assert (item["apiVersion"], item["kind"]) == ("example.com/v1", "Widget")


def test_items_of_the_core_group_have_neither_kind_nor_api_version(configmaps):
    configmaps.create("a")
    item = configmaps.list()["items"][0]
    assert "kind" not in item and "apiVersion" not in item


def test_pages(widgets):
    names = fill(widgets, 7)
    seen, versions, remaining, token = [], set(), [], None
    while True:
        query = {"limit": 3}
        if token:
            query["continue"] = token
        page = widgets.list(**query)
        seen += [item["metadata"]["name"] for item in page["items"]]
        versions.add(page["metadata"]["resourceVersion"])
        remaining.append(page["metadata"].get("remainingItemCount"))
        token = page["metadata"].get("continue")
        if not token:
            break
    assert seen == names
    assert len(versions) == 1, "all pages are of one version"
    assert remaining == [4, 1, None]


def test_pages_are_of_the_version_of_the_first(widgets):
    names = fill(widgets, 4)
    first = widgets.list(limit=2)
    widgets.delete(names[2])
    widgets.create("item-002-new")
    widgets.merge_patch(names[3], {"spec": {"n": 99}})
    second = widgets.list(**{"limit": 2, "continue": first["metadata"]["continue"]})
    assert [item["metadata"]["name"] for item in second["items"]] == names[2:]
    assert second["items"][1]["spec"] == {"n": 3}
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_limit_that_fits_gives_no_token(widgets):
    fill(widgets, 3)
    page = widgets.list(limit=3)
    assert len(page["items"]) == 3
    assert not page["metadata"].get("continue")


def test_pages_with_a_selector_have_no_remaining_count(widgets):
    for number in range(4):
        widgets.create(f"item-{number}", labels={"x": "y"})
    page = widgets.list(limit=2, labelSelector="x=y")
    assert page["metadata"]["continue"]
    assert "remainingItemCount" not in page["metadata"]


def test_continue_token_that_is_wrong(api, widgets):
    response = api.raw("GET", widgets.path, query={"continue": "!!!", "limit": "2"})
    assert (response.code, response.body["reason"]) == (400, "BadRequest")


def test_continue_with_a_resource_version_is_refused(api, widgets):
    fill(widgets, 3)
    token = widgets.list(limit=1)["metadata"]["continue"]
    response = api.raw("GET", widgets.path, query={"continue": token, "limit": "1", "resourceVersion": "1"})
    assert response.code == 400


@pytest.mark.parametrize("selector, expected", [
    ("tier=gold", ["a", "b"]),
    ("tier==gold", ["a", "b"]),
    ("tier!=gold", ["c", "d"]),
    ("tier", ["a", "b", "c"]),
    ("!tier", ["d"]),
    ("tier in (gold,silver)", ["a", "b", "c"]),
    ("tier notin (gold)", ["c", "d"]),
    ("tier=gold,zone=east", ["a"]),
    ("tier=gold,zone!=east", ["b"]),
    ("tier in (gold, silver),!zone", ["b", "c"]),
    ("tier=none", []),
    ("", ["a", "b", "c", "d"]),
])
def test_label_selector(widgets, selector, expected):
    widgets.create("a", labels={"tier": "gold", "zone": "east"})
    widgets.create("b", labels={"tier": "gold"})
    widgets.create("c", labels={"tier": "silver"})
    widgets.create("d")
    assert widgets.names(labelSelector=selector) == expected


@pytest.mark.parametrize("selector", ["tier=gold=x", "tier in gold", "=x", "tier in (a", "a b"])
def test_label_selector_that_is_wrong(api, widgets, selector):
    response = api.raw("GET", widgets.path, query={"labelSelector": selector})
    assert (response.code, response.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize("selector, expected", [
    ("metadata.name=a", ["a"]), ("metadata.name==a", ["a"]), ("metadata.name!=a", ["b"]), ("metadata.name=none", []),
])
def test_field_selector(widgets, selector, expected):
    widgets.create("a")
    widgets.create("b")
    assert widgets.names(fieldSelector=selector) == expected


def test_field_selector_by_namespace(api, widgets, namespace):
    widgets.create("a")
    found = api.resource("example.com/v1", "widgets").list(fieldSelector=f"metadata.namespace={namespace}")["items"]
    assert [item["metadata"]["name"] for item in found] == ["a"]


def test_field_selector_on_an_unknown_field(api, widgets):
    response = api.raw("GET", widgets.path, query={"fieldSelector": "spec.size=1"})
    assert (response.code, response.body["reason"]) == (400, "BadRequest")


def test_list_at_least_as_new_as(widgets):
    version = widgets.create("a")["metadata"]["resourceVersion"]
    assert widgets.names(resourceVersion=version) == ["a"]
    assert widgets.names(resourceVersion="0") in ([], ["a"])


def test_list_at_a_future_version(widgets):
    future = int(widgets.list()["metadata"]["resourceVersion"]) + 1_000_000
    with pytest.raises(ApiError) as caught:
        widgets.list(resourceVersion=str(future))
    assert caught.value.code == 504
    assert caught.value.reason == "Timeout"
    assert "ResourceVersionTooLarge" in [cause.get("reason") for cause in caught.value.causes]


def test_list_at_a_version_that_is_no_number(api, widgets):
    assert api.raw("GET", widgets.path, query={"resourceVersion": "abc"}).code in (400, 500)


def test_a_missing_namespace_lists_empty(api):
    assert api.resource("example.com/v1", "widgets", "no-such-namespace").names() == []


def test_metadata_only(api, widgets):
    widgets.create("a", spec={"n": 1}, labels={"x": "y"})
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    found = api.request("GET", widgets.path, accept=accept)
    assert found["kind"] == "PartialObjectMetadataList"
    item = found["items"][0]
    assert item["kind"] == "PartialObjectMetadata" and item["apiVersion"] == "meta.k8s.io/v1"
    assert item["metadata"]["labels"] == {"x": "y"}
    assert "spec" not in item


def test_many_pages(configmaps):
    for number in range(60):
        configmaps.create(f"item-{number:02}", data={"n": str(number)})
    names, token = [], None
    while True:
        page = configmaps.list(limit=7, **({"continue": token} if token else {}))
        names += [item["metadata"]["name"] for item in page["items"]]
        token = page["metadata"].get("continue")
        if not token:
            break
    assert names == [f"item-{number:02}" for number in range(60)]
