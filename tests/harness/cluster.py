# SPDX-License-Identifier: Apache-2.0
"""A real etcd and a real kube-apiserver on loopback, without controllers: what is written stays as it is written."""
import base64
import http.client
import json
import os
import shutil
import signal
import subprocess

import yaml

from . import process
from .api import Api
from .setup import NEW_KEY, SOURCE, free_ports
from .wait import wait_until

ADMIN_TOKEN = "admin-token"
NOBODY_TOKEN = "nobody-token"

# Flags of the server that goes away: without its watch cache it asks etcd, whose compaction it then feels. One more server for the few
# tests of owner references would cost more than they do.
AWAY = ("--watch-cache=false", "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")

# Both are programs in Go, and spend a quarter of a start on collecting garbage unless they may let some lie.
FEWER_COLLECTIONS = {"GOGC": "400", "GOMEMLIMIT": "600MiB"}


# The servers that there may be, and the tool that builds each.
TOOLS = {"kube-apiserver": "kube-assets", "kube-apiserver-current": "kube-assets-current"}


def assets(name="kube-apiserver"):
    """The folder with etcd and kube-apiserver, or None where it was never built (./check builds it)."""
    result = subprocess.run([SOURCE / "tools" / TOOLS[name], "--cached"], capture_output=True, text=True, check=False)
    return result.stdout.strip() or None


def servers():
    """The names of those to test on: a current one only where it could be built."""
    return ["kube-apiserver"] + (["kube-apiserver-current"] if assets("kube-apiserver-current") else [])


def _openssl(folder, *arguments):
    result = subprocess.run(["openssl", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"openssl {arguments}: {result.stderr}"


def _make_certificates(folder):
    _openssl(folder, "req", "-x509", *NEW_KEY, "-keyout", "ca.key", "-out", "ca.crt", "-days", "30",
             "-subj", "/CN=test-ca")
    _openssl(folder, "req", *NEW_KEY, "-keyout", "server.key", "-out", "server.csr",
             "-subj", "/CN=kube-apiserver")
    (folder / "server.ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n", encoding="utf-8")
    _openssl(folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial",
             "-out", "server.crt", "-days", "30", "-extfile", "server.ext")
    _openssl(folder, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "service-account.key")


class Cluster:
    """Cluster(folder).start(): kubeconfig, api; stop_server(), start_server(), kill... for tests that need them.
    `folder` is a pathlib.Path that exists. extra: more flags of kube-apiserver. name: one of servers()."""

    def __init__(self, folder, extra=(), name="kube-apiserver"):
        self.folder = folder
        self.name = name
        self.kubeconfig = folder / "kubeconfig"
        self.assets = assets(name)
        assert self.assets, f"there is no {name}; tools/{TOOLS[name]} builds one"
        self.extra = list(extra)
        self.etcd = self.server = None
        self.api = None

    def start(self):
        """A port that was free may be taken before it is used: then others are tried."""
        for _ in range(3):
            try:
                return self._start()
            except RuntimeError:
                if "address already in use" not in self.log("etcd") or self.server:
                    raise
                (self.folder / "etcd.log").unlink()
                shutil.rmtree(self.folder / "etcd", ignore_errors=True)
        raise RuntimeError("there are no free ports")

    def _start(self):
        client, peer, self.port = free_ports(3)
        self.etcd_url = f"http://127.0.0.1:{client}"
        _make_certificates(self.folder)
        self.write_kubeconfig(self.kubeconfig, ADMIN_TOKEN)
        (self.folder / "tokens").write_text(f'{ADMIN_TOKEN},admin,1,"system:masters"\n{NOBODY_TOKEN},nobody,2\n',
                                            encoding="utf-8")
        self.peer = peer
        self._start_etcd()
        self.start_server()
        return self

    @property
    def is_current(self):
        return self.name == "kube-apiserver-current"

    def _start_etcd(self):
        peer = self.peer
        self.etcd = self._run("etcd", [
            "--data-dir", self.folder / "etcd", "--unsafe-no-fsync", "--log-level", "warn",
            "--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url,
            "--listen-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
            "--initial-cluster", f"default=http://127.0.0.1:{peer}"])
        wait_until(lambda: self._is_running("etcd", self.etcd) and self._etcd("/v3/maintenance/status"), lambda: f"etcd; its log:\n{self.log('etcd')[-5000:]}", 60)

    def launch_server(self):
        """Without waiting for anything; is_ready() tells how it goes on."""
        key = self.folder / "service-account.key"
        self.server = self._run("kube-apiserver", [
            f"--etcd-servers={self.etcd_url}", "--bind-address=127.0.0.1", f"--secure-port={self.port}",
            f"--tls-cert-file={self.folder}/server.crt", f"--tls-private-key-file={self.folder}/server.key",
            f"--cert-dir={self.folder}", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://test", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder}/tokens", "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none", "--etcd-compaction-interval=0", *self.extra])
        self.api = Api(self.kubeconfig)

    def start_server(self):
        self.launch_server()
        wait_until(self._ready, lambda: f"kube-apiserver to be ready; its log:\n{self.log('kube-apiserver')[-5000:]}",
                   deadline=90, interval=0.1)

    def _is_running(self, name, popen):
        if popen.poll() is not None:
            raise RuntimeError(f"{name} ended with {popen.returncode}:\n{self.log(name)[-5000:]}")
        return True

    def _ready(self):
        return (self._is_running("etcd", self.etcd) and self._is_running("kube-apiserver", self.server)
                and self.api.raw("GET", "/readyz").code == 200
                and self.api.raw("GET", "/api/v1/namespaces/default").code == 200
                and self.api.raw("GET", "/api/v1/namespaces/kube-system").code == 200)

    def is_ready(self):
        """Whether it answers; one that has ended raises RuntimeError."""
        try:
            return self._ready()
        except (OSError, http.client.HTTPException):
            return False

    def _run(self, name, arguments):
        with open(self.folder / f"{name}.log", "ab") as log:
            return process.start(process.Root(), [os.path.join(self.assets, name), *arguments], FEWER_COLLECTIONS, stdout=log,
                                 stderr=log, cwd=self.folder)

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def write_kubeconfig(self, path, token):
        """A kubeconfig for the user with this token."""
        with open(self.folder / "ca.crt", encoding="utf-8") as authority:
            encoded = base64.b64encode(authority.read().encode()).decode()
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{self.port}",
                                                      "certificate-authority-data": encoded}}],
            "users": [{"name": "test", "user": {"token": token}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}), encoding="utf-8")
        path.chmod(0o600)

    def stop_server(self, number=signal.SIGTERM):
        server, self.server = self.server, None
        _end(server, number)

    def _stop_etcd(self):
        etcd, self.etcd = self.etcd, None
        _end(etcd, signal.SIGTERM)

    def restart_etcd(self):
        """The database is killed and started again; the server goes on, and comes to itself some time later."""
        etcd, self.etcd = self.etcd, None
        _end(etcd, signal.SIGKILL)
        self._start_etcd()

    def backup(self):
        """The database as it is now, for restore(): etcd stands still meanwhile. To etcd the copy is what a kill would have left."""
        path = self.folder / "backup"
        shutil.rmtree(path, ignore_errors=True)
        self.etcd.send_signal(signal.SIGSTOP)
        try:
            wait_until(lambda: process.Process(self.etcd.pid).state == "T", "etcd to stand still")
            shutil.copytree(self.folder / "etcd", path)
        finally:
            self.etcd.send_signal(signal.SIGCONT)

    def restore(self):
        """The database is again as it was at backup(): resourceVersions go back."""
        self.stop_server(signal.SIGKILL)  # in order it would take a minute
        self._stop_etcd()
        shutil.rmtree(self.folder / "etcd")
        shutil.copytree(self.folder / "backup", self.folder / "etcd")
        self._start_etcd()
        self.start_server()

    def compact(self):
        """Compacts etcd up to now: older resourceVersions answer 410 where the watch cache does not serve them."""
        revision = self._etcd("/v3/maintenance/status")["header"]["revision"]
        # Nothing may have been written since the last time.
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True}, unless="required revision has been compacted")

    def _etcd(self, path, body=None, unless=None):
        connection = http.client.HTTPConnection("127.0.0.1", int(self.etcd_url.rsplit(":", 1)[1]), timeout=30)
        try:
            connection.request("POST", path, json.dumps(body or {}))
            response = connection.getresponse()
            text = response.read().decode()
            assert response.status == 200 or (unless and unless in text), f"etcd {path}: {response.status} {text}"
            return json.loads(text)
        finally:
            connection.close()

    def close(self):
        for popen in (self.server, self.etcd):
            if popen is not None:
                _end(popen, signal.SIGKILL)
        self.server = self.etcd = None

    def __repr__(self):
        return f"cluster in {self.folder}"


def _end(popen, number):
    popen.send_signal(signal.SIGCONT)
    popen.send_signal(number)
    try:
        popen.wait(timeout=60)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()
