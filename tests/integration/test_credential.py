# SPDX-License-Identifier: Apache-2.0
"""Credentials end to end: plugins, files that change, impersonation, and where a secret must never be seen."""
import base64
import json
import os
import time

import pytest
import yaml

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import SANITIZED

EXEC = "client.authentication.k8s.io/v1"
PLUGIN = """#!/bin/sh
# Each run leaves a line; what it prints stands in the file beside it.
echo "$KUBERNETES_EXEC_INFO" >>{folder}/runs
ls /proc/self/fd >{folder}/descriptors
echo "fetching for ${{0##*/}}" >&2
cat {folder}/printed
exit $(cat {folder}/status)
"""


class Plugin:
    """An exec plugin: prints what the test says, and counts its runs."""

    def __init__(self, sandbox, user):
        self.folder = sandbox.subfolder("plugin", user)
        self.command = self.folder / "fetch-token"
        self.command.write_text(PLUGIN.format(folder=self.folder), encoding="utf-8")
        self.command.chmod(0o755)
        self.user = user
        for name in ("runs", "descriptors"):
            (self.folder / name).touch()
            user.give(self.folder / name)

    def prints(self, status=0, text=None, api_version=EXEC, **credential):
        text = text if text is not None else json.dumps(
            {"kind": "ExecCredential", "apiVersion": api_version, "status": credential})
        for name, content in (("printed", text), ("status", str(status))):
            new = self.folder / (name + ".new")
            new.write_text(content, encoding="utf-8")
            self.user.give(new, 0o644)
            new.rename(self.folder / name)
        return self

    def runs(self):
        return [json.loads(line) for line in (self.folder / "runs").read_text(encoding="utf-8").splitlines()]


def edit_kubeconfig(operator, change):
    """change(config) edits the operator's kubeconfig, which is replaced as a whole."""
    path = operator.folder / "kubeconfig"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    change(config)
    new = operator.folder / "kubeconfig.new"
    new.write_text(yaml.safe_dump(config), encoding="utf-8")
    operator.user.give(new, 0o600)
    new.rename(path)


def set_user(user):
    def change(config):
        config["users"][0]["user"] = user
    return change


@pytest.fixture
def secured(make_devserver):
    return make_devserver(arguments=["--token", "first-secret"])


@pytest.fixture
def plugin(sandbox, operator):
    return Plugin(sandbox, operator.user)


@pytest.fixture
def configured(secured, operator, handler, plugin):
    """An operator whose credential comes from the plugin; more: members of `exec`."""
    def configured(watches=1, deadline="5m", **more):
        operator.configure(secured, [watch(f"widgets-{number}", handler, id=str(number), deadline=deadline) for number in range(watches)])
        entry = {"apiVersion": EXEC, "interactiveMode": "Never", "command": str(plugin.command), **more}
        edit_kubeconfig(operator, set_user({"exec": {key: value for key, value in entry.items() if value is not None}}))
        return operator

    return configured


def seen(server, name):
    server.api.resource("example.com/v1", "widgets", "default").create(name)


# Plugins

def test_a_plugin_brings_the_token(secured, configured, plugin, handler):
    plugin.prints(token="first-secret")
    operator = configured(provideClusterInfo=True, args=["a"], env=[{"name": "REGION", "value": "north"}])
    operator.start_ready().wait_synced()
    seen(secured, "one")
    handler.wait_finished(name="one")
    info = plugin.runs()[0]
    assert info["apiVersion"] == EXEC and info["spec"]["interactive"] is False
    assert info["spec"]["cluster"]["server"] == secured.url
    operator.wait_for_log("fetching for fetch-token", role="credential")
    operator.stop()
    assert len(plugin.runs()) == 1
    assert (plugin.folder / "descriptors").read_text().split() == ["0", "1", "2", "3"], "3 is the folder that ls reads"


def test_a_401_anywhere_runs_the_plugin_once_for_all(secured, configured, plugin, handler):
    plugin.prints(token="first-secret")
    operator = configured(watches=5)
    operator.start_ready().wait_synced()
    secured.set_token("second-secret")
    plugin.prints(token="second-secret")
    secured.close_watches("cut")
    seen(secured, "one")
    wait_until(lambda: len(handler.requests(name="one")) == 5, "a run for each watch")
    operator.stop()
    assert len(plugin.runs()) == 2


@pytest.mark.slow
def test_a_plugin_is_not_run_as_fast_as_its_token_is_refused(secured, configured, plugin):
    """At once for the first refusal, then after 1 s, 2 s, 4 s, however many watches ask; what is right again is taken."""
    plugin.prints(token="wrong-secret")
    operator = configured(watches=5)
    started = time.monotonic()
    operator.start_ready()
    wait_until(lambda: len(plugin.runs()) >= 5, "five runs")
    assert time.monotonic() - started >= 1 + 2 + 4 - 0.5
    plugin.prints(token="first-secret")
    operator.wait_synced()
    operator.stop()


@pytest.mark.slow
def test_a_credential_is_renewed_before_it_expires(configured, plugin):
    """What expires at once is asked for again and again, but not without a pause."""
    plugin.prints(token="first-secret", expirationTimestamp="2020-01-01T00:00:00Z")
    operator = configured()
    operator.start_ready().wait_synced()
    wait_until(lambda: len(plugin.runs()) >= 3, "three runs")
    operator.stop()


@pytest.mark.slow
def test_a_plugin_that_fails_later_leaves_the_old_credential(secured, configured, plugin, handler):
    plugin.prints(token="first-secret", expirationTimestamp="2020-01-01T00:00:00Z")
    operator = configured()
    operator.start_ready().wait_synced()
    plugin.prints(status=3)
    operator.wait_for_log("the old credential stays in use", role="credential")
    seen(secured, "one")
    handler.wait_finished(name="one")
    plugin.prints(token="first-secret")
    operator.wait_for_log("works again", role="credential")
    operator.stop()


def test_a_plugin_that_fails_at_the_start_is_tried_again(configured, plugin):
    plugin.prints(status=1)
    operator = configured()
    operator.start_ready()
    operator.wait_for_log("there is none yet", role="credential")
    plugin.prints(token="first-secret")
    operator.wait_synced()
    operator.stop()


def test_no_credential_until_the_deadline_is_77(configured, plugin):
    plugin.prints(status=1)
    operator = configured(deadline="1s")
    operator.start()
    operator.wait_exit(expect=77)
    assert "fetch-token" in operator.output.text()


@pytest.mark.parametrize("command, hint", [("/nonexistent/fetch", "install it from there"), ("no-such-plugin", None)])
def test_a_plugin_that_is_not_there_is_a_wrong_configuration(configured, command, hint):
    operator = configured(command=command, installHint=hint)
    operator.start()
    operator.wait_exit(expect=78)
    assert command in operator.output.text() and (hint or "") in operator.output.text()


@pytest.mark.parametrize("printed, said", [({"text": "first-secret"}, "not a JSON object"),
                                           ({"api_version": "client.authentication.k8s.io/v1beta1", "token": "x"},
                                            "not of the apiVersion"), ({}, "neither token nor clientCertificateData")])
def test_what_is_no_credential_is_refused_without_repeating_it(configured, plugin, printed, said):
    plugin.prints(**printed)
    operator = configured()
    operator.start_ready()
    operator.wait_for_log(said, role="credential")
    operator.stop()
    assert "first-secret" not in operator.output.text()


def test_a_plugin_dies_with_the_operator(configured, plugin):
    plugin.command.write_text("#!/bin/sh\nexec sleep 1000\n", encoding="utf-8")
    operator = configured()
    operator.start_ready()
    wait_until(lambda: [found for found in operator.processes() if "sleep" in found.command], "the plugin")
    operator.stop()
    operator.assert_no_processes()


def seccomp(operator):
    with open(f"/proc/{operator.child('credential').pid}/status", encoding="utf-8") as status:
        return next(line.split()[1] for line in status if line.startswith("Seccomp:"))


def test_a_plugin_is_free(configured, plugin):
    """What held for the credential process would hold for somebody else's program as well."""
    text = plugin.command.read_text(encoding="utf-8")
    plugin.command.write_text(text.replace("#!/bin/sh\n", f"#!/bin/sh\ngrep Seccomp: /proc/self/status >{plugin.folder}/seen\n"), encoding="utf-8")
    plugin.prints(token="first-secret")
    operator = configured()
    operator.start_ready().wait_synced()
    assert (plugin.folder / "seen").read_text(encoding="utf-8").split() == ["Seccomp:", "0"] and seccomp(operator) == "0"
    operator.stop()


def test_a_plugin_that_comes_later_needs_a_new_start(secured, operator, handler, plugin):
    """Who needs no plugin has given up the right to run one. The old credential is used as long as it is good; then the
    operator ends, to be started again."""
    operator.configure(secured, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    assert seccomp(operator) == "2"
    plugin.prints(token="second-secret")
    edit_kubeconfig(operator, set_user({"exec": {"apiVersion": EXEC, "interactiveMode": "Never", "command": str(plugin.command)}}))
    seen(secured, "one")
    handler.wait_finished(name="one")
    secured.set_token("second-secret")
    secured.close_watches("cut")
    operator.wait_exit(expect=70)
    assert "needs the plugin" in operator.logs(level="critical")[0]["message"] and not plugin.runs()
    operator.start_ready().wait_synced()
    seen(secured, "two")
    handler.wait_finished(name="two")
    operator.stop()


# Plugins that misbehave

PRINTS = """echo '{"kind":"ExecCredential","apiVersion":"%s","status":{"token":"first-secret"}}'""" % EXEC


def be(plugin, script):
    """What the plugin is from now on, in its own folder."""
    new = plugin.folder / "new"
    new.write_text(f"#!/bin/sh\ncd {plugin.folder}\n{script}\n", encoding="utf-8")
    new.chmod(0o755)
    new.rename(plugin.command)


def memory_kib(process):
    with open(f"/proc/{process.pid}/smaps_rollup", encoding="utf-8") as rollup:
        return next(int(line.split()[1]) for line in rollup if line.startswith("Anonymous:"))


def sleepers(operator):
    return [found for found in operator.processes() if "sleep" in found.command]


def test_a_plugin_sees_nothing_that_is_ours(configured, plugin):
    """It has the operator's environment, as kubectl's plugins have the user's; but nothing by which it could speak for the
    operator, and no credential."""
    be(plugin, f"env >seen\n{PRINTS}")
    plugin.user.give(plugin.folder, 0o755)
    operator = configured()
    operator.start_ready().wait_synced()
    seen_there = (plugin.folder / "seen").read_text(encoding="utf-8")
    operator.stop()
    names = {line.split("=")[0] for line in seen_there.splitlines()}
    assert {"PATH", "KUBERNETES_EXEC_INFO"} <= names
    assert not names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
    assert "first-secret" not in seen_there


@pytest.mark.slow
def test_a_plugin_that_writes_without_end_is_bounded(configured, plugin):
    """A gigabyte on standard output, and as many lines as it likes on standard error."""
    be(plugin, "yes 'a chatty plugin' | head -n 200000 >&2 &\nhead -c 1G /dev/zero; wait; touch over\n" + PRINTS)
    operator = configured()
    operator.start_ready()
    worst = 0

    def over():
        nonlocal worst
        worst = max(worst, memory_kib(operator.child("credential")))
        return (plugin.folder / "over").exists()

    wait_until(over, "the end of what it writes", 50)
    operator.wait_for_log("its output is larger than a credential", role="credential")
    operator.wait_for_log("more lines of output were not logged", role="credential")
    assert (SANITIZED or worst < 16 * 1024) and len(operator.logs(lambda record: "a chatty plugin" in record["message"])) <= 1000
    be(plugin, PRINTS)
    operator.wait_synced()
    operator.stop()


def test_what_a_plugin_leaves_behind_is_ended(configured, plugin):
    """Processes that have left its session, whether they hold its outputs or not."""
    be(plugin, "setsid sleep 1001 >/dev/null 2>&1 &\nsetsid sleep 1002 &\n" + PRINTS)
    operator = configured()
    operator.start_ready().wait_synced()
    wait_until(lambda: not sleepers(operator), "their end")
    operator.stop()


@pytest.mark.long
def test_a_plugin_that_hangs_is_killed_with_all_it_started(configured, plugin):
    """After a minute, though it ignores SIGTERM; meanwhile no heartbeat is missed."""
    be(plugin, "trap '' TERM\nsetsid sleep 1003 &\nwhile :; do sleep 1004; done")
    operator = configured()
    operator.start_ready()
    operator.wait_for_log("it did not end within a minute", role="credential", deadline=90)
    be(plugin, PRINTS)
    operator.wait_synced()
    wait_until(lambda: not sleepers(operator), "their end")
    operator.stop()


# Files

def test_a_token_file_is_read_again_when_it_is_refused(secured, operator, handler, sandbox):
    token = operator.folder / "token"

    def write(text):
        new = operator.folder / "token.new"
        new.write_text(text + "\n", encoding="utf-8")
        operator.user.give(new, 0o600)
        new.rename(token)

    operator.configure(secured, [watch("widgets", handler)])
    edit_kubeconfig(operator, set_user({"tokenFile": "token"}))
    write("first-secret")
    operator.start_ready().wait_synced()
    secured.set_token("second-secret")
    write("second-secret")
    secured.close_watches("cut")
    seen(secured, "one")
    handler.wait_finished(name="one")
    operator.stop()


def test_an_authority_that_is_rotated(make_devserver, operator, handler):
    server = make_devserver(arguments=["--tls"])
    operator.configure(server, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    server.new_certificate("new")
    operator.wait_for_log("certificate", role="supervisor")
    operator.kubeconfig_for(server)
    seen(server, "one")
    handler.wait_finished(name="one")
    operator.stop()


def test_in_cluster(make_devserver, operator, handler, sandbox):
    server = make_devserver(arguments=["--tls", "--token", "first-secret"])
    config = yaml.safe_load(server.kubeconfig.read_text(encoding="utf-8"))
    account = sandbox.subfolder("account", operator.user)
    for name, content in (("token", "first-secret\n"), ("namespace", "default"), ("ca.crt", base64.b64decode(
            config["clusters"][0]["cluster"]["certificate-authority-data"]).decode())):
        (account / name).write_text(content, encoding="utf-8")
        operator.user.give(account / name, 0o600)
    host, port = server.url.split("//")[1].split(":")
    operator.environment.update(KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT=port,
                                RECONCILED_SERVICE_ACCOUNT_FOLDER=account)
    operator.configure(None, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    assert "the pod's service account" in operator.ctl.status()["identity"]
    operator.stop()


# Who we are

def test_impersonation_goes_with_every_request(secured, operator, handler):
    operator.configure(secured, [watch("widgets", handler)])
    edit_kubeconfig(operator, set_user({"token": "first-secret", "as": "robot", "as-uid": "u-1", "as-groups": ["g"],
                                        "as-user-extra": {"team/name": ["x"]}}))
    handler.answer({"status": {"seen": True}})
    operator.start_ready().wait_synced()
    seen(secured, "one")
    wait_until(lambda: secured.requests(lambda request: request.get("verb") == "patch"), "the handler's status")
    operator.stop()
    requests = secured.requests(lambda request: request.get("user_agent", "").startswith("reconciled/"))
    assert requests and all(
        request.get("Impersonate-User") == "robot" and request.get("Impersonate-Uid") == "u-1"
        and request.get("Impersonate-Group") == "g" and request.get("Impersonate-Extra-team%2Fname") == "x"
        for request in requests), requests


def test_check_says_who_would_go_where(secured, operator, handler, plugin):
    operator.configure(secured, [watch("widgets", handler)])
    edit_kubeconfig(operator, set_user({"exec": {"apiVersion": EXEC, "interactiveMode": "Never", "as": "x",
                                                 "command": str(plugin.command)}, "as": "robot"}))
    result = operator.ctl.check(operator.config_file)
    assert result.returncode == 0, result.stdout + result.stderr
    assert secured.url in result.stdout and "fetch-token" in result.stdout and "as robot" in result.stdout
    assert plugin.runs() == []


# A server's wish

@pytest.mark.slow
def test_retry_after_binds_every_process(make_devserver, operator, handler):
    """The watch is told to wait: the worker's write waits as well."""
    server = make_devserver()
    handler.behave(f"""{handler.held}; echo '{{"status": {{"seen": true}}}}'""")
    operator.configure(server, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    seen(server, "one")
    handler.wait_for(name="one")
    server.fault({"verb": "watch", "resource": "widgets"}, status=429, retryAfter=2, body="too many requests")
    server.close_watches("cut", {"resource": "widgets"})
    refused = wait_until(lambda: server.requests(lambda request: request["status"] == 429), "the refusal")[0]
    wait_until(lambda: operator.ctl.status()["heldBack"], "that all know")
    handler.let_go()
    wrote = wait_until(lambda: server.requests(lambda request: request.get("verb") == "patch"), "the write")[0]
    assert wrote["time"] - refused["time"] >= 1.9
    operator.stop()


WISHES = {
    "a Status": {"status": 429, "retryAfter": 3600},
    "text": {"status": 429, "retryAfter": 3600, "body": "busy"},
    "unavailable": {"status": 503, "retryAfter": 3600},
    "unavailable, in text": {"status": 503, "retryAfter": 3600, "body": "busy"},
    "an event": {"error": {"kind": "Status", "code": 503, "details": {"retryAfterSeconds": 3600}}},
}


@pytest.mark.parametrize("wish", WISHES)
def test_retry_after_of_one_resource_binds_that_alone(make_devserver, operator, handler, wish):
    """An hour for ConfigMaps: widgets are written all the same, whoever stands before the server that says so."""
    server = make_devserver()
    handler.answer({"status": {"seen": True}})
    operator.configure(server, [watch("widgets", handler), watch("maps", handler, api_version="v1", kind="ConfigMap")])
    operator.start_ready().wait_synced()
    server.fault({"verb": "watch", "resource": "configmaps"}, **WISHES[wish], times=0)
    server.close_watches("cut", {"resource": "configmaps"})
    held = wait_until(lambda: operator.ctl.status()["heldBack"], "that all know")
    assert [each["resource"] for each in held] == ["/configmaps"]
    seen(server, "one")
    wait_until(lambda: server.requests(lambda request: request.get("verb") == "patch"), "the write")
    operator.stop()
    [told] = operator.logs(message_id=MESSAGE_ID["HELD_BACK"])
    assert "with requests for configmaps (Retry-After): " in told["message"]


def test_retry_after_for_a_group_binds_that_alone(make_devserver, operator, handler):
    """Who cannot even be asked what it serves."""
    server = make_devserver()
    server.fault({"path": "/api/v1"}, status=503, retryAfter=3600, body="busy", times=0)
    handler.answer({"status": {"seen": True}})
    maps = watch("maps", handler, api_version="v1", kind="ConfigMap", onDeadline="isolate")
    operator.configure(server, [watch("widgets", handler), maps])
    operator.start()
    seen(server, "one")
    wait_until(lambda: server.requests(lambda request: request.get("verb") == "patch"), "the write")
    held = wait_until(lambda: operator.ctl.status()["heldBack"], "that it is known")
    assert [each["resource"] for each in held] == ["/v1"]
    assert len(server.requests(lambda request: request["status"] == 503)) == 1
    operator.stop()


# Secrets

def test_no_secret_is_seen_anywhere(secured, configured, plugin, handler):
    plugin.prints(token="first-secret")
    operator = configured()
    handler.behave("env >&2; cat /proc/$PPID/environ >&2 || true; exit 1")
    operator.start_ready().wait_synced()
    seen(secured, "one")
    handler.wait_finished(name="one")
    for found in operator.processes():
        assert "first-secret" not in " ".join(found.command)
        assert "first-secret" not in json.dumps(found.environment())
    said = operator.ctl.run("status", "--json").stdout
    operator.stop()
    assert "first-secret" not in operator.output.text() + said
    for folder in (operator.state_directory, operator.runtime_directory):
        for path, _, names in os.walk(folder):
            for name in (name for name in names if os.path.isfile(os.path.join(path, name))):
                with open(os.path.join(path, name), "rb") as file:
                    assert b"first-secret" not in file.read(), name
