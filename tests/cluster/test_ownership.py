# SPDX-License-Identifier: Apache-2.0
"""Whose a child is, on a real API server: its creation, preconditions and managed fields decide."""
import base64
import http.server
import json
import signal
import ssl
import threading

import pytest

from harness import restored, wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import allowing

MADE, ADOPTED, PART_OF = "widgets.example.com/made", "widgets.example.com/adopted", "applyset.k8s.io/part-of"


def config_map(name, data=None, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": data or {"a": "1"}}


@pytest.fixture
def start(cluster, operator, handler, namespace):
    def start(**more):
        operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace], finalizer=True,
                                           retry={"first": "100ms", "max": "500ms"}, **more)])
        return operator.start_ready().wait_synced()

    return start


@pytest.fixture
def config_maps(cluster, namespace):
    return cluster.api.resource("v1", "configmaps", namespace)


def status_is(widgets, status, name="w"):
    wait_until(lambda: widgets.get(name).get("status") == status, lambda: f"the status {status}: {widgets.get(name)}", 60)


@pytest.mark.parametrize("owns", [[], [{"apiVersion": "v1", "kind": "ConfigMap"}]], ids=["unwatched", "owned"])
def test_from_foreign_to_adopted_to_released(start, operator, handler, widgets, config_maps, namespace, owns):
    theirs = config_maps.create(body=config_map("a", {"theirs": "1"}), query={"fieldManager": "a-human"})
    child = config_map("a", {"ours": "1"})
    handler.answer({"children": [child, config_map("b")], "status": {"n": 1}})
    start(owns=owns)
    widgets.create("w")
    said = operator.wait_for_log("1 of its children", key=f"{namespace}/w")["message"]
    assert "it was written by a-human" in said and config_maps.get("a") == theirs
    handler.answer({"children": [{"manifest": child, "adopt": True}, config_map("b")], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"n": 2})
    found = config_maps.get("a")
    assert found["data"] == {"theirs": "1", "ours": "1"} and ADOPTED in found["metadata"]["annotations"]
    operator.wait_for_log(message_id=MESSAGE_ID["CHILD_ADOPTED"])
    assert "ownerReferences" not in found["metadata"]
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w"), "its end", 60)
    found = config_maps.get("a")
    assert found["data"] == {"theirs": "1", "ours": "1"} and not config_maps.exists("b")
    assert not {"annotations", "labels", "ownerReferences"} & set(found["metadata"])
    operator.stop()


def test_of_two_owners_that_name_one_child_one_has_it(start, operator, handler, widgets, config_maps, namespace):
    handler.answer({"children": [config_map("a")], "status": {"made": True}})
    start(children={"force": True})
    for name in ("w", "v"):
        widgets.create(name)
    wait_until(lambda: any("made" in widget.get("status", {}) for widget in widgets.list()["items"]), "one of them to succeed", 60)
    first, second = sorted(("w", "v"), key=lambda name: "made" not in widgets.get(name).get("status", {}))
    said = operator.wait_for_log("1 of its children", key=f"{namespace}/{second}")["message"]
    assert f"it is a child of Widget.example.com {namespace}/{first}" in said
    widgets.delete(second)
    wait_until(lambda: not widgets.exists(second), "its end", 60)
    [owner] = config_maps.get("a")["metadata"]["ownerReferences"]
    assert owner["name"] == first
    operator.stop()


def test_fields_that_are_left_out_go(start, operator, handler, widgets, config_maps):
    """Nothing of a creation stays behind as a field that no apply of ours removes."""
    handler.answer({"children": [config_map("a", {"kept": "1", "dropped": "1"})], "status": {"n": 1}})
    start(owns=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    widgets.create("w")
    status_is(widgets, {"n": 1})
    handler.answer({"children": [config_map("a", {"kept": "1"})], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"n": 2})
    assert config_maps.get("a")["data"] == {"kept": "1"}
    operator.stop()


def test_orphaned_children_stay_in_other_namespaces_too(start, operator, handler, widgets, cluster, config_maps, namespace):
    """No garbage collector runs here: the finalizer `orphan` stays until the test takes it off, as that would."""
    cluster.api.resource("v1", "namespaces").create(f"{namespace}-o")
    elsewhere = cluster.api.resource("v1", "configmaps", f"{namespace}-o")
    handler.answer({"children": [config_map("a"), config_map("a", namespace=f"{namespace}-o")], "status": {"n": 1}})
    start()
    widgets.create("w")
    status_is(widgets, {"n": 1})
    handler.behave(f'[ "$RECONCILED_ACTION" != finalize ] || {{ {handler.held}\n}}')
    widgets.delete("w", {"propagationPolicy": "Orphan"})
    handler.wait_for(name="w", action="finalize")
    found = widgets.get("w")["metadata"]
    assert found["annotations"]["widgets.example.com/orphaned"] == found["uid"] and "orphan" in found["finalizers"]
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    config_maps.merge_patch("a", {"metadata": {"ownerReferences": None}})
    widgets.merge_patch("w", {"metadata": {"finalizers": [name for name in found["finalizers"] if name != "orphan"]}})
    handler.let_go()
    handler.behave("exit 0")
    operator.start_ready()
    wait_until(lambda: not widgets.exists("w"), "its end", 60)
    for released in (config_maps.get("a"), elsewhere.get("a")):
        assert released["data"] == {"a": "1"} and not {"annotations", "labels", "ownerReferences"} & set(released["metadata"])
    operator.stop()


def test_one_object_that_two_groups_serve(start, operator, handler, widgets, cluster, namespace):
    """A handler that follows an API from one group to the next must not lose its child."""
    old, new = "extensions/v1beta1", "networking.k8s.io/v1"
    if cluster.api.raw("GET", f"/apis/{old}/namespaces/{namespace}/ingresses").code == 404:
        old, new = "v1", "events.k8s.io/v1"
    plural = "ingresses" if "extensions" in old else "events"

    def child(version):
        meta = {"apiVersion": version, "metadata": {"name": "a", "namespace": namespace}}
        if plural == "ingresses":
            backend = {"serviceName": "s", "servicePort": 80} if version == old else {"service": {"name": "s", "port": {"number": 80}}}
            return {**meta, "kind": "Ingress", "spec": {"backend" if version == old else "defaultBackend": backend}}
        about = {"kind": "Widget", "namespace": namespace, "name": "w", "apiVersion": "example.com/v1"}
        return {**meta, "kind": "Event", "reason": "R", "type": "Normal", "reportingComponent": "x", "reportingInstance": "y",
                "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z", "involvedObject": about} if version == old else \
            {**meta, "kind": "Event", "reason": "R", "type": "Normal", "reportingController": "x", "reportingInstance": "y",
             "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z", "regarding": about}

    handler.answer({"children": [child(old)], "status": {"n": 1}})
    start(children=allowing(*(f"{version} {child(version)['kind']}" for version in (old, new))))
    widgets.create("w")
    status_is(widgets, {"n": 1})
    served = cluster.api.resource(new, plural, namespace)
    uid = served.get("a")["metadata"]["uid"]
    handler.answer({"children": [child(new)], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"n": 2})
    wait_until(lambda: widgets.get("w")["metadata"]["annotations"]["widgets.example.com/children"] ==
               f"{new}/{child(new)['kind']}/{namespace}/a", "the list to name the new address alone", 60)
    assert served.get("a")["metadata"]["uid"] == uid
    operator.stop()


@pytest.fixture
def webhook(cluster, namespace):
    """Takes all annotations off ConfigMaps; a test may look at `asked`."""
    class Webhook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            patch = [{"op": "remove", "path": "/metadata/annotations"}] if "annotations" in review["request"]["object"]["metadata"] else []
            response = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch",
                        "patch": base64.b64encode(json.dumps(patch).encode()).decode()}
            body = json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Webhook)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cluster.folder / "server.crt", cluster.folder / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    configurations = cluster.api.resource("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations")
    configurations.create(body={
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration", "metadata": {"name": namespace},
        "webhooks": [{
            "name": "strips.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
            "clientConfig": {"url": f"https://127.0.0.1:{server.server_port}/",
                             "caBundle": base64.b64encode((cluster.folder / "ca.crt").read_bytes()).decode()},
            "namespaceSelector": {"matchLabels": {"strips": "yes"}},
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE", "UPDATE"]}]}]})
    cluster.api.resource("v1", "namespaces").merge_patch(namespace, {"metadata": {"labels": {"strips": "yes"}}})
    yield server
    configurations.delete(namespace)
    server.shutdown()
    thread.join()
    server.server_close()


def strips(config_maps):
    config_maps.create("probe", annotations={"a": "b"})
    found = "annotations" not in config_maps.get("probe")["metadata"]
    config_maps.delete("probe")
    return found


@pytest.mark.usefixtures("webhook")
def test_a_webhook_that_takes_the_mark_off_is_told(start, operator, handler, widgets, config_maps, namespace):
    wait_until(lambda: strips(config_maps), "the webhook to be called", 60)
    handler.answer({"children": [config_map("a")], "status": {"n": 1}})
    start()
    widgets.create("w")
    said = operator.wait_for_log("1 of its children", key=f"{namespace}/w")["message"]
    assert "ConfigMap" in said and "cannot be kept: a webhook of the API server has taken off its mark" in said
    assert "status" not in widgets.get("w")
    operator.stop()


def test_an_operator_with_a_new_name(cluster, operator, handler, widgets, config_maps, namespace):
    """Its former name is another field manager, for the server; the server moves the fields."""
    old, new = "widgets.example.com", "gadgets.example.com"

    def start(name, n, data, **more):
        patch = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "patched"}, "data": data}
        handler.answer({"children": [config_map("a", data)], "patches": [patch], "status": {"n": n}})
        entry = watch("widgets", handler, namespaces=[namespace], finalizer=True, onStart="all", retry={"first": "100ms", "max": "500ms"},
                      patches=[{"apiVersion": "v1", "kind": "ConfigMap"}])
        operator.configure(cluster, [entry], operator=name, **more)
        operator.start_ready().wait_synced()
        if n == 1:
            widgets.create("w")
        status_is(widgets, {"n": n})
        operator.stop()

    config_maps.create("patched", data={"theirs": "1"})
    start(old, 1, {"changed": "1", "dropped": "1"})
    start(new, 2, {"changed": "2"}, formerNames=[old])
    found = [config_maps.get("a"), config_maps.get("patched"), widgets.get("w")]
    assert [object_.get("data") for object_ in found] == [{"changed": "2"}, {"theirs": "1", "changed": "2"}, None]
    for object_ in found:
        metadata = {key: value for key, value in object_["metadata"].items() if key != "managedFields"}
        assert old not in json.dumps(metadata), metadata
        assert old not in str([entry["manager"] for entry in object_["metadata"].get("managedFields", []) if entry["operation"] == "Apply"])
    widgets.delete("w")
    operator.start_ready()
    wait_until(lambda: not widgets.exists("w"), "its end", 60)
    assert not config_maps.exists("a") and config_maps.get("patched")["data"] == {"theirs": "1"}
    operator.stop()


@pytest.mark.parametrize("owns", [[], [{"apiVersion": "v1", "kind": "Service"}]], ids=["unwatched", "owned"])
def test_a_service_is_created_and_loses_what_is_left_out(start, operator, handler, widgets, cluster, namespace, owns):
    """Old servers refuse to create one by an apply of a version: then it is created by a POST."""
    services = cluster.api.resource("v1", "services", namespace)

    def service(**labels):
        return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": labels},
                "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"name": "p", "port": 80, "protocol": "TCP"}]}}

    handler.answer({"children": [service(kept="1", left="1")], "status": {"n": 1}})
    start(owns=owns)
    widgets.create("w")
    status_is(widgets, {"n": 1})
    managers = services.get("s")["metadata"]["managedFields"]
    assert [(entry["manager"], entry["operation"]) for entry in managers] == [("widgets.example.com", "Apply")]
    handler.answer({"children": [service(kept="1")], "status": {"n": 2}})
    widgets.merge_patch("w", {"spec": {"n": 2}})
    status_is(widgets, {"n": 2})
    found = services.get("s")["metadata"]["labels"]
    assert found["kept"] == "1" and "left" not in found
    widgets.delete("w")
    wait_until(lambda: not widgets.exists("w") and not services.exists("s"), "their end", 60)
    operator.stop()
    assert len(operator.logs(message_id=MESSAGE_ID["CHILD_CREATED"])) == 1
    assert not operator.logs(message_id=MESSAGE_ID["CHILD_UNSURE"])


def test_what_was_restored_is_ours_again(start, operator, handler, widgets, config_maps):
    restored.goes_on_after_a_restore(start, operator, handler, widgets, config_maps)
