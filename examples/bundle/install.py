#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The children of a bundle are the manifests (JSON) of the ConfigMap that it names. They are deleted before the bundle
is: the framework's finalizer waits."""
import json
import sys

request = json.load(sys.stdin)
if request["action"] == "reconcile":
    manifests = [json.loads(text) for config_map in request["related"] for text in config_map.get("data", {}).values()]
    if request["related"]:
        json.dump({"children": manifests, "message": f"{len(manifests)} objects installed"}, sys.stdout)
    else:
        name = request["object"]["spec"]["configMap"]
        json.dump({"error": f"there is no ConfigMap {name} with the manifests", "permanent": True}, sys.stdout)
