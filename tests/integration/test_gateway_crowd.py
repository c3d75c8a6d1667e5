# SPDX-License-Identifier: Apache-2.0
"""Clients of the gateway that are slow, do not read, or are many: whoever asks for health is answered nevertheless."""
import contextlib
import re
import resource
import socket
import threading
import time

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway


@pytest.fixture
def served(devserver, operator, handler, free_port):
    # Thirty watches: a document of some size.
    operator.configure(devserver, [watch(f"widgets-{number}", handler, id=str(number), namespaces=[f"n{number}"]) for number in range(30)],
                       workers=1, gateway={"listen": f"0.0.0.0:{free_port}"}, heartbeat={"interval": "500ms", "deadline": "10s"})
    operator.gateway = Gateway(free_port)
    operator.start_ready()
    wait_until(lambda: operator.gateway.get("/healthz")[0] == 200, "being alive")
    return operator


def connect(port, source):
    client = socket.create_connection(("127.0.0.1", port), source_address=(source, 0))
    client.settimeout(5)
    return client


@contextlib.contextmanager
def many_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], min(before[1], 4096)), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Slow:
    """Keeps `count` requests open by a byte a second each, from so many addresses, and opens anew what was closed."""

    def __init__(self, port, count, addresses):
        self._port, self._addresses = port, addresses
        self._over = threading.Event()
        self._client = [None] * count
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.rounds = 0

    def _send(self, index):
        if self._client[index] is None:
            self._client[index] = connect(self._port, f"127.0.1.{1 + index % self._addresses}")
            self._client[index].sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        self._client[index].sendall(b"x")

    def _run(self):
        while not self._over.is_set():
            for index, client in enumerate(self._client):
                try:
                    self._send(index)
                except OSError:
                    if client:
                        client.close()
                    self._client[index] = None
            self.rounds += 1
            self._over.wait(1)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()
        for client in self._client:
            if client:
                client.close()


@pytest.mark.parametrize("addresses", [1, 50], ids=["one address", "50 addresses"])
@pytest.mark.slow
@pytest.mark.quiet
def test_health_is_answered_beside_600_slow_clients(served, addresses):
    """They are more than may be connected at once: whoever waited behind them would wait for minutes."""
    with many_descriptors(), Slow(served.gateway.address, 600, addresses) as slow:
        for rounds in (1, 3):
            wait_until(lambda: slow.rounds >= rounds, "the crowd", deadline=60)
            with contextlib.closing(connect(served.gateway.address, "127.0.2.1")) as probe:
                probe.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                assert b" 200 " in probe.recv(1000)
    served.stop()


@pytest.mark.slow
def test_a_request_that_is_not_over_after_ten_seconds_is_cut_off(served):
    with contextlib.closing(connect(served.gateway.address, "127.0.2.1")) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nX-Slow: ")
        begun = time.monotonic()

        def is_closed():
            try:
                client.settimeout(0.2)
                client.sendall(b"x")
                return client.recv(1000) == b""
            except socket.timeout:
                return False
            except OSError:
                return True

        wait_until(is_closed, "the end of the connection", deadline=60)
        assert time.monotonic() - begun > 5, "it was given some time"


def anonymous(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="utf-8") as rollup:
        return 1024 * int(re.search(r"^Anonymous:\s+(\d+)", rollup.read(), re.M).group(1))


@pytest.mark.slow
def test_clients_that_do_not_read_share_one_document(served):
    port, pid = served.gateway.address, served.child("gateway").pid
    size = len(served.gateway.get("/metrics")[2])
    before = anonymous(pid)
    clients = []
    try:
        for number in range(400):
            client = socket.socket()
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.bind((f"127.0.1.{1 + number % 50}", 0))
            client.connect(("127.0.0.1", port))
            client.sendall(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
            clients.append(client)
        wait_until(lambda: served.gateway.get("/healthz")[0] == 200, "health")
        grown = anonymous(pid) - before
        assert grown < 400 * (16 * 1024 + size / 4), f"{grown} bytes for 400 clients, and a document has {size}"
    finally:
        for client in clients:
            client.close()


def test_readiness_is_told_at_once(devserver, operator, handler, free_port):
    """What `reconciledctl health --ready` and /readyz say is one truth, not one of five seconds ago."""
    operator.configure(devserver, [watch("widgets", handler)], workers=1, gateway={"listen": f"127.0.0.1:{free_port}"},
                       heartbeat={"interval": "100s", "deadline": "400s"})
    operator.start_ready()
    wait_until(lambda: operator.ctl.run("health", "--ready").returncode == 0, "readiness")
    wait_until(lambda: Gateway(free_port).get("/readyz")[0] == 200, "readiness over HTTP")
