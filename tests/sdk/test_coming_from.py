# SPDX-License-Identifier: Apache-2.0
"""docs/from-*.md: the operator that each page ports is what its reader gets, and does what the original did. The originals are
only parsed: their frameworks are not at hand."""
import ast
import http.server
import json
import os
import re
import shutil
import subprocess
import threading

import pytest
import yaml

from harness import wait_until
from harness.session import Document
from harness.setup import SOURCE

import kits

KOPF = Document("docs/from-kopf.md")
SHELL_OPERATOR = Document("docs/from-shell-operator.md")
CONTROLLER_RUNTIME = Document("docs/from-controller-runtime.md")


def definition(kind):
    plural = kind.lower() + "s"
    open_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
               "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": open_object, "status": open_object}}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": plural + ".example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced", "versions": [version],
                     "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": kind + "List"}}}


@pytest.fixture
def devserver(make_devserver):
    return make_devserver(load=[definition("Site"), definition("Cache")])


@pytest.fixture
def ported(operator, devserver):
    """ported(document, replace=(), **variables): the operator of the section The port runs; its objects are returned."""
    def give(path):
        for each in [path, *path.rglob("*")] if path.is_dir() else [path]:
            operator.user.give(each, 0o700)

    def ported(document, replace=(), copies=(), **variables):
        files = document.files_of(document.section("The port"))
        for name, text in files.items():
            for old, new in replace:
                text = text.replace(old, new)
            (operator.folder / name).write_text(text, encoding="utf-8")
            give(operator.folder / name)
        for source in copies:
            target = operator.folder / source.name
            (shutil.copytree if source.is_dir() else shutil.copy)(source, target)
            give(target)
        operator.environment.update(KUBECONFIG=str(operator.kubeconfig_for(devserver)), **variables)
        operator.start_ready().wait_synced()
        return next(list(yaml.safe_load_all(text)) for name, text in files.items() if name.startswith("object"))

    return ported


class Service(http.server.BaseHTTPRequestHandler):
    """Keeps records by host; refuses one with a capital letter. `failures` are its next answers."""
    content, failures = {}, []

    def answer(self, code, text=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        found = self.content.get(self.path[1:])
        self.answer(200 if found else 404, found or b"")

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.failures:
            return self.answer(self.failures.pop())
        if not self.path.islower():
            return self.answer(422)
        self.content[self.path[1:]] = body
        return self.answer(200)

    def do_DELETE(self):
        self.answer(200 if self.content.pop(self.path[1:], None) else 404)

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    Service.content, Service.failures = {}, []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def status_of(resource, name):
    return resource.get(name).get("status", {})


@pytest.mark.slow
def test_the_port_from_kopf(ported, api, operator, service):
    [manifest] = ported(KOPF, [('"30s"', '"200ms"'), ('"1m"', '"500ms"')], [SOURCE / "sdk/python/reconciled"], RECORDS=service)
    sites, deployments = api.resource("example.com/v1", "sites", "default"), api.resource("apps/v1", "deployments", "default")
    Service.failures.append(503)
    sites.create(body=manifest)
    sites.create("other", spec=manifest["spec"])
    operator.wait_for_log("the service answers 503")
    wait_until(lambda: Service.content == {"shop.example.com": b'{"target": "shop"}'}, "the record, at the second attempt")
    wait_until(lambda: status_of(sites, "shop") == {"host": "shop.example.com", "available": 0}, "the status")
    assert deployments.names() == ["shop"] and not status_of(sites, "other"), "one without the label is left alone"
    deployments.merge_patch("shop", {"status": {"availableReplicas": 2}}, subresource="status")
    wait_until(lambda: status_of(sites, "shop")["available"] == 2, "the pods")
    del Service.content["shop.example.com"]
    wait_until(lambda: "shop.example.com" in Service.content, "the record that somebody has deleted")
    sites.merge_patch("shop", {"spec": {"host": "new.example.com"}})
    wait_until(lambda: list(Service.content) == ["new.example.com"], "the record to move")
    sites.merge_patch("shop", {"spec": {"host": "Wrong"}})
    operator.wait_for_log("the service refuses Wrong", level="error")
    sites.delete("shop")
    wait_until(lambda: not sites.exists("shop") and not deployments.names(), "the end")
    assert not Service.content, "neither the record of the status nor that of the spec is left"


@pytest.mark.slow
def test_the_port_from_shell_operator(ported, api, operator, service):
    missing = [program for program in ("jq", "curl") if not shutil.which(program)]
    if missing:
        pytest.skip(f"the handlers need {missing}")
    Service.content["bundle"] = b"first"
    namespaces = api.resource("v1", "namespaces")
    own, copies = (api.resource("v1", "configmaps", name) for name in ("certificates", "team-a"))
    for manifest in yaml.safe_load_all(SHELL_OPERATOR.named["objects.yaml"]):
        namespaces.create(body=manifest)
    ported(SHELL_OPERATOR, BUNDLE_URL=service + "/bundle")

    def copied(value):
        return lambda: copies.exists("ca-bundle") and copies.get("ca-bundle")["data"] == {"ca.crt": value}

    wait_until(copied("first"), lambda: f"the copy; {operator.output.text()}")
    [waiting] = json.loads(operator.ctl.run("get", "waiting", "nightly", "--json").stdout)["objects"]
    assert waiting["nextReason"] == "scheduled" and waiting["next"] // 1_000_000 % 86400 in range(10799, 10801), "03:00 UTC"
    copies.merge_patch("ca-bundle", {"data": {"ca.crt": "forged"}})
    wait_until(copied("first"), "what was changed")
    copies.delete("ca-bundle")
    wait_until(copied("first"), "what was deleted")
    Service.content["bundle"] = b"second"
    operator.stop()
    operator.start_ready()
    wait_until(copied("second"), "the bundle that the start has fetched")
    Service.content["bundle"] = b"third"
    assert operator.ctl.run("retry", "nightly", "certificates/bundles.example.com-nightly").returncode == 0
    wait_until(copied("third"), "the bundle of the night")
    namespaces.merge_patch("team-a", {"metadata": {"labels": {"example.com/ca-bundle": None}}})
    wait_until(lambda: not copies.exists("ca-bundle"), "the end of the copy")
    assert [own.get("bundles.example.com-" + name)["data"]["ca.crt"] for name in ("startup", "nightly")] == ["second", "third"]


@pytest.mark.parametrize("kit", [kits.parameter("go")], indirect=True)
@pytest.mark.slow
def test_the_port_from_controller_runtime(kit, ported, api, operator, tmp_path):
    section = CONTROLLER_RUNTIME.section("The port")
    (tmp_path / "main.go").write_text(CONTROLLER_RUNTIME.named["main.go"], encoding="utf-8")
    [build] = [example.text for example in section if example.language == "sh"]
    kits.run(["sh", "-ec", build], cwd=tmp_path, env={**kits.ENVIRONMENT, **kit.tools, "SDK": str(kit.folder / "sdk")})
    index = operator.folder / "index"
    index.mkdir()
    operator.user.give(index, 0o700)
    settings, manifest = ported(CONTROLLER_RUNTIME, copies=[tmp_path / "handler"], INDEX=str(index))
    caches, deployments = api.resource("example.com/v1", "caches", "default"), api.resource("apps/v1", "deployments", "default")
    config_maps = api.resource("v1", "configmaps", "default")
    caches.create(body=manifest)
    operator.wait_for_log("there is no ConfigMap fast")
    config_maps.create(body=settings)

    def arguments():
        return deployments.exists("orders") and deployments.get("orders")["spec"]["template"]["spec"]["containers"][0]["args"]

    def available():
        return next((each["status"] for each in status_of(caches, "orders").get("conditions", []) if each["type"] == "Available"), None)

    wait_until(lambda: arguments() == ["--memory=1Gi"] and available() == "False", lambda: f"the Deployment; {operator.output.text()}")
    assert [path.read_text(encoding="utf-8") for path in index.iterdir()] == ["orders"]
    assert caches.get("orders")["metadata"]["finalizers"] == ["caches.example.com/finalizer"]
    deployments.merge_patch("orders", {"status": {"availableReplicas": 2}}, subresource="status")
    wait_until(lambda: available() == "True" and status_of(caches, "orders")["pods"] == 2, "the condition")
    config_maps.merge_patch("fast", {"data": {"memory": "2Gi"}})
    wait_until(lambda: arguments() == ["--memory=2Gi"], "the other settings")
    caches.merge_patch("orders", {"spec": {"size": 11}})
    operator.wait_for_log("a cache has at most 10 pods, not 11", level="error")
    assert deployments.get("orders")["spec"]["replicas"] == 2
    caches.delete("orders")
    wait_until(lambda: not caches.exists("orders") and not deployments.names() and not list(index.iterdir()), "the end")


# --- the originals, and the tables


def test_the_original_of_kopf_is_python():
    tree = ast.parse(KOPF.named["operator.py"])
    assert {node.name for node in tree.body if isinstance(node, ast.FunctionDef)} >= {"publish", "move", "check", "count", "withdraw"}


@pytest.mark.parametrize("name", ["fetch.sh", "copy.sh"])
def test_the_originals_of_shell_operator_are_hooks(name, tmp_path):
    """The first of that name is the hook; the other one is its port."""
    hook = next(example.text for example in SHELL_OPERATOR.section("The original") if f"`hooks/{name}`" in example.above)
    path = tmp_path / name
    path.write_text(hook, encoding="utf-8")
    configuration = yaml.safe_load(kits.run(["bash", path, "--config"]))
    assert configuration.pop("configVersion") == "v1" and set(configuration) <= {"onStartup", "schedule", "kubernetes"}


@pytest.mark.parametrize("kit", [kits.parameter("go")], indirect=True)
def test_the_original_of_controller_runtime_is_go(kit):
    text = CONTROLLER_RUNTIME.named["cache_controller.go"]
    done = subprocess.run([os.path.join(os.path.dirname(kits.GO), "gofmt")], input=text, capture_output=True, text=True, check=True)
    assert done.stdout == text


@pytest.mark.parametrize("document", ["from-kopf", "from-shell-operator", "from-controller-runtime"])
def test_the_tables_name_keys_and_verbs_that_there_are(document):
    """In the column of what is here: a key of the configuration or of an answer, an action, a verb, a file, or a word of a kit."""
    table = [re.split(r"(?<!\\) \| ", line.strip("| ")) for line in (SOURCE / f"docs/{document}.md").read_text(encoding="utf-8").splitlines()
             if line.startswith("| ")][1:]
    assert len(table) > 30 and all(len(row) >= 2 for row in table), table
    manual = "".join((SOURCE / "man" / name).read_text(encoding="utf-8") for name in os.listdir(SOURCE / "man"))
    kit = (SOURCE / "docs/kits.md").read_text(encoding="utf-8") + (SOURCE / "docs/container.md").read_text(encoding="utf-8")
    for row in table:
        for word in re.findall(r"`([a-zA-Z.]+)[:`]", row[1]):
            last = word.rpartition(".")[2]
            assert last in manual or last in kit, f"{document}: {word} is nowhere explained"
