# SPDX-License-Identifier: Apache-2.0
"""What people do to the objects, one method a step of plan.OBJECT, and whether each object's last essence and its deletion were
handled in the end."""
import collections
import contextlib
import http.client
import time

from harness import ApiError, Timeout, wait_until, watch

from . import handlers, plan, server
from .world import FINALIZED, HOLD, OURS, SELECTED, Broken, Notes, Thing, as_it_is, finalizer_differs, missing


class Objects:
    """count, is_up(), look_after_operator(), leader() (the Operator that works, or None) and wait_end() are the caller's."""

    def __init__(self, sandbox, seed, name, pace, say, **handler):
        """name: of the API server, of harness.cluster.servers() if it is not devserver. handler: of handlers.write."""
        self.sandbox, self.seed, self.pace, self.say = sandbox, seed, pace, say
        self.server = server.make(sandbox, name)
        self._folder = sandbox.subfolder("chaos", mode=0o777)
        self.notes = Notes(self._folder / "notes")
        self.things, self.gone = {}, []
        self._number = 0
        self._unsure = set()  # (kind, name) of objects to which a request may have been carried out
        self._disturbed = {}  # name of a child: its owner's essence, and how many gaps there had been
        self._lost = 0  # stores
        self._commands = handlers.write(self._folder, self.notes.path, **{"slow": 0.25, **handler})
        self._finalizers = {"held": True, "plain": True, "chosen": False, "quiet": False}
        self._prepare()

    def _prepare(self):
        api = self.server.api
        self.widgets, self.children = {}, {}
        for kind in plan.KINDS:
            api.resource("v1", "namespaces").create(kind)
            self.widgets[kind] = api.resource("example.com/v1", "widgets", kind)
        self.children = api.resource("v1", "configmaps", "held")

    def _watch(self, kind, changed):
        """Its configuration. changed: how often a reload has changed what; the numbers tell reloads apart, and change nothing else."""
        special = {"held": {"owns": [{"apiVersion": "v1", "kind": "ConfigMap"}], "children": {"force": True}},
                   "chosen": {"labelSelector": "tier=gold", "unselected": True},
                   "quiet": {"labelSelector": "tier=gold"}}
        return {**watch(kind, namespaces=[kind]), **({} if kind == "held" else {"id": kind}), "handler": self._commands[kind],
                "quarantine": {"after": 3, "duration": "1s"},
                "reconnect": {"first": "50ms", "max": f"{1000 + changed[kind]}ms", "stall": "3s",
                              "initialEvents": "3s", "watchTimeout": "10s"},
                "resync": f"{36000 + changed['handler']}s", "finalizer": self._finalizers[kind], **special.get(kind, {})}

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
        if step.what in plan.OBJECT:
            if not self.server.up:
                return False
            self._make_sure(step.kind, step.name)
        return getattr(self, "_" + step.what.replace(" ", "_"))(step)

    def _judge(self):
        if self.notes.read().broken:
            raise Broken("\n".join(self.notes.broken))

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

    def _wait_begun(self, thing, seconds=1):
        """For a handler to see it; not for long, because there are reasons not to."""
        def begun():
            return not self.is_up() or ("reconcile", thing.number) in self.notes.read().of(thing.uid).begun

        with contextlib.suppress(Timeout):
            wait_until(begun, "its run", seconds, interval=0.005)

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
            if step.values["cut"]:
                self.wait_end()
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

    # ---- the end

    def _let_go(self):
        """No object is held any more."""
        for kind, name in list(self._unsure):
            self._make_sure(kind, name)
        for thing in list(self.things.values()):
            if thing.deleting and thing.held:
                self._release(plan.Step("release", thing.kind, thing.name))

    def _missing(self, thing, body):
        return missing(thing, body, self.notes.of(thing.uid))

    def _differences(self):
        self.look_after_operator()
        self.notes.read()
        found = []
        for kind, resource in self.widgets.items():
            live = {body["metadata"]["uid"]: body for body in resource.list()["items"]}
            known = [thing for thing in self.gone + list(self.things.values()) if thing.kind == kind]
            for thing in known:
                body = live.get(thing.uid)
                why = self._missing(thing, body)
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
        found = {entry["name"]: entry["failing"] for entry in self.leader().ctl.status()["watches"] if entry["name"] in plan.KINDS}
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
