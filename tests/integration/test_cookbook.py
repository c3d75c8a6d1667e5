# SPDX-License-Identifier: Apache-2.0
"""docs/cookbook.md: each pattern as it stands there, beside its configuration, with the others of the world played by the test."""
import base64
import http.server
import json
import shutil
import threading

import pytest
import yaml

from harness import wait_until
from harness.operator import MESSAGE_ID
from harness.session import Document

COOKBOOK = Document("docs/cookbook.md")
PATTERNS = ("Wait for a Job", "An external resource", "A generator of Secrets", "A password, once", "Defaults for namespaces",
            "Labels on nodes", "Who changed what", "Blue and green")


@pytest.fixture
def devserver(make_devserver):
    return make_devserver(load=list(yaml.safe_load_all(COOKBOOK.named["crds.yaml"])))


@pytest.fixture
def cook(operator, devserver):
    """cook(heading, **variables): the operator of that section runs; returns its object."""
    def cook(heading, **variables):
        files = COOKBOOK.files_of(COOKBOOK.section(heading))
        assert len(files) == 3, files.keys()
        for name, text in files.items():
            path = operator.folder / name
            path.write_text(text, encoding="utf-8")
            operator.user.give(path, 0o700 if name.startswith("handler") else 0o600)
        operator.environment.update(KUBECONFIG=str(operator.kubeconfig_for(devserver)), **variables)
        tried = operator.ctl.run("run", "--config", str(operator.config_file), "--object", str(operator.folder / "object.yaml"),
                                 environment=variables)
        assert "result: success" in tried.stdout or variables, tried.stdout + tried.stderr
        operator.start_ready().wait_synced()
        return yaml.safe_load(files["object.yaml"])

    return cook


def create(api, manifest, plural, namespace="default"):
    resource = api.resource(manifest["apiVersion"], plural, namespace)
    resource.create(body=manifest)
    return resource


def need(program):
    if not shutil.which(program):
        pytest.skip(f"the pattern needs {program}")


def image_of(deployment):
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"]


def status_of(resource, name):
    return resource.get(name).get("status", {})


def test_no_pattern_is_left_out():
    headings = {example.heading for example in COOKBOOK.examples}
    assert headings == {*PATTERNS, "Cookbook", "The kinds"}


@pytest.mark.slow
def test_wait_for_a_job(cook, api):
    apps = create(api, cook("Wait for a Job"), "apps")
    jobs, deployments = api.resource("batch/v1", "jobs", "default"), api.resource("apps/v1", "deployments", "default")

    def end(job, condition):
        jobs.merge_patch(job, {"status": {"conditions": [{"type": condition, "status": "True"}]}}, subresource="status")

    def migrated():
        return next((entry["status"], entry["reason"]) for entry in status_of(apps, "shop")["conditions"] if entry["type"] == "Migrated")

    def only_job():
        names = jobs.names()
        return names[0] if len(names) == 1 else None

    first = wait_until(only_job, "the first Job")
    assert not deployments.exists("shop"), "the Deployment waits"
    wait_until(lambda: migrated() == ("Unknown", "JobRuns"), "the condition")
    end(first, "Complete")
    wait_until(lambda: status_of(apps, "shop").get("image") == "registry.example.com/shop:1", "the first image")
    assert image_of(deployments.get("shop")) == "registry.example.com/shop:1"
    apps.merge_patch("shop", {"spec": {"image": "registry.example.com/shop:2"}})
    second = wait_until(lambda: only_job() not in (None, first) and only_job(), "the second Job in the place of the first")
    assert image_of(deployments.get("shop")) == "registry.example.com/shop:1", "the old image serves while the Job runs"
    end(second, "Failed")
    wait_until(lambda: migrated() == ("False", "JobFailed"), "the failure")
    assert image_of(deployments.get("shop")) == "registry.example.com/shop:1"
    jobs.delete(second)
    wait_until(lambda: jobs.exists(second) and not jobs.get(second).get("status"), "the Job once more")
    end(second, "Complete")
    wait_until(lambda: status_of(apps, "shop").get("image") == "registry.example.com/shop:2", "the second image")
    assert image_of(deployments.get("shop")) == "registry.example.com/shop:2" and jobs.names() == [second]


def test_a_password_once(cook, api, devserver):
    apps = create(api, cook("A password, once"), "apps")
    secrets, config_maps = api.resource("v1", "secrets", "default"), api.resource("v1", "configmaps", "default")
    wait_until(lambda: config_maps.exists("shop"), "the children")
    first = secrets.get("shop-password")["data"]
    assert base64.b64decode(first["password"])
    for verb in ("watch", "list"):
        devserver.fault({"verb": verb, "resource": "secrets"}, status=500, times=0)
    devserver.close_watches("cut")
    for number in (2, 3):
        apps.merge_patch("shop", {"spec": {"image": f"registry.example.com/shop:{number}"}})
        wait_until(lambda: config_maps.get("shop")["data"]["image"].endswith(f":{number}"), "the ConfigMap to follow")
    assert secrets.get("shop-password")["data"] == first
    devserver.clear_faults()
    secrets.delete("shop-password")
    wait_until(lambda: secrets.exists("shop-password"), "a new password")
    assert secrets.get("shop-password")["data"] != first


class Service(http.server.BaseHTTPRequestHandler):
    """Makes databases; a deletion takes two requests. A size of 1000 is refused, one of 500 fails."""
    databases, deleting, wrong, failures = {}, set(), [], [503]

    def answer(self, code):
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def body(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or "null")
        if self.headers.get("Authorization") != "Bearer right":
            self.wrong.append(self.headers.get("Authorization"))
        return body

    def do_PUT(self):
        body = self.body()
        if body["size"] == 1000:
            return self.answer(422)
        if body["size"] == 500 and self.failures:
            return self.answer(self.failures.pop())
        self.databases[self.path.removeprefix("/databases/")] = body
        return self.answer(200)

    def do_DELETE(self):
        self.body()
        uid = self.path.removeprefix("/databases/")
        if uid in self.databases and uid not in self.deleting:
            self.deleting.add(uid)
            return self.answer(202)
        return self.answer(204 if self.databases.pop(uid, None) else 404)

    def log_message(self, *_):
        pass


@pytest.fixture
def service():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.slow
def test_an_external_resource(cook, api, operator, service):
    token = operator.folder / "token"
    token.write_text("right\n", encoding="utf-8")
    operator.user.give(token, 0o600)
    manifest = cook("An external resource", API=service, TOKEN_FILE=str(token))
    # `run` has made one already, under a UID that no object has.
    tried = set(Service.databases)
    databases = create(api, manifest, "databases")
    wait_until(lambda: status_of(databases, "orders") == {"size": 10}, "the database")
    uid = databases.get("orders")["metadata"]["uid"]
    assert set(Service.databases) - tried == {uid} and Service.databases[uid] == {"name": "orders", "size": 10}
    databases.merge_patch("orders", {"spec": {"size": 500}})
    operator.wait_for_log("HTTP Error 503", message_id=MESSAGE_ID["RUN_FAILED"])
    wait_until(lambda: status_of(databases, "orders") == {"size": 500}, "the next attempt")
    databases.merge_patch("orders", {"spec": {"size": 1000}})
    operator.wait_for_log("the service refuses size 1000")
    assert Service.databases[uid]["size"] == 500
    databases.delete("orders")
    wait_until(lambda: uid in Service.deleting, "the deletion to be accepted")
    assert databases.exists("orders"), "held while the service deletes"
    wait_until(lambda: not databases.exists("orders"), "the end")
    assert uid not in Service.databases and not Service.wrong


def test_a_generator_of_secrets(cook, api, operator):
    manifest = cook("A generator of Secrets")
    secrets = create(api, manifest, "secrets")
    secrets.create("other", stringData={"user": "nobody"})

    def value():
        return base64.b64decode(secrets.get("database")["data"]["password"]).decode()

    wait_until(value, "the value")
    first = value()
    assert len(first) > 40 and base64.b64decode(secrets.get("database")["data"]["user"]) == b"orders"
    operator.wait_for_log("is in sync")
    # Another change is no reason for another value.
    secrets.merge_patch("database", {"stringData": {"user": "else"}})
    operator.ctl.run("retry", "secrets", "default/database")
    wait_until(lambda: operator.ctl.status()["watches"][0]["queued"] == 0, "rest")
    assert value() == first
    secrets.json_patch("database", [{"op": "remove", "path": "/data/password"}])
    wait_until(lambda: value() != first, "a new value")
    assert list(secrets.get("other")["data"]) == ["user"], "one without the label is left alone"
    assert first not in operator.output.text() and value() not in operator.output.text()


@pytest.mark.slow
def test_defaults_for_namespaces(cook, api):
    need("jq")
    manifest = cook("Defaults for namespaces")
    namespaces = create(api, manifest, "namespaces", None)
    quotas, policies = api.resource("v1", "resourcequotas", "team-a"), api.resource("networking.k8s.io/v1", "networkpolicies", "team-a")
    wait_until(lambda: quotas.exists("small") and policies.exists("closed"), "the defaults")
    quotas.merge_patch("small", {"spec": {"hard": {"pods": "1000"}}})
    policies.delete("closed")
    wait_until(lambda: policies.exists("closed"), "what was deleted")
    wait_until(lambda: quotas.get("small")["spec"]["hard"]["pods"] == "10", "what was changed")
    namespaces.merge_patch("team-a", {"metadata": {"labels": {"example.com/profile": None}}})
    wait_until(lambda: not quotas.exists("small") and not policies.exists("closed"), "their end")
    assert namespaces.exists("team-a")


@pytest.mark.slow
def test_labels_on_nodes(cook, api):
    need("jq")
    nodes = api.resource("v1", "nodes")
    nodes.create("node-1", labels={"theirs": "1"})
    pools = create(api, cook("Labels on nodes"), "pools", None)

    def labelled():
        return {node["metadata"]["name"]: node["metadata"]["labels"]["example.com/pool"] for node in nodes.list()["items"]
                if "example.com/pool" in node["metadata"].get("labels", {})}

    wait_until(lambda: labelled() == {"node-1": "fast"}, "the label")
    nodes.create("node-2")
    wait_until(lambda: labelled() == {"node-1": "fast", "node-2": "fast"}, "the label of a node that joins")
    pools.merge_patch("fast", {"spec": {"nodes": ["node-2"]}})
    wait_until(lambda: labelled() == {"node-2": "fast"}, "the label to go from a node")
    pools.delete("fast")
    wait_until(lambda: not labelled(), "the end of all")
    assert nodes.get("node-1")["metadata"]["labels"] == {"theirs": "1"}


def test_who_changed_what(cook, api, operator):
    maps = create(api, cook("Who changed what"), "configmaps")
    events = api.resource("events.k8s.io/v1", "events", "default")

    def notes():
        return [event["note"] for event in events.list()["items"] if event["reason"] == "Changed"]

    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the first run")
    maps.merge_patch("shop", {"data": {"color": "red", "size": None}})
    wait_until(lambda: notes() == ["color, size"], "the Event")


@pytest.mark.slow
def test_blue_and_green(cook, api):
    sites = create(api, cook("Blue and green"), "sites")
    services, deployments = api.resource("v1", "services", "default"), api.resource("apps/v1", "deployments", "default")

    def roll_out(name):
        deployment = deployments.get(name)
        deployments.merge_patch(name, {"status": {"observedGeneration": deployment["metadata"]["generation"], "updatedReplicas": 2,
                                                  "availableReplicas": 2}}, subresource="status")

    def live(colour, image):
        wait_until(lambda: status_of(sites, "shop") == {"live": colour, "image": f"registry.example.com/shop:{image}"},
                   lambda: f"{colour} with {image}: {sites.get('shop')}")
        assert services.get("shop")["spec"]["selector"] == {"site": "shop", "colour": colour}

    def set_image(image):
        sites.merge_patch("shop", {"spec": {"image": f"registry.example.com/shop:{image}"}})

    live("blue", 1)
    roll_out("shop-blue")
    set_image(2)
    wait_until(lambda: deployments.exists("shop-green"), "the second version beside the first")
    assert image_of(deployments.get("shop-blue")).endswith(":1")
    live("blue", 1)
    roll_out("shop-green")
    live("green", 2)
    set_image(1)
    live("blue", 1)  # back, at once: its pods are still there
    set_image(3)
    wait_until(lambda: image_of(deployments.get("shop-green")).endswith(":3"), "the third in the place of the second")
    live("blue", 1)
    roll_out("shop-green")
    live("green", 3)
    sites.delete("shop")
    wait_until(lambda: not deployments.names() and not services.exists("shop"), "the end of all")
