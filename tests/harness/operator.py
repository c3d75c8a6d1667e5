# SPDX-License-Identifier: Apache-2.0
"""The operator under test: `reconciled` with its children, as an unprivileged user, told everything and watched."""
import os
import signal
import socket
import subprocess
import threading
import time

import yaml

from . import process
from .ctl import Ctl
from .output import Output, sanitizer_report
from .schema import check_configuration
from .setup import stretched
from .wait import AT_ONCE, ENDED, scaled, wait_until


class NotifySocket:
    """Receives what the operator tells systemd; each message is a dict, with the time of arrival as `_received`."""

    def __init__(self, path, user):
        self.path = path
        self.messages = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(path))
        user.give(path, 0o777)
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self):
        while data := self._socket.recv(65536):
            pairs = [line.split("=", 1) for line in data.decode(errors="replace").splitlines() if "=" in line]
            self.messages.append({**dict(pairs), "_received": time.monotonic()})

    def close(self):
        """The descriptor goes when nobody waits at it any more: its number may be that of the next life's socket at once."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


class Operator:
    """configure() writes the configuration; start(), wait_ready(), stop(), wait_exit() are its life. May be started
    again after its end: state and runtime folders stay, as after a restart by systemd.

    At the end of the test an operator that still runs is stopped, and must then end with 0; one that ended without
    the test having looked at its exit code (wait_exit) fails the test.

    user                the unprivileged User it runs as
    config_file, state_directory, runtime_directory
    notifications       what it told systemd, oldest first: [{"READY": "1", "STATUS": ...}, ...]
    popen.pid           the supervisor's pid
    """

    def __init__(self, sandbox, environment=None, arguments=(), watchdog=None):
        self.sandbox = sandbox
        self.user = sandbox.user()
        self.folder = sandbox.subfolder("operator", self.user)
        self.config_file = self.folder / "reconciled.yaml"
        self.state_directory = self._folder("state")
        self.runtime_directory = self._folder("run", sandbox.memory())
        self.environment = dict(environment or {})
        self.arguments = list(arguments)
        self.watchdog = watchdog
        self.ctl = Ctl(self)
        self.popen = None
        self.output = None
        self.notify = None
        self.exit_code = None
        self._looked_at = True
        self._starts = 0
        sandbox.register(self)

    def _folder(self, name, parent=None):
        path = (parent or self.folder) / name
        path.mkdir(mode=0o700)
        self.user.give(path, 0o700)
        return path

    # Configuration

    def kubeconfig_for(self, server):
        """A copy of the server's kubeconfig that only the operator's user can read."""
        path = self.folder / "kubeconfig"
        with open(server.kubeconfig, encoding="utf-8") as source:
            return self._write(path, source.read())

    def configure(self, server=None, watches=(), **more):
        """Writes the configuration for `server` (anything with .kubeconfig): keys in `more` as the file spells them,
        replacing the defaults chosen here, which suit tests; None leaves a key out. Upper bounds follow the load: see
        stretched()."""
        config = {"operator": "widgets.example.com", "workers": 2, "watches": list(watches)}
        if server is not None:
            config["cluster"] = {"kubeconfig": str(self.kubeconfig_for(server))}
        config.update(more)
        return self.write_config(yaml.safe_dump(stretched({key: value for key, value in config.items() if value is not None}),
                                                sort_keys=False))

    def write_config(self, text):
        """Writes this very text as the configuration file."""
        return self._write(self.config_file, text)

    def _write(self, path, text):
        """Who reads it meanwhile sees the old one or the new one."""
        new = path.with_suffix(".new")
        new.write_text(text, encoding="utf-8")
        self.user.give(new, 0o600)
        new.replace(path)
        return path

    def replace_child(self, role, script):
        """From the next start on, the children of this role ("watcher", "worker", "credential") are this script (its
        first line says the interpreter; fd 3 is the channel); $REAL names the real program."""
        folder = self.folder / "libexec"
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
        for each in ("credential", "watcher", "worker", "gateway", "lease", "spawner", "jq"):
            path = folder / f"reconciled-{each}"
            if not path.exists():
                path.symlink_to(self.sandbox.program(f"reconciled-{each}"))
        path = folder / f"reconciled-{role}"
        path.unlink()
        path.write_text(script, encoding="utf-8")
        path.chmod(0o755)
        self.environment["RECONCILED_LIBEXECDIR"] = folder
        self.environment["REAL"] = self.sandbox.program(f"reconciled-{role}")

    # Life

    def start(self):
        assert self.popen is None, "it runs already"
        self._starts += 1
        path = self.folder / f"notify-{self._starts}"
        self.notify = NotifySocket(path, self.user)
        environment = {"NOTIFY_SOCKET": path, **self.environment}
        if self.watchdog:
            environment["WATCHDOG_USEC"] = int(self.watchdog * 1_000_000)
        command = [self.sandbox.program("reconciled"), "--config", self.config_file, "--log", "json",
                   "--state-directory", self.state_directory, "--runtime-directory", self.runtime_directory]
        self.popen = process.start(self.user, command + self.arguments, environment, cwd=self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.output = Output(self.popen.stdout, self.folder / f"output-{self._starts}")
        self.exit_code = None
        self._looked_at = False
        return self

    @property
    def pid(self):
        return self.popen.pid

    @property
    def notifications(self):
        return list(self.notify.messages)

    @property
    def status_text(self):
        """The last STATUS= it sent, or ''."""
        return next((message["STATUS"] for message in reversed(self.notifications) if "STATUS" in message), "")

    def _expect_running(self):
        if self.popen.poll() is not None:
            raise RuntimeError(f"the operator ended with {self.popen.returncode}:\n{self.output.text()}")

    def _wait(self, condition, what, deadline):
        def still_running():
            result = condition()
            if not result:
                self._expect_running()
            return result

        return wait_until(still_running, lambda: f"{what}; its output:\n{self.output.text()}", deadline)

    def wait_notification(self, key, value=None, deadline=20.0):
        """Waits for a notification with this key (and value); returns it."""
        def find():
            return next((message for message in self.notifications
                         if key in message and (value is None or message[key] == value)), None)

        return self._wait(find, f"the notification {key}={value or ''}", deadline)

    def wait_ready(self, deadline=20.0):
        self.wait_notification("READY", "1", deadline)
        return self

    def start_ready(self):
        self.start().wait_ready()
        check_configuration(self.config_file)
        return self

    def begin_reload(self):
        """SIGHUP; end_reload() waits for what this returns."""
        before = sum(message.get("READY") == "1" for message in self.notifications)
        self.send_signal(signal.SIGHUP)
        return before

    def end_reload(self, before):
        self._wait(lambda: sum(message.get("READY") == "1" for message in self.notifications) > before, "the end of the reload", 20.0)

    def reload(self):
        """Returns when it is ready again, with the new configuration or without."""
        self.end_reload(self.begin_reload())

    def wait_synced(self, deadline=60.0):
        """Waits until every configured watch has logged that it is synced since this start."""
        config = yaml.safe_load(self.config_file.read_text(encoding="utf-8"))
        expected = {entry["name"] for entry in config["watches"]}

        def all_synced():
            return expected <= {record.get("watch") for record in self.logs(message_id=MESSAGE_ID["WATCH_SYNCED"])}

        self._wait(all_synced, f"the watches {sorted(expected)} to be synced", deadline)
        return self

    def send_signal(self, number):
        process.Process(self.popen.pid).kill(number)

    def wait_exit(self, expect=None, deadline=30.0):
        """Waits for its end, whatever the cause; returns the exit code (negative: the signal), which must be `expect`
        where that is given."""
        try:
            self.exit_code = self.popen.wait(timeout=scaled(deadline))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the operator did not end within {scaled(deadline):g} s:\n{self.output.text()}"
                                 ) from None
        self._looked_at = True
        self._ended()
        if expect is not None:
            assert self.exit_code == expect, \
                f"exit code {self.exit_code}, expected {expect}:\n{self.output.text()}"
        return self.exit_code

    def stop(self, expect=0, number=signal.SIGTERM, deadline=45.0):
        """Asks it to end and waits; returns the exit code."""
        self.send_signal(number)
        return self.wait_exit(expect, deadline)

    def _ended(self):
        # A process that outlives the operator may hold the pipe: that is found by the search for survivors.
        self.output.join(timeout=scaled(2))
        self.notify.close()
        self.popen = None
        report = sanitizer_report(self.output.text(), process.crashed_on_purpose)
        assert not report, f"the operator: {report}"

    # What it says

    def logs(self, where=lambda record: True, **fields):
        """Log records of this start whose fields are exactly these, and for which where(record) is true:
        logs(role="supervisor", level="error")."""
        return [record for record in self.output.records()
                if all(record.get(key) == value for key, value in fields.items()) and where(record)]

    def wait_for_log(self, text="", where=lambda record: True, deadline=20.0, **fields):
        """Waits for a record whose message contains `text`; returns it. The operator may have ended by then."""
        def find():
            found = self.logs(lambda record: text in record.get("message", "") and where(record), **fields)
            return found[0] if found else None

        return wait_until(find, lambda: f"the log record {text!r} {fields}; its output:\n{self.output.text()}", deadline)

    # Its processes

    def processes(self):
        """Everything that runs as the operator's user: supervisor, children, handlers, what they started."""
        return self.user.processes()

    def children(self, role=None):
        """The supervisor's own children; role: "watcher", "worker", "credential"."""
        return [found for found in process.find_processes(lambda candidate: candidate.ppid == self.popen.pid)
                if role is None or found.program == f"reconciled-{role}"]

    def child(self, role):
        """The only child of this role."""
        found = self.children(role)
        assert len(found) == 1, f"{len(found)} children of the role {role}: {self.children()!r}"
        return found[0]

    def assert_no_processes(self):
        """Nothing of it may be alive: at once, when it has ended by itself."""
        wait_until(lambda: not self.processes(), lambda: f"the end of {self.processes()!r}", ENDED if (self.exit_code or 0) < 0 else AT_ONCE)

    def close(self):
        trouble = []
        if self.popen is not None:
            ended = self.popen.poll()
            try:
                if ended is None:
                    # A test may have left it stopped.
                    self.send_signal(signal.SIGCONT)
                    self.stop()
                else:
                    trouble.append(f"it had ended with {ended}, which the test did not expect:\n{self.output.text()}")
                    self._ended()
            except AssertionError as error:
                trouble.append(str(error))
                for found in self.processes():
                    try:
                        found.kill()
                    except ProcessLookupError:
                        pass
                if self.popen is not None:
                    self.popen.kill()
                    self.popen.wait()
        if trouble:
            raise AssertionError("\n".join(trouble))

    def __repr__(self):
        return f"operator in {self.folder}"


def _message_ids():
    """MESSAGE_ID by name, from the one header that defines them."""
    from .setup import SOURCE
    found = {}
    header = SOURCE / "ipc" / "message-id.h"
    for line in header.read_text(encoding="utf-8").splitlines():
        word = line.split()
        if len(word) >= 3 and word[0] == "#define" and word[1].startswith("MESSAGE_ID_"):
            found[word[1][len("MESSAGE_ID_"):]] = word[2].strip('"')
    return found


MESSAGE_ID = _message_ids()
