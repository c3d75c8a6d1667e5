# SPDX-License-Identifier: Apache-2.0
"""WATCH: what comes, in which order, with which versions, and how it ends."""
import threading

import pytest

from harness import ApiError


def brief(events):
    return [(event["type"], event["object"]["metadata"]["name"]) for event in events]


def version_of(resource):
    return resource.list()["metadata"]["resourceVersion"]


def test_events_after_a_list(widgets):
    version = version_of(widgets)
    with widgets.watch(resourceVersion=version) as watch:
        created = widgets.create("a", spec={"n": 0})
        changed = widgets.merge_patch("a", {"spec": {"n": 1}})
        widgets.delete("a")
        events = watch.take(3)
    assert brief(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert events[0]["object"] == created
    assert events[1]["object"] == changed
    assert (events[0]["object"]["apiVersion"], events[0]["object"]["kind"]) == ("example.com/v1", "Widget")
    assert events[2]["object"]["metadata"]["uid"] == created["metadata"]["uid"]
    assert events[2]["object"]["spec"] == {"n": 1}


def test_events_of_core_objects_name_their_kind(configmaps):
    version = version_of(configmaps)
    configmaps.create("a")
    with configmaps.watch(resourceVersion=version) as watch:
        found = watch.next()["object"]
    assert (found["apiVersion"], found["kind"]) == ("v1", "ConfigMap")


def test_stream_is_sent_at_once_and_as_json(widgets):
    with widgets.watch(resourceVersion=version_of(widgets)) as watch:
        assert watch.response.status == 200
        assert watch.response.headers["Content-Type"].startswith("application/json")
        widgets.create("a")
        watch.next()


def test_deleted_carries_the_version_of_the_deletion(widgets):
    version = version_of(widgets)
    created = widgets.create("a")
    with widgets.watch(resourceVersion=version) as watch:
        watch.next()
        widgets.delete("a")
        deleted = watch.next()
    assert int(deleted["object"]["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


def test_resume_from_any_version(widgets):
    version = version_of(widgets)
    versions = [widgets.create("a", spec={"n": 0})["metadata"]["resourceVersion"]]
    for n in range(1, 5):
        versions.append(widgets.merge_patch("a", {"spec": {"n": n}})["metadata"]["resourceVersion"])
    for start, rest in [(version, versions)] + [(versions[n], versions[n + 1:]) for n in range(4)]:
        with widgets.watch(resourceVersion=start) as watch:
            assert [event["object"]["metadata"]["resourceVersion"] for event in watch.take(len(rest))] == rest


def test_past_events_have_the_object_of_their_time(widgets):
    version = version_of(widgets)
    widgets.create("a", spec={"n": 0})
    widgets.merge_patch("a", {"spec": {"n": 1}})
    widgets.delete("a")
    with widgets.watch(resourceVersion=version) as watch:
        events = watch.take(3)
    assert brief(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a")]
    assert [event["object"]["spec"]["n"] for event in events] == [0, 1, 1]


def test_without_a_version_starts_with_what_is_there(widgets):
    widgets.create("a")
    widgets.create("b")
    with widgets.watch() as watch:
        assert sorted(brief(watch.take(2))) == [("ADDED", "a"), ("ADDED", "b")]
        widgets.create("c")
        assert brief([watch.next()]) == [("ADDED", "c")]


def test_version_0_starts_with_what_is_there(widgets):
    widgets.create("a")
    with widgets.watch(resourceVersion="0") as watch:
        assert brief([watch.next()]) == [("ADDED", "a")]


def test_only_its_namespace(server, api, widgets):
    other = api.resource("example.com/v1", "widgets", server.namespace())
    with widgets.watch(resourceVersion=version_of(widgets)) as watch:
        other.create("elsewhere")
        widgets.create("here")
        assert brief([watch.next()]) == [("ADDED", "here")]


def test_all_namespaces(server, api):
    everywhere = api.resource("example.com/v1", "widgets")
    places = [api.resource("example.com/v1", "widgets", server.namespace()) for _ in range(2)]
    with everywhere.watch(resourceVersion=version_of(everywhere)) as watch:
        for number, place in enumerate(places):
            place.create(f"w-{number}")
        events = watch.take(2)
    assert [event["object"]["metadata"]["namespace"] for event in events] == [place.namespace for place in places]


def test_entering_and_leaving_a_label_selector(widgets):
    version = version_of(widgets)
    with widgets.watch(resourceVersion=version, labelSelector="tier=gold") as watch:
        widgets.create("a", labels={"tier": "silver"})
        widgets.merge_patch("a", {"metadata": {"labels": {"tier": "gold"}}})
        widgets.merge_patch("a", {"spec": {"n": 1}})
        left = widgets.merge_patch("a", {"metadata": {"labels": {"tier": "silver"}}})
        widgets.merge_patch("a", {"spec": {"n": 2}})
        widgets.create("b", labels={"tier": "gold"})
        events = watch.take(4)
    assert brief(events) == [("ADDED", "a"), ("MODIFIED", "a"), ("DELETED", "a"), ("ADDED", "b")]
    # What left comes as it was when it still matched, with the version of the change.
    assert events[2]["object"]["metadata"]["labels"] == {"tier": "gold"}
    assert events[2]["object"]["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


def test_selector_on_past_events(widgets):
    version = version_of(widgets)
    widgets.create("a", labels={"tier": "gold"})
    widgets.create("b")
    widgets.merge_patch("a", {"metadata": {"labels": {"tier": None}}})
    widgets.create("c", labels={"tier": "gold"})
    with widgets.watch(resourceVersion=version, labelSelector="tier=gold") as watch:
        assert brief(watch.take(3)) == [("ADDED", "a"), ("DELETED", "a"), ("ADDED", "c")]


def test_field_selector(widgets):
    with widgets.watch(resourceVersion=version_of(widgets), fieldSelector="metadata.name=b") as watch:
        widgets.create("a")
        widgets.create("b")
        widgets.delete("a")
        widgets.delete("b")
        assert brief(watch.take(2)) == [("ADDED", "b"), ("DELETED", "b")]


def test_a_write_without_effect_gives_no_event(widgets):
    widgets.create("a", spec={"n": 0})
    with widgets.watch(resourceVersion=version_of(widgets)) as watch:
        widgets.merge_patch("a", {"spec": {"n": 0}})
        widgets.merge_patch("a", {"spec": {"n": 1}})
        assert watch.next()["object"]["spec"] == {"n": 1}


def test_status_writes_give_events(widgets):
    widgets.create("a")
    with widgets.watch(resourceVersion=version_of(widgets)) as watch:
        widgets.merge_patch("a", {"status": {"done": True}}, "status")
        event = watch.next()
    assert (event["type"], event["object"]["status"]) == ("MODIFIED", {"done": True})


def test_finalizer_deletion_is_a_modification_then_a_deletion(widgets):
    widgets.create("a", finalizers=["example.com/hold"])
    with widgets.watch(resourceVersion=version_of(widgets)) as watch:
        widgets.delete("a")
        first = watch.next()
        widgets.merge_patch("a", {"metadata": {"finalizers": None}})
        second = watch.next()
    assert (first["type"], second["type"]) == ("MODIFIED", "DELETED")
    assert first["object"]["metadata"]["deletionTimestamp"]


def test_timeout_closes_the_stream(widgets):
    with widgets.watch(resourceVersion=version_of(widgets), timeoutSeconds="1") as watch:
        watch.wait_end()
    assert [event for event in watch.events if event["type"] == "ERROR"] == []


def test_a_bookmark_comes_before_the_timeout(widgets):
    # kube-apiserver 1.20 sends one only where an event came while the watch was open.
    with widgets.watch(resourceVersion=version_of(widgets), timeoutSeconds="4", allowWatchBookmarks="true") as watch:
        created = widgets.create("a")["metadata"]["resourceVersion"]
        watch.next()
        bookmark = watch.next_bookmark()
        watch.wait_end()
    assert int(bookmark["object"]["metadata"]["resourceVersion"]) >= int(created)
    assert bookmark["object"]["kind"] == "Widget"
    assert bookmark["object"]["apiVersion"] == "example.com/v1"
    assert "name" not in bookmark["object"]["metadata"]


def test_a_watch_can_start_from_a_bookmark(widgets):
    with widgets.watch(resourceVersion=version_of(widgets), timeoutSeconds="4", allowWatchBookmarks="true") as watch:
        widgets.create("a")
        bookmark = watch.next_bookmark()["object"]["metadata"]["resourceVersion"]
    widgets.create("b")
    with widgets.watch(resourceVersion=bookmark) as watch:
        assert brief([watch.next()]) == [("ADDED", "b")]


def test_no_bookmarks_unless_asked_for(widgets):
    with widgets.watch(resourceVersion=version_of(widgets), timeoutSeconds="3") as watch:
        watch.wait_end()
    assert watch.events == []


def test_too_old(widgets):
    """In either form: HTTP 410, or 200 and an ERROR event with code 410."""
    try:
        with widgets.watch(resourceVersion="1") as watch:
            event = watch.next()
            watch.wait_end()
        assert event["type"] == "ERROR"
        status = event["object"]
    except ApiError as error:
        status = error.status
    assert status["kind"] == "Status" and status["status"] == "Failure"
    assert status["code"] == 410
    assert status["reason"] in ("Expired", "Gone")
    assert "too old resource version" in status["message"]


def test_version_that_is_no_number(widgets):
    with pytest.raises(ApiError) as caught:
        with widgets.watch(resourceVersion="abc"):
            pass
    # 500 from kube-apiserver 1.20.
    assert caught.value.code in (400, 500)


def test_selector_that_is_wrong(widgets):
    with pytest.raises(ApiError) as caught:
        with widgets.watch(labelSelector="a=b=c"):
            pass
    assert caught.value.code == 400


def test_order_under_concurrent_writers(widgets):
    version = version_of(widgets)

    def write(part):
        for n in range(10):
            widgets.create(f"w-{part}-{n}", spec={"n": n})

    threads = [threading.Thread(target=write, args=(part,)) for part in range(4)]
    with widgets.watch(resourceVersion=version) as watch:
        for thread in threads:
            thread.start()
        events = watch.take(40)
        for thread in threads:
            thread.join()
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions))


def test_many_watches_see_the_same(widgets):
    version = version_of(widgets)
    watches = [widgets.watch(resourceVersion=version) for _ in range(10)]
    try:
        for n in range(5):
            widgets.create(f"w-{n}")
        seen = [brief(watch.take(5)) for watch in watches]
        assert seen == [[("ADDED", f"w-{n}") for n in range(5)]] * 10
    finally:
        for watch in watches:
            watch.close()


def test_large_objects_come_whole(widgets):
    with widgets.watch(resourceVersion=version_of(widgets)) as watch:
        widgets.create("a", spec={"text": "ü" * 300_000})
        assert watch.next()["object"]["spec"]["text"] == "ü" * 300_000


def test_metadata_only(api, widgets):
    created = widgets.create("a", spec={"n": 1})
    accept = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    response = api.raw("GET", widgets.path, accept=accept,
                       query={"watch": "true", "timeoutSeconds": "1",
                              "resourceVersion": str(int(created["metadata"]["resourceVersion"]) - 1)})
    assert '"PartialObjectMetadata"' in response.text
    assert '"spec"' not in response.text
