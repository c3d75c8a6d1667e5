# SPDX-License-Identifier: Apache-2.0
"""Which watches the state folders are of, and the handler: the maker has it fail and hang, the tests have it succeed."""
import json

HOLD = "example.com/hold"
DAY = 24 * 3600

# One process a worker. Each run is a line of notes; what an object `does`, by its label, it does while the file `broken` exists.
HANDLER = r"""#!/usr/bin/python3 -u
import json, os, select, sys
folder = os.path.realpath(os.path.dirname(sys.argv[0]) + "/folder")
notes = os.open(f"{folder}/notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)


def config_map(name, value, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"value": str(value)}}


def children(does, name, value, broken):
    if does == "children":
        return [config_map(name, value)]
    if does == "rollback":
        more = [config_map("slow", value, finalizers=["example.com/hold"]), config_map("bad", value)]
        return [config_map("good", value)] + (more if broken and value > 1 else [])


for line in [sys.stdin.read()] if sys.argv[1:] == ["once"] else sys.stdin:
    request = json.loads(line)
    metadata, value = request["object"]["metadata"], request["object"].get("spec", {}).get("value")
    action, does = request["action"], metadata.get("labels", {}).get("does", "")
    broken = os.path.exists(f"{folder}/broken")
    os.write(notes, (json.dumps({"watch": request["watch"], "name": metadata["name"], "uid": metadata["uid"],
                                 "action": action, "attempt": request["attempt"], "reason": request["reason"],
                                 "version": metadata.get("resourceVersion"), "value": value}) + "\n").encode())
    answer = {"id": request["id"]} if "id" in request else {}
    if action == "reconcile" and "spec" in request["object"]:
        answer["status"] = {"seen": value}
    made = children(does, metadata["name"], value, broken) if action == "reconcile" else None
    if made is not None:
        answer["children"] = made
    if broken and does == ("fails" if action == "reconcile" else "cleanup-fails"):
        answer["error"] = f"{action} fails"
    if broken and does == ("hangs" if action == "reconcile" else "cleanup-hangs"):
        select.select([], [], [])
    if broken and does == "permanent":
        answer |= {"error": "for ever", "permanent": True}
    if broken and does == "fatal":
        answer |= {"error": "the end of all", "fatal": True}
    if broken and does == "requeue":
        answer["requeueAfter"] = "20h"
    if broken and does == "cleanup-goes-on" and action != "reconcile":
        answer |= {"done": False, "requeueAfter": "20h"}
    print(json.dumps(answer if "error" not in answer else
                     {key: answer[key] for key in ("id", "error", "permanent", "fatal") if key in answer}), flush=True)
"""


def widgets(name, **more):
    """A watch of the Widgets of the namespace of its own name. Of what fails nothing is due within a day."""
    return {"name": name, "apiVersion": "example.com/v1", "kind": "Widget", "namespaces": [name], "resync": "3650d",
            "retry": {"first": "24h", "max": "24h", "throttle": "1h"}, "events": False,
            "quarantine": {"after": 2, "duration": "3650d"}, **more}


WATCHES = [
    widgets("main"),
    widgets("any", trigger="any"),
    widgets("jq", trigger={"jq": ".spec.value"}),
    widgets("metadata", metadataOnly=True),
    widgets("chosen", labelSelector="tier=gold", unselected=True),
    widgets("filtered", filter='if .metadata.labels.does == "endless" then [range(100000)] | .[.] else true end'),
    widgets("held", finalizer=True),
    widgets("owner", owns=[{"apiVersion": "v1", "kind": "ConfigMap"}], onFailure="rollback", children={"settle": "1h"}),
    widgets("related", related=[{"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": "role=config"}]),
    widgets("shortly", retry={"first": "45s", "max": "45s"}),
    widgets("resynced", resync="100h"),
    widgets("fatal", allowFatal=True, retry={"first": "200ms", "max": "1h"}),
    widgets("refused", onUnrecoverable="throttle"),
    widgets("paused"),
    {**widgets("secrets"), "apiVersion": "v1", "kind": "Secret"},
]
NAMES = [entry["name"] for entry in WATCHES]


def run(entry, handler):
    return {"exec": [handler, "once"]} if entry.get("finalizer") else {"serve": [handler]}


def with_id(entry):
    """Of the watches of a kind, all but one have ids."""
    return entry if entry["name"] in ("main", "secrets") else {**entry, "id": entry["name"]}


def configuration(kubeconfig, handler):
    return {"operator": "widgets.example.com", "cluster": {"kubeconfig": str(kubeconfig)}, "workers": 3,
            "heartbeat": {"interval": "500ms", "deadline": "5s"}, "stop": {"grace": "1s"},
            "watches": [{**with_id(entry), "reconnect": {"watchTimeout": "30s"}, "handler": {**run(entry, str(handler)), "timeout": "1h"}}
                        for entry in WATCHES]}


class Handlers:
    """The handler, which all lives share, since another one is a change; and what it has noted in the folder of this life."""

    def __init__(self, sandbox, shared):
        self.folder = sandbox.subfolder("handler", mode=0o777)
        self.command = shared / "handler"
        if not self.command.exists():
            self.command.write_text(HANDLER, encoding="utf-8")
            self.command.chmod(0o755)
        (shared / "folder").unlink(missing_ok=True)
        (shared / "folder").symlink_to(self.folder)
        self._notes = self.folder / "notes"
        self._notes.touch()
        self._notes.chmod(0o666)

    def break_all(self):
        (self.folder / "broken").touch()

    def runs(self, **where):
        """Oldest first: dicts with watch, name, uid, action, attempt, reason, version, value."""
        lines = self._notes.read_text(encoding="utf-8").split("\n")[:-1]
        return [run for run in map(json.loads, lines) if all(run[key] == value for key, value in where.items())]
