# SPDX-License-Identifier: Apache-2.0
"""Restarts on a real kube-apiserver: a watch goes on where the last life ended; metadata alone; patterns."""
from harness import wait_until, watch


def test_a_restart_goes_on_where_the_last_life_ended(cluster, operator, handler, configured, widgets):
    for name in ("same", "changed", "gone"):
        widgets.create(name, spec={"n": 1})
    operator.start_ready().wait_synced()
    for name in ("same", "changed", "gone"):
        handler.wait_finished(name=name)
    operator.stop()
    widgets.merge_patch("changed", {"spec": {"n": 2}})
    widgets.delete("gone")
    widgets.create("new", spec={})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="gone", action="deleted")
    handler.wait_finished(name="new")
    handler.wait_finished(name="changed", where=lambda request: request.object["spec"] == {"n": 2})
    wait_until(lambda: operator.ctl.status()["watches"][0]["resumed"] == 1, "a start that needed no list")
    status = operator.ctl.status()["watches"][0]
    operator.stop()
    assert len(handler.requests(name="same")) == 1 and status["lists"] == 0


def test_metadata_alone_in_namespaces_that_match(cluster, operator, handler, namespace, widgets):
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace + "*", "!other-*"], metadataOnly=True)])
    widgets.create("a", spec={"secret": 1})
    operator.start_ready().wait_synced()
    first = handler.wait_finished(name="a")
    widgets.merge_patch("a", {"spec": {"secret": 2}})
    handler.wait_finished(name="a", where=lambda request: request.metadata["generation"] == 2)
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    operator.stop()
    assert first.object["kind"] == "PartialObjectMetadata" and "spec" not in first.object
