# SPDX-License-Identifier: Apache-2.0
"""The operator's HTTP: health and metrics."""
import http.client
import socket
import ssl

from .wait import wait_until


class Gateway:
    """get("/metrics") -> (status, headers, text)."""

    def __init__(self, address, authority=None):
        """authority: a file with the certificate of whom to trust; then it is HTTPS."""
        self.address = address
        self.authority = authority

    def _connect(self):
        if self.authority is None:
            return http.client.HTTPConnection("127.0.0.1", timeout=20)
        return http.client.HTTPSConnection("127.0.0.1", timeout=20, context=ssl.create_default_context(cafile=self.authority))

    def get(self, path, headers=None, method="GET"):
        connection = self._connect()
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
