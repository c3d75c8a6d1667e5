# SPDX-License-Identifier: Apache-2.0
"""examples/database on a real API server, whose validation and defaults the devserver does not have."""
import shutil

import pytest
import yaml

from harness import ApiError, wait_until
from harness.setup import SOURCE

EXAMPLE = SOURCE / "examples" / "database"


def test_the_example_of_a_database(cluster, operator, sandbox, namespace):
    handler = sandbox.subfolder("database") / "handler.py"
    shutil.copy(EXAMPLE / "handler.py", handler)
    config = yaml.safe_load((EXAMPLE / "reconciled.yaml").read_text(encoding="utf-8"))
    [entry] = config.pop("watches")
    operator.configure(cluster, [{**entry, "namespaces": [namespace], "handler": {"exec": [str(handler)]}}], **config)
    definition = yaml.safe_load((EXAMPLE / "crd.yaml").read_text(encoding="utf-8"))
    if not cluster.is_current:  # 1.20.2 takes an empty text for null
        properties = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]
        properties["conditions"]["items"]["properties"]["message"] = {"x-kubernetes-preserve-unknown-fields": True}
    definitions = cluster.api.resource("apiextensions.k8s.io/v1", "customresourcedefinitions")
    databases = cluster.api.resource("example.com/v1", "databases", namespace)
    sets, secrets = (cluster.api.resource(version, plural, namespace) for version, plural in (("apps/v1", "statefulsets"), ("v1", "secrets")))
    definitions.create(body=definition)
    try:
        wait_until(lambda: cluster.api.raw("GET", "/apis/example.com/v1/databases").code == 200, "the kind", 60)
        with pytest.raises(ApiError, match="spec.version"):
            databases.create("orders", spec={"version": "latest"})
        databases.create("orders", spec={"version": "16"})
        operator.start_ready().wait_synced()

        def is_ready():
            body = databases.get("orders")
            ready = [entry for entry in body["status"]["conditions"] if entry["type"] == "Ready"]
            return ready and ready[0]["status"] == "True" and ready[0]["observedGeneration"] == body["metadata"]["generation"]

        wait_until(is_ready, lambda: f"the database: {databases.get('orders')}; {operator.output.text()}", 60)
        password = secrets.get("orders-password")["data"]
        databases.merge_patch("orders", {"spec": {"version": "17", "replicas": 3}})
        wait_until(lambda: is_ready() and sets.get("orders")["spec"]["replicas"] == 3, "the change", 60)
        assert sets.get("orders")["spec"]["template"]["spec"]["containers"][0]["image"] == "postgres:17"
        assert secrets.get("orders-password")["data"] == password
        databases.delete("orders")
        wait_until(lambda: not databases.exists("orders"), "its end", 60)
        assert not secrets.exists("orders-password") and not sets.exists("orders")
        operator.stop()
    finally:
        definitions.delete("databases.example.com")
