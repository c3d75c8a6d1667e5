# SPDX-License-Identifier: Apache-2.0
"""What our processes can no longer do, and what nobody can do to them. (What the sandbox itself refuses is tried from inside
in tests/unit/base/test-sandbox.c.)"""
import errno
import os
import resource
import signal
import subprocess

import pytest

from harness import wait_until, watch
from harness.process import User

from death.conftest import ASK, CONNECT, EXECUTE, FORK, LIBC, READ, WRITE_ELSEWHERE, tell

SYS_LANDLOCK_CREATE_RULESET = 444
ROLES = ("credential", "watcher", "worker", "gateway")
FILTERED = ("supervisor", "credential", "watcher", "gateway")

pytestmark = pytest.mark.plain_only("sanitizers fork and look into processes: a sanitized build forbids itself less")


def has_landlock():
    return LIBC.syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, 1) >= 1


class Plain(User):
    """Without what the harness does for its processes: as one would start it by hand."""

    def command(self, command):
        return [word for word in super().command(command) if word != "--no-new-privs"]


@pytest.fixture
def running(devserver, operator, handler, widgets):
    operator.user.__class__ = Plain
    operator.configure(devserver, [watch("widgets", handler)], workers=1,
                       gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    return operator


def status(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)


def test_nobody_gets_more_rights(running):
    for pid in [running.pid] + [child.pid for child in running.children()]:
        assert status(pid)["NoNewPrivs"] == "1"
        assert int(status(pid)["CapEff"], 16) == 0


def test_who_starts_no_programs_of_others_is_closed_in(running):
    """Workers run handlers, and the spawner starts workers: what they may not do, handlers might not either. (The same holds
    for a credential process that has a plugin: tests/integration/test_credential.py.)"""
    assert status(running.pid)["Seccomp"] == "2"
    for role in ROLES + ("spawner",):
        assert status(running.child(role).pid)["Seccomp"] == ("2" if role in FILTERED else "0"), role
    # One filter for what is deadly, one for what is not on the list.
    for pid in [running.pid] + [running.child(role).pid for role in FILTERED if role != "supervisor"]:
        assert status(pid)["Seccomp_filters"] == "2"


@pytest.mark.parametrize("what", ["environ", "mem", "maps", "fd/3", "exe", "cwd"])
def test_not_even_the_same_user_looks_into_them(running, what):
    """With ptrace it would be the same: what is not dumpable is root's."""
    for pid in [running.pid] + [child.pid for child in running.children()]:
        tried = subprocess.run(running.user.command(["sh", "-c", f"head -c 1 /proc/{pid}/{what} || readlink /proc/{pid}/{what}"]),
                               capture_output=True, text=True, check=False)
        assert tried.returncode != 0 and "Permission denied" in tried.stderr and not tried.stdout, (pid, tried)


@pytest.mark.parametrize("role", ROLES + ("spawner", "supervisor"))
def test_no_core_file(devserver, operator, handler, role):
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    try:
        operator.configure(devserver, [watch("widgets", handler)], workers=1,
                           gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})
        operator.user.give(operator.folder, 0o700)
        operator.start_ready()
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    if role == "supervisor":
        operator.send_signal(signal.SIGSEGV)
        operator.wait_exit(expect=-signal.SIGSEGV)
    else:
        operator.child(role).kill(signal.SIGSEGV)
        operator.wait_exit(expect=70)
        assert "core dumped" not in operator.output.text()
    operator.assert_no_processes()
    assert not [name for name in os.listdir(operator.folder) if name.startswith("core")]


@pytest.mark.parametrize("kind", ["exec", "serve"])
def test_a_handler_inherits_three_descriptors(devserver, operator, sandbox, widgets, kind):
    folder = sandbox.subfolder("seen", mode=0o777)
    script = folder / "handler"
    script.write_text("#!/usr/bin/python3\n"
                      "import os\n"
                      "fds = {n: os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') "
                      "if os.path.exists(f'/proc/self/fd/{n}')}\n"
                      f"open({str(folder / 'new')!r}, 'w').write(repr((fds, dict(os.environ))))\n"
                      f"os.rename({str(folder / 'new')!r}, {str(folder / 'seen')!r})\n")
    script.chmod(0o755)
    entry = {**watch("widgets", retry={"first": "1h", "max": "1h"}), "handler": {kind: [str(script)]}}
    operator.configure(devserver, [entry], workers=1)
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: (folder / "seen").exists(), "what the handler has seen")
    descriptors, environment = eval((folder / "seen").read_text())  # pylint: disable=eval-used
    pipes = {number for number, target in descriptors.items() if target.startswith("pipe:")}
    assert pipes == {"0", "1", "2"}
    # Python's own listing is the only other one.
    assert all("/proc/" in target and target.endswith("/fd") for number, target in descriptors.items() if number not in pipes)
    assert not [name for name in environment if "KUBE" in name or "TOKEN" in name or "NOTIFY" in name or "WATCHDOG" in name]
    operator.stop()


def test_credentials_not_separated_is_said_once(running):
    said = running.logs(lambda record: "credentials not separated" in record["message"])
    assert len(said) == 1 and said[0]["level"] == "warning" and str(running.user.uid) in said[0]["message"]
    checked = running.ctl.check(running.config_file)
    assert checked.stdout.count("credentials not separated") == 1


@pytest.fixture
def tried(devserver, operator, handler, shim):
    """tried(role, attempt): who is told to try it, when everything runs."""
    operator.environment["LD_PRELOAD"] = shim
    operator.configure(devserver, [watch("widgets", handler)], workers=1,
                       gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})

    def tried(role, attempt):
        operator.start_ready().wait_synced()
        tell(operator.pid if role == "supervisor" else operator.child(role).pid, attempt)
        return operator

    return tried


@pytest.mark.parametrize("attempt", [EXECUTE, FORK], ids=["execute", "fork"])
@pytest.mark.parametrize("role", [role for role in FILTERED if role != "supervisor"])
def test_who_runs_a_program_ends_the_operator(tried, role, attempt):
    """As code would that had been put into it: the kernel ends it, and it is told."""
    operator = tried(role, attempt)
    operator.wait_exit(expect=70)
    operator.assert_no_processes()
    said = operator.logs(level="critical")[0]["message"]
    assert role in said and "was killed by signal SYS" in said


@pytest.mark.parametrize("attempt", [EXECUTE, FORK], ids=["execute", "fork"])
def test_a_supervisor_that_runs_a_program_ends(tried, handler, widgets, attempt):
    operator = tried("supervisor", attempt)
    operator.wait_exit(expect=-signal.SIGSYS)
    operator.assert_no_processes()
    operator.start_ready()
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    operator.stop()


@pytest.mark.parametrize("role, code", [("supervisor", 99), ("credential", 70), ("gateway", 70)])
def test_who_needs_no_network_has_none(tried, role, code):
    operator = tried(role, CONNECT)
    operator.wait_exit(expect=code)
    operator.assert_no_processes()
    if role != "supervisor":
        assert "exited by itself with code 99" in operator.logs(level="critical")[0]["message"], "it was refused a socket"


@pytest.mark.parametrize("role, hidden, code", [("worker", False, 98), ("worker", True, 98), ("watcher", False, 96)])
def test_the_control_socket_takes_no_orders_from_our_own_processes(operator, tried, role, hidden, code):
    """They are of the operator's user. Where /proc shows no processes that are not dumpable (ProtectProc=invisible in the unit)
    as well. A watcher cannot even make such a socket."""
    if hidden:
        user_command = operator.user.command
        script = 'mount -t proc -o hidepid=invisible proc /proc && exec "$@"'
        operator.user.command = lambda command: ["unshare", "--mount", "sh", "-c", script, "sh", *user_command(command)]
    operator.environment["RECONCILED_DEATH_ASKS"] = operator.runtime_directory / "control.sock"
    operator = tried(role, ASK)
    if hidden:
        operator.user.command = user_command
    operator.wait_exit(expect=70)
    assert f"exited by itself with code {code}" in operator.logs(level="critical")[0]["message"], "it was refused"


@pytest.mark.parametrize("way", ["exec {}", "setsid {} & wait", "(setsid sh -c '{}' &) ; exec 1>&-; until [ -s {answer} ]; do :; done",
                                 "unshare --user {}"], ids=["itself", "child", "orphan", "namespace"])
def test_the_control_socket_takes_no_orders_from_handlers(devserver, operator, handler, widgets, sandbox, way):
    answer = sandbox.subfolder("answer", mode=0o777) / "said"
    ask = f"{sandbox.program('reconciledctl')} --runtime-directory {operator.runtime_directory} pause widgets >{answer} 2>&1"
    handler.behave(way.format(ask, answer=answer) if "{answer}" in way else way.format(ask))
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "1h", "max": "1h"})], workers=1)
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: answer.exists() and answer.read_text(), "the answer")
    assert "takes no orders from processes that it has started" in answer.read_text()
    assert operator.ctl.status()["watches"][0]["state"] == "in-sync"
    operator.stop()


@pytest.mark.parametrize("role", ["supervisor", "watcher", "credential", "gateway"])
def test_who_writes_elsewhere(tried, operator, sandbox, role):
    """Refused where the kernel has Landlock; where it has not, the start says so, and nothing else changes."""
    below = {"supervisor": operator.state_directory, "watcher": operator.state_directory / "store" / "widgets",
             "gateway": operator.runtime_directory}.get(role)
    elsewhere = sandbox.subfolder("elsewhere", operator.user, mode=0o777)
    other = elsewhere if role in ("supervisor", "credential") else operator.state_directory
    order = [other / "tried", *([below / "tried"] if below else []), other / "last"]
    operator.environment["RECONCILED_DEATH_MAKES"] = ":".join(str(path) for path in order)
    tried(role, WRITE_ELSEWHERE)
    if below:
        wait_until((below / "tried").exists, "the attempt")
    if not has_landlock():
        wait_until((other / "last").exists, "the attempt")
    operator.stop()
    assert (other / "tried").exists() != has_landlock()


@pytest.mark.parametrize("role", ["watcher", "gateway"])
def test_who_reads_what_strangers_send_sees_no_other_file(tried, operator, sandbox, role):
    """Of the same user: kubeconfig, ledger, stores of others. Where the kernel has no Landlock they can: seccomp sees no paths."""
    other = operator.state_directory / "store" / "others"
    other.mkdir(parents=True)
    (other / "data").write_text("x", encoding="utf-8")
    for path in (operator.state_directory / "store", other, other / "data"):
        operator.user.give(path, 0o700)
    seen = [operator.folder / "kubeconfig", operator.config_file, operator.state_directory / "ledger.sqlite", other / "data",
            operator.state_directory / "store", operator.runtime_directory, sandbox.subfolder("everybodys", mode=0o777)]
    operator.environment["RECONCILED_DEATH_SEES"] = ":".join(map(str, seen))
    operator = tried(role, READ)
    operator.wait_exit(expect=70)
    assert f"with code {98 if has_landlock() else 97}" in operator.logs(level="critical")[0]["message"]


def test_handlers_are_free(devserver, operator, sandbox, widgets):
    """Of everything that holds for us, but that they get no more rights than they have."""
    folder = sandbox.subfolder("free", mode=0o777)
    script = folder / "handler"
    script.write_text("#!/bin/sh\n"
                      f"cat /proc/self/status >{folder}/new\n"
                      f"(: >{folder}/elsewhere; sh -c 'exec 3<>/dev/null; echo forked') >>{folder}/new\n"
                      f"mv {folder}/new {folder}/seen\n")
    script.chmod(0o755)
    entry = {**watch("widgets", retry={"first": "1h", "max": "1h"}), "handler": {"exec": [str(script)]}}
    operator.configure(devserver, [entry], workers=1)
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until((folder / "seen").exists, "what the handler has seen")
    seen = (folder / "seen").read_text()
    assert "Seccomp:\t0" in seen and "forked" in seen and (folder / "elsewhere").exists()
    operator.stop()


WITHOUT = """import ctypes, os, struct, sys
numbers = {"x86_64": 317, "aarch64": 277}
denied = [numbers[os.uname().machine], 444]  # seccomp, landlock_create_ruleset
code = [(0x20, 0, 0, 0)] + [(0x15, len(denied) - i, 0, number) for i, number in enumerate(denied)]
code += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050000 | int(sys.argv[1]))]
filter = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(filter)
program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(buffer))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("denied", [errno.ENOSYS, errno.EPERM], ids=["a kernel that has none", "a container that forbids it"])
def test_where_there_is_no_sandbox(devserver, operator, handler, widgets, sandbox, denied):
    """That is said, and everything goes on."""
    script = sandbox.subfolder("without", mode=0o755) / "without.py"
    script.write_text(WITHOUT)
    user_command = operator.user.command
    operator.user.command = lambda command: user_command(
        ["/usr/bin/python3", str(script), str(denied), *command] if "reconciled" in str(command[0]) else command)
    operator.configure(devserver, [watch("widgets", handler)], workers=1,
                       gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    said = [record["message"] for record in operator.logs(level="warning") if "runs without its sandbox" in record["message"]]
    assert len(said) == len(FILTERED) and all(any(role in line for line in said) for role in FILTERED), said
    assert all(status(child.pid)["Seccomp_filters"] == "1" for child in operator.children())
    [told] = operator.logs(level="notice", where=lambda record: "Landlock" in record["message"])
    assert "not kept from other files" in told["message"]
    operator.stop()
