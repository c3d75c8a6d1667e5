# SPDX-License-Identifier: Apache-2.0
"""Three replicas on a real API server: the objects of the driver change while replicas are killed, stopped, cut off from the server,
asked to stop or to step down, and lose their state, and while the server is away. No two runs of one object overlap; epochs and the
epochs of what is written only grow; no deletion is invented; and in the end none is lost, nor any change."""
import collections
import http.client
import random
import shutil
import signal
import threading
import time
import types
from dataclasses import replace

import yaml

from harness import Operator, scaled, wait_until
from harness.replicas import DURATION

from . import plan
from .objects import Objects
from .plan import KINDS, NAMES, Step
from .proxy import WAYS, Proxy
from .rest import owed
from .systemd import RESTARTED, Life
from .world import SELECTED, Broken

COUNT = 3
NAMESPACE = "leases"
SETTLE_SECONDS = 120  # without a trouble; the last lead may have to run out first

# How often a step is what. What happens to a replica happens to the leader in two of three cases.
_OBJECT = {"create": 330, "update": 230, "status": 60, "delete": 150, "hold": 40, "release": 50, "relabel": 50, "child": 15,
           "revert": 20, "reuse": 12, "relabel under way": 6}
_REPLICA = {"kill": 2, "kill supervisor": 1, "kill all": 2, "kill handler": 1, "freeze": 5, "stop": 2, "reload": 1, "step down": 1,
            "partition": 4, "lose state": 1, "delete leases": 1}
SERVER = {"restart": 1, "compact": 1, "etcd": 1, "outage": 1}
_SIGNALS = ("KILL", "KILL", "TERM", "ABRT", "SEGV", "STOP")
_ROLES = ("credential", "watcher", "worker", "worker", "spawner", "lease", "lease")


def steps(seed):
    """Without end. Every step takes the same from the generator, whatever it is."""
    generator = random.Random(seed)
    weight = _OBJECT | _REPLICA | SERVER
    while True:
        what = generator.choices(list(weight), list(weight.values()))[0]
        yield Step(what, generator.choice(KINDS), f"o{generator.randrange(NAMES)}", {
            "chance": generator.random(), "role": generator.choice(_ROLES), "signal": generator.choice(_SIGNALS),
            "leader": generator.random() < 0.67, "which": generator.randrange(COUNT), "way": generator.choice(WAYS),
            "part": generator.choice(("all", "all", "supervisor", "all but the lease")),
            "seconds": generator.uniform(0.1, 2.2) * DURATION, "cut": generator.random() < 0.5,
            "between": generator.choice(("nothing", "kill handler", "kill", "kill all", "freeze", "freeze", "stop", "partition")),
        })


class Replica(Life):
    restarted = RESTARTED | {75}

    def __init__(self, sandbox, server, write):
        """write(replica): its configuration."""
        super().__init__(Operator(sandbox))
        kubeconfig = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
        cluster = kubeconfig["clusters"][0]["cluster"]
        self._proxy = Proxy(int(cluster["server"].rpartition(":")[2]))
        cluster["server"] = f"https://127.0.0.1:{self._proxy.port}"
        self.server = types.SimpleNamespace(kubeconfig=self.operator.folder / "proxied")
        self.server.kubeconfig.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
        self._write = write
        self._frozen, self._thaw, self._heal = [], 0, 0
        self._loses_state = False
        self.configure()

    def configure(self):
        self._write(self)

    def is_up(self):
        return super().is_up() and not self._frozen

    def leads(self):
        return self.is_up() and bool(self.operator.children("worker"))

    def freeze(self, step):
        """For shorter or longer than its lead lasts. What is not frozen goes on."""
        if not self.is_up():
            return False
        part, supervisor = step.values["part"], self.operator.pid
        self._frozen = [found for found in self.operator.processes()
                        if part == "all" or (found.pid == supervisor) == (part == "supervisor") and found.program != "reconciled-lease"]
        for found in self._frozen:
            self.send(found, signal.SIGSTOP)
        self._thaw = time.monotonic() + step.values["seconds"]
        return True

    def thaw(self):
        for found in reversed(self._frozen):
            self.send(found, signal.SIGCONT)
        self._frozen = []

    def partition(self, step):
        self._proxy.close(step.values["way"])
        self._heal = time.monotonic() + step.values["seconds"]

    def heal(self):
        self._proxy.open()
        self._heal = float("inf")

    def kill_all(self, loses_state=False):
        """As when its node goes."""
        if not self.kill_supervisor():
            return False
        for found in self.operator.processes():
            self.send(found, signal.SIGKILL)
        self._loses_state = loses_state
        return True

    def over(self):
        if self._loses_state:
            for path in self.operator.state_directory.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._loses_state = False

    def look_after(self, now):
        if self._frozen and now >= self._thaw:
            self.thaw()
        if now >= self._heal:
            self.heal()


class Replicas(Objects):
    """run() raises Broken. The figures are in count and codes."""

    def __init__(self, sandbox, seed, name, say=lambda text: None):
        self.count = collections.Counter()
        # The kernel kills a handler, and not what that has started, if nobody of ours is awake to do so (docs/replicas.md).
        super().__init__(sandbox, seed, name, scaled(0.05), say, slow=0.6, by_itself=True)
        self._leases = self.server.api.resource("coordination.k8s.io/v1", "leases", NAMESPACE)
        self.server.api.resource("v1", "namespaces").create(NAMESPACE)
        self._reloads = collections.Counter()
        self._epochs = {}  # uid: of its status
        self._calm = 0  # until then there is no other trouble
        self._never = threading.Event()
        self.replicas = [Replica(sandbox, self.server, self._configure) for _ in range(COUNT)]
        self.server.admit(self.replicas[0].operator)

    def _configure(self, replica):
        replica.operator.configure(
            replica.server, [self._watch(kind, self._reloads) for kind in KINDS], workers=3,
            heartbeat={"interval": "200ms", "deadline": "4s"}, stop={"grace": "150ms"},
            replicas={"namespace": NAMESPACE, "duration": f"{DURATION:g}s"})

    # ---- the whole

    def run(self, seconds):
        began = told = time.monotonic()
        for replica in self.replicas:
            replica.operator.start()
        for step in steps(self.seed):
            now = time.monotonic()
            if now - began > seconds:
                break
            self.server.look_after()
            self.look_after_operator()
            self._carry_out(step)
            self._judge()
            if now - told > 10:
                told = now
                self.say(self.figures())
            self._never.wait(self.pace)
        self._settle()
        self._rest()
        self.say(self.figures())
        return self

    def figures(self):
        codes = sum((replica.codes for replica in self.replicas), collections.Counter())
        ends = ", ".join(f"{code}: {number}" for code, number in sorted(codes.items()))
        troubles = ", ".join(f"{self.count[what]} {what}" for what in (*_REPLICA, "meet a run of", *SERVER))
        return (f"{self.count['step']} steps, {self.count['create']} objects, {len(self.gone)} gone, {self.notes.runs()} runs, "
                f"{self.notes.leads} leads; {troubles}; ends by exit code: {ends}")

    def look_after_operator(self):
        for replica in self.replicas:
            replica.look_after_operator()

    def is_up(self):
        return any(replica.is_up() for replica in self.replicas)

    def wait_end(self):
        """Another one may lead before it has ended."""

    def leader(self):
        leaders = [replica.operator for replica in self.replicas if replica.leads()]
        assert leaders, "nobody leads"
        return leaders[0]

    def _do(self, step):
        if step.what not in _OBJECT and time.monotonic() < self._calm:
            return False
        if step.what in SERVER:
            shorter = {"seconds": step.values["seconds"] / DURATION} if step.what == "restart" else {}
            return getattr(self.server, step.what)({**step.values, **shorter})
        return super()._do(step)

    def _judge(self):
        super()._judge()
        if self.count["step"] % 10 or not self.server.up:
            return
        try:
            bodies = self.widgets["held"].list()["items"]
        except (OSError, http.client.HTTPException):
            return
        for body in bodies:
            uid, epoch = body["metadata"]["uid"], (body.get("status") or {}).get("epoch", 0)
            if epoch < self._epochs.get(uid, 0):
                raise Broken(f"held/{body['metadata']['name']} ({uid}): its status is of epoch {epoch}, and was of {self._epochs[uid]}")
            self._epochs[uid] = epoch

    # ---- replicas

    def _replica(self, step):
        leaders = [replica for replica in self.replicas if replica.leads()] if step.values["leader"] else []
        return leaders[0] if leaders else self.replicas[step.values["which"]]

    def _kill(self, step):
        return self._replica(step).kill(step)

    def _kill_supervisor(self, step):
        return self._replica(step).kill_supervisor(step)

    def _kill_all(self, step):
        return self._replica(step).kill_all()

    def _lose_state(self, step):
        return self._replica(step).kill_all(loses_state=True)

    def _meet_a_run(self, step):
        """In every other case a handler is at work, the trouble lasts longer than the lead, and no other one keeps the successor."""
        live = [thing for thing in self.things.values() if not thing.deleting and (thing.gold or thing.kind not in SELECTED)]
        if not step.values["cut"] or not live or not self.server.up or not any(replica.leads() for replica in self.replicas):
            return step
        thing = live[int(step.values["chance"] * len(live))]
        self._carry_out(Step("meet a run of", thing.kind, thing.name, step.values))
        longer = step.values["seconds"] + 1.5 * DURATION
        self._calm = time.monotonic() + longer
        return replace(step, values={**step.values, "seconds": longer, "leader": True, "part": "all"})

    def _meet_a_run_of(self, step):
        self._make_sure(step.kind, step.name)
        thing = self._set(step, self._slow(step, permanent=False))
        if thing:
            self._wait_begun(thing, DURATION)
        return bool(thing)

    def _freeze(self, step):
        step = self._meet_a_run(step)
        return self._replica(step).freeze(step)

    def _partition(self, step):
        step = self._meet_a_run(step)
        return self._replica(step).partition(step)

    def _stop(self, step):
        return self._replica(step).stop(step)

    def _kill_handler(self, step):
        found = [process for replica in self.replicas for process in replica.operator.processes()
                 if any("handler-" in word for word in process.command) and not process.program.startswith("reconciled")]
        return bool(found) and self.replicas[0].send(found[int(step.values["chance"] * len(found))], signal.SIGKILL)

    def _reload(self, step):
        """All have the new configuration; the leader releases its lead."""
        self._reloads[step.kind] += 1
        for replica in self.replicas:
            replica.configure()
        for replica in self.replicas:
            if replica.is_up() and replica.readies() > 0:
                replica.operator.send_signal(signal.SIGHUP)

    def _step_down(self, _):
        leader = next((replica for replica in self.replicas if replica.leads()), None)
        return leader is not None and leader.operator.ctl.run("step-down").returncode == 0

    def _delete_leases(self, _):
        self._leases.delete_collection()

    # ---- the end

    def _settle(self):
        """No more trouble: everything must come right by itself."""
        for replica in self.replicas:
            replica.thaw()
            replica.heal()
        self.server.settle()
        self._let_go()
        try:
            wait_until(lambda: not self._differences(), "all to be handled", SETTLE_SECONDS, interval=0.2)
        except AssertionError as error:
            self._judge()
            raise Broken("\n".join([*self._said(), f"{error}; in the end:"] + self._differences()[:40])) from None
        self._judge()

    def _said(self):
        return [f"---- {replica.operator}\n{replica.said()}" for replica in self.replicas if replica.operator.output]

    def _missing(self, thing, body):
        # Deletions without a finalizer, and what leaves the selection, may fall into a takeover.
        return "" if thing.kind in SELECTED and (body is None or not thing.gold) else super()._missing(thing, body)

    def _differences(self):
        self._collect_garbage()
        return super()._differences()

    def _collect_garbage(self):
        """Children whose owner is gone, as the garbage collector would: a creation may come late, and carries no version."""
        live = {body["metadata"]["uid"] for body in self.widgets["held"].list()["items"]}
        for body in self.children.list()["items"]:
            if body["metadata"].get("ownerReferences", [{"uid": ""}])[0]["uid"] not in live | {""}:
                self.children.delete(body["metadata"]["name"])
                self.count["orphan"] += 1

    def _rest(self):
        def is_at_rest():
            return all(row["queued"] == row["running"] == row["waiting"] == 0 for row in self.leader().ctl.status()["watches"])

        wait_until(is_at_rest, "rest", 60)
        leader = self.leader()
        for operator in sorted((replica.operator for replica in self.replicas), key=lambda operator: operator is leader):
            operator.stop()
            operator.assert_no_processes()
        self._judge()
        wanted = {(thing.kind, thing.uid) for thing in self.things.values()
                  if not thing.deleting and (thing.kind not in SELECTED or thing.gold)}
        found = owed(leader)
        if found != wanted:
            raise Broken(f"the ledger has {sorted(found - wanted)} too much and lacks {sorted(wanted - found)}")
