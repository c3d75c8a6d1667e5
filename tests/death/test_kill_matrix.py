# SPDX-License-Identifier: Apache-2.0
"""Who dies, how, and when: whatever it is, the operator ends with the right code and one cause, leaves nothing behind, and
after a restart nothing is lost."""
import os
import signal
import time

import pytest

from harness import scaled, wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import SANITIZED

from death.conftest import FATAL, GARBAGE, MUTE, SIGNAL, side_by_side, tell

NAMED_CODES = (64, 69, 70, 74, 77, 78)

pytestmark = pytest.mark.quiet

ROLES = ("credential", "watcher", "idle-worker", "busy-worker", "gateway", "spawner", "supervisor")
STATES = ("starting", "syncing", "running", "reloading", "stopping")
SIGNALS = {"SEGV": signal.SIGSEGV, "ABRT": signal.SIGABRT, "KILL": signal.SIGKILL, "STOP": signal.SIGSTOP}
MANNERS = {
    **{name: SIGNAL + number for name, number in SIGNALS.items()},
    **{f"exit-{code}": code for code in (0, 1, *NAMED_CODES)},
    **{f"fatal-{code}": FATAL + code for code in NAMED_CODES},
    "protocol": GARBAGE,
    "heartbeat": MUTE,
}
if SANITIZED:
    del MANNERS["SEGV"]  # which the sanitizer takes for itself
# By a signal, by itself, with a word, with nonsense, and not at all.
ONE_OF_EACH = ("SEGV", "KILL", "STOP", "exit-0", "exit-70", "fatal-69", "protocol", "heartbeat")
if os.environ.get("RECONCILED_FULL") != "1":
    MANNERS = {name: act for name, act in MANNERS.items() if name in ONE_OF_EACH}
LATE = ("reloading", "stopping")
BUSY = "case $RECONCILED_NAME in busy) : >$REQUEST.busy; trap '' TERM; (sleep 300)& while :; do sleep 1; done;; esac"
# Seconds from the fault to the end of everything: detection, TERM, two seconds, KILL, and a machine that is busy.
BOUND = 15.0


def exists(role, state, manner):
    if role == "supervisor":
        # Nobody watches over its words but the children, and nothing over its heart but systemd (tests/systemd).
        return manner in ("SEGV", "ABRT", "KILL") or manner.startswith("exit-")
    if role == "spawner":
        # It has only orders and answers.
        return manner in SIGNALS or manner.startswith("exit-")
    if role == "busy-worker":
        return state not in ("starting", "syncing")
    return True


class Cell:
    """One operator, in a namespace of its own on a devserver that all share."""

    def __init__(self, devserver, operator, handler, shim, role, state, manner):
        self.name = f"{role}-{state}-{manner}"
        self.devserver, self.operator, self.handler = devserver, operator, handler
        self.role, self.state, self.manner, self.act = role, state, manner, MANNERS[manner]
        self.namespace = f"ns-{self.name.lower()}"
        devserver.api.resource("v1", "namespaces").create(self.namespace)
        self.widgets = devserver.api.resource("example.com/v1", "widgets", self.namespace)
        # Whose death changes nothing: who is told to end, and who is not needed for that.
        self.harmless = role != "supervisor" and {
            "stopping": True, "reloading": role != "spawner"}.get(state, False)
        # Who is not told to end itself is struck while a handler holds the end up.
        self.by_plan = state == "starting" or role == "supervisor" and state in LATE or self.harmless and role != "spawner"
        self.busy = role == "busy-worker" or state in LATE and not self.by_plan
        self.once = operator.folder / "once"
        operator.environment["LD_PRELOAD"] = shim
        operator.environment["RECONCILED_DEATH_ONCE"] = self.once
        self.configure()

    def configure(self, **more):
        self.operator.configure(self.devserver, [watch("widgets", self.handler, namespaces=[self.namespace],
                                                       handler_options={"grace": "100ms"}, quarantine={"after": 100})],
                                workers=1, heartbeat={"interval": "100ms", "deadline": "1500ms"}, stop={"grace": "500ms"},
                                gateway={"listen": f"unix:{self.operator.runtime_directory}/gateway.sock"}, **more)

    # ---- before

    def process_role(self):
        return "worker" if self.role.endswith("worker") else self.role

    def plan(self, moment):
        program = "reconciled" if self.role == "supervisor" else f"reconciled-{self.process_role()}"
        self.operator.environment["RECONCILED_DEATH"] = f"{program} {moment} {self.act}"
        self.once.write_text("not yet", encoding="utf-8")
        self.operator.user.give(self.once)

    def prepare(self):
        self.handler.behave(BUSY if self.busy else "exit 0")
        for name in ("gone", "kept"):
            self.widgets.create(name, spec={"n": 1})
        if self.by_plan and self.state in LATE:
            self.plan("stop")
        if self.state == "starting":
            self.plan("hello")
            self.operator.start()
        elif self.state == "syncing":
            self.faults = [self.devserver.fault({"namespace": self.namespace, "resource": "widgets", "verb": verb},
                                                hang=True, times=0) for verb in ("list", "watch")]
            self.operator.start_ready()
        else:
            self.operator.start_ready().wait_synced()
            for name in ("gone", "kept"):
                self.handler.wait_finished(name=name)
            if self.busy:
                self.widgets.create("busy", spec={})
                request = self.handler.wait_for(name="busy")
                wait_until(request.path.with_name(f"{request.path.name}.busy").exists, "the handler to be at it")
        self.handler.behave("exit 0")

    # ---- the fault

    def strike(self):
        """Returns when the fault has been set off, or is about to be."""
        if self.state == "stopping":
            self.operator.send_signal(signal.SIGTERM)
        elif self.state in LATE:
            self.configure(pageLimit=400)
            self.operator.send_signal(signal.SIGHUP)
        if self.by_plan:
            return
        if self.state in LATE:
            self.operator.wait_notification("STOPPING" if self.state == "stopping" else "RELOADING", "1")
        tell(self.operator.pid if self.role == "supervisor" else self.operator.child(self.process_role()).pid, self.act)

    def expected(self):
        if self.role == "supervisor":
            return -(self.act - SIGNAL) if self.act >= SIGNAL else self.act
        if self.harmless:
            return 0
        return self.act - FATAL if FATAL <= self.act < GARBAGE else 70

    def assert_cause(self):
        lines = self.operator.logs(level="critical")
        if self.expected() == 0 or self.role == "supervisor":
            assert not lines, lines
            if self.role == "spawner":
                self.assert_warning("the spawner (pid", {"STOP": None})  # killed in the end, as if it were well
            elif self.role != "supervisor":
                # Who is heard no more ends as it was told to, and so does who says 0.
                about = "did not end in time" if self.manner == "STOP" else "was told to end"
                self.assert_warning(about, {"STOP": "and is killed", "protocol": "broke the protocol",
                                            "heartbeat": None, "exit-0": None})
            return
        assert len(lines) == 1 and lines[0]["message_id"] == MESSAGE_ID["CHILD_FATAL"], lines
        said = lines[0]["message"]
        # The spawner is asked for something at a start and in a reload.
        silence = "hangs: no " if self.role == "spawner" and self.state != "running" else "hangs: no heartbeat"
        words = {"STOP": silence, "protocol": "broke the protocol", "heartbeat": silence}
        how = words.get(self.manner) or (f"killed by signal {self.manner}" if self.manner in SIGNALS else
                                         "gives up: told" if self.manner.startswith("fatal") else
                                         f"exited by itself with code {self.act}")
        assert self.process_role() in said and how in said, said
        earlier = [record for record in self.operator.logs() if record["_received"] < lines[0]["_received"]
                   and record["level"] in ("error", "critical")]
        assert not earlier, f"the cause is not first: {earlier}"

    def assert_warning(self, about, words):
        """An end in order goes on over it; but it is told."""
        expected = words.get(self.manner, f"was killed by signal {self.manner}" if self.manner in SIGNALS else
                             f"exited by itself with code {self.act % 256}")

        def said():
            return [record["message"] for record in self.operator.logs(level="warning") if about in record["message"]]

        if expected is None:
            assert not said(), said()
            return
        # The supervisor writes it before it says READY; but that comes by another socket, and may be read first.
        wait_until(said, lambda: f"{expected!r} in a warning about {self.process_role()}: {self.operator.output.text()}", BOUND)
        found = said()
        assert len(found) == 1 and f"{self.process_role()} " in found[0] and expected in found[0], found

    # ---- after

    def assert_ended(self, since):
        if self.state == "reloading" and self.harmless:
            wait_until(lambda: sum("READY" in n for n in self.operator.notifications) == 2, "the second READY", BOUND)
            return
        self.operator.wait_exit(expect=self.expected(), deadline=BOUND)
        self.operator.assert_no_processes()
        assert time.monotonic() - since < scaled(BOUND)

    def assert_nothing_lost(self):
        """What happened while it was down, and what was under way."""
        self.widgets.create("late", spec={})
        self.widgets.merge_patch("kept", {"spec": {"n": 2}})
        known = bool(self.handler.requests(name="gone"))
        self.widgets.delete("gone")
        if self.operator.popen is None:
            self.operator.environment.pop("RECONCILED_DEATH", None)
            self.operator.start_ready()
        self.handler.wait_finished(name="late")
        self.handler.wait_finished(name="kept", where=lambda run: run.object["spec"] == {"n": 2})
        if known:
            self.handler.wait_finished(name="gone", action="deleted")
        if self.busy:
            self.handler.wait_finished(name="busy", count=2)
        assert not [run for run in self.handler.requests(action="deleted") if run.name != "gone"]
        self.operator.stop()
        self.operator.assert_no_processes()

    def abandon(self):
        """After a failure: the thread that has started it ends, and would end it as well."""
        if self.operator.popen is not None:
            self.operator.popen.kill()
            self.operator.wait_exit()

    def run(self):
        self.prepare()
        since = time.monotonic()
        self.strike()
        self.assert_ended(since)
        assert not self.once.exists() or not self.once.read_text(encoding="utf-8"), "it was never set off"
        self.assert_cause()
        if self.state == "syncing":
            for number in self.faults:
                self.devserver.clear_faults(number)
        self.assert_nothing_lost()


# Each is many operators at once, so no more than two run side by side.
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("role", [pytest.param(role, marks=pytest.mark.xdist_group(f"matrix-{'a' if role in ROLES[:3] else 'b'}"))
                                  for role in ROLES])
def test_death(devserver, make_operator, make_handler, shim, role, state):
    cells = [Cell(devserver, make_operator(), make_handler(), shim, role, state, manner)
             for manner in MANNERS if exists(role, state, manner)]
    side_by_side(cells)
