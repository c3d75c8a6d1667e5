#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One request on stdin, one answer on stdout: what shall exist. stderr goes to the log."""
import base64
import json
import secrets
import sys


def secret(name, shown):
    """The password as it is, or a new one when there is none: the request always shows the Secret that the operator has made."""
    password = shown.get("data", {}).get("password") or base64.b64encode(secrets.token_urlsafe(24).encode()).decode()
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": {"password": password}}


def service(name, labels):
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
            "spec": {"clusterIP": "None", "selector": labels, "ports": [{"name": "postgres", "port": 5432, "protocol": "TCP"}]}}


def stateful_set(name, labels, spec, password):
    environment = [{"name": "POSTGRES_PASSWORD", "valueFrom": {"secretKeyRef": {"name": password, "key": "password"}}},
                   {"name": "PGDATA", "value": "/data/postgres"}]
    container = {"name": "postgres", "image": f"postgres:{spec['version']}", "env": environment,
                 "ports": [{"name": "postgres", "containerPort": 5432, "protocol": "TCP"}],
                 "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    volume = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"],
                                                     "resources": {"requests": {"storage": spec.get("size", "1Gi")}}}}
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
            "spec": {"serviceName": name, "replicas": spec.get("replicas", 1), "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
                     "volumeClaimTemplates": [volume]}}


def available(running, wanted):
    return {"type": "Available", "status": "True" if running >= wanted else "False",
            "reason": "PodsReady" if running >= wanted else "PodsStarting", "message": f"{running} of {wanted} pods are ready"}


def reconcile(database, children):
    metadata, spec = database["metadata"], database["spec"]
    name, password, labels = metadata["name"], metadata["name"] + "-password", {"database": metadata["name"]}
    shown = {(child["kind"], child["metadata"]["name"]): child for child in children}
    running = shown.get(("StatefulSet", name), {}).get("status", {}).get("readyReplicas", 0)
    return {"children": [secret(password, shown.get(("Secret", password), {})), service(name, labels),
                         stateful_set(name, labels, spec, password)],
            "status": {"address": f"{name}.{metadata['namespace']}:5432", "secret": password, "replicas": running},
            "conditions": [available(running, spec.get("replicas", 1))]}


def finalize(database):
    """The children are deleted next, by the operator. What is outside of the cluster, a backup say, would end here."""
    print(f"database {database['metadata']['name']} goes", file=sys.stderr)
    return {}


request = json.load(sys.stdin)
if request["action"] == "finalize":
    answer = finalize(request["object"])
else:
    answer = reconcile(request["object"], request["children"])
json.dump(answer, sys.stdout)
