# SPDX-License-Identifier: Apache-2.0
"""A handler that asks the API server with a token of its own service account, and may do what that account may."""
import sys
import types

import yaml

from harness import wait_until, watch

from test_rbac import apply, derive

HANDLER = """
import json, os, ssl, sys, urllib.error, urllib.request
import yaml

with open(os.environ["KUBECONFIG"]) as file:
    config = yaml.safe_load(file)
cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
with open(user["tokenFile"]) as file:
    token = file.read()
trust = ssl.create_default_context()
if "certificate-authority-data" in cluster:
    import base64
    trust = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
trust.check_hostname = False

def ask(path):
    request = urllib.request.Request(cluster["server"] + path, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, context=trust) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code

namespace = json.load(sys.stdin)["object"]["metadata"]["namespace"]
base = f"/api/v1/namespaces/{namespace}"
print(json.dumps({"status": {"allowed": ask(f"{base}/configmaps"), "refused": ask(f"{base}/secrets")}}))
"""


def test_a_handler_may_do_what_its_account_may(cluster, operator, widgets, namespace, sandbox):
    script = sandbox.subfolder("program") / "handler.py"
    script.write_text(HANDLER, encoding="utf-8")
    script.chmod(0o755)
    entry = watch("widgets", [sys.executable, str(script)], namespaces=[namespace],
                  handler_options={"kubernetes": {"serviceAccount": "helper", "namespace": namespace}})
    operator.configure(cluster, [entry], operator="helped.example.com")
    manifests = derive(operator, "--service-account", "helped")
    role = next(manifest for manifest in manifests if manifest["kind"] == "Role" and not manifest["rules"])
    role["rules"] = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}]
    apply(cluster, manifests)
    token = cluster.api.request("POST", "/api/v1/namespaces/default/serviceaccounts/helped/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    operator.configure(types.SimpleNamespace(kubeconfig=kubeconfig), [entry], operator="helped.example.com")
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"allowed": 200, "refused": 403},
               lambda: f"what the handler was answered; the operator's output:\n{operator.output.text()}")
    assert operator.ctl.status()["watches"][0]["accessExpires"] > 0


def test_an_operator_without_the_right_says_whose_it_lacks(cluster, operator, handler, namespace, widgets, sandbox):
    entry = watch("widgets", handler, namespaces=[namespace],
                  handler_options={"kubernetes": {"serviceAccount": "helper", "namespace": namespace}})
    operator.configure(cluster, [entry], operator="helpless.example.com")
    manifests = [manifest for manifest in derive(operator, "--service-account", "helpless")
                 if ":token:" not in manifest["metadata"]["name"]]
    apply(cluster, manifests)
    token = cluster.api.request("POST", "/api/v1/namespaces/default/serviceaccounts/helpless/token",
                                {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = sandbox.subfolder("account") / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    operator.configure(types.SimpleNamespace(kubeconfig=kubeconfig), [entry], operator="helpless.example.com")
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    told = operator.wait_for_log(f"cannot get a token for service account {namespace}/helper")
    assert "system:serviceaccount:default:helpless" in told["message"] and "serviceaccounts/token" in told["message"]
    assert not handler.requests()
    grant = [manifest for manifest in yaml.safe_load_all(operator.ctl.run("rbac", "--config", str(operator.config_file),
                                                                          "--service-account", "helpless").stdout)
             if ":token:" in manifest["metadata"]["name"]]
    apply(cluster, grant)
    handler.wait_finished(name="a", deadline=90)
