# SPDX-License-Identifier: Apache-2.0
"""kubectl accepts the server: the commands that a user types in the first hour."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest
import yaml

from harness import wait_until
from harness.wait import scaled

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 1}}


@pytest.fixture
def kubectl(server, namespace):
    """kubectl("get", "widgets", input=object): its stdout; must succeed unless fails=True, which gives stderr."""
    program = shutil.which("kubectl")
    assert program, "kubectl is not there"
    # Its cache of discovery must be this server's own.
    with tempfile.TemporaryDirectory() as home:
        def run(*arguments, body=None, fails=False):
            command = [program, "--kubeconfig", str(server.kubeconfig), "--namespace", namespace, *arguments]
            text = None
            if body is not None:
                command += ["-f", "-"]
                text = body if isinstance(body, str) else yaml.safe_dump(body)
            result = subprocess.run(command, input=text, capture_output=True, text=True, timeout=scaled(60), check=False,
                                    env={"HOME": home, "PATH": os.environ["PATH"]})
            assert (result.returncode != 0) == fails, f"{arguments}: {result.returncode}: {result.stdout}{result.stderr}"
            return result.stderr if fails else result.stdout

        run.program, run.home, run.namespace = program, home, namespace
        yield run


def test_create_get_delete(kubectl):
    assert "widget.example.com/w created" in kubectl("create", body=WIDGET)
    assert "w " in kubectl("get", "widgets")
    assert json.loads(kubectl("get", "wd", "w", "-o", "json"))["spec"] == {"size": 1}
    assert "AlreadyExists" in kubectl("create", body=WIDGET, fails=True)
    assert 'widget.example.com "w" deleted' in kubectl("delete", "widget", "w")
    assert "NotFound" in kubectl("get", "widget", "w", fails=True)


def test_apply_server_side(kubectl):
    assert "serverside-applied" in kubectl("apply", "--server-side", body=WIDGET)
    changed = {**WIDGET, "spec": {"size": 2}}
    assert "serverside-applied" in kubectl("apply", "--server-side", body=changed)
    assert "conflict" in kubectl("apply", "--server-side", "--field-manager=other", body=WIDGET, fails=True)
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", body=WIDGET)
    assert kubectl("get", "widget", "w", "-o", "jsonpath={.spec.size}") == "1"


def test_apply_client_side(kubectl):
    assert "created" in kubectl("apply", body=WIDGET)
    assert "unchanged" in kubectl("apply", body=WIDGET)
    assert "configured" in kubectl("apply", body={**WIDGET, "spec": {"size": 2}})


def test_patch_label_annotate(kubectl):
    kubectl("create", body=WIDGET)
    kubectl("patch", "widget", "w", "--type=merge", "-p", '{"spec":{"size":3}}')
    kubectl("patch", "widget", "w", "--type=json", "-p", '[{"op":"add","path":"/spec/more","value":true}]')
    kubectl("label", "widget", "w", "tier=gold")
    kubectl("annotate", "widget", "w", "note=hello")
    found = json.loads(kubectl("get", "widgets", "-l", "tier=gold", "-o", "json"))["items"][0]
    assert found["spec"] == {"size": 3, "more": True}
    assert found["metadata"]["annotations"]["note"] == "hello"


def test_replace(kubectl):
    kubectl("create", body=WIDGET)
    found = json.loads(kubectl("get", "widget", "w", "-o", "json"))
    found["spec"]["size"] = 9
    assert "replaced" in kubectl("replace", body=found)


def test_watch(kubectl, server):
    command = [kubectl.program, "--kubeconfig", str(server.kubeconfig), "--namespace", kubectl.namespace, "get", "widgets",
               "--watch", "-o", "name"]
    with open(os.path.join(kubectl.home, "seen"), "w+", encoding="utf-8") as seen:
        watch = subprocess.Popen(command, stdout=seen, stderr=seen, env={"HOME": kubectl.home, "PATH": os.environ["PATH"]})
        try:
            def content():
                with open(seen.name, encoding="utf-8") as again:
                    return again.read()

            kubectl("create", body=WIDGET)
            wait_until(lambda: "widget.example.com/w" in content(), lambda: f"the event; seen: {content()}")
        finally:
            watch.kill()
            watch.wait()


def test_core_kinds(kubectl):
    kubectl("create", "configmap", "c", "--from-literal=key=value")
    assert kubectl("get", "configmap", "c", "-o", "jsonpath={.data.key}") == "value"
    kubectl("create", "secret", "generic", "s", "--from-literal=password=hello")
    assert kubectl("get", "secret", "s", "-o", "jsonpath={.data.password}") == "aGVsbG8="
    kubectl("create", "serviceaccount", "robot")
    assert "robot" in kubectl("get", "serviceaccounts", "-o", "name")
    assert "default" in kubectl("get", "namespaces", "-o", "name")


def test_api_resources(kubectl):
    found = kubectl("api-resources")
    assert "widgets" in found and "configmaps" in found and "deployments" in found


def test_wait_for_a_definition(kubectl):
    kubectl("wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=30s")


def test_delete_by_selector(kubectl):
    for name in ("a", "b"):
        kubectl("create", body={**WIDGET, "metadata": {"name": name, "labels": {"gone": "yes"}}})
    kubectl("create", body=WIDGET)
    kubectl("delete", "widgets", "-l", "gone=yes")
    assert kubectl("get", "widgets", "-o", "name").split() == ["widget.example.com/w"]


def test_finalizers_hold_kubectl_delete(kubectl):
    kubectl("create", body={**WIDGET, "metadata": {"name": "w", "finalizers": ["example.com/hold"]}})
    kubectl("delete", "widget", "w", "--wait=false")
    assert kubectl("get", "widget", "w", "-o", "jsonpath={.metadata.deletionTimestamp}")
    kubectl("patch", "widget", "w", "--type=merge", "-p", '{"metadata":{"finalizers":null}}')
    assert "NotFound" in kubectl("get", "widget", "w", fails=True)


def event(kubectl, **regarding):
    return {"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": regarding["name"] + ".1"},
            "eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "widgets.example.com",
            "reportingInstance": "node", "action": "Reconcile", "reason": "HandlerFailed", "type": "Warning",
            "note": "the disk is full",
            "regarding": {"apiVersion": "example.com/v1", "kind": "Widget", "namespace": kubectl.namespace, **regarding}}


def test_events_of_the_newer_group_are_shown(kubectl):
    """Written through events.k8s.io, as reconciled does it, and read through the core, as kubectl does it."""
    kubectl("create", body=WIDGET)
    uid = kubectl("get", "widget", "w", "-o", "jsonpath={.metadata.uid}")
    kubectl("create", body=event(kubectl, name="w", uid=uid))
    kubectl("create", body=event(kubectl, name="other", uid="another"))
    for command in (("get", "events"), ("get", "events.v1.events.k8s.io")):
        lines = kubectl(*command).splitlines()
        assert lines[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
        seen, kind, reason, about, message = next(line for line in lines if "widget/w" in line).split(maxsplit=4)
        assert seen != "<unknown>" and (kind, reason, about, message) == (
            "Warning", "HandlerFailed", "widget/w", "the disk is full")
    assert "widget/other" not in kubectl("get", "events", "--field-selector", f"involvedObject.uid={uid}")
    assert kubectl("get", "event", "w.1", "-o", "jsonpath={.message}") == "the disk is full"
    described = kubectl("describe", "widget", "w")
    assert "HandlerFailed" in described and "the disk is full" in described and "widgets.example.com" in described
    assert described.count("HandlerFailed") == 1, "Events of others are not among them"
    listed = kubectl("events", "--for", "widget/w")
    assert "HandlerFailed" in listed and "the disk is full" in listed
