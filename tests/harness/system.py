# SPDX-License-Identifier: Apache-2.0
"""A real systemd as PID 1 of a container (systemd-nspawn), with our programs and units installed by meson.

The root is made once by tools/systemd-root; what we install lies over it in an overlay, and what the boot writes is
thrown away. The container has a network of its own with nothing but loopback.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import uuid

import yaml

from .setup import BUILD, SOURCE, WIDGET_CRD
from .wait import scaled, wait_until

SERVER = "http://127.0.0.1:8001"
CREDSTORE = "etc/credstore"


def root_folder():
    result = subprocess.run([SOURCE / "tools" / "systemd-root", "--cached"], capture_output=True, text=True, check=False)
    return result.stdout.strip() or None


def install_into(folder):
    """What `meson install` puts on a system, below this folder."""
    result = subprocess.run(["meson", "install", "--no-rebuild", "-C", BUILD, "--destdir", folder], capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, f"meson install: {result.stdout}{result.stderr}"


def mount_root(folder, install=True):
    """folder/root: the Debian root with our programs installed; what is written to it is gone with unmount_root()."""
    folder.chmod(0o755)
    for name in ("root", "upper", "work", "installed"):
        (folder / name).mkdir()
        (folder / name).chmod(0o755)
    if install:
        install_into(folder / "installed")
    options = f"lowerdir={folder}/installed:{root_folder()},upperdir={folder}/upper,workdir={folder}/work"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", options, folder / "root"], check=True)


def unmount_root(folder):
    subprocess.run(["umount", "-l", folder / "root"], check=False)
    shutil.rmtree(folder, ignore_errors=True)


def cgroup2_mount():
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        for line in mounts:
            before, after = line.split(" - ", 1)
            if after.split()[0] == "cgroup2":
                return pathlib.Path(before.split()[4])
    return None


def unavailable():
    """Why this machine cannot boot a systemd in a container, or None."""
    if os.geteuid() != 0:
        return "booting a systemd in a container needs root"
    if not shutil.which("systemd-nspawn"):
        return "there is no systemd-nspawn (package systemd-container)"
    if not root_folder():
        return "there is no root with systemd; tools/systemd-root makes one"
    if not cgroup2_mount() or not os.access(cgroup2_mount(), os.W_OK):
        return "the unified cgroup hierarchy is not mounted, or read-only"
    return None


class System:
    """boot(); run("systemctl", "start", "reconciled"); close(). `root` is the container's root as the host sees it:
    what is written there is there."""

    def __init__(self, install=True):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-systemd-"))
        self.name = "reconciled-" + uuid.uuid4().hex[:12]
        self.root = self.folder / "root"
        self.console = self.folder / "console"
        self.group = cgroup2_mount() / self.name
        self.popen = None
        self.leader = None
        self.cursor = None
        mount_root(self.folder, install)

    def boot(self):
        self.group.mkdir()
        command = ["systemd-nspawn", "--quiet", "-D", self.root, f"--machine={self.name}", "--register=no", "--keep-unit",
                   "--private-network", "--console=pipe", "--boot"]
        # A group of its own, entered before nspawn makes its own below it.
        script = f"echo $$ >{self.group}/cgroup.procs && exec \"$@\""
        with open(self.console, "wb") as console:
            self.popen = subprocess.Popen(["/bin/sh", "-c", script, "sh", *command], stdin=subprocess.DEVNULL, stdout=console,
                                          stderr=console, start_new_session=True,
                                          env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"})
        wait_until(self._booted, lambda: f"systemd to come up; the console: {self.console.read_text(errors='replace')}",
                   deadline=60)
        # What the package's installation does.
        self.run("journalctl", "--update-catalog")
        return self

    def _booted(self):
        assert self.popen.poll() is None, "nspawn has ended"
        with open(f"/proc/{self.popen.pid}/task/{self.popen.pid}/children", encoding="ascii") as children:
            found = children.read().split()
        if not found:
            return False
        self.leader = int(found[0])
        state = self.run("systemctl", "is-system-running", check=False).stdout.strip()
        return state in ("running", "degraded")

    def close(self):
        try:
            if self.popen is not None:
                # The end of its PID 1 is the end of everything in it.
                for pid in (self.leader, self.popen.pid):
                    if pid and self.popen.poll() is None:
                        try:
                            os.kill(pid, signal.SIGKILL)
                        except ProcessLookupError:
                            pass
                self.popen.wait(timeout=scaled(30))
                wait_until(self._remove_groups, "the container's groups to be empty", deadline=30)
        finally:
            unmount_root(self.folder)

    def _remove_groups(self):
        for folder, _, _ in os.walk(self.group, topdown=False):
            os.rmdir(folder)
        return not self.group.exists()

    # In it

    def enter(self, *namespaces):
        return ["nsenter", "-t", str(self.leader), *(namespaces or ("-m", "-u", "-i", "-n", "-p", "-C")), "--"]

    def run(self, *command, check=True, stdin=None):
        """Runs a command in it; stdout and stderr as text."""
        result = subprocess.run([*self.enter(), "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
                                 *map(str, command)], capture_output=True, text=True, check=False, timeout=scaled(120),
                                input=stdin, stdin=subprocess.DEVNULL if stdin is None else None)
        if check and result.returncode != 0:
            raise AssertionError(f"{' '.join(map(str, command))}: exit {result.returncode}: {result.stdout}{result.stderr}")
        return result

    def write(self, path, text, mode=0o644):
        path = self.root / str(path).lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def read(self, path):
        return (self.root / str(path).lstrip("/")).read_text(encoding="utf-8")

    # An API server in it

    def start_server(self, *arguments):
        self.write("/etc/crd.yaml", yaml.safe_dump(WIDGET_CRD))
        self.run("systemd-run", "--unit=devserver", "reconciled-devserver", "--listen", SERVER.split("//")[1],
                 "--kubeconfig", "/run/devserver.kubeconfig", "--load", "/etc/crd.yaml", *arguments)
        wait_until(lambda: self.request("GET", "/version"), "the devserver to answer")
        for name in ("reconciled.kubeconfig", "reconciled.second.kubeconfig"):
            self.run("install", "-D", "-m", "0600", "/run/devserver.kubeconfig", f"/{CREDSTORE}/{name}")

    def request(self, method, path, body=None):
        """One request to it; the parsed answer, or None."""
        command = [*self.enter("-n"), "curl", "-sS", "-X", method, "-H", "Content-Type: application/json", SERVER + path]
        result = subprocess.run(command + (["--data-binary", "@-"] if body is not None else []), capture_output=True,
                                text=True, input=json.dumps(body) if body is not None else "", check=False,
                                timeout=scaled(30))
        return json.loads(result.stdout) if result.returncode == 0 else None

    def create_widget(self, name, **spec):
        answer = self.request("POST", "/apis/example.com/v1/namespaces/default/widgets",
                              {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
        assert answer["kind"] == "Widget", answer

    def widget(self, name):
        return self.request("GET", f"/apis/example.com/v1/namespaces/default/widgets/{name}")

    # Units

    def show(self, unit, *properties):
        """The unit's properties as a dict; one value when one is asked for."""
        output = self.run("systemctl", "show", unit, "--property", ",".join(properties)).stdout
        found = dict(line.split("=", 1) for line in output.splitlines() if "=" in line)
        return found[properties[0]] if len(properties) == 1 else found

    def wait_state(self, unit, state, deadline=30.0):
        wait_until(lambda: self.show(unit, "ActiveState") == state,
                   lambda: f"{unit} to be {state}; {self.run('systemctl', 'status', '-n', '30', unit, check=False).stdout}",
                   deadline)

    def drop_in(self, unit, text):
        self.write(f"/etc/systemd/system/{unit}.d/test.conf", text)
        self.run("systemctl", "daemon-reload")

    def processes(self, unit):
        """{pid: command line} of what runs in the unit, as the container numbers them."""
        group = self.show(unit, "ControlGroup")
        if not group:
            return {}
        pids = self.run("sh", "-c", f"find /sys/fs/cgroup{group} -name cgroup.procs -exec cat {{}} + 2>/dev/null",
                        check=False).stdout.split()
        found = {}
        for pid in pids:
            line = self.run("sh", "-c", f"tr '\\0' ' ' </proc/{pid}/cmdline", check=False).stdout.strip()
            if line:
                found[int(pid)] = line
        return found

    def child(self, unit, role):
        return next(pid for pid, command in self.processes(unit).items() if f"reconciled-{role} " in command + " ")

    # The journal

    def mark(self):
        """Later journal() begins here."""
        self.run("journalctl", "--sync")
        lines = self.run("journalctl", "-n", "1", "-o", "json").stdout.splitlines()
        self.cursor = json.loads(lines[-1])["__CURSOR"]

    def journal(self, *matches):
        """The entries since mark() that have all of these fields ("FIELD=value"), as dicts."""
        self.run("journalctl", "--sync")
        # Matches are not left to journalctl: with --after-cursor it passes over the first entry that matches.
        output = self.run("journalctl", "-o", "json", f"--after-cursor={self.cursor}", check=False).stdout
        entries = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
        wanted = [match.split("=", 1) for match in matches]
        return [entry for entry in entries if all(entry.get(field) == value for field, value in wanted)]

    def wait_journal(self, *matches, text="", deadline=30.0):
        def find():
            found = [entry for entry in self.journal(*matches) if text in str(entry.get("MESSAGE", ""))]
            return found[0] if found else None

        def said():
            return f"{text!r} {matches} in the journal; it has:\n" + "\n".join(
                str(entry.get("MESSAGE")) for entry in self.journal()[-60:])

        return wait_until(find, said, deadline, interval=0.1)
