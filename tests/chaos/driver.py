# SPDX-License-Identifier: Apache-2.0
"""Carries the plan out: changes objects on an API server, ends processes of the operator, starts it again as systemd would,
and in the end asks whether every object's last essence and every deletion was handled."""
import collections
import contextlib
import http.client
import itertools
import signal
import time

from harness import ApiError, Operator, Timeout, wait_until, watch

from . import handlers, plan, rest, restore, server
from .systemd import END_SECONDS, Life
from .world import Broken, FINALIZED, HOLD, OURS, SELECTED, Notes, Thing, as_it_is, finalizer_differs, missing

SETTLE_SECONDS = 90
STEPS_WHILE_IT_ENDS = 20


class Chaos(Life):
    def __init__(self, sandbox, seed, name="devserver", pace=0.004, say=lambda text: None, only=(), given=None):
        """name: of the API server, of harness.cluster.servers() if it is not devserver. only: plan.steps. given: steps in their place."""
        self.sandbox, self.seed, self.pace, self.say = sandbox, seed, pace, say
        self.server = server.make(sandbox, name)
        self._where = "devserver" if name == "devserver" else "cluster"
        self._plan = given or plan.steps(seed, self._where, only)
        super().__init__(Operator(sandbox))
        folder = sandbox.subfolder("chaos", mode=0o777)
        self.notes = Notes(folder / "notes")
        self.things, self.gone = {}, []
        self._number = 0
        self._unsure = set()  # (kind, name) of objects to which a request may have been carried out
        self._disturbed = {}  # name of a child: its owner's essence, and how many gaps there had been
        self._lost = 0  # stores
        self._ending = 0  # steps since somebody was killed
        self._commands = handlers.write(folder, self.notes.path)
        self._resume = {}  # kind: when its watch is to be resumed
        self._changed = collections.Counter()  # reloads, by what they have changed
        self._removed = {}  # kind: when its watch, which a reload has removed, is to be back
        self._finalizers = {"held": True, "plain": True, "chosen": False, "quiet": False}
        self._prepare()
        self.configure()
        self.server.admit(self.operator)

    def _prepare(self):
        api = self.server.api
        self.widgets, self.children = {}, {}
        for kind in plan.KINDS:
            api.resource("v1", "namespaces").create(kind)
            self.widgets[kind] = api.resource("example.com/v1", "widgets", kind)
        self.children = api.resource("v1", "configmaps", "held")

    def configure(self):
        """With numbers that tell reloads apart, and change nothing else: of a watch, of a handler, of the whole."""
        def entry(kind):
            return {**watch(kind, namespaces=[kind]), **({} if kind == "held" else {"id": kind}), "handler": self._commands[kind],
                    "quarantine": {"after": 3, "duration": "1s"},
                    "reconnect": {"first": "50ms", "max": f"{1000 + self._changed[kind]}ms", "stall": "3s",
                                  "initialEvents": "3s", "watchTimeout": "10s"},
                    "resync": f"{36000 + self._changed['handler']}s", "finalizer": self._finalizers[kind], **special.get(kind, {})}

        special = {"held": {"owns": [{"apiVersion": "v1", "kind": "ConfigMap"}],
                            "children": {"force": True}},
                   "chosen": {"labelSelector": "tier=gold", "unselected": True},
                   "quiet": {"labelSelector": "tier=gold"}}
        self.operator.configure(
            self.server, [entry(kind) for kind in plan.KINDS if kind not in self._removed], workers=3, pageLimit=10 + self._changed["whole"],
            heartbeat={"interval": "200ms", "deadline": "4s"},
            stop={"grace": "150ms"}, gateway={"listen": f"unix:{self.operator.runtime_directory}/gateway"})

    # ---- the whole

    def run(self, seconds=None, steps=None):
        """Until the time is over, or so many steps are done; raises Broken. The figures are in count and codes."""
        started = told = time.monotonic()
        self.operator.start()
        for step in itertools.islice(self._plan, steps):
            if seconds is not None and time.monotonic() - started > seconds:
                break
            self.server.look_after()
            if steps is not None:
                self._let_it_end()
            self.look_after_operator()
            self._carry_out(step)
            self._judge()
            if time.monotonic() - told > 10:
                told = time.monotonic()
                self.say(self.figures())
            self._never.wait(self.pace)
        self._settle()
        rest.rest(self)
        return self

    def _let_it_end(self):
        """A process that hangs is found out after its deadline only, in which all the steps of a short run would pass."""
        self._ending = self._ending + 1 if self._due is not None else 0
        if self._ending > STEPS_WHILE_IT_ENDS:
            wait_until(lambda: self.operator.popen.poll() is not None, lambda: f"its end:\n{self.said()}", END_SECONDS)

    def figures(self):
        changes = sum(self.count[what] for what in plan.OBJECT)
        deaths = sum(number for what, number in self.count.items() if what.startswith("kill"))
        codes = ", ".join(f"{code}: {number}" for code, number in sorted(self.codes.items()))
        troubles = ", ".join(f"{self.count[what]} {what}" for what in plan.SERVERS[self._where])
        return (f"{self.count['step']} steps, {changes} changes, {self.count['create']} objects, {len(self.gone)} gone, "
                f"{self.notes.runs()} runs, {deaths} kills; {troubles}; {self.count['start']} restarts "
                f"(by exit code: {codes})")

    def _carry_out(self, step):
        self.count["step"] += 1
        try:
            if self._do(step) is not False:
                self.count[step.what] += 1
        except ApiError as error:
            # A fault hit us; or the object is just going.
            self.count[f"refused with {error.code}"] += 1
            if error.code != 409:
                self._unsure.add((step.kind, step.name))
        except (OSError, http.client.HTTPException):
            self.count["not answered"] += 1
            self._unsure.add((step.kind, step.name))

    def _do(self, step):
        if step.what == "restore":
            if not restore.get_ahead(self):
                return False
            # Whose end it is may be told before this is over.
            for thing in self.things.values():
                self._allow_end(thing)
        if step.what in plan.SERVERS[self._where]:
            done = getattr(self.server, step.what)(step.values)
            if self.server.restored:
                self._look_around()
            return done
        if step.what in plan.OBJECT:
            if not self.server.up:
                return False
            self._make_sure(step.kind, step.name)
        return getattr(self, "_" + step.what.replace(" ", "_"))(step)

    def _judge(self):
        if self.notes.read().broken:
            raise Broken("\n".join(self.notes.broken))

    # ---- objects

    def _make_sure(self, kind, name):
        """What a request that got no good answer has done."""
        if (kind, name) not in self._unsure:
            return
        try:
            body = self.widgets[kind].get(name)
        except ApiError as error:
            # A server that does not serve the resource yet says 404 as well.
            if error.code != 404 or error.reason != "NotFound":
                raise
            body = None
        thing = self.things.get((kind, name))
        if thing is not None and (body is None or body["metadata"]["uid"] != thing.uid):
            self.gone.append(self.things.pop((kind, name)))
            self.gone[-1].deleting, thing = True, None
        if body is not None:
            self.things[kind, name] = as_it_is(thing, kind, body)
        self._unsure.remove((kind, name))

    def _allow_end(self, thing):
        for word in ("deleting", "gone"):
            self.notes.write(word, thing.uid)

    def _live(self):
        """Asks until it is answered: a fault that was meant for the operator may hit this list, and nobody asks later."""
        def listed():
            with contextlib.suppress(http.client.HTTPException):
                return {kind: resource.list()["items"] for kind, resource in self.widgets.items()}

        return [(kind, body) for kind, bodies in wait_until(listed, "a list of every widget").items() for body in bodies]

    def _look_around(self):
        """After a restore: what is there is as it was, what came later was never there, and what has gone is back."""
        self.server.restored = False
        known = {thing.uid: thing for thing in self.gone + list(self.things.values())}
        live = self._live()
        for kind, body in live:
            self.notes.write("restored", f"{kind}/{body['metadata']['name']}")
        self.things = {(kind, body["metadata"]["name"]): as_it_is(known.pop(body["metadata"]["uid"], None), kind, body)
                       for kind, body in live}
        for thing in self.things.values():
            thing.chosen_since, thing.went_back = None, thing.number
            self._allow_end(thing)
            self.notes.write("relabelled", thing.uid)
        self.gone = list(known.values())
        for thing in self.gone:
            thing.deleting = True
        self._unsure.clear()
        restore.wait_asked(self)

    def next_number(self):
        self._number += 1
        return self._number

    def _thing(self, step):
        return self.things.get((step.kind, step.name))

    def _create(self, step, number=0):
        known = self._thing(step)
        if known is not None and (not known.deleting or known.kind not in FINALIZED):
            return False
        gold = step.values["chance"] < 0.8
        body = self.widgets[step.kind].create(step.name, spec={"essence": number or self.next_number()},
                                              labels={"tier": "gold" if gold else "silver"})
        if known is not None:
            self.gone.append(known)
        number = body["spec"]["essence"]
        self.things[step.kind, step.name] = Thing(step.kind, step.name, body["metadata"]["uid"], number, gold,
                                                  chosen_since=number)

    def _change(self, step, change, subresource=None):
        """GET, change(body), PUT, until nobody came between. False: there is no such object."""
        thing = self._thing(step)
        if thing is None or thing.deleting:
            return False
        while True:
            body = self.widgets[step.kind].get(step.name)
            change(body)
            try:
                self.widgets[step.kind].replace(body, subresource)
                return thing
            except ApiError as error:
                if error.code != 409:
                    raise

    def _update(self, step):
        number = self.next_number()
        thing = self._change(step, lambda body: body["spec"].update(essence=number))
        if thing:
            thing.number = number
        return bool(thing)

    def _slow(self, step, permanent):
        """An essence at which a handler takes its time, and fails for ever behind it."""
        number = self.next_number()
        while number % 11 or (number % 13 == 0) != permanent or number % 17 == 0 or number % 7 == 0:
            number = self.next_number()
        return number

    def _wait_begun(self, thing):
        """For a handler to see it; not for long, because there are reasons not to."""
        def begun():
            return not self.is_up() or ("reconcile", thing.number) in self.notes.read().of(thing.uid).begun

        with contextlib.suppress(Timeout):
            wait_until(begun, "its run", 1, interval=0.005)

    def _set(self, step, number):
        """Its essence. False: there is no such object."""
        thing = self._change(step, lambda body: body["spec"].update(essence=number))
        if thing:
            thing.number = number
        return thing

    def _revert(self, step):
        """Something new, which its handler gets to see, and back to what it was; meanwhile may happen what ends that run."""
        before = self._thing(step).number if self._thing(step) else 0
        thing = self._set(step, self._slow(step, permanent=step.values["chance"] < 0.25))
        if not thing:
            return False
        self._wait_begun(thing)
        between = step.values["between"]
        if between == "conflict":
            self._status(step)
        elif between != "nothing":
            getattr(self, "_" + between.replace(" ", "_"))(step)
            if step.values["cut"] and self._due is not None:
                with contextlib.suppress(Timeout):
                    wait_until(lambda: self.operator.popen.poll() is not None, "its end", END_SECONDS)
        self._set(step, before)
        return True

    def _reuse(self, step):
        """Deleted while its handler runs, and made anew, as fast as that goes; the new one's handler writes nothing."""
        thing = self._thing(step)
        if thing is None or thing.held or thing.deleting:
            return False
        if step.values["cut"]:
            self._set(step, self._slow(step, permanent=False))
            self._wait_begun(thing)
        self._delete(step)
        end = time.monotonic() + 0.5
        while True:
            try:
                return self._create(step, self._slow(step, permanent=True))
            except ApiError as error:
                if error.code != 409 or time.monotonic() > end:
                    raise

    def _relabel_under_way(self, step):
        """It leaves the selection while its handler runs, and may come back, as it was or changed."""
        thing = self._thing(step)
        if step.kind not in SELECTED or thing is None or thing.deleting or not thing.gold:
            return False
        self._set(step, self._slow(step, permanent=step.values["chance"] < 0.25))
        self._wait_begun(thing)
        self._label(step, thing, "silver")
        if step.values["cut"]:
            self._label(step, thing, "gold")
        return True

    def _label(self, step, thing, tier):
        if tier != "gold":
            self.notes.write("relabelled", thing.uid)
        self._change(step, lambda body: body["metadata"]["labels"].update(tier=tier))
        thing.gold = tier == "gold"
        if thing.gold:
            thing.chosen_since = None

    def _drop_finalizer(self, step):
        """`kubectl replace` of a manifest that does not know of it."""
        if step.kind not in FINALIZED:
            return False

        def change(body):
            body["metadata"]["finalizers"] = [name for name in body["metadata"].get("finalizers", []) if name != OURS[step.kind]]

        return bool(self._change(step, change))

    def _status(self, step):
        def change(body):
            body.setdefault("status", {})["other"] = step.values["chance"]

        return bool(self._change(step, change, "status"))

    def _relabel(self, step):
        number = self.next_number()
        gold = step.values["chance"] < 0.6
        thing = self._thing(step)
        if thing is None or thing.deleting or thing.gold == gold:
            return False
        if not gold:
            self.notes.write("relabelled", thing.uid)

        def change(body):
            body["spec"]["essence"] = number
            body["metadata"]["labels"]["tier"] = "gold" if gold else "silver"

        self._change(step, change)
        thing.number, thing.gold, thing.chosen_since = number, gold, number if gold else thing.chosen_since
        return True

    def _hold(self, step):
        """A finalizer of somebody else: the object stays a while when it is deleted."""
        thing = self._change(step, lambda body: body["metadata"].setdefault("finalizers", []).append(HOLD)
                             if HOLD not in body["metadata"].get("finalizers", []) else None)
        if thing:
            thing.held = True
        return bool(thing)

    def _delete(self, step):
        thing = self._thing(step)
        if thing is None or thing.deleting:
            return False
        self.notes.write("deleting", thing.uid)
        if not thing.held:
            self.notes.write("gone", thing.uid)
        thing.deleting = True
        try:
            self.widgets[step.kind].delete(step.name)
        except ApiError as error:
            if error.code != 404:
                thing.deleting = False
            raise
        self._forget_if_gone(thing)
        return True

    def _forget_if_gone(self, thing):
        if thing.kind not in FINALIZED and not thing.held:
            self.gone.append(self.things.pop((thing.kind, thing.name)))

    def _release(self, step):
        """Somebody else's finalizer goes from an object that is being deleted."""
        thing = self._thing(step)
        if thing is None or not thing.deleting or not thing.held:
            return False
        self.notes.write("gone", thing.uid)
        while True:
            body = self.widgets[step.kind].get(step.name)
            body["metadata"]["finalizers"].remove(HOLD)
            try:
                self.widgets[step.kind].replace(body)
                break
            except ApiError as error:
                if error.code != 409:
                    raise
        thing.held = False
        self._forget_if_gone(thing)
        return True

    def _child(self, step):
        """A child is deleted, or changed, behind the operator's back."""
        if step.kind != "held":
            return False
        owner = self._thing(step)
        self._disturbed[step.name] = (owner.number if owner else 0, -1 if self.server.expires else self._gaps)
        if step.values["cut"]:
            self.children.delete(step.name)
            return True
        body = self.children.get(step.name)
        body["data"]["of"] = "nothing"
        self.children.replace(body)
        return True

    @property
    def _gaps(self):
        """How often a list took the place of history, or may have. A child that was made, and changed by others, before
        anybody has seen it shows in none: that is repaired with the next run of its owner, and not demanded here."""
        return self._lost + self.server.gaps

    # ---- processes

    def _kill(self, step):
        done = self.kill(step)
        self._lost += done
        return done

    def _kill_supervisor(self, step):
        return self.kill_supervisor(step)

    def _stop(self, step):
        return self.stop(step)

    def _suspend(self, step):
        """The whole operator sleeps for less than its deadlines."""
        if not self.is_up():
            return False
        found = self.operator.processes()
        for process in found:
            self.send(process, signal.SIGSTOP)
        self._never.wait(step.values["seconds"])
        for process in reversed(found):
            self.send(process, signal.SIGCONT)
        return True

    def _kill_handler(self, step):
        if not self.is_up():
            return False
        found = [process for process in self.operator.processes()
                 if any("handler-" in word for word in process.command) and not process.program.startswith("reconciled")]
        if not found:
            return False
        victim = found[int(step.values["chance"] * len(found))]
        self.notes.write("killed", victim.pid)
        return self.send(victim, signal.SIGKILL)

    def _reload(self, step):
        """Of a watch, of a handler, or of the whole: each is a restart in place."""
        if not self.is_up() or self.readies() == 0:
            return False
        self._changed[(step.kind, "whole", step.kind, "handler")[self.count["reload"] % 4]] += 1
        return self.reload()

    def _switch_finalizer(self, step):
        """Of one watch, by a reload, or by a stop and a start."""
        self._finalizers["plain"] = not self._finalizers["plain"]
        if step.values["cut"] and self.is_up():
            self.configure()
            return self._stop(step)
        self.reload()
        return True

    def _remove_watch(self, step):
        """By a reload; another one brings it back."""
        if self._removed:
            return False
        self._removed[step.kind] = time.monotonic() + 3 * step.values["seconds"]
        self.reload()
        return True

    def _bring_back(self, now):
        if any(now >= due for due in self._removed.values()):
            self._removed.clear()
            self.reload()

    def _pause(self, step):
        """For a moment, across restarts too. A second one makes it longer."""
        if not self.is_up() or self.operator.ctl.run("pause", step.kind).returncode != 0:
            return False
        self._resume[step.kind] = time.monotonic() + 2 * step.values["seconds"]
        return True

    def _resume_watches(self, now):
        for kind, due in list(self._resume.items()):
            if now >= due and self.operator.ctl.run("resume", kind).returncode == 0:
                del self._resume[kind]

    def _lose_store(self, step):
        """Only while it is down: the caches are gone, the ledger is not."""
        if self.operator.popen is not None:
            return False
        self._lost += 1
        for path in (self.operator.state_directory / "store" / step.kind).glob("*"):
            with contextlib.suppress(OSError):
                (path / "data.mdb").unlink()
        return True

    def over(self):
        self.notes.read().write("over")

    def look_after(self, now):
        self._resume_watches(now)
        self._bring_back(now)

    # ---- the end

    def _settle(self):
        """No more trouble: everything must come right by itself."""
        self.server.settle()
        for kind, name in list(self._unsure):
            self._make_sure(kind, name)
        for thing in list(self.things.values()):
            if thing.deleting and thing.held:
                self._release(plan.Step("release", thing.kind, thing.name))
        self._resume = dict.fromkeys(plan.KINDS, 0)  # also one whose answer was lost
        self._removed = dict.fromkeys(self._removed, 0)
        wait_until(lambda: self.stays_up() and not self._resume and not self._removed, "the operator to be up", 60)
        try:
            wait_until(lambda: not self._differences(), "all to be handled", SETTLE_SECONDS, interval=0.2)
        except AssertionError:
            self._judge()
            raise Broken("\n".join([self.said(), "in the end:"] + self._differences()[:40])) from None
        self._judge()

    def _differences(self):
        self.look_after_operator()
        self.notes.read()
        found = []
        for kind, resource in self.widgets.items():
            live = {body["metadata"]["uid"]: body for body in resource.list()["items"]}
            known = [thing for thing in self.gone + list(self.things.values()) if thing.kind == kind]
            for thing in known:
                body = live.get(thing.uid)
                why = missing(thing, body, self.notes.of(thing.uid))
                if body is not None and thing.deleting:
                    why = why or "it is still there"
                elif body is not None and (kind not in SELECTED or thing.gold):
                    why = why or finalizer_differs(thing, body, self._finalizers[kind])
                if body is None and not thing.deleting:
                    why = "nobody has deleted it, and it is gone"
                if why:
                    found.append(f"{kind}/{thing.name} ({thing.uid}): {why}")
        return found + self._child_differences() + self._failing_differences()

    def _failing_differences(self):
        """What fails is what its handler says will fail for ever."""
        wanted = collections.Counter(thing.kind for thing in self.things.values()
                                     if thing.number % 13 == 0 and not thing.deleting and (thing.kind not in SELECTED or thing.gold))
        found = {entry["name"]: entry["failing"] for entry in self.operator.ctl.status()["watches"] if entry["name"] in plan.KINDS}
        return [f"{kind}: failing {found[kind]}, not {wanted[kind]}" for kind in found if found[kind] != wanted[kind]]

    def _child_differences(self):
        def may_differ(name):
            number, gaps = self._disturbed.get(name, (0, 0))
            owner = self.things.get(("held", name))
            return owner is not None and (owner.number % 13 == 0 or owner.number == owner.went_back or (owner.number == number and gaps != self._gaps))

        wanted = {thing.name: (str(thing.number), thing.uid) for thing in self.things.values()
                  if thing.kind == "held" and not thing.deleting}
        found = {body["metadata"]["name"]: (body["data"].get("of"), body["metadata"]["ownerReferences"][0]["uid"])
                 for body in self.children.list()["items"]}
        differences = [entry for entry in sorted(wanted.items() ^ found.items()) if not may_differ(entry[0])]
        return [f"children: {differences}"] if differences else []
