# SPDX-License-Identifier: Apache-2.0
"""reconciled-devserver as a test uses it."""
import json
import signal
import subprocess

import yaml

from . import process
from .api import Api, Kubeconfig
from .faults import Faults
from .output import sanitizer_report
from .wait import scaled, wait_until


class Devserver(Faults):
    """Devserver(sandbox, load=[object, ...], arguments=[...]).start()

    kubeconfig   path of the file it wrote
    api          an Api for it
    requests()   what it was asked so far: one dict a request, as its log has them
    """

    def __init__(self, sandbox, load=(), arguments=(), listen="127.0.0.1:0"):
        self.sandbox = sandbox
        self.user = sandbox.user()
        self.folder = sandbox.subfolder("devserver", self.user)
        self.kubeconfig = self.folder / "kubeconfig"
        self.request_log = self.folder / "requests"
        self.stderr = self.folder / "stderr"
        self.arguments = list(arguments)
        self.listen = listen
        self.popen = None
        if load:
            manifest = self.folder / "load.yaml"
            manifest.write_text(yaml.safe_dump_all(list(load)), encoding="utf-8")
            self.arguments += ["--load", str(manifest)]
        sandbox.register(self)

    def start(self):
        """Returns when it answers. RuntimeError, with its output: it has ended instead."""
        assert self.popen is None, "it runs already"
        self.kubeconfig.unlink(missing_ok=True)
        command = [self.sandbox.program("reconciled-devserver"), "--listen", self.listen, "--kubeconfig", self.kubeconfig,
                   "--request-log", self.request_log] + self.arguments
        with open(self.stderr, "ab") as stderr:
            self.popen = process.start(self.user, command, cwd=self.folder, stdout=stderr, stderr=stderr)
        wait_until(self._ready, lambda: f"reconciled-devserver to answer; it said:\n{self.output()}")
        self.api = Api(self.kubeconfig)
        return self

    def _ready(self):
        code = self.popen.poll()
        if code is not None:
            # Told here, and not once more at the end of the test.
            self.popen = None
            raise RuntimeError(f"reconciled-devserver ended with {code}:\n{self.output()}")
        if not self.kubeconfig.exists():
            return False
        return Api(self.kubeconfig).raw("GET", "/version").code == 200

    @property
    def url(self):
        return Kubeconfig(self.kubeconfig).server

    def output(self):
        return self.stderr.read_text(encoding="utf-8", errors="replace") if self.stderr.exists() else ""

    def requests(self, where=lambda request: True):
        if not self.request_log.exists():
            return []
        # The last line may be in the making.
        lines = self.request_log.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        return [request for request in map(json.loads, lines) if where(request)]

    def suspend(self):
        """It answers nothing any more, its connections stay open."""
        self.popen.send_signal(signal.SIGSTOP)

    def resume(self):
        self.popen.send_signal(signal.SIGCONT)

    def kill(self):
        self.popen.kill()
        self.popen.wait()
        self.popen = None

    def stop(self):
        """Asks it to end; it must do so in order."""
        if self.popen is None:
            return
        popen, self.popen = self.popen, None
        popen.send_signal(signal.SIGCONT)
        popen.terminate()
        try:
            code = popen.wait(timeout=scaled(10))
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
            raise AssertionError("reconciled-devserver did not end within 10 s of SIGTERM") from None
        assert code in (0, -signal.SIGTERM), f"reconciled-devserver ended with {code}:\n{self.output()}"

    def restart(self, same_address=True):
        """Ends it and starts it anew, empty but for what it loads: to a client, another cluster at the same URL."""
        if same_address:
            self.listen = self.url.split("//", 1)[1].rstrip("/")
        self.stop()
        return self.start()

    def close(self):
        try:
            self.stop()
        finally:
            report = sanitizer_report(self.output())
            assert not report, f"reconciled-devserver: {report}"

    def __repr__(self):
        return f"devserver in {self.folder}"
