# SPDX-License-Identifier: Apache-2.0
"""The operator as PID 1 of a container of runc: read-only root, a user that is not root, no capabilities. It shares the
host's network, so that it reaches a devserver of the tests."""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import uuid

import yaml

from .operator import MESSAGE_ID
from .output import Output
from .setup import stretched
from .system import mount_root, root_folder, unmount_root
from .wait import scaled, wait_until

USER = 65532


def unavailable():
    """Why this machine cannot run a container, or None."""
    if os.geteuid() != 0:
        return "running a container needs root"
    if not shutil.which("runc"):
        return "there is no runc"
    if not root_folder():
        return "there is no root file system; tools/systemd-root makes one"
    return None


class Root:
    """A root file system with our programs, shared by the containers of a session."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-container-"))
        mount_root(self.folder)
        self.path = self.folder / "root"

    def close(self):
        unmount_root(self.folder)


class Container:
    """start(); the operator's configuration is given to configure(). Ends with the test."""

    def __init__(self, root, sandbox):
        self.root, self.sandbox = root, sandbox
        self.name = "reconciled-" + uuid.uuid4().hex[:12]
        self.folder = sandbox.subfolder("container")
        self.etc = self.folder / "etc"
        self.etc.mkdir()
        self.termination_log = self.folder / "termination-log"
        self.termination_log.touch()
        self.termination_log.chmod(0o666)
        self.memory = None
        self.uid, self.capabilities = USER, []
        self.open_volumes = False  # as an emptyDir is: root's, and everybody may write
        self.state_size = None
        self.popen = self.output = self.stdout = None
        self._looked_at = True
        sandbox.register(self)

    def configure(self, server, watches, **more):
        """`server` has .kubeconfig, or is None. Handlers are scripts: see script()."""
        config = {"operator": "widgets.example.com", "workers": 1, "watches": watches, **more}
        if server is not None:
            shutil.copy(server.kubeconfig, self.etc / "kubeconfig")
            (self.etc / "kubeconfig").chmod(0o644)
            config["cluster"] = {"kubeconfig": "/etc/reconciled/kubeconfig"}
        (self.etc / "reconciled.yaml").write_text(yaml.safe_dump(stretched(config)), encoding="utf-8")

    def script(self, text, name="handler"):
        path = self.etc / name
        path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        path.chmod(0o755)
        return [f"/etc/reconciled/{name}"]

    def _spec(self, arguments):
        subprocess.run(["runc", "spec", "--bundle", self.folder], check=True)
        path = self.folder / "config.json"
        spec = json.loads(path.read_text(encoding="utf-8"))
        spec["root"] = {"path": str(self.root.path), "readonly": True}
        spec["process"].update(terminal=False, args=["/usr/bin/reconciled", *arguments], rlimits=[],
                               user={"uid": self.uid, "gid": self.uid},
                               capabilities={each: self.capabilities for each in ("bounding", "effective", "permitted")})
        spec["linux"]["namespaces"] = [each for each in spec["linux"]["namespaces"] if each["type"] != "network"]
        spec["mounts"] = [each for each in spec["mounts"] if each["type"] != "sysfs"]
        owned = ["nosuid", "nodev", "mode=0700", f"uid={self.uid}", f"gid={self.uid}"]
        for name, parent in (("var/lib", self.folder), ("run", self.sandbox.memory())):
            mount = {"destination": f"/{name}/reconciled", "type": "tmpfs", "source": "tmpfs", "options": owned}
            if self.open_volumes:
                volume = parent / "volume"
                volume.mkdir()
                volume.chmod(0o777)
                mount.update(type="bind", source=str(volume), options=["bind", "rw"])
            spec["mounts"].append(mount)
        spec["mounts"] += [
            {"destination": "/etc/reconciled", "type": "bind", "source": str(self.etc), "options": ["bind", "ro"]},
            {"destination": "/dev/termination-log", "type": "bind", "source": str(self.termination_log), "options": ["bind"]}]
        if self.state_size:
            spec["mounts"][-4]["options"].append(f"size={self.state_size}")
        if self.memory:
            spec["linux"]["resources"]["memory"] = {"limit": self.memory, "swap": self.memory}
        path.write_text(json.dumps(spec), encoding="utf-8")

    def start(self, *arguments):
        self._spec(arguments)
        # Mount points that the image has.
        for name in ("etc/reconciled", "var/lib/reconciled", "run/reconciled"):
            (self.root.path / name).mkdir(parents=True, exist_ok=True)
        self.popen = subprocess.Popen(["runc", "run", "--bundle", self.folder, self.name], stdin=subprocess.DEVNULL,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        self.output = Output(self.popen.stderr, self.folder / "output")
        self.stdout = Output(self.popen.stdout, self.folder / "stdout")
        self._looked_at = False
        return self

    def wait_synced(self):
        return self.wait_for_log(message_id=MESSAGE_ID["WATCH_SYNCED"])

    def logs(self, **fields):
        return [record for record in self.output.records()
                if all(record.get(key) == value for key, value in fields.items())]

    def wait_for_log(self, text="", deadline=30.0, **fields):
        def find():
            found = [record for record in self.logs(**fields) if text in record.get("message", "")]
            return found[0] if found else None

        return wait_until(find, lambda: f"{text!r} {fields}; its output:\n{self.output.text()}", deadline)

    def execute(self, *command):
        return subprocess.run(["runc", "exec", self.name, *map(str, command)], capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL, timeout=scaled(30))

    def signal(self, number):
        subprocess.run(["runc", "kill", self.name, signal.Signals(number).name], check=True)

    def wait_exit(self, expect=None):
        code = self.popen.wait(timeout=scaled(60))
        self._looked_at = True
        self.output.join(timeout=scaled(5))
        self.stdout.join(timeout=scaled(5))
        self.popen = None
        if expect is not None:
            assert code == expect, f"exit code {code}, expected {expect}:\n{self.output.text()}"
        return code

    def stop(self, expect=0):
        self.signal(signal.SIGTERM)
        return self.wait_exit(expect)

    @property
    def termination_message(self):
        return self.termination_log.read_text(encoding="utf-8")

    def close(self):
        try:
            if self.popen is not None:
                if self.popen.poll() is None:
                    self.stop()
                elif not self._looked_at:
                    raise AssertionError(f"it had ended with {self.popen.returncode}:\n{self.output.text()}")
        finally:
            subprocess.run(["runc", "delete", "--force", self.name], capture_output=True, check=False)
            if self.popen is not None:
                self.popen.wait(timeout=scaled(20))

    def __repr__(self):
        return f"container {self.name}"
