#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The handler of examples/website with the kit: a page in a ConfigMap, a Deployment that serves it, a Service in front."""
import hashlib
import logging

from reconciled import Permanent, finalize, reconcile, serve


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


@reconcile
def website(request):
    metadata, spec = request["object"]["metadata"], request["object"]["spec"]
    if "html" not in spec:
        raise Permanent("the web site lacks spec.html")
    logging.info("web site %s/%s", metadata["namespace"], metadata["name"])
    return {"children": list(children(metadata["name"], spec)),
            "status": {"address": f"http://{metadata['name']}.{metadata['namespace']}"}}


@finalize
def gone(request):
    logging.info("web site %s goes, and its children with it", request["object"]["metadata"]["name"])


if __name__ == "__main__":
    serve()
