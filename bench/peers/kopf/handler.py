#!/usr/bin/python3 -S
# SPDX-License-Identifier: Apache-2.0
"""What reconciled runs where kopf runs operator.py: a handler in Python, one process for each worker."""
import json
import os
import sys

count = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
with_status = len(sys.argv) > 2
for line in sys.stdin:
    request = json.loads(line)
    answer = {"id": request["id"]}
    if with_status:
        answer["status"] = {"seen": request["object"]["spec"].get("round", 0)}
    print(json.dumps(answer), flush=True)
    os.write(count, b".")
