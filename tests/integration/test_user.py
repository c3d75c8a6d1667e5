# SPDX-License-Identifier: Apache-2.0
"""handler.user: handlers as another user, out of whose reach the operator's files and processes are."""
import os
import signal
import stat
import subprocess

import pytest

from harness import Operator, wait_until, watch
from harness.process import Entitled, Process, start
from harness.wait import ENDED

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make somebody who may change users")

MASK = (1 << 7) | (1 << 6) | (1 << 5)


@pytest.fixture
def entitled(sandbox):
    """An operator with the right to change users."""
    operator = Operator(sandbox)
    operator.user.__class__ = Entitled
    return operator


@pytest.fixture
def other(sandbox):
    """The user that handlers are to run as; nothing of it may be left."""
    return sandbox.user()


def separate(handler, other, **options):
    return watch("widgets", handler, handler_options={"user": f"{other.uid}:{other.uid}", "grace": "200ms", **options})


def capabilities(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return {line.split(":")[0]: int(line.split()[1], 16) for line in file if line.startswith("Cap")}


LOOK = """
id -u; id -g; id -G
grep -E '^Cap(Eff|Prm|Inh|Amb)' /proc/self/status | cut -f 2 | sort -u
echo "$HOME"
for path in {paths}; do if cat "$path" >/dev/null 2>&1; then echo "can read $path"; fi; done
kill -0 {pid} 2>/dev/null && echo "can signal the operator"
echo "by name" >/dev/stderr
"""


def test_a_handler_runs_as_its_user_and_reaches_nothing_of_the_operator(devserver, entitled, widgets, handler, other):
    entitled.configure(devserver, [separate(handler, other)])
    entitled.start_ready().wait_synced()
    paths = [entitled.folder / "kubeconfig", entitled.config_file, entitled.state_directory / "ledger.sqlite",
             entitled.state_directory / "instance", entitled.runtime_directory / "slots"]
    for child in [Process(entitled.pid), *entitled.children()]:
        paths += [f"/proc/{child.pid}/environ", f"/proc/{child.pid}/maps", f"/proc/{child.pid}/fd/3"]
    look = LOOK.format(paths=" ".join(map(str, paths)), pid=entitled.pid)
    handler.behave(f"({look}) >\"$REQUEST.seen\"")
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    with open(f"{request.path}.seen", encoding="utf-8") as file:
        assert file.read().split() == [str(other.uid)] * 3 + ["0000000000000000", "/"]
    assert request.environment["HOME"] == "/" and request.exit_code == 0
    entitled.wait_for_log("by name")
    assert not entitled.logs(lambda record: "credentials not separated" in record["message"])


# What can be read below the folders of its arguments, what there is at all, and what each socket says.
SEEK = """
import json, os, socket, stat, sys
found, readable, sockets = [], [], {}

def reach(path):
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        try:
            with socket.socket(socket.AF_UNIX, kind) as peer:
                peer.settimeout(20)
                peer.connect(path)
                if kind == socket.SOCK_STREAM:
                    return "is heard"
                return "is sent away" if peer.recv(1) == b"" else "is told something"
        except OSError as error:
            said = type(error).__name__
    return said

for top in sys.argv[1:]:
    for folder, _, names in os.walk(top):
        for path in (os.path.join(folder, name) for name in names):
            found.append(os.path.basename(path))
            if stat.S_ISSOCK(os.stat(path).st_mode):
                sockets[os.path.basename(path)] = reach(path)
            elif os.access(path, os.R_OK) or os.access(path, os.W_OK):
                readable.append(path)
print(json.dumps({"status": {"found": found, "readable": readable, "sockets": sockets}}))
"""


def test_what_stands_in_the_operators_folders_is_closed_by_itself(devserver, entitled, widgets, handler, other):
    """The folders are closed to a handler; but also if somebody opens them, and lets everybody speak to the control socket."""
    program = handler.folder / "seek.py"
    program.write_text(SEEK, encoding="utf-8")
    folders = [entitled.state_directory, entitled.runtime_directory]
    handler.behave(f"exec python3 {program} {' '.join(map(str, folders))}")
    entitled.configure(devserver, [separate(handler, other)],
                       gateway={"listen": f"unix:{entitled.runtime_directory}/gateway.sock"})
    entitled.start_ready().wait_synced()
    sockets = [entitled.runtime_directory / name for name in ("control.sock", "gateway.sock")]
    wait_until(lambda: all(path.exists() for path in sockets), "the sockets")

    def seen(name):
        widgets.create(name, spec={})
        return wait_until(lambda: widgets.get(name).get("status"), f"the status of {name}")

    assert seen("closed") == {"found": [], "readable": [], "sockets": {}}
    assert stat.S_IMODE(sockets[0].stat().st_mode) == 0o600
    for folder in folders:
        for path, _, _ in os.walk(folder):
            os.chmod(path, 0o755)
    assert seen("open")["sockets"] == {"control.sock": "PermissionError", "gateway.sock": "is heard"}
    sockets[0].chmod(0o666)
    status = seen("wide-open")
    assert status["readable"] == [] and status["sockets"] == {"control.sock": "is sent away", "gateway.sock": "is heard"}
    assert {"data.mdb", "lock.mdb", "ledger.sqlite", "ledger.sqlite-wal", "slots", "instance"} <= set(status["found"]), status


def test_only_workers_can_change_users(devserver, entitled, handler, other):
    entitled.configure(devserver, [separate(handler, other)])
    entitled.start_ready()
    assert all(capabilities(child.pid)["CapEff"] == MASK for child in entitled.children("worker"))
    for role in ("watcher", "credential"):
        found = capabilities(entitled.child(role).pid)
        assert found["CapEff"] == found["CapPrm"] == found["CapAmb"] == 0, found


def test_without_a_user_of_its_own_a_handler_has_no_rights_either(devserver, entitled, widgets, handler):
    handler.behave("grep CapEff /proc/self/status >\"$REQUEST.seen\"")
    entitled.configure(devserver, [watch("widgets", handler)])
    entitled.start_ready()
    entitled.wait_for_log("credentials not separated")
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    with open(f"{request.path}.seen", encoding="utf-8") as file:
        assert int(file.read().split()[1], 16) == 0


def test_it_is_refused_without_the_right(devserver, operator, handler, other):
    operator.configure(devserver, [separate(handler, other)])
    operator.start()
    operator.wait_exit(78)
    said = operator.output.text()
    assert "the operator has no right to run handlers as another user: it needs CAP_SETUID" in said
    assert "handler.user of watch widgets" in said


def test_a_reload_without_the_right_changes_nothing(devserver, operator, widgets, handler, other):
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    operator.configure(devserver, [separate(handler, other)])
    operator.send_signal(signal.SIGHUP)
    operator.wait_for_log("the new configuration is rejected")
    widgets.create("a", spec={})
    handler.wait_finished(name="a")


@pytest.mark.parametrize("user, said", [
    ("nobody-of-that-name", "there is no user"), ("4000000000", "there is no user"), ("root", "the user root does not separate"),
    ("0", "the user root does not separate"), ("0:7", "there is no user"), ("1000:", "there is no user")])
def test_wrong_users(devserver, operator, handler, user, said):
    operator.configure(devserver, [watch("widgets", handler, handler_options={"user": user})])
    result = operator.ctl.check(operator.config_file)
    if user == "0:7":
        said = "the user root does not separate"
    assert result.returncode == 78 and said in result.stdout and "handler.user" in result.stdout, result.stdout


def test_check_says_what_it_needs(devserver, operator, handler, other):
    operator.configure(devserver, [separate(handler, other)])
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 0 and "the operator must be root or have CAP_SETUID" in result.stdout
    assert "credentials not separated" not in result.stdout


def test_a_user_of_the_system_has_its_groups_and_its_home(devserver, entitled, widgets, handler):
    handler.behave("(id -un; echo $HOME $USER $LOGNAME) >\"$REQUEST.seen\"")
    entitled.configure(devserver, [watch("widgets", handler, handler_options={"user": "games"})])
    entitled.start_ready()
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    with open(f"{request.path}.seen", encoding="utf-8") as file:
        assert file.read().split() == ["games", "/usr/games", "games", "games"]


@pytest.mark.slow
def test_a_timeout_ends_all_that_it_started(devserver, entitled, widgets, handler, other):
    handler.behave("trap '' TERM; for i in 1 2 3; do (trap '' TERM; setsid sleep 1000) & done; wait")
    entitled.configure(devserver, [separate(handler, other, timeout="1s")])
    entitled.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: [each.program for each in other.processes()].count("sleep") == 3, "its processes")
    handler.behave("exit 0")
    entitled.wait_for_log("did not end within its timeout")
    handler.wait_finished(name="a", where=lambda request: request.exit_code == 0)
    wait_until(lambda: not other.processes(), lambda: f"the end of {other.processes()!r}")


def test_nothing_of_it_outlives_a_killed_supervisor(devserver, entitled, widgets, handler, other):
    handler.behave("setsid sleep 1000 & exec sleep 1000")
    entitled.configure(devserver, [separate(handler, other)])
    entitled.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: [each.program for each in other.processes()].count("sleep") == 2, "its processes")
    entitled.send_signal(signal.SIGKILL)
    entitled.wait_exit(-signal.SIGKILL)
    wait_until(lambda: not other.processes(), lambda: f"the end of {other.processes()!r}", ENDED)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP, signal.SIGABRT])
@pytest.mark.slow
def test_nothing_of_it_outlives_a_worker_that_dies_or_hangs(devserver, entitled, widgets, handler, other, number):
    handler.behave("trap '' TERM; (trap '' TERM; setsid sleep 1000) & setsid -f sleep 1000; sleep 1000")
    entitled.configure(devserver, [separate(handler, other)], workers=1, heartbeat={"interval": "100ms", "deadline": "1s"})
    entitled.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: [each.program for each in other.processes()].count("sleep") == 3, "its processes")
    entitled.child("worker").kill(number)
    entitled.wait_exit(70)
    assert not other.processes()
    entitled.assert_no_processes()


FORK = """
import os, signal
made = 0
try:
    for _ in range(50):
        if os.fork() == 0:
            signal.pause()
        made += 1
except BlockingIOError:
    pass
print('{"status": {"made": %d}}' % made)
"""


@pytest.mark.slow
def test_its_processes_are_limited_where_no_control_group_does(devserver, entitled, widgets, handler, other):
    program = handler.folder / "fork.py"
    program.write_text(FORK, encoding="utf-8")
    handler.behave(f"exec python3 {program}")
    entitled.configure(devserver, [separate(handler, other, limits={"pids": 10})], workers=2)
    entitled.start_ready()
    said = entitled.wait_for_log("handler.limits cannot be enforced as configured")["message"]
    assert "pids limits all processes of its user together" in said
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"made": 19}, lambda: f"two times ten: {widgets.get('a')}")


def test_a_user_of_two_watches_of_which_one_has_no_limit_has_none(devserver, entitled, handler, other):
    without = separate(handler, other) | {"name": "without", "id": "without"}
    entitled.configure(devserver, [separate(handler, other, limits={"pids": 10}), without])
    entitled.start_ready()
    assert "pids is not enforced" in entitled.wait_for_log("handler.limits cannot be enforced as configured")["message"]


SERVE = """#!/usr/bin/python3 -u
import json, os, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "status": {"uid": os.getuid()}}))
"""


def test_a_handler_that_serves_runs_as_its_user_too(devserver, entitled, widgets, other, sandbox):
    program = sandbox.subfolder("serve") / "serve"
    program.write_text(SERVE, encoding="utf-8")
    program.chmod(0o755)
    entitled.configure(devserver, [watch("widgets", None) | {
        "handler": {"serve": [str(program)], "user": f"{other.uid}:{other.uid}"}}])
    entitled.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"uid": other.uid}, "its status")


def test_a_program_that_its_user_may_not_run_is_said(devserver, entitled, widgets, handler, other):
    entitled.configure(devserver, [separate(handler, other)])
    entitled.start_ready()
    handler.script.chmod(0o700)
    widgets.create("a", spec={})
    entitled.wait_for_log("is it executable, and its folder open, for the user it runs as?")


def test_files_that_its_user_can_read_are_said(devserver, entitled, handler, other):
    entitled.configure(devserver, [separate(handler, other)])
    (entitled.folder / "kubeconfig").chmod(0o644)
    entitled.start_ready()
    said = entitled.wait_for_log("credentials not separated")["message"]
    assert "can read" in said and "kubeconfig" in said


# Whoever executes the script waits for a minute or so: its owner has a lease on it, and does not give it up.
HOLD = """
import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = os.open(sys.argv[1], os.O_RDWR)
while True:
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        break
    except BlockingIOError:
        pass
print("held", flush=True)
signal.pause()
"""


def test_a_library_of_the_handlers_environment_is_loaded_by_its_user_alone(devserver, entitled, widgets, handler, other, sandbox):
    folder = sandbox.subfolder("library", other)
    folder.chmod(0o755)
    seen = folder / "seen"
    seen.write_text("")
    seen.chmod(0o666)
    (folder / "library.c").write_text("""#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void)
{
        int fd = open(SEEN, O_WRONLY | O_APPEND);

        dprintf(fd, "%u\\n", geteuid());
        close(fd);
}
""")
    subprocess.run(["cc", "-shared", "-fPIC", f'-DSEEN="{seen}"', "-o", folder / "library.so", folder / "library.c"], check=True)
    entitled.configure(devserver, [separate(handler, other, environment={"LD_PRELOAD": str(folder / "library.so")})])
    entitled.start_ready().wait_synced()
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    assert set(seen.read_text().split()) == {str(other.uid)}


def test_a_user_who_holds_up_the_start_of_its_handlers_holds_up_nothing_else(devserver, entitled, widgets, handler, other,
                                                                           sandbox):
    owned = sandbox.subfolder("owned", other) / "handler"
    owned.write_text("#!/bin/sh\necho '{}'\n")
    owned.chmod(0o755)
    os.chown(owned, other.uid, other.uid)
    entitled.configure(devserver, [
        watch("held", [str(owned)], handler_options={"user": f"{other.uid}:{other.uid}", "timeout": "1s", "grace": "200ms"},
              labelSelector="held=yes"),
        watch("free", handler, id="free", labelSelector="held=no")], workers=1, heartbeat={"deadline": "3s"})
    entitled.start_ready().wait_synced()
    holder = start(other, ["/usr/bin/python3", "-c", HOLD, str(owned)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    widgets.create("a", spec={}, labels={"held": "yes"})
    entitled.wait_for_log("did not end within its timeout")
    widgets.create("b", spec={}, labels={"held": "no"})
    handler.wait_finished(name="b")
    assert Process(entitled.pid).alive()
    holder.kill()
    holder.wait()
