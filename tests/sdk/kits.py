# SPDX-License-Identifier: Apache-2.0
"""The kits, and what this machine needs to run each of them. A kit is built once, in a folder that each user can read: sources of a
clone below /root are not for others."""
import contextlib
import dataclasses
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile

import pytest

from harness.setup import GO_CACHE, SOURCE
from harness.wait import scaled

PYTHON = "/usr/bin/python3"
ENVIRONMENT = {"PATH": f"/usr/bin:/bin:{os.environ.get('PATH', os.defpath)}", "LANG": "C.UTF-8", "HOME": os.devnull}


def program(name, first="", last=""):
    """Its path, or None: in the folder `first`, on the PATH, or in the folder `last`."""
    return shutil.which(name, path=os.pathsep.join([first, os.environ.get("PATH", ""), last]))


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
                          timeout=scaled(300), **options)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@dataclasses.dataclass(frozen=True)
class Built:
    folder: pathlib.Path  # a copy of what it is built of
    probe: list
    example: list
    own_tests: list  # the example's
    tests_in: pathlib.Path
    environment: dict  # of all of these
    tools: dict  # likewise, of its compiler and the like
    heading: str  # in docs/kits.md
    page: list  # the command of that section's handler, in the folder where it was built
    hour: str = "3600000ms"  # as that handler says it
    without: tuple = ()  # expectations that its language has nothing for
    parallel: tuple = ()  # arguments with which its probe answers several requests at once


def build_python(folder):
    example = folder / "sdk/python/example"
    environment = {"PYTHONPATH": str(folder / "sdk/python")}
    return Built(folder, [PYTHON, str(folder / "tests/sdk/probe.py")], [PYTHON, str(example / "website.py")],
                 [PYTHON, "-m", "unittest", "test_website"], example, environment, {"PYTHONDONTWRITEBYTECODE": "1"}, "Python", ["./handler.py"], "1h",
                 parallel=("parallel",))


def build_node(folder):
    """npm must not look for anything: the kit has no dependencies."""
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "reconciled").symlink_to(folder / "sdk/node")
    tools = {"npm_config_offline": "true", "npm_config_audit": "false", "npm_config_fund": "false",
             "npm_config_update_notifier": "false", "npm_config_cache": str(folder / "npm")}
    return Built(folder, [NODE, str(folder / "tests/sdk/probe.js")], [NODE, str(folder / "sdk/node/example/website.js")],
                 [NODE, "--test"], folder / "sdk/node/example", {}, tools, "Node", [NODE, "handler.js"])


def build_go(folder):
    """No network, and no newer Go than the one that is there."""
    tools = {"PATH": f"{os.path.dirname(GO)}:{ENVIRONMENT['PATH']}", "GOCACHE": str(GO_CACHE), "GOPROXY": "off", "GOFLAGS": "-mod=mod",
             "GOTOOLCHAIN": "local", "GOPATH": str(folder / "go"), "CGO_ENABLED": "0"}
    for target, place in (("probe", "tests/sdk/probe-go"), ("website", "sdk/go/example")):
        run([GO, "build", "-o", folder / target, "."], cwd=folder / place, env={**ENVIRONMENT, **tools})
    run([GO, "vet", "./..."], cwd=folder / "sdk/go", env={**ENVIRONMENT, **tools})
    return Built(folder, [str(folder / "probe")], [str(folder / "website")], [GO, "test", "./..."], folder / "sdk/go", {}, tools, "Go", ["./handler"])


def build_c(folder):
    """With the sanitizers, and each warning an error."""
    kit = folder / "sdk/c"
    strict = ["-std=c11", "-O1", "-pthread", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wwrite-strings", "-Werror"]
    run(["cc", *strict, "-fsanitize=address,undefined", "-fno-sanitize-recover", "-shared", "-fPIC", "-o", folder / "libkit.so",
         kit / "reconciled-kit.c", kit / "reconciled-kit-json.c"])
    example = kit / "example"
    sources = {"probe": [folder / "tests/sdk/probe.c"], "website": [example / "website.c"],
               "website-test": ["-DWEBSITE_TEST", example / "website.c", example / "website-test.c"]}
    for target, given in sources.items():
        run(["cc", *strict, "-fsanitize=address,undefined", f"-I{kit}", "-o", folder / target, *given, folder / "libkit.so",
             f"-Wl,-rpath,{folder}"])
    return Built(folder, [str(folder / "probe")], [str(folder / "website")], [str(folder / "website-test")], folder, {}, {}, "C",
                 ["./handler"], without=("crash",), parallel=("parallel",))


def build_rust(folder):
    """Without a network. What rustup has installed is found below the home."""
    tools = {"PATH": f"{os.path.dirname(CARGO)}:{ENVIRONMENT['PATH']}", "HOME": os.path.expanduser("~"), "CARGO_NET_OFFLINE": "true",
             "RUSTFLAGS": "-Dwarnings"}
    target = {"CARGO_TARGET_DIR": str(folder / "target")}
    for place, what in (("tests/sdk/probe-rust", ["--bins"]), ("sdk/rust", ["--examples"])):
        run([CARGO, "build", "--quiet", *what], cwd=folder / place, env={**ENVIRONMENT, **tools, **target})
    return Built(folder, [str(folder / "target/debug/probe")], [str(folder / "target/debug/examples/website")],
                 [CARGO, "test", "--quiet", "--offline", "--examples"], folder / "sdk/rust", {}, tools | target, "Rust",
                 ["target/debug/handler"])


NODE = program("node")
CARGO = program("cargo", last=os.path.expanduser("~/.cargo/bin"))
GO = program("go", first="/usr/lib/go-1.19/bin", last="/usr/local/go/bin")
# name: (what it needs, or None where it is at hand; how it is built)
KITS = {
    "python": (None, build_python),
    "node": (None if NODE and program("npm") else "Node 18 or newer and npm (nodejs, npm), for the kit of that language", build_node),
    "go": (None if GO else "Go 1.19 or newer (golang-go), for the kit of that language", build_go),
    "c": (None, build_c),
    "rust": (None if CARGO else "Rust 1.63 or newer and cargo (cargo), for the kit of that language", build_rust),
}


def parameter(name):
    """For the fixture kit."""
    need = KITS[name][0]
    return pytest.param(name, marks=[pytest.mark.xdist_group(f"kit-{name}"), pytest.mark.only_where(need is None, need)])


def build(name, folder):
    """Of a copy of the sources: a build leaves files behind."""
    for part in (f"sdk/{name}", "tests/sdk", "schema"):
        shutil.copytree(SOURCE / part, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
    return KITS[name][1](folder)


class Running:
    """The probe as a process that serves."""

    def __init__(self, kit, *arguments, **options):
        self.stderr = tempfile.TemporaryFile()
        self.received = b""
        self.process = subprocess.Popen([*kit.probe, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr,
                                        env={**ENVIRONMENT, **kit.environment}, **options)

    def send(self, request):
        self.process.stdin.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        while b"\n" not in self.received:
            ready, _, _ = select.select([self.process.stdout], [], [], scaled(20))
            data = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
            assert data, f"no answer after {self.received!r}; it said: {self.said()}"
            self.received += data
        line, _, self.received = self.received.partition(b"\n")
        return json.loads(line)

    def ask(self, request):
        self.send(request)
        return self.receive()

    def said(self):
        """Standard error so far."""
        end = self.stderr.seek(0, os.SEEK_END)
        return os.pread(self.stderr.fileno(), end, 0).decode(errors="replace")

    def wait(self):
        return self.process.wait(scaled(20))

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                stream.close()
        self.process.wait()
        self.stderr.close()
