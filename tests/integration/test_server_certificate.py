# SPDX-License-Identifier: Apache-2.0
"""API servers whose certificate is not to be trusted: nothing is said to them, and the log says what is wrong."""
import shutil
import socket
import ssl
import subprocess
import threading

import pytest
import yaml

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import NEW_KEY


class Impostor:
    """Takes TLS connections; `heard` is what was said on them, `refused` the connections that the client ended."""

    def __init__(self, certificate, key):
        self.heard, self.refused = b"", 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            try:
                plain, _ = self._socket.accept()
            except OSError:
                return
            plain.settimeout(5)
            try:
                with self._context.wrap_socket(plain, server_side=True) as client:
                    while piece := client.recv(4096):
                        self.heard += piece
            except OSError:
                pass
            self.refused += 1

    def close(self):
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """certificates(how): certificate and key of a server, signed by the authority `ca.crt` beside it but for what is wrong."""
    folder = tmp_path_factory.mktemp("certificates")

    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    def authority(name):
        openssl("req", "-x509", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt",
                "-days", "30", "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def server(name, by="ca", address="IP:127.0.0.1", days=("20200101000000Z", "20400101000000Z")):
        openssl("req", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr",
                "-addext", f"subjectAltName={address}")
        (folder / "index.txt").write_text("", encoding="utf-8")
        (folder / "serial").write_text("01", encoding="utf-8")
        (folder / "ca.conf").write_text("[ca]\ndefault_ca=x\n[x]\ndatabase=index.txt\nserial=serial\nnew_certs_dir=.\npolicy=p\n"
                                        "copy_extensions=copy\ndefault_md=sha256\n[p]\ncommonName=supplied\n", encoding="utf-8")
        openssl("ca", "-batch", "-config", "ca.conf", "-cert", f"{by}.crt", "-keyfile", f"{by}.key", "-in", f"{name}.csr",
                "-out", f"{name}.crt", "-notext", "-startdate", days[0], "-enddate", days[1])

    authority("ca")
    authority("stranger")
    server("good")
    server("name", address="DNS:other.example.com")
    server("expired", days=("20200101000000Z", "20200102000000Z"))
    server("early", days=("20390101000000Z", "20400101000000Z"))
    server("unknown", by="stranger")
    openssl("req", "-x509", *NEW_KEY, "-subj", "/CN=self", "-addext", "subjectAltName=IP:127.0.0.1",
            "-keyout", "self.key", "-out", "self.crt", "-days", "30")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def meet(certificates, operator, handler):
    """meet(how): the operator, with a token, before a server with this certificate."""
    servers = []

    def meet(how):
        server = Impostor(certificates / f"{how}.crt", certificates / f"{how}.key")
        servers.append(server)
        path = operator.folder / "kubeconfig"
        cluster = {"server": f"https://127.0.0.1:{server.port}", "certificate-authority": str(operator.folder / "ca.crt")}
        path.write_text(yaml.safe_dump({
            "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
            "users": [{"name": "u", "user": {"token": "the-secret"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}), encoding="utf-8")
        shutil.copy(certificates / "ca.crt", operator.folder / "ca.crt")
        for name in ("kubeconfig", "ca.crt"):
            operator.user.give(operator.folder / name, 0o600)
        operator.configure(None, [watch("widgets", handler, deadline="5m", reconnect={"first": "50ms", "max": "200ms"})],
                           cluster={"kubeconfig": str(path)})
        operator.start_ready()
        return server

    yield meet
    for server in servers:
        server.close()


@pytest.mark.parametrize("how, said", [("name", "for other names"), ("expired", "has expired; renew"),
                                       ("early", "not yet valid; renew"), ("unknown", "did not sign it"), ("self", "did not sign it")])
def test_a_server_that_is_not_trusted_hears_nothing(meet, operator, how, said):
    server = meet(how)
    message = operator.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"])["message"]
    wait_until(lambda: server.refused >= 3, "more attempts")
    operator.stop()
    assert server.heard == b"" and said in message


def test_a_server_that_is_trusted_hears_the_token(meet, operator):
    """So that the test above tells something."""
    server = meet("good")
    wait_until(lambda: b"the-secret" in server.heard, "the token")
    operator.stop()
