# SPDX-License-Identifier: Apache-2.0
"""Whoever may write to an object may write to the lists on it. That hides no child of it, costs few requests, and holds nothing."""
import pytest

from harness import wait_until, watch
from harness.setup import child_kinds

CHILDREN, PATCHED = "widgets.example.com/children", "widgets.example.com/patched"
BINDING = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "grant", "namespace": "team-a"}}
OWNS, KINDS = child_kinds("v1 ConfigMap"), child_kinds("v1 Secret", "rbac.authorization.k8s.io/v1 RoleBinding")


@pytest.fixture
def start(devserver, operator, handler, api):
    def start(**more):
        api.resource("v1", "namespaces").create("team-a")
        operator.configure(devserver, [watch("widgets", handler, finalizer=True, owns=OWNS, namespaces=["default"],
                                             children={"kinds": KINDS, "namespaces": ["team-*"]}, patches=child_kinds("v1 Service"),
                                             retry={"first": "50ms", "max": "200ms"})], workers=1, **more)
        return operator.start_ready().wait_synced()

    return start


def annotate(widgets, name, **annotations):
    widgets.merge_patch(name, {"metadata": {"annotations": annotations}})


def is_gone(widgets, name):
    wait_until(lambda: not widgets.exists(name), f"the end of {name}")


@pytest.mark.parametrize("entry", ["v1/ConfigMap/default/a{}", "v1/Secret/team-a/a{}", "v1/ConfigMap/team-b/a{}"],
                         ids=["owned", "named", "elsewhere"])
def test_what_is_left_out_goes_whatever_stands_in_the_list(start, handler, widgets, api, entry):
    grants = api.resource("rbac.authorization.k8s.io/v1", "rolebindings", "team-a")
    handler.answer({"children": [BINDING], "status": {"n": 1}})
    start()
    widgets.create("w")
    wait_until(lambda: widgets.get("w").get("status") and grants.exists("grant"), "the grant")
    handler.answer({"children": [], "status": {"n": 2}})
    listed = widgets.get("w")["metadata"]["annotations"][CHILDREN]
    widgets.merge_patch("w", {"metadata": {"annotations": {CHILDREN: ",".join([*(entry.format(n) for n in range(2500)), listed])}},
                              "spec": {"revoked": True}})
    wait_until(lambda: widgets.get("w")["status"] == {"n": 2} and not grants.exists("grant"), "the end of what is left out")
    widgets.delete("w")
    is_gone(widgets, "w")


@pytest.mark.quiet
@pytest.mark.parametrize("answer", [{}, {"children": []}], ids=["silent", "none"])
@pytest.mark.parametrize("entry", ["v1/ConfigMap/default/a{}", "v1/Secret/default/a{}"], ids=["owned", "named"])
def test_a_long_list_costs_few_requests(start, devserver, handler, widgets, entry, answer):
    handler.answer({**answer, "status": {"done": True}})
    start()
    widgets.create("forged", annotations={CHILDREN: ",".join(entry.format(n) for n in range(9000))})
    widgets.create("other")
    wait_until(lambda: all(widgets.get(name).get("status") for name in ("forged", "other")), "both")

    def asked():
        children = f"/{entry.split('/')[1].lower()}s/a"
        return len(devserver.requests(lambda request: request["method"] == "GET" and children in request["path"]))

    assert asked() <= 50 * (1 + len(handler.requests("forged")))  # a busy machine may cut a run off, which begins again
    widgets.delete("forged")
    is_gone(widgets, "forged")
    assert asked() <= 50 * (3 + len(handler.requests("forged")))


FORGED = {"owned": {CHILDREN: "v1/ConfigMap/kube-system/x"}, "named": {CHILDREN: "v1/Secret/kube-system/x"},
          "unknown": {CHILDREN: "v1/Pod/kube-system/x"}, "here": {CHILDREN: "v1/Pod/default/x"},
          "silent": {CHILDREN: "metrics.k8s.io/v1/NodeMetrics//x"}, "patched": {PATCHED: "v1/Service/kube-system/x"},
          "former": {"old.example.com/children": "v1/ConfigMap/kube-system/x"}}


@pytest.mark.parametrize("answer", [{}, {"children": [], "patches": []}], ids=["silent", "none"])
def test_what_nobody_may_see_holds_nothing(start, devserver, handler, widgets, answer):
    """Refused: each of them may be a child, as far as the API server tells; but nothing says that it is one."""
    handler.answer({**answer, "status": {"done": True}})
    for resource in ("configmaps", "secrets", "services", "pods"):
        devserver.fault(match={"resource": resource, "namespace": "kube-system"}, times=0, status=403, reason="Forbidden", message="no")
    devserver.fault(match={"resource": "pods"}, times=0, status=403, reason="Forbidden", message="no")
    devserver.fault(match={"path": "/apis/metrics.k8s.io/*"}, times=0, status=503)
    start(formerNames=["old.example.com"])
    for name, annotations in FORGED.items():
        widgets.create(name, annotations=annotations)
        handler.wait_finished(name=name)
    for name, annotations in FORGED.items():
        annotate(widgets, name, **annotations)
        widgets.delete(name)
    for name in FORGED:
        is_gone(widgets, name)
