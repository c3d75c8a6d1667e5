# SPDX-License-Identifier: Apache-2.0
"""The operator as PID 1 of a container: what it must do there that it need not do elsewhere."""
import signal

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def configured(container, devserver):
    container.configure(devserver, [watch("widgets", container.script("echo '{\"status\": {\"seen\": true}}'"))])
    return container


def test_life(configured, widgets):
    configured.start().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the handler's status")
    assert configured.execute("cat", "/proc/1/comm").stdout == "reconciled\n"
    status = configured.execute("cat", "/proc/1/status").stdout
    assert "Uid:\t65532\t65532" in status and "CapEff:\t0000000000000000" in status
    assert configured.execute("touch", "/var/lib/x").returncode != 0  # the root is read-only
    assert configured.execute("reconciledctl", "health", "--ready").returncode == 0
    assert "widgets" in configured.execute("reconciledctl", "status").stdout
    configured.stop()
    assert configured.stdout.text() == ""
    # Every line is JSON: records() refuses others, and the number says that none was lost.
    lines = [line for line in configured.output.text().splitlines() if line]
    assert len(configured.output.records()) == len(lines) > 2
    assert configured.termination_message == ""


@pytest.mark.parametrize("uid", [65532, 0])
def test_volumes_that_everybody_may_write(container, configured, widgets, uid):
    """As an emptyDir of Kubernetes is: the operator keeps its files in a folder of its own in it."""
    container.open_volumes, container.uid = True, uid
    configured.start().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the handler's status")
    assert configured.execute("reconciledctl", "health", "--ready").returncode == 0
    for volume in ("/var/lib/reconciled", "/run/reconciled"):
        assert configured.execute("find", volume, "-maxdepth", "1", "-printf", "%P %m %U\\n").stdout == f" 777 0\nreconciled 700 {uid}\n"
    configured.stop()


def test_zombies_that_are_not_its_own_are_reaped(configured):
    configured.start().wait_synced()
    for _ in range(20):
        assert configured.execute("sh", "-c", "(setsid sh -c 'exit 3' &) ; exit 0").returncode == 0

    def zombies():
        return [line for line in configured.execute("ps", "-eo", "stat=,pid=,ppid=,comm=").stdout.splitlines()
                if line.startswith("Z")]

    wait_until(lambda: not zombies(), lambda: f"no zombies: {zombies()}")
    assert configured.execute("reconciledctl", "health").returncode == 0


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT, signal.SIGALRM])
def test_signals_that_mean_nothing_change_nothing(container, devserver, widgets, number):
    """None is passed on to a handler that runs, either."""
    folder = "/var/lib/reconciled"
    container.configure(devserver, [watch("widgets", container.script(
        f"trap 'touch {folder}/got' USR1 USR2 QUIT ALRM; echo begun >&2; while [ ! -e {folder}/go ]; do sleep 0.1; done; "
        "echo '{\"status\": {\"seen\": true}}'"))])
    container.start().wait_synced()
    widgets.create("a", spec={})
    container.wait_for_log("begun")
    container.signal(number)
    assert container.execute("reconciledctl", "health").returncode == 0
    container.execute("touch", f"{folder}/go")
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the handler's status")
    assert container.execute("test", "-e", f"{folder}/got").returncode == 1


def test_a_reload_keeps_the_container(configured, devserver, widgets):
    configured.start().wait_synced()
    configured.configure(devserver, [watch("widgets", configured.script("echo '{\"status\": {\"new\": true}}'", "second"))])
    configured.signal(signal.SIGHUP)
    wait_until(lambda: configured.logs(message_id=MESSAGE_ID["RELOADED"]), "the new configuration")
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"new": True}, "the new handler's status")
    assert configured.execute("cat", "/proc/1/comm").stdout == "reconciled\n"
    configured.stop()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_waits_for_the_handler(container, devserver, widgets, number):
    container.configure(devserver, [watch("widgets", container.script(
        "echo begun >&2; while [ ! -e /var/lib/reconciled/go ]; do sleep 0.1; done; echo '{\"status\": {\"done\": true}}'"))])
    container.start().wait_synced()
    widgets.create("a", spec={})
    container.wait_for_log("begun")
    container.signal(number)
    container.wait_for_log("asked to stop by signal")
    container.execute("touch", "/var/lib/reconciled/go")
    container.wait_exit(0)
    assert widgets.get("a")["status"] == {"done": True}


# Exit codes, as the kubelet sees them, and what stands in the termination message.

def test_wrong_usage(container):
    container.start("--no-such-option").wait_exit(64)


def test_a_wrong_configuration(container):
    container.configure(None, [{"name": "widgets"}])
    container.start().wait_exit(78)
    assert "reconciled.yaml:" in container.termination_message and "is missing" in container.termination_message


def test_no_server(container, devserver):
    container.configure(devserver, [watch("widgets", container.script("exit 0"), deadline="500ms")])
    devserver.stop()
    container.start().wait_exit(69)
    assert "past its deadline" in container.termination_message


def test_a_full_disk(container, devserver):
    container.state_size = "16k"
    container.configure(devserver, [watch("widgets", container.script("exit 0"))])
    container.start().wait_exit(74)
    assert "/var/lib/reconciled/ledger.sqlite" in container.termination_message
    assert "No space left on device" in container.termination_message


def test_refused(container, make_devserver):
    devserver = make_devserver(arguments=["--token", "right"])
    kubeconfig = devserver.kubeconfig.read_text(encoding="utf-8").replace("right", "wrong")
    devserver.kubeconfig.write_text(kubeconfig, encoding="utf-8")
    container.configure(devserver, [watch("widgets", container.script("exit 0"), deadline="500ms")])
    container.start().wait_exit(77)
    assert "401" in container.termination_message or "Unauthorized" in container.termination_message


@pytest.mark.parametrize("role", ["watcher", "worker", "credential"])
def test_a_dead_child(configured, role):
    configured.start().wait_synced()
    configured.execute("pkill", "-KILL", "-f", f"reconciled-{role}")
    configured.wait_exit(70)
    assert role in configured.termination_message
    fatal = configured.logs(message_id=MESSAGE_ID["CHILD_FATAL"])
    assert len(fatal) == 1 and fatal[0]["message"].startswith(configured.termination_message)


def test_handlers_as_another_user(container, devserver, widgets):
    """As docs/container.md says: root with three capabilities, and nothing else."""
    container.uid, container.capabilities = 0, ["CAP_SETUID", "CAP_SETGID", "CAP_KILL"]
    container.configure(devserver, [watch("widgets", container.script(
        "grep -q 'CapEff.*0000000000000000' /proc/self/status || exit 1; cat /var/lib/reconciled/ledger.sqlite && exit 1; "
        "(setsid sleep 1000) & echo '{\"status\": {\"uid\": '$(id -u)'}}'"), handler_options={"user": "1234:1234"})])
    container.start().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"uid": 1234}, "the handler's status")
    assert "CapEff:\t00000000000000e0" in container.execute("cat", "/proc/1/status").stdout
    wait_until(lambda: "sleep" not in container.execute("ps", "-eo", "comm=").stdout, "the end of what it left behind")


def test_one_of_ours_that_the_kernel_chooses_is_named(container, devserver, widgets):
    container.memory = 192 * 1024 * 1024
    container.uid = 0
    container.configure(devserver, [watch("widgets", container.script("exec tail /dev/zero"))])
    container.start().wait_synced()
    chosen = container.execute("sh", "-c", "for each in /proc/[0-9]*; do if grep -q reconciled-watc $each/comm; then "
                               "echo 1000 >$each/oom_score_adj && echo chosen; fi; done").stdout
    assert chosen == "chosen\n"
    widgets.create("a", spec={})
    container.wait_exit(70)
    fatal = container.logs(message_id=MESSAGE_ID["CHILD_FATAL"])
    assert "was killed by signal KILL, by the kernel for lack of memory" in fatal[0]["message"]


def test_a_handler_without_memory_ends_alone(container, devserver, widgets):
    container.memory = 192 * 1024 * 1024
    container.configure(devserver, [watch("widgets", container.script(
        "case $RECONCILED_NAME in big) exec tail /dev/zero;; esac; echo '{\"status\": {\"seen\": true}}'"),
        retry={"first": "1h", "max": "1h"})])
    container.start().wait_synced()
    widgets.create("big", spec={})
    failed = container.wait_for_log(message_id=MESSAGE_ID["RUN_FAILED"], deadline=60)
    assert "was ended for lack of memory: the container" in failed["message"]
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"seen": True}, "the handler's status")
