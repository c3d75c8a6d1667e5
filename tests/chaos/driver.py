# SPDX-License-Identifier: Apache-2.0
"""Carries the plan out: changes objects on an API server, ends processes of the operator, and starts it again as systemd would."""
import collections
import contextlib
import http.client
import itertools
import signal
import time

from harness import Operator, Timeout, wait_until

from . import plan, rest, restore
from .objects import Objects
from .systemd import END_SECONDS, Life
from .world import Broken, as_it_is

SETTLE_SECONDS = 90
STEPS_WHILE_IT_ENDS = 20


class Chaos(Objects, Life):
    def __init__(self, sandbox, seed, name="devserver", pace=0.004, say=lambda text: None, only=(), given=None):
        """name: of the API server, of harness.cluster.servers() if it is not devserver. only: plan.steps. given: steps in their place."""
        Life.__init__(self, Operator(sandbox))
        Objects.__init__(self, sandbox, seed, name, pace, say)
        self._where = "devserver" if name == "devserver" else "cluster"
        self._plan = given or plan.steps(seed, self._where, only)
        self._ending = 0  # steps since somebody was killed
        self._resume = {}  # kind: when its watch is to be resumed
        self._changed = collections.Counter()  # reloads, by what they have changed
        self._removed = {}  # kind: when its watch, which a reload has removed, is to be back
        self.configure()
        self.server.admit(self.operator)

    def configure(self):
        self.operator.configure(
            self.server, [self._watch(kind, self._changed) for kind in plan.KINDS if kind not in self._removed], workers=3,
            pageLimit=10 + self._changed["whole"],
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
        return super()._do(step)

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

    # ---- processes

    def leader(self):
        return self.operator

    def wait_end(self):
        """For its end, if that is near."""
        if self._due is not None:
            with contextlib.suppress(Timeout):
                wait_until(lambda: self.operator.popen.poll() is not None, "its end", END_SECONDS)

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

    def look_after(self, now):
        self._resume_watches(now)
        self._bring_back(now)

    # ---- the end

    def _settle(self):
        """No more trouble: everything must come right by itself."""
        self.server.settle()
        self._let_go()
        self._resume = dict.fromkeys(plan.KINDS, 0)  # also one whose answer was lost
        self._removed = dict.fromkeys(self._removed, 0)
        wait_until(lambda: self.stays_up() and not self._resume and not self._removed, "the operator to be up", 60)
        try:
            wait_until(lambda: not self._differences(), "all to be handled", SETTLE_SECONDS, interval=0.2)
        except AssertionError:
            self._judge()
            raise Broken("\n".join([self.said(), "in the end:"] + self._differences()[:40])) from None
        self._judge()
