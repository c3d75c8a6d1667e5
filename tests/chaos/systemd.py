# SPDX-License-Identifier: Apache-2.0
"""An operator whose processes are killed, stopped and reloaded, and which is started again as systemd would; and what must be
true of each of its ends."""
import collections
import signal
import threading
import time

from harness import scaled, wait_until
from harness.operator import MESSAGE_ID

from .world import Broken

# What systemd starts again (units/reconciled.service); 0 only when it was asked for.
RESTARTED = {69, 70, 74, 77}
RESTART_SECONDS = 0.1
# From the death of a child to the end of the operator, hang detection included.
END_SECONDS = 30


class Life:
    """configure(), over() and look_after() are the caller's."""

    restarted = RESTARTED

    def __init__(self, operator):
        self.operator = operator
        self.count = collections.Counter()
        self.codes = collections.Counter()
        self._due = None  # when it must have ended: somebody was killed
        self._restart = 0
        self._stopping = self._killed = False
        self._broken = None  # who waits for something else takes an exception for "not yet"
        self._never = threading.Event()

    def configure(self):
        """Writes its configuration file."""

    def over(self):
        """No process of it is left."""

    def look_after(self, now):
        """It is up."""

    def said(self):
        return self.operator.output.text()[-20000:]

    def is_up(self):
        return self.operator.popen is not None and self.operator.popen.poll() is None and self._due is None

    def ends_soon(self, seconds=END_SECONDS):
        self._due = time.monotonic() + scaled(seconds)

    def readies(self):
        return 0 if self.operator.popen is None else sum("READY" in message for message in self.operator.notifications)

    def send(self, process, number):
        try:
            process.kill(number)
        except ProcessLookupError:
            return False
        return True

    def kill(self, step):
        if not self.is_up():
            return False
        found = self.operator.children(step.values["role"])
        if not found:
            return False
        number = getattr(signal, f"SIG{step.values['signal']}")
        if step.values["role"] == "spawner" and number == signal.SIGTERM:
            number = signal.SIGKILL  # it leaves a stop to the supervisor
        if not self.send(found[int(step.values["chance"] * len(found))], number):
            return False
        self.ends_soon()
        return True

    def kill_supervisor(self, _=None):
        if not self.is_up():
            return False
        self._killed = True
        self.operator.send_signal(signal.SIGKILL)
        self.ends_soon()
        return True

    def stop(self, _=None):
        if not self.is_up():
            return False
        self._stopping = True
        self.operator.send_signal(signal.SIGTERM)
        self.ends_soon()
        return True

    def reload(self):
        def is_over():
            return self.operator.popen.poll() is not None or self.readies() > before

        if not self.is_up():
            self.configure()
            return False
        # One that starts just now may have read the old file already, and would not hear of the new one.
        wait_until(lambda: self.operator.popen.poll() is not None or self.readies() > 0, "it to be ready", 30)
        before = self.readies()
        self.configure()
        self.operator.send_signal(signal.SIGHUP)
        wait_until(is_over, lambda: f"the end of a reload:\n{self.said()}", 30)
        return True

    def look_after_operator(self):
        try:
            if self._broken is None:
                self._look_after_operator()
                return
        except Broken as error:
            self._broken = error
        raise self._broken

    def _look_after_operator(self):
        now = time.monotonic()
        if self.operator.popen is None:
            if now >= self._restart:
                self.operator.start()
                self.count["start"] += 1
        elif self.operator.popen.poll() is not None:
            self._has_ended()
        elif self._due is not None and now > self._due:
            raise Broken(f"the operator goes on, {END_SECONDS} s after a child was killed:\n{self.said()}")
        elif self._due is None:
            self.look_after(now)

    def _has_ended(self):
        operator = self.operator
        output = operator.output
        code = operator.wait_exit()
        self.codes[code] += 1
        wanted = {-signal.SIGKILL} if self._killed else {0} | self.restarted if self._stopping else self.restarted
        if self._stopping and not output.text():
            wanted |= {-signal.SIGTERM}  # it had only just been started
        if code not in wanted:
            raise Broken(f"exit code {code}, not one of {sorted(wanted)}:\n{output.text()[-20000:]}")
        causes = [record for record in output.records() if record.get("message_id") == MESSAGE_ID["CHILD_FATAL"]]
        if code in self.restarted and len(causes) != 1:
            raise Broken(f"exit code {code}, with {len(causes)} causes:\n{output.text()[-20000:]}")
        # What systemd would kill with the cgroup: nothing must be left to it.
        operator.assert_no_processes()
        self.over()
        self._due, self._stopping, self._killed = None, False, False
        self._restart = time.monotonic() + RESTART_SECONDS

    def stays_up(self):
        self.look_after_operator()
        return self.is_up() and any("READY" in message for message in self.operator.notifications)
