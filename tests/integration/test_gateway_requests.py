# SPDX-License-Identifier: Apache-2.0
"""Requests to the gateway whose end two readers may see in different places. A proxy before it must never take the answer
to what was smuggled into one client's request for that to another client's."""
import socket

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway

HEAD = b"GET /healthz HTTP/1.1\r\nHost: a\r\n"
# What would be answered with 404, if it were taken for a request.
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.fixture
def raw(devserver, operator, handler, free_port):
    """raw(bytes): all that comes back until the server ends the connection."""
    operator.configure(devserver, [watch("widgets", handler)], workers=1, gateway={"listen": f"127.0.0.1:{free_port}"})
    operator.start_ready()
    wait_until(lambda: Gateway(free_port).get("/healthz")[0] == 200, "being alive")

    def raw(*pieces):
        with socket.create_connection(("127.0.0.1", free_port), timeout=20) as client:
            for piece in pieces:
                client.sendall(piece)
            client.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := client.recv(65536):
                answer += piece
        return answer.decode()

    yield raw
    operator.stop()


def test_one_answer_a_connection(raw):
    """Whatever stands behind the first request, and however its end is blurred: what is smuggled is never a request."""
    length = b"%d" % len(SMUGGLED)
    for name, request in {
            "pipelined": HEAD + b"\r\n" + SMUGGLED,
            "a body": HEAD + b"Content-Length: " + length + b"\r\n\r\n" + SMUGGLED,
            "a length and chunks": HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
            "chunks and a length": HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 500\r\n\r\n0\r\n\r\n" + SMUGGLED,
            "two lengths": HEAD + b"Content-Length: 0\r\nContent-Length: " + length + b"\r\n\r\n" + SMUGGLED,
            "a list of lengths": HEAD + b"Content-Length: 0, " + length + b"\r\n\r\n" + SMUGGLED,
            "a length below zero": HEAD + b"Content-Length: -1\r\n\r\n" + SMUGGLED,
            "a space before the colon": HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
            "a folded line": HEAD + b"X: a\r\n Content-Length: " + length + b"\r\n\r\n" + SMUGGLED,
            "a bare CR": HEAD + b"X: a\rContent-Length: " + length + b"\r\n\r\n" + SMUGGLED,
            "a bare LF": HEAD + b"X: a\nContent-Length: " + length + b"\r\n\r\n" + SMUGGLED,
            "a chunk without end": HEAD + b"Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n" + SMUGGLED,
            "a POST in chunks": b"POST" + HEAD[3:] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
            "HTTP/1.0": HEAD.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n\r\n" + SMUGGLED,
            "HEAD": b"HEAD" + HEAD[3:] + b"\r\n" + SMUGGLED}.items():
        answer = raw(request)
        assert answer.startswith("HTTP/1.1 ") and "Connection: close" in answer.split("\r\n\r\n")[0], name
        assert " 404 " not in answer and "there are /healthz" not in answer, name
