# SPDX-License-Identifier: Apache-2.0
"""Makes two state folders with all that may be pending: `clean` of an operator that was asked to stop, and `killed` of one that was
killed with all its children. For each there is the content of its API server, as a file for reconciled-devserver --load-as-is, the time
when it was made (`made`, microseconds), and the handler's notes until then. Which objects are where says the code below.

Once there is a release, its folders are kept beside this file, and the tests open those as well."""
import contextlib
import json
import shutil
import signal
import time

import yaml

from harness import WIDGET_CRD, Devserver, Operator, ledger, wait_until

from .state import NAMES, Handlers, configuration

# watch: how many objects that are at rest
AT_REST = {"main": 300, "any": 30, "jq": 30, "metadata": 30, "chosen": 30, "filtered": 10, "held": 20, "owner": 10,
           "related": 10, "shortly": 5, "resynced": 5, "fatal": 5, "refused": 5, "paused": 5, "secrets": 5}
PAUSED_UNSEEN = 2300  # more than the supervisor takes: the rest waits in the store
KINDS = [("v1", "namespaces", "Namespace"), ("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"),
         ("example.com/v1", "widgets", "Widget"), ("v1", "configmaps", "ConfigMap"), ("v1", "secrets", "Secret")]
REFUSED = {"match": {"verb": "patch", "resource": "widgets/status", "name": "refused"}, "times": 0, "status": 422}
BAD_CHILD = {"match": {"verb": "patch", "resource": "configmaps", "name": "bad"}, "times": 0, "status": 422}
NO_ANSWER = {"match": {"verb": "get", "resource": "widgets", "name": "asked"}, "times": 0, "status": 500}


class Maker:
    def __init__(self, sandbox, shared):
        self.server = Devserver(sandbox, load=[WIDGET_CRD], arguments=["--bookmark-interval", "1s"]).start()
        self.api, self.operator, self.handlers = self.server.api, Operator(sandbox), Handlers(sandbox, shared)
        self.handlers.break_all()
        config = configuration(self.operator.kubeconfig_for(self.server), self.handlers.command)
        self.operator.write_config(yaml.safe_dump(config))
        for fault in (REFUSED, BAD_CHILD, NO_ANSWER):
            self.server.fault(**fault)

    def of(self, watch):
        if watch == "secrets":
            return self.api.resource("v1", "secrets", watch)
        return self.api.resource("example.com/v1", "widgets", watch)

    def make(self, watch, name, does="", value=1, **more):
        body = {"data": {"key": "bm90LWEtc2VjcmV0"}} if watch == "secrets" else {"spec": {"value": value}}
        labels = {"tier": "gold", **({"does": does} if does else {}), **more.pop("labels", {})}
        return self.of(watch).create(name, labels=labels, **body, **more)

    def wait_run(self, count=1, **where):
        wait_until(lambda: len(self.handlers.runs(**where)) >= count, lambda: f"{count} runs of {where}", 120)

    def start(self):
        self.operator.start_ready().wait_synced(120)

    # ---- one thing after the other

    def rest(self):
        for watch in NAMES:
            self.api.resource("v1", "namespaces").create(watch)
        for name in ("config", "other"):
            self.api.resource("v1", "configmaps", "related").create(name, labels={"role": name}, data={"a": "1"})
        for watch, count in AT_REST.items():
            for number in range(count):
                self.make(watch, f"o{number}", "children" if watch == "owner" else "")
        self.start()
        wait_until(lambda: len(self.handlers.runs()) >= sum(AT_REST.values()), "all to be handled", 600, interval=1)
        self.wait_quiet()

    def wait_quiet(self):
        wait_until(lambda: all(entry["queued"] == entry["running"] == entry["waiting"] == 0
                               for entry in self.operator.ctl.status()["watches"]), "rest", 120)

    def crashes(self):
        """It ends by itself and is started again, as systemd does."""
        self.make("fatal", "fatal", "fatal")
        self.operator.wait_exit(expect=70, deadline=120)
        self.operator.start()
        self.operator.wait_exit(expect=70, deadline=120)
        assert ledger.read(self.operator, "SELECT 1 FROM ledger WHERE quarantined_until > 0")
        self.start()
        self.make("filtered", "endless", "endless")
        self.operator.wait_exit(expect=70, deadline=120)
        self.start()
        self.wait_run(name="endless")

    def failures(self):
        for number in range(10):
            for watch, does in (("main", "fails"), ("main", "permanent"), ("main", "requeue"), ("shortly", "fails")):
                self.make(watch, f"{does}{number}", does)
                self.wait_run(name=f"{does}{number}", watch=watch)
        self.make("refused", "refused")
        self.wait_run(name="refused")
        self.make("owner", "undone", "rollback")
        self.wait_run(name="undone", value=1)
        wait_until(lambda: self.of("owner").get("undone").get("status") == {"seen": 1}, "its first success")
        self.of("owner").merge_patch("undone", {"spec": {"value": 2}})
        wait_until(lambda: "deletionTimestamp" in self.api.resource("v1", "configmaps", "owner").get("slow")["metadata"],
                   "the rollback")

    def deletions(self):
        for number in range(5):
            for watch, does in (("main", "cleanup-fails"), ("held", "cleanup-fails"), ("held", "cleanup-goes-on"),
                                ("shortly", "cleanup-fails"), ("chosen", "cleanup-fails"), ("secrets", "cleanup-fails"),
                                ("metadata", "cleanup-fails")):
                name = f"{does}{number}"
                self.make(watch, name, does)
                self.wait_run(watch=watch, name=name)
                self.of(watch).delete(name)
                wait_until(lambda watch=watch, name=name: any(run["action"] != "reconcile" for run in
                                                              self.handlers.runs(watch=watch, name=name)), f"{watch} {name}", 60)
            self.make("chosen", f"left{number}", "cleanup-fails")
            self.wait_run(name=f"left{number}")
            self.of("chosen").merge_patch(f"left{number}", {"metadata": {"labels": {"tier": "silver"}}})
            self.wait_run(name=f"left{number}", action="unselected")
        self.make("chosen", "asked")
        self.wait_run(name="asked")
        self.of("chosen").delete("asked")
        wait_until(lambda: any(request.get("name") == "asked" and request["status"] == 500 for request in self.server.requests()),
                   "the question")

    def pause(self):
        for number in range(5):
            self.make("paused", f"ended{number}")
            self.wait_run(name=f"ended{number}")
        self.wait_quiet_of("paused")
        assert self.operator.ctl.run("pause", "--reason", "the disk moves", "paused").returncode == 0
        for number in range(PAUSED_UNSEEN):
            self.make("paused", f"unseen{number}")
        for number in range(5):
            self.of("paused").delete(f"ended{number}")
            self.of("paused").merge_patch(f"o{number}", {"spec": {"value": 2}})
        wait_until(lambda: self.paused()["unannounced"] >= 300, lambda: f"a full queue: {self.paused()}", 60)

    def paused(self):
        return next(entry for entry in self.operator.ctl.status()["watches"] if entry["name"] == "paused")

    def wait_quiet_of(self, watch):
        wait_until(lambda: next(entry["queued"] + entry["running"] for entry in self.operator.ctl.status()["watches"]
                                if entry["name"] == watch) == 0, f"rest of {watch}")

    def hang(self):
        self.make("main", "ends", "cleanup-hangs")
        self.wait_run(name="ends")
        self.of("main").delete("ends")
        self.wait_run(name="ends", action="deleted")
        self.make("main", "hangs", "hangs")
        self.wait_run(name="hangs")

    # ---- the result

    def wait_still(self):
        """Every watch has heard of the last write."""
        wait_until(lambda: all(int(entry["resourceVersion"]) >= int(self.version()) for entry in self.operator.ctl.status()["watches"]),
                   "bookmarks", 120)

    def version(self):
        return self.api.resource("example.com/v1", "widgets").list(limit=1)["metadata"]["resourceVersion"]

    def end(self, killed):
        if not killed:
            self.operator.stop()
            return
        found = self.operator.processes()
        for process in found:
            process.kill(signal.SIGSTOP)
        for process in found:
            with contextlib.suppress(ProcessLookupError):  # the death of its parent was quicker
                process.kill(signal.SIGKILL)
        self.operator.wait_exit(expect=-signal.SIGKILL)
        self.operator.assert_no_processes()

    def keep(self, folder, killed):
        self.wait_still()
        before = self.version()
        self.end(killed)
        assert self.version() == before, "somebody wrote in the end"
        folder.mkdir()
        made = time.time_ns() // 1000
        (folder / "made").write_text(f"{made}\n", encoding="utf-8")
        shutil.copytree(self.operator.state_directory, folder / "state")
        (folder / "runs").write_text(json.dumps(self.handlers.runs(), indent=0), encoding="utf-8")
        (folder / "database.yaml").write_text("".join(self.documents(before)), encoding="utf-8")

    def documents(self, version):
        """Lists of 200, in the order of KINDS: JSON is YAML."""
        for api_version, plural, kind in KINDS:
            items = self.api.resource(api_version, plural).list()["items"]
            for body in items:
                body |= {"apiVersion": api_version, "kind": kind}
            for start in range(0, len(items), 200):
                yield "---\n" + json.dumps({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": version},
                                            "items": items[start:start + 200]}) + "\n"


def make(sandbox, folder):
    maker = Maker(sandbox, folder)
    for step in (maker.rest, maker.crashes, maker.failures, maker.deletions, maker.pause, maker.hang):
        step()
    maker.keep(folder / "clean", killed=False)
    maker.start()
    maker.wait_run(2, name="hangs")
    maker.wait_run(2, name="ends", action="deleted")
    maker.keep(folder / "killed", killed=True)
