# SPDX-License-Identifier: Apache-2.0
"""Every test here runs on reconciled-devserver and on a real kube-apiserver: what they must have in common. Where they
differ on purpose is told in docs/devserver.md."""
import copy
import itertools

import pytest

from harness import Devserver, Sandbox, WIDGET_CRD, wait_until
from harness.cluster import servers

_number = itertools.count(1)

GADGET_CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "gadgets", "singular": "gadget", "kind": "Gadget", "listKind": "GadgetList"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
            "type": "object", "x-kubernetes-preserve-unknown-fields": True}}}],
    },
}


def established(server, name):
    """The CRD, once its resource is served."""
    crds = server.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")

    def find():
        found = crds.get(name)
        conditions = {entry["type"]: entry["status"] for entry in found.get("status", {}).get("conditions") or []}
        if conditions.get("Established") != "True":
            return None
        spec = found["spec"]
        path = f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}"
        return found if server.api.raw("GET", path).code == 200 else None

    return wait_until(find, f"{name} to be established")


def define(server, crd):
    server.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions").create(body=copy.deepcopy(crd))
    return established(server, crd["metadata"]["name"])


class Server:
    def __init__(self, name, started):
        self.name, self.started, self.kubeconfig = name, started, started.kubeconfig
        self.define_resources()

    @property
    def api(self):
        return self.started.api

    def define_resources(self):
        crds = self.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
        for crd in (WIDGET_CRD, GADGET_CRD):
            if not crds.exists(crd["metadata"]["name"]):
                define(self, crd)

    def namespace(self):
        """The name of a new namespace."""
        name = f"conformance-{next(_number)}"
        self.api.resource("v1", "namespaces").create(name)
        return name


# What an older server than the newest says does not change from one of our commits to the next.
OLDER = [pytest.param(name, marks=pytest.mark.long) for name in servers()[:-1]]


@pytest.fixture(scope="session", params=["devserver", *OLDER, servers()[-1]])
def server(request, programs, make_cluster):
    sandbox = None
    if request.param == "devserver":
        sandbox = Sandbox(programs, "conformance")
        started = Devserver(sandbox).start()
    else:
        started = make_cluster(request.param)
    found = Server(request.param, started)
    yield found
    if sandbox:
        sandbox.close()


@pytest.fixture(autouse=True)
def server_survives(server):
    """A devserver that dies fails the test that it died in, not all that follow."""
    yield
    if server.name == "devserver" and server.started.popen.poll() is not None:
        code = server.started.popen.returncode
        server.started.popen = None
        server.started.start()
        server.define_resources()
        pytest.fail(f"reconciled-devserver ended with {code}:\n{server.started.output()[-8000:]}")


@pytest.fixture
def api(server):
    return server.api


@pytest.fixture
def namespace(server):
    return server.namespace()


@pytest.fixture
def widgets(api, namespace):
    return api.resource("example.com/v1", "widgets", namespace)


@pytest.fixture
def configmaps(api, namespace):
    return api.resource("v1", "configmaps", namespace)
