# SPDX-License-Identifier: Apache-2.0
"""The operator of examples/database, put through people and faults: Databases and their children are made, changed and deleted
by people, watches of children are down, refused or silent, writes are refused or their answers lost, and the operator is killed
between any two writes. story.py judges what has become of each child."""
import contextlib
import itertools
import random
import shutil
import time

import yaml

from harness import ApiError, Devserver, Operator, Timeout, wait_until
from harness.setup import SOURCE

from . import rest
from .plan import Step
from .story import CHILDREN, PEOPLES, Story, name_of
from .systemd import Life
from .world import Broken

EXAMPLE = SOURCE / "examples" / "database"
NAMES = 6
SETTLE_SECONDS = 60
LOSS = 100  # the step before which the state folder is lost
VERSIONS = ("14", "15.4", "16")
OPERATOR = "reconciled*"

# How often a step is what. Its method has that name.
WEIGHTS = {
    "create": 200, "change": 200, "delete": 60, "remake": 20, "roll out": 60,
    "child deleted": 40, "child edited": 40, "child bare": 20, "foreign": 25, "foreign gone": 60,
    "watch": 40, "write": 80, "read": 20, "kill at write": 30, "kill": 4, "kill supervisor": 4, "stop": 3, "reload": 4,
}
_WATCHES = (
    {"atEvent": 1, "stall": True, "bookmarks": False},
    {"reset": True},
    {"status": 403},
    {"status": 500},
    {"status": 410},
)
_REFUSALS = ({"status": 409}, {"status": 429, "retryAfter": 1}, {"status": 500}, {"status": 503, "retryAfter": 1}, {"reset": True})
_LOST = ({"reset": True}, {"status": 500}, {"status": 504})
_RESOURCES = (*CHILDREN, *CHILDREN, "databases", "databases/status")


def steps(seed):
    """Without end. Every step takes the same from the generator, whatever it is."""
    generator = random.Random(seed)
    while True:
        what = generator.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        cut = generator.random() < 0.5
        yield Step(what, generator.choice(list(CHILDREN)), f"d{generator.randrange(NAMES)}", {
            "chance": generator.random(), "cut": cut, "seconds": generator.uniform(0.3, 3), "times": generator.randint(1, 3),
            "replicas": generator.randint(0, 5), "version": generator.choice(VERSIONS), "after": generator.randrange(6),
            "watch": generator.choice(_WATCHES),
            "write": {"carriedOut": True, **generator.choice(_LOST)} if cut else generator.choice(_REFUSALS),
            "resource": generator.choice(_RESOURCES), "verb": generator.choice(("patch", "patch", "patch", "delete")),
            "role": generator.choice(("credential", "watcher", "worker", "worker", "spawner")), "signal": "KILL",
        })


class Databases(Life):
    """run() raises Broken. The figures are in count and codes."""

    def __init__(self, sandbox, seed, pace=0.03, say=lambda text: None):
        self.seed, self.pace, self.say = seed, pace, say
        definition = yaml.safe_load((EXAMPLE / "crd.yaml").read_text(encoding="utf-8"))
        self.server = Devserver(sandbox, load=[definition], arguments=["--bookmark-interval", "1s"]).start()
        super().__init__(Operator(sandbox))
        self._handler = sandbox.subfolder("database", mode=0o755) / "handler.py"
        shutil.copy(EXAMPLE / "handler.py", self._handler)
        self.databases = self.server.api.resource("example.com/v1", "databases", "default")
        self.children = {plural: self.server.api.resource(version, plural, "default", kind)
                         for plural, (version, kind) in CHILDREN.items()}
        self.story = Story(self.server, self.operator, self.children)
        self._faults = {}  # id: when it is to go
        self._reloads = 0
        self._lost = False  # the state folder
        self.configure()

    def configure(self):
        """As in the example, with delays that suit a test, and a number that tells reloads apart."""
        config = yaml.safe_load((EXAMPLE / "reconciled.yaml").read_text(encoding="utf-8"))
        [entry] = config.pop("watches")
        entry |= {"handler": {"exec": [str(self._handler)], "timeout": "30s"}, "retry": {"first": "50ms", "max": "1s"},
                  "reconnect": {"first": "50ms", "max": f"{1000 + self._reloads}ms", "stall": "3s", "watchTimeout": "10s"},
                  "quarantine": {"after": 3, "duration": "1s"}}
        self.operator.configure(self.server, [entry], **config, heartbeat={"interval": "200ms", "deadline": "4s"},
                                stop={"grace": "300ms"})

    # ---- the whole

    def run(self, seconds=None, count=None):
        """Until the time is over, or so many steps are done."""
        began = told = time.monotonic()
        self.operator.start()
        for number, step in enumerate(itertools.islice(steps(self.seed), count)):
            now = time.monotonic()
            if seconds is not None and now - began > seconds:
                break
            if number == LOSS:
                self._lose_state()
            self.look_after_operator()
            if count is not None:
                wait_until(self._is_started, "its start", 60)
            self._clear_faults(now)
            self._carry_out(step)
            self.story.read()
            if now - told > 10:
                told = now
                self.say(self.figures())
            self._never.wait(self.pace)
        self._settle()
        self.say(self.figures())
        return self

    def figures(self):
        codes = ", ".join(f"{code}: {number}" for code, number in sorted(self.codes.items()))
        return ", ".join(f"{number} {what}" for what, number in self.count.items()) + f" (exit codes: {codes}); {self.story.figures()}"

    def _carry_out(self, step):
        self.count["step"] += 1
        try:
            if getattr(self, "_" + step.what.replace(" ", "_"))(step) is not False:
                self.count[step.what] += 1
        except ApiError as error:
            # It is there already, or gone.
            if error.code not in (404, 409):
                raise

    # ---- people and Databases

    def _create(self, step):
        self.databases.create(step.name, spec={"version": step.values["version"], "replicas": step.values["replicas"]})

    def _change(self, step):
        self.databases.merge_patch(step.name, {"spec": {"version": step.values["version"], "replicas": step.values["replicas"]}})

    def _delete(self, step):
        self.story.going(self.databases.get(step.name)["metadata"]["uid"])
        self.databases.delete(step.name)

    def _remake(self, step):
        """As soon as it is gone."""
        self._delete(step)
        with contextlib.suppress(Timeout):
            wait_until(lambda: not self.databases.exists(step.name), "its end", 0.5)
            self._create(step)

    # ---- people and children

    def _roll_out(self, step):
        """The controller of StatefulSets."""
        body = self.children["statefulsets"].get(step.name)
        status = {"replicas": body["spec"]["replicas"], "readyReplicas": body["spec"]["replicas"]}
        self._written(self.children["statefulsets"].merge_patch(step.name, {"status": status}, "status"))

    def _written(self, body):
        self.story.by_people(body)

    def _child(self, step):
        return self.children[step.kind], name_of(step.kind, step.name)

    def _child_deleted(self, step):
        resource, name = self._child(step)
        self._delete_child(resource, name)

    def _delete_child(self, resource, name):
        uid = resource.get(name)["metadata"]["uid"]
        resource.delete(name, {"preconditions": {"uid": uid}})
        self.story.deleted(uid)

    def _child_edited(self, step):
        resource, name = self._child(step)
        if self.story.is_foreign(resource.get(name)["metadata"]["uid"]):
            return False
        patch = {
            "statefulsets": {"spec": {"replicas": 9}}, "services": {"spec": {"selector": {"database": "other"}}},
            "secrets": {"data": {"password": PEOPLES}} if step.values["chance"] < 0.3 else {"data": {"more": "bW9yZQ=="}},
        }[step.kind]
        self._written(resource.merge_patch(name, patch))
        return True

    def _child_bare(self, step):
        """Somebody takes off the owner reference, or the label."""
        resource, name = self._child(step)
        uid = resource.get(name)["metadata"]["uid"]
        if self.story.is_foreign(uid):
            return False
        self.story.bare(uid)
        self._written(resource.merge_patch(name, {"metadata": {"ownerReferences" if step.values["cut"] else "labels": None}}))
        return True

    def _foreign(self, step):
        """Somebody's own object of that name; perhaps in the place of ours."""
        resource, name = self._child(step)
        if step.values["cut"]:
            self._delete_child(resource, name)
        spec = {"secrets": {"data": {"password": "Zm9yZWlnbg=="}},
                "services": {"spec": {"ports": [{"port": 1, "protocol": "TCP"}]}},
                "statefulsets": {"spec": {"replicas": 1, "serviceName": "x", "selector": {"matchLabels": {"a": "b"}},
                                          "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": []}}}}}
        self.story.foreign(step.kind, resource.create(name, **spec[step.kind]))

    def _foreign_gone(self, step):
        for uid, (plural, body) in self.story.foreigners():
            if name_of(plural, step.name) == body["metadata"]["name"]:
                self.children[plural].delete(body["metadata"]["name"])
                self.story.deleted(uid)
                return True
        return False

    # ---- faults

    def _clear_faults(self, now):
        for number, due in list(self._faults.items()):
            if now >= due:
                self.server.clear_faults(number)
                del self._faults[number]

    def _fault(self, step, **fault):
        number = self.server.fault(**fault)
        self._faults[number] = time.monotonic() + step.values["seconds"]
        return number

    def _watch(self, step):
        match = {"verb": "watch", "resource": step.kind, "userAgent": OPERATOR}
        self._fault(step, match=match, times=0, **step.values["watch"])
        if "stall" not in step.values["watch"] and step.values["cut"]:
            self._fault(step, match={**match, "verb": "list"}, times=0, **step.values["watch"])
        self.server.close_watches("clean" if step.values["cut"] else "cut", {"resource": step.kind, "userAgent": OPERATOR})
        # What is made behind it, the next run must be shown.
        self._carry_out(Step("create", step.kind, step.name, step.values))
        self._carry_out(Step("change", step.kind, step.name, step.values))

    def _write(self, step):
        self._fault(step, match={"verb": step.values["verb"], "resource": step.values["resource"], "userAgent": OPERATOR},
                    times=step.values["times"], after=step.values["after"] // 2, **step.values["write"])

    def _read(self, step):
        refusal = _REFUSALS[1 + step.values["after"] % 4]
        self._fault(step, match={"verb": "get", "userAgent": OPERATOR}, times=step.values["times"], **refusal)

    # ---- deaths

    def _kill_at_write(self, step):
        """Its nth write from now on gets no answer, and the operator dies meanwhile."""
        def is_hit():
            return not self.is_up() or self.server.faults()[number]["hit"]

        if not self.is_up():
            return False
        number = self.server.fault(match={"verb": step.values["verb"], "userAgent": OPERATOR}, hang=True, after=step.values["after"],
                                   carriedOut=step.values["cut"])
        try:
            self._carry_out(Step("remake" if step.values["verb"] == "delete" else "create", step.kind, step.name, step.values))
            self._carry_out(Step("change", step.kind, step.name, step.values))
            with contextlib.suppress(Timeout):
                wait_until(is_hit, "the write", 0.5, interval=0.005)
                self._kill_supervisor(step)
                return True
            # One that hangs already would hang for long.
            return bool(self.server.faults()[number]["hit"]) and self._kill_supervisor(step)
        finally:
            self.server.clear_faults(number)

    def _kill(self, step):
        self.story.gap()
        return self.kill(step)

    def _kill_supervisor(self, step):
        self.story.gap()
        return self.kill_supervisor(step)

    def _stop(self, step):
        return self.stop(step)

    def _reload(self, _):
        self._reloads += 1
        return self.reload()

    def over(self):
        self.story.over()

    def _is_started(self):
        self.look_after_operator()
        return self.is_up()

    def _lose_state(self):
        """The state folder, once."""
        self._kill_supervisor(None)
        wait_until(lambda: self.operator.popen is None or self.operator.popen.poll() is not None, "its end", 30)
        if self.operator.popen is not None:
            self.look_after_operator()
        for path in self.operator.state_directory.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        self.count["lose state"] += 1

    # ---- the end

    def _settle(self):
        """No more trouble: all comes right, as far as people let it; then they let it; then all is deleted."""
        self.server.clear_faults()
        wait_until(self.stays_up, "the operator to be up", 60)
        self._wait(self._differences, "all to be as specified")
        for uid, (plural, body) in self.story.foreigners():
            self.children[plural].delete(body["metadata"]["name"])
            self.story.deleted(uid)
        self._wait(self._differences, "all to be as specified once nothing is in the way")
        for body in self.databases.list()["items"]:
            self.story.going(body["metadata"]["uid"])
            self.databases.delete(body["metadata"]["name"])
        self._wait(self._left, "all to be gone")
        self._wait(self._owed, "rest")
        self.operator.stop()
        self.over()
        if rest.owed(self.operator):
            raise Broken(f"the ledger has {rest.owed(self.operator)}, of which nothing is left")
        self.story.judge_log()

    def _wait(self, differences, what):
        def none_is_left():
            self.look_after_operator()
            self.story.read()
            return not differences()

        try:
            wait_until(none_is_left, what, SETTLE_SECONDS, interval=0.2)
        except Timeout as error:
            raise Broken("\n".join([self.said(), f"{error}; in the end:", *differences()])) from None

    def _differences(self):
        return [f"{body['metadata']['name']}: {why}" for body in self.databases.list()["items"] for why in [self._differs(body)] if why]

    def _differs(self, body):
        name, spec = body["metadata"]["name"], body["spec"]
        if "deletionTimestamp" in body["metadata"]:
            return "it is being deleted"
        ready = next((entry for entry in body.get("status", {}).get("conditions", []) if entry["type"] == "Ready"), {})
        others = [f"{child['kind']} default/{child['metadata']['name']}" for _, (plural, child) in self.story.foreigners()
                  if child["metadata"]["name"] == name_of(plural, name)]
        if others:
            told = ready.get("status") == "False" and any(other in ready.get("message", "") for other in others)
            return "" if told else f"{others} are in the way, and Ready is {ready}"
        if ready.get("status") != "True" or ready.get("observedGeneration") != body["metadata"]["generation"]:
            return f"Ready is {ready}"
        found = {plural: resource.get(name_of(plural, name)) for plural, resource in self.children.items()}
        return self._child_differs(body, spec, **found)

    def _child_differs(self, body, spec, secrets, services, statefulsets):
        uid = body["metadata"]["uid"]
        for child in (secrets, services, statefulsets):
            if [reference["uid"] for reference in child["metadata"].get("ownerReferences", [])] != [uid]:
                return f"{child['kind']}: its owner is {child['metadata'].get('ownerReferences')}"
        if (statefulsets["spec"]["replicas"], statefulsets["spec"]["template"]["spec"]["containers"][0]["image"]) != (
                spec["replicas"], f"postgres:{spec['version']}"):
            return f"its StatefulSet is {statefulsets['spec']}"
        if services["spec"]["selector"] != {"database": body["metadata"]["name"]}:
            return f"its Service is {services['spec']}"
        if secrets["data"]["password"] != self.story.password_of(uid):
            return "its password is none that it had"
        running = statefulsets.get("status", {}).get("readyReplicas", 0)
        return "" if body["status"]["replicas"] == running else f"its status is {body['status']}, of {running} pods"

    def _left(self):
        return [f"{plural}: {names}" for plural, resource in {**self.children, "databases": self.databases}.items()
                if (names := resource.names())]

    def _owed(self):
        return [f"{entry['name']}: {entry}" for entry in self.operator.ctl.status()["watches"]
                if entry["queued"] or entry["running"] or entry["waiting"]]
