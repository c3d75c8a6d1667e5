# SPDX-License-Identifier: Apache-2.0
"""The units on a real systemd: how they start, what they say, how they end and come again."""
import re
import shutil
import subprocess

import pytest

from harness import wait_until
from harness.node import HANDLER
from harness.operator import MESSAGE_ID
from harness.setup import BUILD, SOURCE

# Debian 12 has systemd 252; these came with 254 and are ignored before, with a warning.
NEWER = ("RestartSteps", "RestartMaxDelaySec")


def test_verify(node):
    said = node.run("systemd-analyze", "verify", "--man=no", "reconciled.service", "reconciled@second.service",
                    "reconciled-name@second.service").stderr
    others = [line for line in said.splitlines() if not any(f"'{key}'" in line for key in NEWER)]
    assert others == []


@pytest.mark.parametrize("unit", ["reconciled.service", "reconciled@second.service"])
def test_exposure(node, unit):
    said = node.run("systemd-analyze", "security", unit, "--no-pager").stdout
    score = float(re.search(r"Overall exposure level for .*: ([0-9.]+)", said).group(1))
    assert score <= 1.1, said


def test_the_drop_ins_are_verified(node):
    for path in sorted((SOURCE / "units" / "drop-ins").glob("*.conf")):
        node.drop_in(node.unit, path.read_text(encoding="utf-8"))
        said = node.run("systemd-analyze", "verify", "--man=no", node.unit).stderr
        assert [line for line in said.splitlines() if not any(f"'{key}'" in line for key in NEWER)] == [], path


@pytest.mark.parametrize("name, status", [("host.conf", "226"), ("credentials.conf", "243"), ("User=nobody-here", "217"),
                                          ("Group=nobody-here", "216"), ("ExecStart=\nExecStart=/nothing/here", "203")])
def test_a_drop_in_that_names_what_is_not_there_is_not_tried_again(node, name, status):
    """The first two are ours, taken as they are: what they name is an example."""
    node.configure()
    ours = SOURCE / "units" / "drop-ins" / name
    text = ours.read_text(encoding="utf-8") if name.endswith(".conf") else f"[Service]\n{name}\n"
    node.run("sh", "-c", "rm -rf /etc/example /etc/kubernetes")
    node.drop_in(node.unit, text + "[Service]\nRestartSec=50ms\n")
    assert node.run("systemctl", "start", node.unit, check=False).returncode != 0
    node.wait_state(node.unit, "failed")
    shown = node.show(node.unit, "ExecMainStatus", "NRestarts", "Result")
    assert shown == {"ExecMainStatus": status, "NRestarts": "0", "Result": "exit-code"}


def test_an_instance_with_too_long_a_name_is_told_so(node):
    name = "a" * 21
    node.configure(path=f"/etc/reconciled/{name}.yaml")
    assert node.run("systemctl", "start", f"reconciled@{name}.service", check=False).returncode != 0
    node.wait_journal(f"_SYSTEMD_UNIT=reconciled-name@{name}.service", text="the name of an instance has at most 20 characters")
    said = node.run("reconciledctl", "check", f"/etc/reconciled/{name}.yaml", check=False)
    assert said.returncode == 78 and "at most 20 characters, and this one has 21" in said.stdout
    assert "no mistakes" not in said.stdout
    longest = "a" * 20
    node.configure(path=f"/etc/reconciled/{longest}.yaml")
    node.run("install", "-m", "0600", "/run/devserver.kubeconfig", f"/etc/credstore/reconciled.{longest}.kubeconfig")
    node.start(f"reconciled@{longest}.service")
    node.run("systemctl", "stop", f"reconciled@{longest}.service")
    wait_until(lambda: node.show(f"reconciled-name@{longest}.service", "ActiveState") == "inactive", "nothing is left of it")


@pytest.mark.parametrize("unit, name", [("reconciled.service", "reconciled"), ("reconciled@second.service", "second")])
def test_root_checks_with_the_credential_of_the_unit(node, unit, name):
    """Whatever root's own environment says; a missing file is named, by the check and by the unit."""
    node.configure(path=f"/etc/reconciled/{name}.yaml")
    store = f"/etc/credstore/reconciled{'' if name == 'reconciled' else '.' + name}.kubeconfig"
    command = ["env", "HOME=/nowhere", "KUBECONFIG=/nowhere/config", "reconciledctl"]
    for file in [f"/etc/reconciled/{name}.yaml"] + ([] if name != "reconciled" else [None]):
        said = node.run(*command, "check", *([file] if file else [])).stdout
        assert f"note: {unit} takes its kubeconfig from {store}\n" in said and f"of {store}\n" in said and "no mistakes found" in said
    node.create_widget("a")
    said = node.run(*command, "run", "--config", f"/etc/reconciled/{name}.yaml", "--object", "default/a").stdout
    assert "result: success" in said
    node.run("rm", store)
    said = node.run(*command, "check", f"/etc/reconciled/{name}.yaml", check=False)
    assert said.returncode == 78 and f"{store}: No such file or directory; {unit} takes its kubeconfig from there" in said.stdout
    node.run("systemctl", "start", unit, check=False)
    node.wait_state(unit, "failed")
    assert f"{store} is missing" in node.wait_journal(f"_SYSTEMD_UNIT={unit}", f"MESSAGE_ID={MESSAGE_ID['CHILD_FATAL']}")["MESSAGE"]
    assert node.run("sh", "-c", "ls -d /tmp/reconciledctl-* 2>/dev/null || true").stdout == ""


def test_root_checks_with_the_credentials_of_a_drop_in(node):
    """What lies beside the kubeconfig for the unit need not lie beside it elsewhere."""
    kubeconfig = node.run("cat", "/run/devserver.kubeconfig").stdout
    node.write("/etc/kubernetes/reconciled.kubeconfig", re.sub(r"user: \{[^}]*\}|user: .*", "user: {tokenFile: token}", kubeconfig), 0o600)
    node.write("/etc/kubernetes/reconciled.token", "of-a-file\n", 0o600)
    node.run("sh", "-c", "rm /etc/credstore/*")
    node.drop_in(node.unit, (SOURCE / "units/drop-ins/credentials.conf").read_text(encoding="utf-8"))
    node.configure()
    said = node.run("reconciledctl", "check").stdout
    assert "no mistakes found" in said and "takes its kubeconfig from /etc/kubernetes/reconciled.kubeconfig" in said


def test_root_checks_what_the_unit_has_for_its_handlers(node):
    """A credential of the unit that the configuration names, whether the unit runs or not."""
    node.write("/etc/credstore/password", "correct-horse\n", 0o600)
    node.drop_in(node.unit, "[Service]\nLoadCredential=password\nSetCredential=other:battery\n")
    node.configure("exit 0", handler_options={"credentials": {"password": "${CREDENTIALS_DIRECTORY}/password"}})
    assert "no mistakes found" in node.run("reconciledctl", "check").stdout
    node.create_widget("a")
    assert "result: success" in node.run("reconciledctl", "run", "--object", "default/a").stdout
    node.configure("exit 0", handler_options={"credentials": {"password": "${CREDENTIALS_DIRECTORY}/password",
                                                              "other": "${CREDENTIALS_DIRECTORY}/other"}})
    node.start()
    assert "no mistakes found" in node.run("reconciledctl", "check").stdout
    assert node.run("sh", "-c", "ls -d /tmp/reconciledctl-* 2>/dev/null || true").stdout == ""


def test_folders_and_users_are_made(node):
    assert node.run("systemd-sysusers", "--dry-run").returncode == 0
    assert node.run("id", "-un", "reconciled").stdout == "reconciled\n"
    assert node.run("stat", "-c", "%a %U", "/etc/reconciled", "/etc/reconciled/conf.d", "/etc/credstore").stdout == \
        "755 root\n755 root\n700 root\n"


def test_root_may_look(node):
    """reconciledctl reads the operator's store in place: nothing there may become root's."""
    node.configure("exit 0")
    node.start()
    node.create_widget("a")
    wait_until(lambda: "it is at rest" in node.run("reconciledctl", "explain", "widgets", "default/a").stdout, "the conclusion")
    found = node.run("find", "/var/lib/reconciled/", "/run/reconciled", "-mindepth", "1", "-user", "root").stdout
    assert found == ""
    node.run("systemctl", "restart", node.unit)
    node.wait_synced()


def test_start(node):
    node.configure("echo '{\"status\": {\"seen\": true}}'")
    node.start()
    node.create_widget("a", size=1)
    wait_until(lambda: node.widget("a")["status"] == {"seen": True}, "the handler's status")
    shown = node.show(node.unit, "ActiveState", "SubState", "NRestarts", "StatusText", "Type")
    assert shown["ActiveState"] == "active" and shown["SubState"] == "running" and shown["NRestarts"] == "0"
    wait_until(lambda: "1 watch in sync" in node.show(node.unit, "StatusText"), "the status line")
    assert node.run("reconciledctl", "status").stdout.count("widgets") >= 1
    assert node.run("stat", "-c", "%a %U", "/var/lib/reconciled", "/run/reconciled").stdout == \
        "700 reconciled\n700 reconciled\n"
    pid = node.main_pid()
    wait_until(lambda: "1 watch in sync, 0 running, 0 queued, 0 waiting" in node.show(node.unit, "StatusText"), "nothing to do")
    user = node.run("id", "-u", "reconciled").stdout.strip()
    assert f"Uid:\t{user}\t{user}\t{user}\t{user}\n" in node.run("cat", f"/proc/{pid}/status").stdout
    assert "CapEff:\t0000000000000000" in node.run("cat", f"/proc/{pid}/status").stdout


def test_the_journal_has_fields_and_explains(node):
    node.configure("exit 75")
    node.start()
    started = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['STARTED']}")
    assert started["RECONCILED_ROLE"] == "supervisor" and started["_SYSTEMD_UNIT"] == node.unit
    node.create_widget("a")
    failed = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['RUN_FAILED']}")
    assert failed["RECONCILED_WATCH"] == "widgets" and failed["RECONCILED_KEY"] == "default/a"
    text = node.run("journalctl", "-x", "-u", node.unit, f"MESSAGE_ID={MESSAGE_ID['RUN_FAILED']}", "-n", "1").stdout
    assert "Subject: default/a: a run has failed and will be tried again" in text
    assert "The pause before the next attempt grows" in text


def test_a_stopped_supervisor_is_ended_by_the_watchdog_and_started_again(node):
    node.configure()
    node.drop_in(node.unit, "[Service]\nWatchdogSec=2s\nRestartSec=100ms\n")
    node.start()
    before = node.main_pid()
    node.kill(before, "STOP")
    node.wait_restarts(1)
    assert node.main_pid() != before
    node.wait_journal("UNIT=" + node.unit, text="Watchdog timeout")
    # Nothing of the first life is left: as many processes as one operator has.
    wait_until(lambda: len(node.processes(node.unit)) == 5, lambda: f"five processes: {node.processes(node.unit)}")


@pytest.mark.parametrize("role", ["spawner", "credential", "watcher", "worker"])
def test_a_dead_child_ends_the_unit_which_starts_again_and_catches_up(node, role):
    node.configure("echo '{\"status\": {\"seen\": true}}'")
    node.drop_in(node.unit, "[Service]\nRestartSec=1s\n")
    node.start()
    node.kill(node.child(node.unit, role), "KILL")
    fatal = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['CHILD_FATAL']}")
    assert role in fatal["MESSAGE"] and fatal["RECONCILED_EXIT_CODE"] == "70"
    node.create_widget("meanwhile")
    node.wait_journal("UNIT=" + node.unit, text="status=70")
    node.wait_restarts(1)
    wait_until(lambda: node.widget("meanwhile").get("status") == {"seen": True}, "the backlog to be caught up")


@pytest.mark.parametrize("role", ["spawner", "credential", "watcher", "worker"])
def test_a_stopped_child_is_named_and_the_unit_starts_again(node, role):
    """It hangs: the operator ends before the watchdog, which is fed no more, has to."""
    node.configure(heartbeat={"interval": "100ms", "deadline": "2s"})
    node.drop_in(node.unit, "[Service]\nWatchdogSec=20s\nRestartSec=100ms\n")
    node.start()
    stopped = node.child(node.unit, role)
    node.kill(stopped, "STOP")
    fatal = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['CHILD_FATAL']}")
    assert role in fatal["MESSAGE"] and "hangs" in fatal["MESSAGE"] and fatal["RECONCILED_EXIT_CODE"] == "70"
    node.wait_restarts(1)
    wait_until(lambda: len(node.processes(node.unit)) == 5, lambda: f"five processes: {node.processes(node.unit)}")
    assert stopped not in node.processes(node.unit), "the stopped one is gone as well"


def test_systemctl_kill_is_a_stop(node):
    """It signals every process of the control group, in any order."""
    node.configure()
    node.start()
    node.run("systemctl", "kill", node.unit)
    wait_until(lambda: node.show(node.unit, "ActiveState") == "inactive",
               lambda: f"the stop: {node.run('systemctl', 'status', node.unit, check=False).stdout}")
    shown = node.show(node.unit, "Result", "NRestarts", "ExecMainStatus")
    assert shown == {"Result": "success", "NRestarts": "0", "ExecMainStatus": "0"}


@pytest.mark.parametrize("guard", ["all", "the control group alone"])
def test_killed_supervisor_leaves_nothing(node, guard):
    """Alone: the kernel tells nobody of its parent's death, and who is stopped sees no channel close."""
    node.configure("setsid -f sleep 1000; exec sleep 1000")
    alone = guard != "all"
    if alone:
        shutil.copy(BUILD / "tests" / "death" / "libdeath-shim.so", node.root / "opt")
    node.drop_in(node.unit, "[Service]\nRestart=no\n" + (
        "Environment=LD_PRELOAD=/opt/libdeath-shim.so RECONCILED_DEATH_WITHOUT=pdeathsig\n" if alone else ""))
    node.start()
    node.create_widget("a")
    wait_until(lambda: sum("sleep 1000" in line for line in node.processes(node.unit).values()) == 2, "both sleeps")
    main = node.main_pid()
    if alone:
        assert "libdeath-shim" in node.run("cat", f"/proc/{main}/maps").stdout
        node.run("kill", "-STOP", *(pid for pid in node.processes(node.unit) if pid != main))
    node.kill(main, "KILL")
    node.wait_state(node.unit, "failed")
    assert node.run("pgrep", "-f", "reconciled-(watcher|worker|credential|spawner)|sleep 1000", check=False).stdout == ""


def test_a_wrong_configuration_is_not_tried_again(node):
    node.configure(worker=3)
    assert node.run("systemctl", "start", node.unit, check=False).returncode != 0
    node.wait_state(node.unit, "failed")
    shown = node.show(node.unit, "ExecMainStatus", "NRestarts", "Result", "StatusErrno")
    assert shown == {"ExecMainStatus": "78", "NRestarts": "0", "Result": "exit-code", "StatusErrno": "22"}
    wrong = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['CONFIGURATION_WRONG']}")
    assert 'did you mean "workers"' in wrong["MESSAGE"]


def test_wrong_usage_is_not_tried_again(node):
    node.configure()
    node.drop_in(node.unit, "[Service]\nExecStart=\nExecStart=/usr/bin/reconciled --no-such-option\n")
    node.run("systemctl", "start", node.unit, check=False)
    node.wait_state(node.unit, "failed")
    assert node.show(node.unit, "ExecMainStatus", "NRestarts") == {"ExecMainStatus": "64", "NRestarts": "0"}


def test_many_crashes_never_leave_it_dead(node):
    node.configure()
    node.drop_in(node.unit, "[Service]\nRestartSec=10ms\n")
    node.start()
    for count in range(1, 9):
        node.kill(node.main_pid(), "KILL")
        node.wait_restarts(count)


def test_the_runtime_folder_survives_a_crash_but_no_stop(node):
    node.configure()
    node.drop_in(node.unit, "[Service]\nRestartSec=10ms\n")
    node.start()
    node.run("touch", "/run/reconciled/mark")
    node.kill(node.main_pid(), "KILL")
    node.wait_restarts(1)
    node.run("test", "-e", "/run/reconciled/mark")
    node.run("systemctl", "stop", node.unit)
    assert node.run("test", "-e", "/run/reconciled", check=False).returncode == 1


def test_an_instance_has_a_user_a_state_folder_and_credentials_of_its_own(node):
    unit = "reconciled@second.service"
    node.configure("id -u >&2", path="/etc/reconciled/second.yaml")
    node.start(unit)
    node.create_widget("a")
    line = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}")
    assert 61184 <= int(line["MESSAGE"]) <= 65519 and line["RECONCILED_KEY"] == "default/a"  # systemd's dynamic users
    assert node.show(unit, "DynamicUser") == "yes"
    node.run("test", "-f", "/var/lib/private/reconciled-second/ledger.sqlite")
    assert "widgets" in node.run("reconciledctl", "--runtime-directory", "/run/reconciled-second", "status").stdout
    assert node.run("stat", "-c", "%a", "/run/credentials/" + unit).stdout in ("500\n", "550\n")


def test_credentials_come_from_a_place_that_the_user_cannot_read(node):
    node.configure("cat /etc/credstore/reconciled.kubeconfig >&2; env >&2; echo end >&2")
    node.start()
    node.create_widget("a")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}", text="end")
    said = [entry["MESSAGE"] for entry in node.journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}")]
    assert any("Permission denied" in line for line in said), said
    assert not any(line.startswith(("KUBECONFIG=", "CREDENTIALS_DIRECTORY=", "NOTIFY_SOCKET=")) for line in said), said


def test_a_missing_credential_is_told(node):
    node.configure()
    node.run("rm", "/etc/credstore/reconciled.kubeconfig")
    node.run("systemctl", "start", node.unit, check=False)
    node.wait_state(node.unit, "failed")
    assert node.show(node.unit, "ExecMainStatus", "NRestarts") == {"ExecMainStatus": "78", "NRestarts": "0"}
    assert "kubeconfig" in node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['CHILD_FATAL']}")["MESSAGE"]


def test_a_handler_is_in_the_sandbox(node):
    node.configure("touch /etc/x /usr/x /var/lib/x /dev/x; mount -t tmpfs x /mnt; unshare -U true; ls /root; echo end >&2")
    node.start()
    node.create_widget("a")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}", text="end")
    said = "\n".join(entry["MESSAGE"] for entry in node.journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}"))
    for path in ("/etc/x", "/usr/x", "/var/lib/x", "/dev/x"):
        assert path in said
    assert "unshare" in said and "mount" in said and "/root" in said
    for path in ("etc/x", "usr/x", "var/lib/x"):
        assert not (node.root / path).exists()


def test_a_handler_may_change_the_node_with_the_drop_in(node):
    node.configure("echo $RECONCILED_NAME >/etc/example/made && echo x >/tmp/handler-was-here && ls -d /home/. >&2; ls /etc/example >&2; touch /etc/x; exit 0")
    node.run("install", "-d", "-o", "reconciled", "/etc/example")
    node.drop_in(node.unit, (SOURCE / "units/drop-ins/host.conf").read_text(encoding="utf-8"))
    node.start()
    node.create_widget("a")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}", text="/etc/x")
    said = [entry["MESSAGE"] for entry in node.journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}")]
    assert said[:2] == ["/home/.", "made"] and len(said) == 3 and "/etc/x" in said[2], said
    assert node.run("cat", "/etc/example/made").stdout == "a\n" and node.run("cat", "/tmp/handler-was-here").stdout == "x\n"
    assert not (node.root / "etc/x").exists()


def test_credentials_of_another_place_with_the_drop_in(node):
    node.run("systemctl", "stop", "devserver.service")
    node.start_server("--token", "of-a-file")
    kubeconfig = node.run("cat", "/run/devserver.kubeconfig").stdout
    assert kubeconfig.count('token: "of-a-file"') == 1
    node.write("/etc/kubernetes/reconciled.kubeconfig", kubeconfig.replace('token: "of-a-file"', "tokenFile: token"), 0o600)
    node.write("/etc/kubernetes/reconciled.token", "of-a-file\n", 0o600)
    node.run("sh", "-c", "rm /etc/credstore/*")
    node.drop_in(node.unit, (SOURCE / "units/drop-ins/credentials.conf").read_text(encoding="utf-8"))
    node.configure()
    node.start()


def test_a_stop_waits_for_running_handlers_longer_than_the_unit_would(node):
    node.configure("sleep 6; echo '{\"status\": {\"done\": true}}'", stop={"grace": "60s"})
    node.drop_in(node.unit, "[Service]\nTimeoutStopSec=3s\n")
    node.start()
    node.create_widget("a")
    wait_until(lambda: any("sleep 6" in line for line in node.processes(node.unit).values()), "the handler")
    node.run("systemctl", "stop", node.unit)
    assert node.show(node.unit, "ActiveState", "Result") == {"ActiveState": "inactive", "Result": "success"}
    assert node.widget("a")["status"] == {"done": True}


def test_a_wrong_file_is_refused_at_a_reload(node):
    node.configure()
    node.start()
    before = node.main_pid()
    node.configure(worker=3)
    assert node.run("systemctl", "reload", node.unit, check=False).returncode != 0
    assert node.show(node.unit, "ActiveState", "MainPID") == {"ActiveState": "active", "MainPID": str(before)}


def test_a_good_file_is_taken_at_a_reload(node):
    node.configure("while [ ! -e /run/go ]; do sleep 0.1; done; echo '{\"status\": {\"done\": true}}'")
    node.start()
    before = node.main_pid()
    node.create_widget("a")
    wait_until(lambda: any("handler" in line for line in node.processes(node.unit).values()), "the handler")
    node.configure("echo '{\"status\": {\"new\": true}}'", workers=3)
    node.mark()
    node.run("systemctl", "reload", "--no-block", node.unit)
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['RELOADING']}")
    node.run("touch", "/run/go")
    node.wait_synced()
    wait_until(lambda: node.show(node.unit, "ActiveState") == "active", "the end of the reload")
    assert node.main_pid() == before and node.show(node.unit, "NRestarts", "Result") == {"NRestarts": "0", "Result": "success"}
    assert sum("reconciled-worker" in line for line in node.processes(node.unit).values()) == 3
    assert node.widget("a")["status"] == {"done": True}
    node.create_widget("b")
    wait_until(lambda: node.widget("b").get("status") == {"new": True}, "the new handler's status")


def test_the_gateway_works_in_the_sandbox(node):
    node.configure(gateway={"listen": "127.0.0.1:9464"})
    node.start()

    def get(path):
        return subprocess.run([*node.enter("-n"), "curl", "-sS", "http://127.0.0.1:9464" + path], capture_output=True,
                              text=True, check=False).stdout

    wait_until(lambda: get("/readyz") == "ok\n", "readiness")
    sample = r'reconciled_process_resident_memory_bytes\{role="watcher",name="widgets"\} [1-9]'
    wait_until(lambda: re.search(sample, get("/metrics")), "the memory of the watcher")
    assert len(node.processes(node.unit)) == 6


def test_what_a_handler_hides_is_found_in_the_sandbox(node):
    # ProtectProc=invisible: the worker must still see what its handler has started.
    node.configure("setsid -f sleep 1000; setsid -f sh -c 'sleep 1000 & sleep 1000'; exec sleep 1000",
                   handler_options={"timeout": "500ms", "grace": "100ms"})
    node.start()
    node.create_widget("a")
    wait_until(lambda: sum("sleep 1000" in line for line in node.processes(node.unit).values()) >= 4, "the sleeps")
    node.write(HANDLER, "#!/bin/sh\nexit 0\n", 0o755)
    failed = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['RUN_FAILED']}")
    assert failed["RECONCILED_KEY"] == "default/a"
    wait_until(lambda: not any("sleep 1000" in line for line in node.processes(node.unit).values()),
               lambda: f"the end of all that it started: {node.processes(node.unit)}")


def test_limits_are_rlimits_in_the_unit_as_it_is(node):
    node.configure("ulimit -d >/var/lib/reconciled/limit", handler_options={"limits": {"memory": "64Mi", "pids": 20}})
    node.start()
    said = node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['LIMITS_WEAKENED']}")
    assert "memory limits only the data of each process" in said["MESSAGE"], said["MESSAGE"]
    node.create_widget("a")
    wait_until(lambda: node.run("cat", "/var/lib/reconciled/limit", check=False).stdout == "65536\n", "the limit")


def test_each_run_has_a_control_group_with_the_drop_in(node):
    node.configure("grep ^0:: /proc/self/cgroup >/var/lib/reconciled/group")
    node.drop_in(node.unit, (SOURCE / "units/drop-ins/cgroups.conf").read_text(encoding="utf-8"))
    node.start()
    node.create_widget("a")

    def group():
        return node.run("cat", "/var/lib/reconciled/group", check=False).stdout

    wait_until(lambda: "/reconciled.service/handler-" in group(), lambda: f"the handler in a group of its own: {group()}")
    assert "/reconciled.service/supervisor" in node.run("cat", f"/proc/{node.main_pid()}/cgroup").stdout
    # A reload takes the same group again, and the next start as well.
    node.run("systemctl", "reload", node.unit)
    node.run("systemctl", "restart", node.unit)
    node.wait_synced()
    assert "/reconciled.service/supervisor" in node.run("cat", f"/proc/{node.main_pid()}/cgroup").stdout


def test_handlers_run_as_their_user_with_the_drop_in(node):
    options = {"user": "games", "limits": {"memory": "64Mi"}, "timeout": "1s", "grace": "100ms"}
    node.configure("id -un >&2; grep CapEff /proc/self/status >&2; cat $0 /var/lib/reconciled/ledger.sqlite >/dev/null && exit 1; (setsid sleep 1000) & sleep 1000",
                   handler_options=options)
    drop_in = (SOURCE / "units/drop-ins/user.conf").read_text(encoding="utf-8")
    for text, said in (("", "needs CAP_SETUID, CAP_SETGID and CAP_KILL (drop-in user.conf)"),
                       (drop_in.replace("PrivateUsers=no", ""), "does not exist in the operator's user namespace"),
                       (drop_in.replace("ProtectProc=default", ""), "/proc hides the processes of other users")):
        node.drop_in(node.unit, text)
        node.run("systemctl", "start", node.unit, check=False)
        node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['CONFIGURATION_WRONG']}", text=said)
        assert node.show(node.unit, "ExecMainStatus") == "78"
        node.run("systemctl", "reset-failed", node.unit, check=False)
    node.drop_in(node.unit, drop_in)
    node.start()
    assert "CapEff:\t00000000000000e0" in node.run("cat", f"/proc/{node.main_pid()}/status").stdout
    node.create_widget("a")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}", text="games")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}", text="CapEff:\t0000000000000000")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['RUN_FAILED']}", text="did not end within its timeout")
    node.run("systemctl", "stop", node.unit)
    assert node.run("pgrep", "-u", "games", check=False).stdout == ""


def test_a_credential_of_the_unit_reaches_the_user_of_its_handler(node):
    node.configure('id -un >&2; cat "$RECONCILED_CREDENTIALS_DIRECTORY/password" >&2; '
                   'cat "$RECONCILED_CREDENTIALS_DIRECTORY/../../slots" 2>/dev/null && echo reached >&2; exit 0',
                   handler_options={"user": "games", "credentials": {"password": "${CREDENTIALS_DIRECTORY}/password"}})
    node.drop_in(node.unit, (SOURCE / "units/drop-ins/user.conf").read_text(encoding="utf-8")
                 + "\n[Service]\nSetCredential=password:correct-horse\n")
    node.start()
    node.create_widget("a")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}", text="games")
    node.wait_journal(f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}", text="correct-horse")
    # systemd sets the mode of the runtime directory again, which takes from lists of rights what they allow.
    node.run("systemctl", "restart", node.unit)
    node.wait_synced()
    node.create_widget("b")
    output = f"MESSAGE_ID={MESSAGE_ID['HANDLER_OUTPUT']}"
    wait_until(lambda: sum("correct-horse" in record["MESSAGE"] for record in node.journal(output)) >= 2,
               "the credential after a restart")
    node.run("systemctl", "reload", node.unit)
    node.run("systemctl", "stop", node.unit)
    assert not [record for record in node.journal(output) if "reached" in record["MESSAGE"]]
