# SPDX-License-Identifier: Apache-2.0
"""What a run writes itself is no reason to run again, wherever it is seen."""
import copy

import pytest

from harness import WIDGET_CRD, wait_until, watch


def without_status_subresource():
    crd = copy.deepcopy(WIDGET_CRD)
    for version in crd["spec"]["versions"]:
        version.pop("subresources", None)
    return crd


def runs_until_later(handler, widgets):
    """The number of runs of `a` when ten later objects have been handled, one after another."""
    for name in [f"later{number}" for number in range(10)]:
        widgets.create(name)
        handler.wait_finished(name=name)
    return len(handler.requests(name="a"))


@pytest.mark.parametrize("answer", [
    """printf '{"status":{"seen":"%s"}}' "$(date +%N)" """,
    """printf '{"patch":{"metadata":{"annotations":{"seen":"%s"}}}}' "$(date +%N)" """,
    """printf '{"status":{"seen":"%s"},"patch":{"metadata":{"annotations":{"seen":"%s"}}}}' "$(date +%N)" "$(date +%N)" """])
def test_metadata_only_is_not_run_by_its_own_writes(make_devserver, operator, handler, answer):
    devserver = make_devserver(load=[without_status_subresource()])
    handler.behave(answer)
    operator.configure(devserver, [watch("widgets", handler, metadataOnly=True)])
    operator.start_ready().wait_synced()
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    widgets.create("a")
    handler.wait_finished(name="a")
    assert runs_until_later(handler, widgets) == 1
    operator.stop()


OWN_KIND = [{"apiVersion": "example.com/v1", "kind": "Widget"}]
# The object `clock` runs once a second, and changes nothing: its runs are the time that others had.
TICKING = """if [ "$RECONCILED_NAME" = clock ]; then echo '{"requeueAfter":"1s"}'; exit; fi
printf '{"status":{"seen":"%s"}}' "$(date +%N)" """


def runs_until_it_ticked(handler, widgets, times):
    widgets.create("clock")
    wait_until(lambda: len(handler.requests(name="clock")) >= times, "the ticks", deadline=60)
    return len(handler.requests(name="a"))


@pytest.mark.slow
def test_an_object_that_owns_itself_is_not_run_by_its_own_writes(devserver, widgets, operator, handler):
    handler.behave(TICKING)
    operator.configure(devserver, [watch("widgets", handler, owns=OWN_KIND)])
    operator.start_ready().wait_synced()
    uid = widgets.create("a")["metadata"]["uid"]
    widgets.merge_patch("a", {"metadata": {"ownerReferences": [
        {"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", "uid": uid, "controller": True}]}})
    handler.wait_finished(name="a", where=lambda request: "ownerReferences" in request.metadata)
    assert runs_until_it_ticked(handler, widgets, 6) <= 2
    assert handler.requests(name="a")[-1].body["children"] == [], "nor is it shown to itself"
    operator.stop()


@pytest.mark.parametrize("names", [{}, {"names": ".metadata.name"}])
@pytest.mark.slow
def test_what_is_related_to_its_own_kind_is_not_run_by_its_own_writes(devserver, widgets, operator, handler, names):
    handler.behave(TICKING)
    operator.configure(devserver, [watch("widgets", handler, related=[{**OWN_KIND[0], **names}])])
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    # The clock's own creation and status are changes of others.
    assert runs_until_it_ticked(handler, widgets, 6) <= 4
    operator.stop()
