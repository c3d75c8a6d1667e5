# SPDX-License-Identifier: Apache-2.0
"""Limits of handlers, by control groups where one is delegated, by rlimits where not; and what handlers have used."""
import argparse
import json
import os
import uuid

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID
from harness.process import find_processes

UNIFIED = next((folder for folder in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup")
                if os.path.exists(f"{folder}/cgroup.controllers")), None)


def controllers(folder):
    with open(f"{folder}/cgroup.controllers", encoding="utf-8") as file:
        return file.read().split()


class Delegated:
    """A control group that is delegated to the operator, as systemd does it; the operator begins in it."""

    def __init__(self, operator):
        self.path = f"{UNIFIED}/reconciled-test-{uuid.uuid4().hex[:12]}"
        os.mkdir(self.path)
        os.setxattr(self.path, "user.delegate", b"1")
        for name in (".", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
            operator.user.give(f"{self.path}/{name}")
        self.operator = operator

    def start(self):
        """What is started begins in our own group."""
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            own = next(line.strip() for line in file if line.startswith("0::"))[3:]
        self.enter(self.path)
        try:
            return self.operator.start()
        finally:
            self.enter(UNIFIED + own)

    @staticmethod
    def enter(path):
        with open(f"{path}/cgroup.procs", "w", encoding="utf-8") as file:
            file.write("0")

    def groups(self):
        return sorted(name for name in os.listdir(self.path) if os.path.isdir(f"{self.path}/{name}"))

    def members(self, group):
        with open(f"{self.path}/{group}/cgroup.procs", encoding="utf-8") as file:
            return [int(line) for line in file]

    def close(self):
        for name in self.groups():
            wait_until(lambda: not self.members(name), lambda: f"group {name} to be empty: {self.members(name)}")
            os.rmdir(f"{self.path}/{name}")
        os.rmdir(self.path)


@pytest.fixture
def delegated(sandbox, operator):
    if UNIFIED is None or os.geteuid() != 0:
        pytest.skip("needs control groups of version 2, and root to delegate one")
    found = Delegated(operator)
    yield found
    if operator.popen is not None:
        operator.stop()
    found.close()


def limited(handler, timeout="2m", **limits):
    return watch("widgets", handler, handler_options={"timeout": timeout, "grace": "200ms", "limits": limits})


def test_limits_are_rlimits_where_no_group_is_delegated_and_that_is_said(devserver, operator, widgets, handler):
    handler.behave('ulimit -d >"$REQUEST.limits"; ulimit -t >>"$REQUEST.limits"')
    operator.configure(devserver, [limited(handler, memory="64Mi", pids=50, cpu="500m")])
    operator.start_ready()
    said = operator.wait_for_log(message_id=MESSAGE_ID["LIMITS_WEAKENED"], watch="widgets")["message"]
    assert "memory limits only the data of each process" in said and "pids is not enforced" in said, said
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    with open(f"{request.path}.limits", encoding="utf-8") as file:
        assert file.read().split() == [str(64 * 1024), "60"]  # KiB; half of two minutes
    status = operator.ctl.run("status").stdout
    assert "limits of its handler: memory limits only" in status, status
    assert operator.ctl.status()["watches"][0]["limitsWeakened"]


def test_a_handler_that_takes_too_much_memory_fails_alone(devserver, operator, widgets, handler):
    handler.behave("exec python3 -c 'bytearray(200 << 20)'")
    operator.configure(devserver, [limited(handler, memory="64Mi")])
    operator.start_ready()
    widgets.create("a", spec={})
    assert "MemoryError" in operator.wait_for_log(message_id=MESSAGE_ID["RUN_FAILED"])["message"]


@pytest.mark.slow
def test_a_handler_that_takes_too_much_cpu_time_is_ended_and_named(devserver, operator, widgets, handler):
    handler.behave("exec /bin/sh -c 'while :; do :; done'")
    operator.configure(devserver, [limited(handler, timeout="100s", cpu="10m")])
    operator.start_ready()
    widgets.create("a", spec={})
    said = operator.wait_for_log(message_id=MESSAGE_ID["RUN_FAILED"], deadline=60)["message"]
    assert "more CPU time than its limit allows" in said


def test_check_says_what_does_not_hold(devserver, operator, handler):
    operator.configure(devserver, [limited(handler, memory="64Mi", pids=50)])
    said = operator.ctl.check(operator.config_file).stdout
    assert "note: handler.limits can be enforced as configured only in a control group" in said, said
    if "memory" not in controllers(UNIFIED):
        assert "handler.limits: warning: of watch widgets: they cannot be enforced as configured, because control groups" in said, said
        document = json.loads(operator.ctl.run("check", str(operator.config_file), "--json").stdout)
        assert document["valid"] and document["problems"][0]["key"] == "watches[0].handler.limits", document


@pytest.mark.parametrize("limits, said", [
    ({"memory": "much"}, "is not a size"), ({"memory": "1Ki"}, "1Ki is out of range (1Mi to 1024Ti)"), ({"cpu": "0"}, "is not a number of CPUs"),
    ({"cpu": "1.2345"}, "is not a number of CPUs"), ({"cpu": "5m"}, "is not a number of CPUs"), ({"pids": 0}, "is not a number"),
    ({"disk": "1Gi"}, "unknown"), ({"memory": "1025Ti"}, "1025Ti is out of range (1Mi to 1024Ti)"),
    ({"memory": "99999999999999999999Ti"}, "is out of range (1Mi to 1024Ti)")])
def test_wrong_limits(devserver, operator, handler, limits, said):
    operator.configure(devserver, [limited(handler, **limits)])
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 78 and said in result.stdout and "handler.limits" in result.stdout, result.stdout


@pytest.mark.parametrize("cpu", ["2", 2, "0.5", 0.25, "1.125", "500m"])
def test_right_numbers_of_cpus(devserver, operator, handler, cpu):
    operator.configure(devserver, [limited(handler, cpu=cpu)])
    assert operator.ctl.check(operator.config_file).returncode == 0


def test_each_run_has_a_group_of_its_own(devserver, operator, widgets, handler, delegated):
    handler.behave('grep ^0:: /proc/self/cgroup >"$REQUEST.group"')
    operator.configure(devserver, [limited(handler)])
    delegated.start()
    operator.wait_ready()
    assert sorted(delegated.members("supervisor")) == sorted(process.pid for process in operator.processes())
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    with open(f"{request.path}.group", encoding="utf-8") as file:
        assert f"{os.path.basename(delegated.path)}/handler-" in file.read()
    wait_until(lambda: delegated.groups() == ["supervisor"], lambda: f"no group of a run: {delegated.groups()}")


def sleepers(operator):
    return find_processes(lambda process: operator.user.owns(process) and process.program == "sleep")


def test_a_container_s_own_root_is_taken_only_for_limits(devserver, operator, widgets, handler, delegated):
    os.removexattr(delegated.path, "user.delegate")
    # What a runtime does: a control group namespace, and the hierarchy mounted anew in it, writable.
    script = f'umount -l {UNIFIED} && mount -t cgroup2 none {UNIFIED} && exec "$@"'
    command = operator.user.command
    operator.user.command = lambda words: ["unshare", "--cgroup", "--mount", "sh", "-c", script, "sh", *command(words)]
    operator.configure(devserver, [watch("widgets", handler)])
    delegated.start()
    operator.wait_ready()
    assert delegated.groups() == []
    operator.stop()
    handler.behave('grep ^0:: /proc/self/cgroup >"$REQUEST.group"')
    operator.configure(devserver, [limited(handler, memory="64Mi")])
    delegated.start()
    operator.wait_ready()
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    with open(f"{request.path}.group", encoding="utf-8") as file:
        assert file.read().startswith("0::/handler-")


@pytest.mark.slow
def test_what_a_timeout_ends_is_ended_by_its_group(devserver, operator, widgets, handler, delegated):
    handler.behave("trap '' TERM; for i in 1 2 3 4 5; do (trap '' TERM; setsid sleep 1000) & done; wait")
    operator.configure(devserver, [limited(handler, timeout="1s")])
    delegated.start()
    operator.wait_ready()
    widgets.create("a", spec={})
    wait_until(lambda: len(sleepers(operator)) == 5, "the handler's processes")
    assert len(delegated.groups()) == 2
    handler.behave("exit 0")
    operator.wait_for_log("did not end within its timeout", message_id=MESSAGE_ID["RUN_FAILED"])
    handler.wait_finished(name="a", count=2)
    wait_until(lambda: delegated.groups() == ["supervisor"], lambda: f"no group of a run: {delegated.groups()}")
    assert not sleepers(operator)


def test_what_a_killed_operator_leaves_is_cleaned_up_by_the_next_one(devserver, operator, widgets, handler, delegated):
    handler.behave("exec sleep 1000")
    operator.configure(devserver, [limited(handler)])
    delegated.start()
    operator.wait_ready()
    widgets.create("a", spec={})
    wait_until(lambda: sleepers(operator), "the handler's process")
    left = delegated.groups()
    with open(f"{delegated.path}/cgroup.kill", "w", encoding="utf-8") as file:
        file.write("1")
    operator.wait_exit(-9)
    assert delegated.groups() == left and len(left) == 2
    handler.behave("exit 0")
    delegated.start()
    operator.wait_ready()
    handler.wait_finished(name="a", where=lambda request: request.exit_code is not None)
    wait_until(lambda: delegated.groups() == ["supervisor"], lambda: f"no group of a run: {delegated.groups()}")


def test_two_operators_in_one_group_leave_each_other_alone(devserver, operator, make_operator, widgets, handler, delegated):
    handler.behave("exec sleep 1000")
    operator.configure(devserver, [limited(handler)], stop={"grace": "100ms"})
    delegated.start()
    operator.wait_ready()
    widgets.create("a", spec={})
    wait_until(lambda: sleepers(operator), "the handler's process")
    second = make_operator()
    second.user = operator.user
    second.configure(devserver, [watch("other", handler)], operator="other.example.com", stop={"grace": "100ms"})
    for path in (second.folder, second.config_file, second.folder / "kubeconfig", second.state_directory,
                 second.runtime_directory):
        operator.user.give(path)
    before = sleepers(operator)[0]
    Delegated.start(argparse.Namespace(path=delegated.path, operator=second, enter=delegated.enter))
    second.wait_ready()
    assert before.alive()
    second.stop()


@pytest.mark.only_where(UNIFIED is None or "memory" not in controllers(UNIFIED), "no memory controller of control groups v2")
def test_a_group_without_controllers_is_said(devserver, operator, handler, delegated):
    operator.configure(devserver, [limited(handler, memory="64Mi")])
    delegated.start()
    operator.wait_ready()
    said = operator.wait_for_log(message_id=MESSAGE_ID["LIMITS_WEAKENED"])["message"]
    assert "have no controller memory" in said


@pytest.mark.only_where(UNIFIED is not None and "memory" in controllers(UNIFIED), "a memory controller of control groups v2")
def test_a_group_ends_a_handler_that_takes_too_much_memory_and_says_so(devserver, operator, widgets, handler, delegated):
    handler.behave("python3 -c 'bytearray(200 << 20)'")
    operator.configure(devserver, [limited(handler, memory="64Mi")])
    delegated.start()
    operator.wait_ready()
    widgets.create("a", spec={})
    said = operator.wait_for_log(message_id=MESSAGE_ID["RUN_FAILED"])["message"]
    assert "was ended for lack of memory: it took more than its limit of 64Mi" in said


PLENTY = """
import sys
memory = bytearray(80 << 20)
total = 0
while sum(__import__('os').times()[:2]) < 0.3:
    total += 1
"""


def used(gateway, sample):
    return float(gateway.metrics()[f'reconciled_handler_{sample}{{watch="widgets"}}'])


def test_what_a_handler_has_used_is_counted(devserver, operator, widgets, handler, sandbox):
    program = handler.folder / "plenty.py"
    program.write_text(PLENTY, encoding="utf-8")
    handler.behave(f"python3 {program}")
    socket = operator.folder / "gateway.sock"
    operator.configure(devserver, [watch("widgets", handler)], gateway={"listen": f"unix:{socket}"},
                       heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.start_ready()
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    gateway = Gateway(socket)
    wait_until(lambda: used(gateway, "cpu_seconds_total") >= 0.3, "its CPU time")
    assert 80 << 20 <= used(gateway, "memory_peak_bytes") < 400 << 20
    assert used(gateway, "out_of_memory_total") == 0 and used(gateway, "limits_weakened") == 0


SERVE = """#!/usr/bin/python3 -u
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    begin = sum(os.times()[:2])
    while sum(os.times()[:2]) - begin < 0.2:
        pass
    memory = bytearray(80 << 20)
    print(json.dumps({"id": request["id"]}))
"""


def test_what_a_handler_that_serves_has_used_is_counted_run_by_run(devserver, operator, widgets, sandbox):
    program = sandbox.subfolder("serve", operator.user) / "serve"
    program.write_text(SERVE, encoding="utf-8")
    program.chmod(0o755)
    socket = operator.folder / "gateway.sock"
    operator.configure(devserver, [watch("widgets", None) | {"handler": {"serve": [str(program)]}}], workers=1,
                       gateway={"listen": f"unix:{socket}"}, heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.start_ready()
    gateway = Gateway(socket)
    widgets.create("a", spec={})
    wait_until(lambda: used(gateway, "cpu_seconds_total") >= 0.15, "the CPU time of the first run")
    widgets.create("b", spec={})
    wait_until(lambda: used(gateway, "cpu_seconds_total") >= 0.3, "that of the second one")
    assert used(gateway, "cpu_seconds_total") < 5
    assert used(gateway, "memory_peak_bytes") >= 80 << 20
