# SPDX-License-Identifier: Apache-2.0
"""The gateway's TLS: who it says it is, renewals, and what is wrong with files."""
import functools
import os
import signal
import socket
import ssl
import subprocess
import time

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID
from harness.setup import NEW_KEY


class Files:
    """A certificate and its key, signed by itself, as files that the operator's user alone can read."""

    def __init__(self, operator):
        self.user = operator.user
        self.folder = operator.sandbox.subfolder("tls", operator.user)
        self.certificate, self.key = self.folder / "tls.crt", self.folder / "tls.key"

    def _sign_for_the_past(self, run, name, new):
        """The same certificate once more, for a day of 2020: `openssl req` knows no past."""
        folder = self.folder / f"{name}.ca"
        folder.mkdir()
        (folder / "index").touch()
        (folder / "serial").write_text("01\n", encoding="ascii")
        (folder / "config").write_text(
            f"[ca]\ndefault_ca=own\n[own]\ndatabase={folder}/index\nserial={folder}/serial\nnew_certs_dir={folder}\n"
            "default_md=sha256\npolicy=any\nx509_extensions=extensions\n[any]\ncommonName=supplied\n"
            "[extensions]\nsubjectAltName=IP:127.0.0.1\n", encoding="ascii")
        run(["openssl", "req", "-new", "-key", new["key"], "-subj", f"/CN={name}", "-out", folder / "request"])
        run(["openssl", "ca", "-batch", "-notext", "-selfsign", "-config", folder / "config", "-keyfile", new["key"],
             "-startdate", "20200101000000Z", "-enddate", "20200102000000Z", "-in", folder / "request", "-out", new["crt"]])

    def make(self, name, days=30, certificate=True, key=True, expired=False):
        """Replaces both files, or one of them, by those of a new pair; returns the certificate's path for trust."""
        new = {each: self.folder / f"{name}.{each}" for each in ("crt", "key")}
        run = functools.partial(subprocess.run, check=True, capture_output=True)
        run(["openssl", "req", "-x509", *NEW_KEY, "-days", str(days), "-subj", f"/CN={name}",
             "-addext", "subjectAltName=IP:127.0.0.1", "-out", new["crt"], "-keyout", new["key"]])
        if expired:
            self._sign_for_the_past(run, name, new)
        trusted = self.folder / f"{name}.trusted"
        trusted.write_bytes(new["crt"].read_bytes())
        for each in new.values():
            self.user.give(each, 0o600)
        if certificate:
            os.replace(new["crt"], self.certificate)
        if key:
            os.replace(new["key"], self.key)
        return str(trusted)

    @property
    def config(self):
        return {"certificateFile": str(self.certificate), "keyFile": str(self.key)}


@pytest.fixture
def files(operator):
    return Files(operator)


@pytest.fixture
def secured(devserver, operator, handler, files, free_port):
    operator.trusted = files.make("first")
    operator.configure(devserver, [watch("widgets", handler)], workers=1,
                       gateway={"listen": f"127.0.0.1:{free_port}", "tls": files.config},
                       heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.port = free_port
    return operator


def shows(operator, trusted):
    try:
        return Gateway(operator.port, trusted).get("/healthz")[0] == 200
    except ssl.SSLError:
        return False


def test_health_and_metrics_over_tls(secured, files):
    secured.start_ready()
    gateway = Gateway(secured.port, secured.trusted)
    wait_until(lambda: gateway.get("/healthz")[0] == 200, "health")
    wait_until(lambda: "reconciled_gateway_certificate_stale" in gateway.metrics(), "metrics")
    assert gateway.metrics()["reconciled_gateway_certificate_stale"] == "0"
    wait_until(lambda: float(gateway.metrics()["reconciled_gateway_certificate_expiry_seconds"]) > 0, "the expiry")
    left = float(gateway.metrics()["reconciled_gateway_certificate_expiry_seconds"]) - time.time()
    assert 29 * 86400 < left < 31 * 86400
    # Nothing is said in clear, and nobody is taken for the gateway who has not its key.
    with socket.create_connection(("127.0.0.1", secured.port)) as plain:
        plain.settimeout(10)
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        try:
            while piece := plain.recv(4096):
                answer += piece
        except OSError:
            pass
    assert b"HTTP/1" not in answer
    assert not shows(secured, files.make("stranger", certificate=False, key=False))


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")
@pytest.mark.parametrize("version, served", [(ssl.TLSVersion.TLSv1_1, False), (ssl.TLSVersion.TLSv1_2, True),
                                             (ssl.TLSVersion.TLSv1_3, True)])
def test_versions(secured, version, served):
    secured.start_ready()
    context = ssl.create_default_context(cafile=secured.trusted)
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = version
    with socket.create_connection(("127.0.0.1", secured.port), timeout=20) as raw:
        if not served:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                context.wrap_socket(raw, server_hostname="127.0.0.1")
            return
        with context.wrap_socket(raw, server_hostname="127.0.0.1") as secure:
            assert secure.version().replace("v", "") == version.name.replace("v", "").replace("_", ".")


def test_a_renewed_certificate_is_used_without_a_restart(secured, files):
    secured.start_ready()
    wait_until(lambda: shows(secured, secured.trusted), "the first certificate")
    renewed = files.make("second")
    wait_until(lambda: shows(secured, renewed), "the second certificate")
    assert not shows(secured, secured.trusted)
    secured.wait_for_log("certificate has changed", role="gateway")


def test_half_a_renewal_leaves_the_former_certificate(secured, files):
    secured.start_ready()
    wait_until(lambda: shows(secured, secured.trusted), "the first certificate")
    files.make("second", key=False)
    said = secured.wait_for_log(message_id=MESSAGE_ID["CERTIFICATE_STALE"])["message"]
    assert "the former one stays" in said and str(files.certificate) in said
    assert shows(secured, secured.trusted)
    gateway = Gateway(secured.port, secured.trusted)
    wait_until(lambda: gateway.metrics()["reconciled_gateway_certificate_stale"] == "1", "the metric")
    assert "its new certificate cannot be used" in secured.ctl.run("status").stdout
    assert secured.ctl.status()["gateway"]["certificateStale"] is True
    os.unlink(files.key)
    third = files.make("third")
    wait_until(lambda: shows(secured, third), "the third certificate")
    wait_until(lambda: secured.ctl.status()["gateway"]["certificateStale"] is False, "that it is said no more")


def test_an_expired_certificate_does_not_take_the_place_of_a_valid_one(secured, files):
    secured.start_ready()
    wait_until(lambda: shows(secured, secured.trusted), "the first certificate")
    files.make("expired", expired=True)
    said = secured.wait_for_log(message_id=MESSAGE_ID["CERTIFICATE_STALE"],
                                where=lambda record: "has expired" in record["message"])["message"]
    assert "the former one stays" in said
    assert shows(secured, secured.trusted)
    wait_until(lambda: secured.ctl.status()["gateway"]["certificateStale"] is True, "the status")


def test_an_expired_certificate_at_the_start_is_said(secured, files):
    files.make("expired", expired=True)
    secured.start_ready()
    assert "has expired" in secured.wait_for_log(message_id=MESSAGE_ID["CERTIFICATE_EXPIRED"])["message"]
    wait_until(lambda: secured.ctl.status()["gateway"]["certificateExpired"] is True, "the status")
    assert "is not valid at this time" in secured.ctl.run("status").stdout
    valid = files.make("valid")
    wait_until(lambda: shows(secured, valid), "the valid certificate")
    wait_until(lambda: secured.ctl.status()["gateway"]["certificateExpired"] is False, "that it is said no more")


def test_rights_that_are_mended_later(secured, files):
    secured.start_ready()
    wait_until(lambda: shows(secured, secured.trusted), "the first certificate")
    if os.geteuid() != 0:
        pytest.skip("needs root to make a file that its reader cannot read")
    renewed = files.make("second", certificate=False, key=False)
    os.chown(files.folder / "second.key", 0, 0)
    os.replace(files.folder / "second.key", files.key)
    os.replace(files.folder / "second.crt", files.certificate)
    assert "Permission denied" in secured.wait_for_log(message_id=MESSAGE_ID["CERTIFICATE_STALE"],
                                                       where=lambda record: "denied" in record["message"])["message"]
    secured.user.give(files.key)
    wait_until(lambda: shows(secured, renewed), "the second certificate")


@pytest.mark.parametrize("wrong", ["missing", "no certificate", "another key"])
def test_wrong_files_at_the_start(secured, files, wrong):
    if wrong == "missing":
        files.key.unlink()
    elif wrong == "no certificate":
        files.certificate.write_text("nothing", encoding="utf-8")
    else:
        files.make("other", certificate=False)
    secured.start()
    secured.wait_exit(78)
    assert "gateway.tls: " in secured.output.text() and str(files.folder) in secured.output.text()


def test_a_reload_with_wrong_files_changes_nothing(secured, files):
    secured.start_ready().wait_synced()
    wait_until(lambda: shows(secured, secured.trusted), "the first certificate")
    text = secured.config_file.read_text(encoding="utf-8")
    secured.write_config(text.replace(str(files.key), str(files.certificate)))
    checked = secured.ctl.check(secured.config_file)
    assert checked.returncode == 78 and "gateway.tls: " in checked.stdout and str(files.certificate) in checked.stdout
    secured.send_signal(signal.SIGHUP)
    secured.wait_for_log("the new configuration is rejected")
    assert shows(secured, secured.trusted)


@pytest.mark.parametrize("tls, said", [({"certificateFile": "/x"}, "keyFile"), ({"certificateFile": "x", "keyFile": "/y"},
                                                                                "is not an absolute path")])
def test_wrong_keys(devserver, operator, handler, tls, said):
    operator.configure(devserver, [watch("widgets", handler)], gateway={"tls": tls})
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 78 and "gateway.tls" in result.stdout and said in result.stdout, result.stdout


def test_a_handshake_that_stands_still_stops_nobody(secured):
    secured.start_ready()
    silent = [socket.create_connection(("127.0.0.1", secured.port)) for _ in range(20)]
    try:
        wait_until(lambda: shows(secured, secured.trusted), "health")
    finally:
        for each in silent:
            each.close()
