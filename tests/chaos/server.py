# SPDX-License-Identifier: Apache-2.0
"""The API servers on which chaos is made, and what goes wrong with each: one method a step of plan.SERVERS.

kubeconfig      the operator's own
api             of whom changes objects
gaps            how often history was, or may have been, replaced by a list
expires         the next watch or page may be answered with 410, at any time
up              whether it can be asked anything
tells_versions  each watch hears within a second how far the server is
"""
import signal
import subprocess
import threading
import time
import types

import yaml

from harness import Devserver, WIDGET_CRD, scaled, wait_until
from harness.api import Api
from harness.cluster import NOBODY_TOKEN, Cluster

RBAC = "/apis/rbac.authorization.k8s.io/v1"


class Simulated:
    """reconciled-devserver, which makes mistakes when it is asked to."""
    name = "devserver"
    up = tells_versions = True

    def __init__(self, sandbox):
        self._devserver = Devserver(sandbox, load=[WIDGET_CRD], arguments=["--bookmark-interval", "1s"]).start()
        self.api, self.kubeconfig = self._devserver.api, self._devserver.kubeconfig
        self.gaps, self.expires = 0, False
        self.restored = False  # until the driver has looked at what there is now
        self._snapshot, self._told = None, 0
        self._pause = threading.Event()

    def admit(self, operator):
        """Whoever has its token may do everything."""

    def look_after(self):
        """It runs through."""

    def settle(self):
        self._devserver.clear_faults()

    def fault(self, values):
        self.gaps += 1
        self.expires = "410" in str(values["fault"])
        self._devserver.clear_faults()
        self._devserver.fault(**values["fault"])

    def watches(self, values):
        self._devserver.close_watches("cut" if values["cut"] else "clean")

    def compact(self, _):
        self.gaps += 1
        self._devserver.compact()

    def snapshot(self, _):
        self._snapshot = self._devserver.snapshot()

    def restore(self, _):
        """The database as it was, once for each snapshot."""
        if self._snapshot is None:
            return False
        self.gaps += 1
        self._told = len(self._devserver.requests())
        self._devserver.restore(self._snapshot)
        self._snapshot, self.restored = None, True
        return True

    @property
    def may_restore(self):
        return self._snapshot is not None

    def asked(self):
        """Namespaces of which the operator has asked for one widget since the last restore."""
        return {entry["namespace"] for entry in self._devserver.requests()[self._told:]
                if "limit=1" in entry["query"].split("&") and entry.get("resource") == "widgets"}

    def outage(self, values):
        self._devserver.suspend()
        self._pause.wait(values["seconds"])
        self._devserver.resume()


class Real:
    """kube-apiserver on etcd. The server is killed, or asked to stop and killed when it takes its time, and started again,
    now with its watch cache and now without; the database is compacted and restarted; both stand still. Watches end after
    some seconds, as everywhere, only sooner. The operator may do what `reconciledctl rbac` says that it needs."""

    tells_versions = False
    FLAGS = ("--min-request-timeout=5",)
    TERM_SECONDS = 4  # times 0.2 to 1.5; in order it takes a minute

    def __init__(self, sandbox, name):
        self.name = name
        self._cluster = Cluster(sandbox.subfolder("cluster"), [*self.FLAGS, "--watch-cache=false"], name)
        sandbox.register(self._cluster)
        self._cluster.start()
        # Nobody else keeps what changes objects waiting for long.
        self.api = Api(self._cluster.kubeconfig, timeout=15)
        self.kubeconfig = self._cluster.folder / "operator"
        self._cluster.write_kubeconfig(self.kubeconfig, NOBODY_TOKEN)
        self.gaps, self.expires, self.restored = 0, False, False
        self._ending = None  # when it will be killed: it was asked to stop
        self._starting = False
        self._pause = threading.Event()
        self.api.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", WIDGET_CRD)
        wait_until(lambda: self.api.raw("GET", "/apis/example.com/v1/widgets").code == 200, "the Widget resource", 60)

    def admit(self, operator):
        """Roles and bindings, for the user of the token instead of a service account: its token would expire."""
        done = subprocess.run([operator.sandbox.program("reconciledctl"), "rbac", operator.config_file],
                              capture_output=True, text=True, check=True)
        for manifest in yaml.safe_load_all(done.stdout):
            kind, namespace = manifest["kind"].lower() + "s", manifest["metadata"].get("namespace")
            if kind == "serviceaccounts":
                continue
            if "subjects" in manifest:
                manifest["subjects"] = [{"kind": "User", "name": "nobody", "apiGroup": "rbac.authorization.k8s.io"}]
            self.api.request("POST", f"{RBAC}/namespaces/{namespace}/{kind}" if namespace else f"{RBAC}/{kind}", manifest)

    @property
    def up(self):
        return self._ending is None and not self._starting

    def look_after(self):
        """What was begun and takes time."""
        server = self._cluster.server
        if self._ending is not None and (server.poll() is not None or time.monotonic() > self._ending):
            self._start()
        elif self._starting and self._cluster.is_ready():
            self._starting = False

    def _start(self):
        """It forgets what its cache knew; without one it asks the database, whose compaction is felt then."""
        self._cluster.stop_server(signal.SIGKILL)
        self._ending, self._starting = None, True
        self.gaps += 1
        self._cluster.launch_server()

    def settle(self):
        def is_up():
            self.look_after()
            return self.up

        wait_until(is_up, "kube-apiserver to be ready", 90)

    def restart(self, values):
        if not self.up:
            return False
        self._cluster.extra = [*self.FLAGS, f"--watch-cache={str(values['cut']).lower()}"]
        if values["chance"] < 0.6:
            self._start()
        else:
            self._ending = time.monotonic() + scaled(values["seconds"] * self.TERM_SECONDS)
            self._cluster.server.terminate()
        return True

    def compact(self, _):
        """Felt by the next watch and the next page, whenever that is."""
        self.gaps += 1
        self.expires = True
        self._cluster.compact()

    def etcd(self, _):
        """It loses nothing; the server finds it again by itself."""
        if not self.up:
            return False
        self.gaps += 1
        self._cluster.restart_etcd()
        self._starting = True
        return True

    def outage(self, values):
        """Which of the two it is: whoever waits cannot tell."""
        popen = self._cluster.etcd if values["cut"] else self._cluster.server
        popen.send_signal(signal.SIGSTOP)
        self._pause.wait(values["seconds"])
        popen.send_signal(signal.SIGCONT)


def make(sandbox, name):
    return Simulated(sandbox) if name == "devserver" else Real(sandbox, name)
