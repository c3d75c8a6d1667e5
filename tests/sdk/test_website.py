# SPDX-License-Identifier: Apache-2.0
"""The example of each kit under a real operator: examples/website, with the kit's program for its handler."""
import pytest
import yaml

from harness import wait_until
from harness.setup import SOURCE

EXAMPLE = SOURCE / "examples/website"


def read(name):
    return yaml.safe_load((EXAMPLE / name).read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["serve", "exec", "parallel"])
def test_website(kit, way, make_devserver, operator):
    devserver = make_devserver(load=[read("crd.yaml"), read("objects.yaml")])
    config = read("reconciled.yaml")
    [entry] = config["watches"]
    command = {"exec": kit.example} if way == "exec" else {"serve": kit.example, "parallel": 4 if way == "parallel" else 1}
    entry["handler"] = {**command, "timeout": "10s", "environment": kit.environment}
    entry["finalizer"] = True
    operator.configure(devserver, [entry], operator=config["operator"])
    operator.start_ready().wait_synced()

    sites, deployments = (devserver.api.resource(*which, "default") for which in
                          (("example.com/v1", "websites"), ("apps/v1", "deployments")))
    wait_until(lambda: sites.get("hello")["status"]["conditions"][0]["status"] == "True", "the web site")
    assert sites.get("hello")["status"]["address"] == "http://hello.default"
    page = deployments.get("hello")["spec"]["template"]["metadata"]["annotations"]["page"]
    sites.merge_patch("hello", {"spec": {"html": "<h1>Bye</h1>", "replicas": 3}})
    wait_until(lambda: deployments.get("hello")["spec"]["replicas"] == 3, "the change")
    assert deployments.get("hello")["spec"]["template"]["metadata"]["annotations"]["page"] != page
    assert devserver.api.resource("v1", "configmaps", "default").get("hello")["data"] == {"index.html": "<h1>Bye</h1>"}
    operator.wait_for_log("info: web site default/hello", watch="websites", key="default/hello", action="reconcile")
    sites.delete("hello")
    wait_until(lambda: not sites.exists("hello"), "its end")
    assert not deployments.exists("hello")
