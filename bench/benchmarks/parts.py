# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks are put together from: the tests' harness, the prepared server, what /proc says."""
import atexit
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import time
import urllib.request

import yaml

from harness import WIDGET_CRD, Devserver, Operator, Sandbox, wait_until
from harness.process import Root, clean_environment, start
from harness.sandbox import stage_programs
from harness.operator import MESSAGE_ID
from harness.setup import BUILD

from . import measure

PROGRAM = BUILD / "bench"
SYNCED = MESSAGE_ID["WATCH_SYNCED"]
PROGRAMS = ("bench-server", "bench-relay", "bench-noop", "bench-serve", "bench-worker", "limit-first-sync", "limit-events", "limit-serve", "limit-spawn",
            "limit-latency")
_staged = None


@contextlib.contextmanager
def sandbox():
    """A Sandbox with our release programs."""
    global _staged
    if _staged is None:
        folder, _staged = stage_programs()
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for name in PROGRAMS:
            target = _staged["reconciled"].parent / name
            target.write_bytes((PROGRAM / name).read_bytes())
            target.chmod(0o755)
            _staged[name] = target
    found = Sandbox(_staged, "bench")
    try:
        yield found
    finally:
        found.close()


class Server:
    """bench/server.c with `objects` objects of `size` bytes."""

    def __init__(self, box, objects, size=3000, sent=False):
        self.box = box
        self.user = box.user()
        self.folder = box.subfolder("server", self.user)
        self.kubeconfig = self.folder / "kubeconfig"
        self.sent = self.folder / "sent" if sent else None
        command = [box.program("bench-server"), "--objects", objects, "--size", size, "--kubeconfig", self.kubeconfig]
        self.popen = start(self.user, command + (["--sent", self.sent] if sent else []), cwd=self.folder)
        box.register(self)
        wait_until(self.kubeconfig.exists, "bench-server to answer", 120)
        self.url = yaml.safe_load(self.kubeconfig.read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]

    def ask(self, path, method="POST"):
        request = urllib.request.Request(f"{self.url}/bench/{path}", method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def counts(self):
        return self.ask("counts", "GET")

    def events(self, count):
        return self.ask(f"events?count={count}")

    def close(self):
        self.popen.terminate()
        self.popen.wait()


class Far:
    """A Server, so many milliseconds of round trip away for who uses its kubeconfig (bench/relay.c)."""

    def __init__(self, box, server, milliseconds):
        self.server = server
        self.kubeconfig = box.subfolder("far", server.user) / "kubeconfig"
        port = server.url.rsplit(":", 1)[1]
        self.popen = start(server.user, [box.program("bench-relay"), port, int(500 * milliseconds)], cwd=server.folder,
                           stdout=subprocess.PIPE)
        box.register(self)
        near = server.kubeconfig.read_text(encoding="utf-8")
        self.kubeconfig.write_text(near.replace(server.url, f"http://127.0.0.1:{int(self.popen.stdout.readline())}"), encoding="utf-8")
        self.kubeconfig.chmod(0o644)

    def __getattr__(self, name):
        return getattr(self.server, name)

    def close(self):
        self.popen.terminate()
        self.popen.wait()


def devserver(box, arguments=()):
    return Devserver(box, [WIDGET_CRD], ["--history", "1000000", *arguments]).start()


def operator(box, server, watches=None, handler=None, noop_worker=False, **more):
    """An Operator, configured for `server` and not started: one watch of widgets unless `watches` says otherwise. With
    noop_worker, .runs counts what its workers did."""
    found = Operator(box)
    command = handler or [str(box.program("bench-noop"))]
    found.configure(server, watches if watches is not None else [watch("widgets", command)], **{"workers": 4, **more})
    if noop_worker:
        found.runs = measure.Counter(box.subfolder("runs") / "runs")
        found.replace_child("worker", f"#!/bin/sh\nRECONCILED_BENCH_RUNS={found.runs.path} exec {box.program('bench-worker')} \"$@\"\n")
    return found


def watch(name, command=None, serve=None, **more):
    handler = {"serve": serve} if serve else {"exec": command}
    return {"name": name, "apiVersion": "example.com/v1", "kind": "Widget", "handler": handler, **more}


def succeeded(found):
    return sum(entry["succeeded"] for entry in found.ctl.status()["watches"])


def wait_succeeded(found, count, deadline=600):
    """Waits until so many runs have succeeded since the start; returns the moment it was seen."""
    wait_until(lambda: succeeded(found) >= count, lambda: f"{count} runs, {succeeded(found)} so far", deadline, 0.02)
    return time.monotonic()


def root():
    """The caller's own user: peers are not under test, and live in the caller's cache folder."""
    return Root()


def limit(box, name, *arguments):
    """Runs a limit program; returns the numbers that it prints."""
    user = box.user()
    result = subprocess.run(user.command([box.program(name), *arguments]), env=clean_environment(user), check=True,
                            capture_output=True, text=True, cwd=box.folder, timeout=600)
    return [float(word) for word in result.stdout.split()]


def lines_of(path):
    path = pathlib.Path(path)
    return [int(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]] if path.exists() else []
