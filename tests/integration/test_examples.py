# SPDX-License-Identifier: Apache-2.0
"""Each example, run as its user runs it: by one command, examples/run NAME."""
import os
import json
import pathlib
import re
import signal
import subprocess

import pytest

from harness import Api, wait_until
from harness.session import Document, Session
from harness.setup import BUILD, SOURCE


class Example:
    def __init__(self, name, log):
        self.log = log
        with open(log, "wb") as out:
            self.process = subprocess.Popen([SOURCE / "examples" / "run", name], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=out, env={**os.environ, "RECONCILED_BUILD": str(BUILD)},
                                            start_new_session=True)
        kubeconfig = self.wait_for(r"KUBECONFIG=(\S+)").group(1)
        self.work = pathlib.Path(kubeconfig).parent
        self.wait_for("is in sync")
        self.api = Api(kubeconfig)

    def output(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def wait_for(self, pattern):
        def found():
            assert self.process.poll() is None, self.output()
            return re.search(pattern, self.output())

        return wait_until(found, lambda: f"{pattern} in:\n{self.output()}")

    def resource(self, api_version, plural, namespace="default"):
        return self.api.resource(api_version, plural, namespace)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture
def run(tmp_path):
    started = []

    def run(name):
        started.append(Example(name, tmp_path / "output"))
        return started[-1]

    yield run
    for example in started:
        status = example.stop()
        assert status == 0, example.output()
        assert not example.work.exists(), "nothing is left behind"


def condition(resource, name, kind="Ready"):
    found = resource.get(name).get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == kind), {})


def test_namespace_defaults(run):
    example = run("namespace-defaults")
    quotas, policies = (example.resource(version, plural, "team-a") for version, plural in
                        (("v1", "resourcequotas"), ("networking.k8s.io/v1", "networkpolicies")))
    wait_until(lambda: quotas.exists("small") and policies.exists("closed"), "the defaults")
    assert quotas.get("small")["metadata"]["ownerReferences"][0]["kind"] == "Namespace"
    namespaces = example.resource("v1", "namespaces", None)
    namespaces.create("team-b")
    namespaces.merge_patch("team-b", {"metadata": {"labels": {"defaults.example.com/profile": "small"}}})
    wait_until(lambda: example.resource("v1", "resourcequotas", "team-b").exists("small"), "those of the next one")


def test_website(run):
    example = run("website")
    sites, deployments = example.resource("example.com/v1", "websites"), example.resource("apps/v1", "deployments")
    wait_until(lambda: condition(sites, "hello").get("status") == "True", "the web site")
    assert sites.get("hello")["status"]["address"] == "http://hello.default"
    assert example.resource("v1", "services").exists("hello")
    page = deployments.get("hello")["spec"]["template"]["metadata"]["annotations"]["page"]
    sites.merge_patch("hello", {"spec": {"html": "<h1>Bye</h1>", "replicas": 3}})
    wait_until(lambda: deployments.get("hello")["spec"]["replicas"] == 3, "the change")
    assert deployments.get("hello")["spec"]["template"]["metadata"]["annotations"]["page"] != page
    assert example.resource("v1", "configmaps").get("hello")["data"]["index.html"] == "<h1>Bye</h1>"


@pytest.mark.slow
def test_database(run):
    example = run("database")
    databases, sets = example.resource("example.com/v1", "databases"), example.resource("apps/v1", "statefulsets")
    secrets = example.resource("v1", "secrets")
    wait_until(lambda: condition(databases, "orders").get("status") == "True", "the database")
    password = secrets.get("orders-password")["data"]["password"]
    assert condition(databases, "orders", "Available")["message"] == "0 of 2 pods are ready"
    sets.merge_patch("orders", {"status": {"replicas": 2, "readyReplicas": 2}}, "status")
    wait_until(lambda: condition(databases, "orders", "Available")["status"] == "True", "the pods")
    databases.merge_patch("orders", {"spec": {"version": "17", "replicas": 3}})
    wait_until(lambda: sets.get("orders")["spec"]["template"]["spec"]["containers"][0]["image"] == "postgres:17", "the change")
    assert secrets.get("orders-password")["data"]["password"] == password
    secrets.delete("orders-password")
    wait_until(lambda: secrets.get("orders-password")["data"]["password"] != password, "another password for the one that was deleted")
    databases.delete("orders")
    wait_until(lambda: not databases.exists("orders"), "its end")
    assert not secrets.exists("orders-password") and not sets.exists("orders")
    assert password not in example.output()


@pytest.mark.slow
def test_the_readme_of_the_database(sandbox):
    """Each command is typed, and shows what stands below it."""
    readme = Document("examples/database/README.md")
    with Session(sandbox, sandbox.subfolder("reader")) as session:
        folder = session.folder / "databases"
        replace = (("$PWD/build", str(BUILD)), ("/tmp/databases", str(folder)))
        session.type(f"cd {SOURCE}")
        session.follow(readme.section("Try the handler"), replace)
        start, *rest = readme.section("Run it")
        *prepare, devserver, operator = (command.replace(*replace[1]) for command in start.commands())
        for command in (*prepare, devserver):
            session.type(command)
        wait_until((folder / "kubeconfig").exists, lambda: f"the server; {session.errors()}")
        session.type(operator)
        wait_until(lambda: session.type("reconciledctl health --ready") == "\n", lambda: f"the operator; {session.errors()}")
        session.follow(rest, replace)
        for heading in ("Change it", "Something is in the way", "Delete it"):
            session.follow(readme.section(heading), replace)


@pytest.mark.slow
def test_bundle(run):
    example = run("bundle")
    bundles, config_maps = example.resource("example.com/v1", "bundles"), example.resource("v1", "configmaps")
    wait_until(lambda: condition(bundles, "tools", "Installed").get("message") == "2 objects installed", "the whole bundle")
    wait_until(lambda: "ServiceAccount default/other half cannot be applied" in condition(bundles, "broken", "Installed").get("message", ""), "the cause")
    wait_until(lambda: not config_maps.exists("half"), "the rollback")
    settings = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "tools"}, "data": {"level": "2"}})
    config_maps.merge_patch("tools-1.0", {"data": {"settings": settings}})
    wait_until(lambda: config_maps.get("tools")["data"] == {"level": "2"}, "the bundle's new manifests")
    bundles.delete("tools")
    wait_until(lambda: not bundles.exists("tools"), "the end of the bundle")
    assert not config_maps.exists("tools"), "its objects went first"


def test_node_agent(run):
    example = run("node-agent")
    file = example.work / "pods" / "default.here"
    wait_until(file.exists, "the file")
    pods = example.resource("v1", "pods")
    assert file.read_text() == f"uid={pods.get('here')['metadata']['uid']}\n"
    pods.delete("here")
    wait_until(lambda: not file.exists(), "its end")
    assert not list((example.work / "pods").iterdir()), "no other node's pods"


def test_plugin(run):
    example = run("plugin")
    widgets = example.resource("example.com/v1", "widgets")
    wait_until(lambda: widgets.get("apple").get("status"), "the status")


def test_the_script_explains_itself():
    said = subprocess.run([SOURCE / "examples" / "run"], capture_output=True, text=True, check=False)
    assert said.returncode == 64 and "examples/run website" in said.stderr
