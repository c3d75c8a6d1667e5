# SPDX-License-Identifier: Apache-2.0
"""A server that sends on the watch without a pause, and faster than anybody can read."""
import http.client
import http.server
import json
import threading
import time
import urllib.parse

import pytest
import yaml

from harness import watch

DEADLINE = 2  # seconds, of heartbeats
BLOCK = 1 << 20

pytestmark = pytest.mark.quiet


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


class Relay(http.server.BaseHTTPRequestHandler):
    """Passes everything on; into a watch it puts as much as goes in between the lines that come."""
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=600)
        upstream.request("GET", self.path, headers={key: value for key, value in self.headers.items() if key != "Host"})
        answer = upstream.getresponse()
        try:
            if "watch=" in self.path:
                self.stream(answer)
            else:
                self.pass_on(answer)
        except OSError:
            self.close_connection = True  # the operator has gone
        upstream.close()

    def pass_on(self, answer):
        body = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.getheader("Content-Type"))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self, answer):
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        lock = threading.Lock()
        threading.Thread(target=self.flood, args=(lock,), daemon=True).start()
        for line in answer:
            with lock:
                self.wfile.write(chunk(line))

    def flood(self, lock):
        self.server.flooding.wait()
        try:
            while self.server.flooding.is_set():
                with lock:
                    self.wfile.write(self.server.block)
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


class Flood:
    """What stands before a devserver, like it in what Operator.configure() asks for."""

    def __init__(self, sandbox, devserver):
        kubeconfig = yaml.safe_load(devserver.kubeconfig.read_text(encoding="utf-8"))
        cluster = kubeconfig["clusters"][0]["cluster"]
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Relay)
        self.server.daemon_threads = True
        self.server.upstream = urllib.parse.urlsplit(cluster["server"]).netloc
        self.server.flooding = threading.Event()
        cluster["server"] = f"http://127.0.0.1:{self.server.server_port}"
        self.kubeconfig = sandbox.subfolder("flood") / "kubeconfig"
        self.kubeconfig.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
        self.kubeconfig.chmod(0o644)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def begin(self, event):
        line = json.dumps(event).encode() + b"\n"
        self.server.block = chunk(line * (BLOCK // len(line)))
        self.server.flooding.set()

    def close(self):
        self.server.flooding.clear()
        self.server.shutdown()
        self.server.server_close()


def test_a_stream_without_a_pause_starves_nobody(sandbox, devserver, make_operator, make_handler):
    """While it goes on, the watcher's heartbeats come, what is new is handled soon, and a stop is obeyed."""
    flood, handler, operator = Flood(sandbox, devserver), make_handler("exit 0"), make_operator()
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    widgets.create("old")
    operator.configure(flood, [watch("widgets", handler)], heartbeat={"interval": "100ms", "deadline": f"{DEADLINE}s"})
    operator.start_ready().wait_synced()
    handler.wait_finished(name="old")
    try:
        # Newer than where the watch began: it is held against the store each time, which takes longer than to send it.
        flood.begin({"type": "MODIFIED", "object": widgets.merge_patch("old", {"metadata": {"labels": {"again": "yes"}}})})
        begin, number = time.monotonic(), 0
        while time.monotonic() < begin + 3 * DEADLINE:
            widgets.create(f"new-{number}")
            handler.wait_finished(name=f"new-{number}")
            number += 1
        operator.stop()
        assert "is killed" not in operator.output.text()
    finally:
        flood.close()
