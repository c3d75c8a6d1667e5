# SPDX-License-Identifier: Apache-2.0
"""The last step of docs/tutorial.md on a real API server: its commands, its roles, and its operator with no more rights than they give."""
import pytest

from harness import wait_until
from harness.session import Document, Session
from harness.setup import BUILD

TUTORIAL = Document("docs/tutorial.md")


@pytest.fixture
def session(sandbox):
    with Session(sandbox, sandbox.subfolder("reader")) as session:
        yield session


def test_the_tutorial_in_a_cluster(cluster, session, sandbox, operator):
    for name, text in TUTORIAL.named.items():
        (session.folder / name).write_text(text, encoding="utf-8")
    for name in ("reconciled.yaml", "handler.py"):
        (operator.folder / name).write_text(TUTORIAL.named[name], encoding="utf-8")
        operator.user.give(operator.folder / name, 0o700)
    index = sandbox.subfolder("index", operator.user)
    session.type(f'chmod +x handler.py; export PATH="{BUILD}/ctl:$PATH" KUBECONFIG={cluster.kubeconfig} INDEX={index}')
    _, steps, look, output = TUTORIAL.section("8. A cluster")
    session.follow([steps])
    token = cluster.api.request("POST", "/api/v1/namespaces/pages/serviceaccounts/pages-operator/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    kubeconfig = operator.folder / "kubeconfig"
    cluster.write_kubeconfig(kubeconfig, token)
    operator.user.give(kubeconfig, 0o600)
    operator.environment.update(KUBECONFIG=str(kubeconfig), INDEX=str(index))
    operator.start_ready().wait_synced()
    # No controller of Deployments runs here: the test says that the pods are ready.
    deployments = cluster.api.resource("apps/v1", "deployments", "default")
    wait_until(lambda: deployments.exists("hello"), lambda: f"the Deployment; {operator.output.text()}")
    deployments.merge_patch("hello", {"status": {"replicas": 2, "readyReplicas": 2}}, subresource="status")
    session.follow([look, output])
    assert len(list(index.iterdir())) == 1
    session.type("kubectl delete page hello")
    assert not list(index.iterdir()) and not deployments.exists("hello")
    assert not cluster.api.resource("v1", "configmaps", "default").exists("hello")
    assert not operator.logs(level="error"), operator.output.text()
