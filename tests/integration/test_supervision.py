# SPDX-License-Identifier: Apache-2.0
"""Children that die, hang or lie; the supervisor's own death; the configuration's mistakes."""
import os
import signal
import subprocess

import pytest

from harness import wait_until, watch

pytestmark = pytest.mark.quiet

ROLES = ["credential", "watcher", "worker"]


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)], workers=1, heartbeat={"interval": "100ms", "deadline": "1s"})
    return operator


def cause(operator):
    """The one line that says why: the first one of level critical."""
    lines = operator.logs(level="critical")
    assert len(lines) == 1, lines
    return lines[0]["message"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGTERM])
@pytest.mark.slow
def test_a_killed_child_ends_the_operator(configured, role, number):
    configured.start_ready()
    child = configured.children(role)[0]
    child.kill(number)
    configured.wait_exit(expect=70)
    configured.assert_no_processes()
    assert role in cause(configured) and str(child.pid) in cause(configured)


def test_whoever_starts_it_may_ignore_the_ends_of_children(configured, handler, widgets):
    """A program inherits that, and would never hear of its own."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        configured.start()
    finally:
        signal.signal(signal.SIGCHLD, before)
    configured.wait_ready()
    widgets.create("one")
    handler.wait_finished(name="one")
    wait_until(lambda: configured.ctl.status()["watches"][0]["succeeded"] == 1, "the success")
    configured.children("worker")[0].kill()
    configured.wait_exit(expect=70)
    configured.assert_no_processes()


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.slow
def test_a_stopped_child_is_hung(configured, role):
    configured.start_ready()
    configured.children(role)[0].kill(signal.SIGSTOP)
    configured.wait_exit(expect=70)
    configured.assert_no_processes()
    assert role in cause(configured) and "no heartbeat" in cause(configured)


@pytest.mark.slow
def test_a_deadline_alone_is_enough(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)], workers=1, heartbeat={"deadline": "1s"})
    operator.start_ready().wait_synced()
    operator.children("watcher")[0].kill(signal.SIGSTOP)
    operator.wait_exit(expect=70)
    assert "no heartbeat" in cause(operator)


@pytest.mark.slow
def test_a_stopped_worker_is_hung_also_while_others_wait_for_it(configured, handler, widgets):
    """Something is due, and nobody is free for it: that keeps nobody from looking after the children."""
    handler.behave(f"[ $RECONCILED_NAME != waits ] || exit 1; {handler.held}")
    configured.start_ready().wait_synced()
    widgets.create("waits")
    handler.wait_finished(name="waits")
    widgets.create("runs")
    handler.wait_for(name="runs")
    configured.children("worker")[0].kill(signal.SIGSTOP)
    configured.wait_exit(expect=70)
    assert "no heartbeat" in cause(configured)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("says", ["garbage", "\\x92\\x02\\x01"])
def test_a_child_that_breaks_the_protocol_ends_the_operator(configured, role, says):
    configured.replace_child(role, f"#!/bin/sh\nprintf '{says}' >&3\nexec sleep 60\n")
    configured.start()
    configured.wait_exit(expect=70)
    configured.assert_no_processes()
    assert role in cause(configured) and "protocol" in cause(configured)


@pytest.mark.parametrize("role", ROLES)
def test_a_child_that_ends_by_itself_ends_the_operator(configured, role):
    configured.replace_child(role, "#!/bin/sh\nexit 0\n")
    configured.start()
    configured.wait_exit(expect=70)
    configured.assert_no_processes()
    assert role in cause(configured)


def test_sigkill_of_the_supervisor_leaves_nothing(devserver, operator, make_handler, widgets):
    handler = make_handler("trap '' TERM; while :; do sleep 1; done")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready()
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    os.kill(operator.pid, signal.SIGKILL)
    operator.wait_exit(expect=-signal.SIGKILL)
    operator.assert_no_processes()


@pytest.mark.slow
def test_a_running_handler_may_finish_at_a_stop(devserver, operator, make_handler, widgets, sandbox):
    handler = make_handler()
    handler.behave(handler.held + "; sleep 1; printf '{\"status\":{\"done\":true}}'")
    operator.configure(devserver, [watch("widgets", handler)], stop={"grace": "20s"})
    operator.start_ready()
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    operator.send_signal(signal.SIGTERM)
    operator.wait_notification("STOPPING", "1")
    handler.let_go()
    operator.wait_exit(expect=0)
    operator.assert_no_processes()
    assert widgets.get("a")["status"] == {"done": True}


def test_a_handler_that_does_not_end_is_ended_at_a_stop(devserver, operator, make_handler, widgets):
    handler = make_handler("trap '' TERM; while :; do sleep 1; done")
    operator.configure(devserver, [watch("widgets", handler, handler_options={"grace": "100ms"})], stop={"grace": "200ms"})
    operator.start_ready()
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    operator.stop()
    operator.assert_no_processes()


def test_systemd_is_told(devserver, make_operator, handler):
    operator = make_operator(watchdog=2.0)
    operator.configure(devserver, [watch("widgets", handler)], heartbeat={"interval": "100ms", "deadline": "1s"})
    operator.start_ready()
    operator.wait_notification("WATCHDOG", "1")
    wait_until(lambda: "1 watch in sync" in operator.status_text, "the status line")
    operator.stop()
    assert any(n.get("STOPPING") == "1" for n in operator.notifications)


def test_status(configured, devserver):
    configured.start_ready().wait_synced()
    status = configured.ctl.status()
    assert [w["state"] for w in status["watches"]] == ["in-sync"]
    assert status["server"] == devserver.url
    text = configured.ctl.run("status")
    assert text.returncode == 0 and "widgets" in text.stdout
    configured.stop()
    assert configured.ctl.run("status").returncode == 69


@pytest.mark.parametrize("runtime", ["the same", "another"])
def test_a_second_instance_is_refused(configured, runtime):
    configured.start_ready()
    before = configured.pid
    folder = configured.runtime_directory if runtime == "the same" else configured.sandbox.subfolder("elsewhere")
    configured.user.give(folder)
    second = subprocess.run(configured.user.command([str(configured.sandbox.program("reconciled")), "--config",
                                                     str(configured.config_file), "--log", "text", "--state-directory",
                                                     str(configured.state_directory), "--runtime-directory",
                                                     str(folder)]), capture_output=True, text=True)
    assert second.returncode == 78
    assert f"pid {before}" in second.stderr
    assert configured.ctl.status()["pid"] == before, "it has taken nothing away from the first one"


def test_every_mistake_of_the_configuration_is_told_with_its_place(operator):
    operator.write_config("operator: widgets.example.com\nworker: 3\nwatches:\n- name: w\n  apiVersion: v1\n  kind: ConfigMap\n"
                          "  trigger: always\n  handler: {exec: [relative], timeout: soon}\n- {name: w}\n")
    operator.start()
    operator.wait_exit(expect=78)
    told = "\n".join(record["message"] for record in operator.logs(level="error"))
    for place in (":2: worker: is unknown; did you mean \"workers\"", ":7: watches[0].trigger", ":8: watches[0].handler.timeout",
                  ":8: watches[0].handler.exec", ":9: watches[1].apiVersion", ":9: watches[1].name"):
        assert place in told, told


def test_no_credential_is_a_configuration_error(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)], cluster={"kubeconfig": "/nonexistent/kubeconfig"})
    operator.start()
    operator.wait_exit(expect=78)
    assert "/nonexistent/kubeconfig" in cause(operator)


def test_an_unreachable_server_past_the_deadline(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, deadline="500ms")])
    devserver.stop()
    operator.start()
    operator.wait_exit(expect=69)
    assert "past its deadline" in cause(operator)


def test_the_supervisor_links_no_http_and_no_tls(programs):
    import subprocess
    libraries = subprocess.run(["ldd", str(programs["reconciled"])], capture_output=True, text=True).stdout
    for name in ("libcurl", "libssl", "libgnutls", "libjq"):
        assert name not in libraries


def without_libcurl(operator, role, folder=None):
    folder = folder or operator.folder / "libraries"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    (folder / "libcurl.so.4").write_text("none\n", encoding="utf-8")
    operator.replace_child(role, f'#!/bin/sh\nLD_LIBRARY_PATH={folder} exec "$REAL" "$@"\n')


def test_a_worker_needs_libcurl_only_for_what_it_writes(configured, handler, widgets):
    without_libcurl(configured, "worker")
    configured.start_ready().wait_synced()
    widgets.create("silent")
    handler.wait_finished(name="silent")
    handler.answer({"status": {"seen": True}})
    widgets.create("writes")
    configured.wait_exit(expect=70)
    assert "worker" in cause(configured) and "libcurl.so.4" in cause(configured)


def test_a_watcher_without_libcurl_ends_the_operator(configured):
    configured.start_ready().wait_synced()
    configured.stop()
    [store] = (configured.state_directory / "store").iterdir()
    without_libcurl(configured, "watcher", store)  # it may read no other folder of the operator
    configured.start()
    configured.wait_exit(expect=70)
    assert "no request can be sent to the API server" in cause(configured) and "libcurl.so.4" in cause(configured)
