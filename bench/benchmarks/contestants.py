# SPDX-License-Identifier: Apache-2.0
"""The peers' operators and ours, with one face: prepare(name, box, server, status, concurrent) gives something with start(),
pid(), handled() (so many, in the file `count`) and stop(). concurrent: how many objects at once; only of controller-runtime,
kube-rs and ours. is_replica: it is one of several, of which one leads; only of controller-runtime and ours, which have kill()
and end() then."""
import contextlib
import os
import pathlib
import shutil
import signal

from harness.process import start

from . import measure, parts

CACHE = pathlib.Path(os.environ.get("RECONCILED_CACHE", pathlib.Path.home() / ".cache" / "reconciled")) / "peers"
BATCHES = "reconciled, shell in batches"
BATCH_MAX = 128  # the largest that there may be; shell-operator gives its hook all that came meanwhile
SOURCE = pathlib.Path(__file__).resolve().parents[1] / "peers"

# (peer, ours beside it, what the row adds to say so): ours with a handler of the same kind, for what is compared is the runtime,
# not C and Python. A script of ours can be run for each object, or for a batch of them, or be started once and read a line for each.
PAIRS = (
    ("kopf", "reconciled, Python", ""),
    ("controller-runtime", "reconciled, C", ""),
    ("kube-rs", "reconciled, C", ""),
    ("shell-operator", "reconciled, shell", ""),
    ("shell-operator", BATCHES, ", script for a batch"),
    ("shell-operator", "reconciled, serving shell", ", script that serves"),
)
PEERS = tuple(dict.fromkeys(peer for peer, _, _ in PAIRS))
OURS = tuple(dict.fromkeys(ours for _, ours, _ in PAIRS))


def in_turn(batches=False):
    """All of them, ours before the peers that it stands beside; batches: for what comes in bulk."""
    names = (name for each in OURS for name in (each, *(peer for peer, ours, _ in PAIRS if ours == each)))
    return [name for name in dict.fromkeys(names) if batches or name != BATCHES]


def unavailable():
    """{name: why it is not there}"""
    found = {peer: f"bench/peers/build {peer} could not get it" for peer in PEERS if not (CACHE / peer / "done").exists()}
    if not shutil.which("jq"):
        for name in ("shell-operator", BATCHES, "reconciled, serving shell"):
            found[name] = "its script needs the program jq, which is not installed"
    return found


class _Contestant:
    def __init__(self, box, name):
        self.folder = box.subfolder(name.replace(", ", "-"))
        self.folder.chmod(0o777)
        self.count = self.folder / "count"

    def handled(self):
        return self.count.stat().st_size if self.count.exists() else 0

    def script(self, *path):
        """A copy that every user can run."""
        target = self.folder / path[-1]
        shutil.copy(SOURCE.joinpath(*path), target)
        target.chmod(0o755)
        return target


class Peer(_Contestant):
    def __init__(self, name, box, server, status, concurrent, is_replica=False):
        super().__init__(box, name)
        self.environment = {"KUBECONFIG": server.kubeconfig, "BENCH_COUNT": self.count, "BENCH_STATUS": int(status),
                            "BENCH_CONCURRENT": concurrent, "BENCH_LEASE": "widgets.example.com" if is_replica else "",
                            "HOME": self.folder, "PATH": os.environ["PATH"]}
        self.command = [CACHE / name / "operator"]
        if name == "kopf":
            self.command = [CACHE / "kopf" / "bin" / "kopf", "run", "-A", "--standalone", "--quiet", SOURCE / "kopf" / "operator.py"]
        elif name == "shell-operator":
            self.command += ["start"]
            self.environment.update(self._shell_environment(server))

    def _shell_environment(self, server):
        """Without limits of requests a second, as the others."""
        hooks = self.folder / "hooks"
        hooks.mkdir()
        shutil.move(self.script("shell-operator", "hook.sh"), hooks)
        return {"SHELL_OPERATOR_HOOKS_DIR": hooks, "KUBE_CONFIG": server.kubeconfig, "LOG_LEVEL": "error",
                "SHELL_OPERATOR_LISTEN_ADDRESS": "127.0.0.1", "SHELL_OPERATOR_LISTEN_PORT": "0",
                "SHELL_OPERATOR_TMP_DIR": self.folder, **{f"{part}KUBE_CLIENT_{limit}": 100_000 for part in ("", "OBJECT_PATCHER_")
                                                          for limit in ("QPS", "BURST")}}

    def start(self):
        with open(self.folder / "log", "wb") as log:
            self.popen = start(parts.root(), self.command, self.environment, cwd=self.folder, stdout=log, stderr=log)

    def pid(self):
        return self.popen.pid

    def stop(self):
        for found in reversed(measure.tree(self.popen.pid)):
            try:
                found.kill(signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.popen.wait()

    kill = stop

    def end(self):
        """In order; returns at once."""
        self.popen.terminate()


class Ours(_Contestant):
    def __init__(self, name, box, server, status, concurrent, is_replica=False):
        super().__init__(box, name)
        argument = [str(self.count)] + (["status"] if status else [])
        handler = {
            "reconciled, C": lambda: {"serve": [str(box.program("bench-serve")), *argument]},
            "reconciled, Python": lambda: {"serve": [str(self.script("kopf", "handler.py")), *argument]},
            "reconciled, shell": lambda: {"exec": [str(self.script("shell-operator", "handler.sh")), *argument]},
            BATCHES: lambda: {"exec": [str(self.script("shell-operator", "serve.sh")), *argument], "batch": {"max": BATCH_MAX}},
            "reconciled, serving shell": lambda: {"serve": [str(self.script("shell-operator", "serve.sh")), *argument]},
        }[name]()
        watch = parts.watch("widgets")
        watch["handler"] = handler
        more = {"window": BATCH_MAX} if "batch" in handler else {}
        if is_replica:
            more["replicas"] = {"namespace": "default"}
        self.operator = parts.operator(box, server, watches=[watch], workers=concurrent, **more)

    def start(self):
        self.operator.start()

    def pid(self):
        return self.operator.pid

    def stop(self):
        self.operator.stop()

    def kill(self):
        for found in measure.tree(self.operator.pid):
            with contextlib.suppress(ProcessLookupError):
                found.kill(signal.SIGKILL)
        self.operator.wait_exit(-signal.SIGKILL)

    def end(self):
        self.operator.send_signal(signal.SIGTERM)


def prepare(name, box, server, status, concurrent=4, is_replica=False):
    return (Peer if name in PEERS else Ours)(name, box, server, status, concurrent, is_replica)
