#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A request a line on stdin, an answer a line on stdout; stderr goes to the journal."""
import hashlib
import json
import sys


def children(name, spec):
    labels = {"website": name}
    page = spec["html"]
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"index.html": page}}
    # The page's hash among the annotations: another page is another pod.
    template = {"metadata": {"labels": labels, "annotations": {"page": hashlib.sha256(page.encode()).hexdigest()}},
                "spec": {"volumes": [{"name": "page", "configMap": {"name": name}}],
                         "containers": [{"name": "web", "image": "nginx:stable", "ports": [{"containerPort": 80}],
                                         "volumeMounts": [{"name": "page", "mountPath": "/usr/share/nginx/html"}]}]}}
    yield {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
           "spec": {"replicas": spec.get("replicas", 1), "selector": {"matchLabels": labels}, "template": template}}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
           "spec": {"selector": labels, "ports": [{"port": 80, "protocol": "TCP"}]}}


def reconcile(request):
    if request["action"] != "reconcile":
        return {}
    website = request["object"]
    metadata = website["metadata"]
    print(f"web site {metadata['namespace']}/{metadata['name']}", file=sys.stderr, flush=True)
    return {"children": list(children(metadata["name"], website["spec"])),
            "status": {"address": f"http://{metadata['name']}.{metadata['namespace']}"}}


for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = reconcile(request)
    except (KeyError, TypeError) as error:
        answer = {"error": f"the web site lacks {error}", "permanent": True}
    print(json.dumps({"id": request["id"], **answer}), flush=True)
