# SPDX-License-Identifier: Apache-2.0
"""metadataOnly, patterns of namespaces, and namespaces that do not exist, on a real kube-apiserver."""
from harness import wait_until, watch


def test_metadata_alone_in_namespaces_that_match(cluster, operator, handler, namespace, widgets):
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace + "*", "!other-*"], metadataOnly=True)])
    # A server that an earlier test had restarted serves its definitions a moment later.
    wait_until(lambda: cluster.api.raw("GET", widgets.path).code == 200, "the Widget resource to be served")
    widgets.create("a", spec={"secret": 1})
    operator.start_ready().wait_synced()
    first = handler.wait_finished(name="a")
    widgets.merge_patch("a", {"spec": {"secret": 2}})
    handler.wait_finished(name="a", where=lambda request: request.metadata["generation"] == 2)
    widgets.delete("a")
    handler.wait_finished(name="a", action="deleted")
    operator.stop()
    assert first.object["kind"] == "PartialObjectMetadata" and "spec" not in first.object


def test_a_namespace_that_does_not_exist_is_told(cluster, operator, handler, namespace, widgets):
    """A real server lists nothing in it and says nothing."""
    missing = namespace + "-misspelt"
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace, missing])])
    operator.start_ready().wait_synced()
    operator.wait_for_log(f"namespace {missing} does not exist")
    assert operator.ctl.status()["watches"][0]["missingNamespaces"] == missing
    cluster.api.resource("v1", "namespaces").create(missing)
    cluster.api.resource("example.com/v1", "widgets", missing).create("late", spec={})
    handler.wait_finished(name="late")
    operator.wait_for_log(f"namespace {missing} exists now")
    wait_until(lambda: operator.ctl.status()["watches"][0]["missingNamespaces"] == "", "that it exists")
