#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The probe in Python: README.md."""
import datetime
import logging
import os
import subprocess
import sys

from reconciled import Permanent, Temporary, finalize, reconcile, schedule, serve, startup


class Textless(Exception):
    def __str__(self):
        return 1


def probe(request):
    thing = request["object"]
    spec, name = thing["spec"], thing["metadata"]["name"]
    match spec["do"]:
        case "status":
            return {"status": {"name": name, "size": spec["size"]}, "requeueAfter": datetime.timedelta(minutes=5)}
        case "metrics":
            return {"metrics": [{"name": "probe_calls", "action": "add", "value": 1.5, "labels": {"name": name}},
                                {"name": "probe_seconds", "action": "observe", "value": 0, "buckets": [0.5, 2]}]}
        case "at":
            east = datetime.timezone(datetime.timedelta(hours=1))
            return {"requeueAt": datetime.datetime(2036, 2, 29, 4, 0, 0, 125_000, tzinfo=east)}
        case "children":
            shown = " ".join(child["metadata"]["name"] for child in request.get("children", []))
            return {"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"shown": shown}}]}
        case "childless":
            return {"children": []}
        case "conditions":
            return {"conditions": [{"type": "Ready", "status": "True", "reason": "Up", "message": "it is up"}],
                    "events": [{"type": "Warning", "reason": "Slow", "note": "it took long"}]}
        case "print":
            print("to standard output")
            return {"message": "printed"}
        case "log":
            logging.info("one")
            logging.warning("two\nthree")
            logging.error("four")
        case "temporary":
            raise Temporary("the service is away", retry_after=90)
        case "backoff":
            raise Temporary("the service is away")
        case "permanent":
            raise Permanent("spec.size is negative")
        case "half":
            return {"error": "half of it", "status": {"half": True}}
        case "crash":
            raise RuntimeError("broken on purpose")
        case "text":
            return {"message": spec["text"]}
        case "attempt":
            return {"message": f"{spec['prefix']}: attempt {request['attempt']} of {request['watch']}, "
                               f"{request['reason']} after: {request['lastError']}"}
        case "wait" | "held":
            logging.info("it waits")
            with open(spec["fifo"], encoding="utf-8") as fifo:
                return {"message": fifo.read()}
        # what only this language can do wrong
        case "program":
            subprocess.run(["sh", "-c", "cat; echo of a program"], check=True)
        case "delay":
            return {"requeueAfter": datetime.timedelta(minutes=1.5)}
        case "naive":
            return {"requeueAt": datetime.datetime(2036, 2, 29, 3)}
        case "set":
            return {"status": {"sizes": {1, 2}}}
        case "nan":
            return {"status": {"size": float("nan")}}
        case "list":
            return [1]
        case "textless":
            raise Textless
        case "exit":
            sys.exit(70)
    return None


def pear(request):
    return {"message": f"a pear named {request['object']['metadata']['name']}"}


def cleanup(request):
    assert os.path.exists("/"), request
    return {"done": False, "requeueAfter": datetime.timedelta(seconds=5)}


@schedule("nightly")
def nightly(request):
    return {"message": f"{request['watch']} of {request['object']['metadata']['name']}"}


def prepare(request):
    return {"patch": {"data": {"prepared": request["watch"]}}}


if sys.argv[1:] != ["schedules"]:
    reconcile(probe)
    reconcile("pears")(pear)
    finalize(cleanup)
    startup(prepare)
serve(parallel=4 if sys.argv[1:] == ["parallel"] else 1)
