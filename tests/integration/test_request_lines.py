# SPDX-License-Identifier: Apache-2.0
"""A request of a process that serves is one line, whatever white space the API server puts into its JSON."""
import http.server
import json
import threading
import urllib.request

import pytest
import yaml

from harness import wait_until, watch

PROGRAM = """#!/usr/bin/python3 -u
# Notes each line as it came, and answers only what is a whole request.
import json, sys
for line in sys.stdin:
    with open({folder!r} + "/lines", "a") as file:
        file.write(json.dumps(line) + "\\n")
    print(json.dumps({{"id": json.loads(line)["id"], "status": {{"seen": True}}}}))
"""


class Served:
    def __init__(self, sandbox, user):
        self.folder = sandbox.subfolder("serve", user)
        self.program = self.folder / "serve"
        self.program.write_text(PROGRAM.format(folder=str(self.folder)), encoding="utf-8")
        self.program.chmod(0o755)

    def lines(self):
        path = self.folder / "lines"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


class Printer(http.server.BaseHTTPRequestHandler):
    """A proxy that prints JSON for people, with every kind of line break, as servers do for those who ask for it."""
    protocol_version = "HTTP/1.0"

    def relay(self):
        size = int(self.headers.get("Content-Length") or 0)
        headers = {name: self.headers[name] for name in ("Accept", "Content-Type") if self.headers[name]}
        request = urllib.request.Request(self.server.upstream + self.path, self.rfile.read(size) if size else None,
                                         headers, method=self.command)
        try:
            response = urllib.request.urlopen(request)
        except urllib.error.HTTPError as error:
            response = error
        self.send_response(response.status)
        self.send_header("Content-Type", response.headers["Content-Type"])
        self.end_headers()
        if "watch=" in self.path:
            for line in response:
                self.wfile.write(line)
        else:
            body = response.read()
            if response.headers["Content-Type"] == "application/json":
                body = json.dumps(json.loads(body), indent=2).replace("\n", "\r\n").encode() + b"\n"
            self.wfile.write(body)

    do_GET = do_PATCH = do_POST = do_PUT = do_DELETE = relay

    def log_message(self, *_):
        pass


@pytest.fixture
def printer(devserver, sandbox):
    """A server to configure an operator with: the devserver behind the proxy."""
    config = yaml.safe_load(devserver.kubeconfig.read_text(encoding="utf-8"))
    cluster = config["clusters"][0]["cluster"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Printer)
    server.daemon_threads = True
    server.upstream = cluster["server"]
    cluster["server"] = f"http://127.0.0.1:{server.server_port}"
    path = sandbox.subfolder("printer") / "kubeconfig"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    path.chmod(0o644)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    server.kubeconfig = path
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def served(sandbox, operator):
    return Served(sandbox, operator.user)


def start(operator, server, served, **more):
    entry = watch("widgets", **more)
    entry["handler"] = {"serve": [str(served.program)]}
    operator.configure(server, [entry], workers=1)
    return operator.start_ready().wait_synced()


def check(served, widgets, names):
    wait_until(lambda: all(widgets.get(name).get("status") == {"seen": True} for name in names),
               lambda: f"the status of all; the lines were {served.lines()}")
    for line in served.lines():
        request = json.loads(line)
        assert line.endswith("}\n") and line.count("\n") == 1 and "\r" not in line
        assert request["object"]["metadata"]["finalizers"] == ["widgets.example.com/finalizer"]
        assert request["attempt"] == 1, "the handler died over the request before"


def test_the_first_request_behind_a_finalizer_is_one_line(devserver, operator, served, widgets):
    widgets.create("listed")
    start(operator, devserver, served, finalizer=True)
    widgets.create("watched")
    check(served, widgets, ["listed", "watched"])


def test_a_server_that_prints_for_people(printer, operator, served, widgets, api):
    for number in range(3):
        widgets.create(f"listed-{number}", spec={"text": "two\nlines\r\n"})
    api.resource("v1", "configmaps", "default").create("beside", data={"a": "b\nc"})
    start(operator, printer, served, finalizer=True, related=[{"apiVersion": "v1", "kind": "ConfigMap"}])
    check(served, widgets, [f"listed-{number}" for number in range(3)])
    assert any(json.loads(line)["object"]["spec"] == {"text": "two\nlines\r\n"} for line in served.lines())
    assert any(item["data"] == {"a": "b\nc"} for line in served.lines() for item in json.loads(line)["related"])
