# SPDX-License-Identifier: Apache-2.0
"""The operator's HTTP: health and metrics."""
import http.client
import socket

from .wait import wait_until


class Gateway:
    """get("/metrics") -> (status, headers, text)."""

    def __init__(self, address):
        self.address = address

    def get(self, path, headers=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", timeout=20)
        if isinstance(self.address, int):
            connection.port = self.address
        else:
            connection.sock = socket.socket(socket.AF_UNIX)
            connection.sock.connect(str(self.address))
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read().decode()
        finally:
            connection.close()

    def metrics(self):
        """{sample with its labels: value}."""
        status, _, text = self.get("/metrics")
        assert status == 200, text
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))

    def wait(self, sample, value):
        wait_until(lambda: float(self.metrics()[sample]) == value,
                   lambda: f"{sample} to be {value}; it is {self.metrics().get(sample)}")
