# SPDX-License-Identifier: Apache-2.0
"""Health and metrics over HTTP."""
import http.client
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway
from harness.setup import SOURCE

METRIC = re.compile(r"\b((?:workqueue|controller_runtime|rest_client|reconciled)_[a-z_]+)")


@pytest.fixture
def configured(devserver, operator, handler, free_port):
    operator.configure(devserver, [watch("widgets", handler)], workers=1, gateway={"listen": f"127.0.0.1:{free_port}"},
                       heartbeat={"interval": "100ms", "deadline": "5s"})
    operator.gateway = Gateway(free_port)
    return operator


def test_health_and_readiness(configured):
    configured.start_ready()
    assert configured.gateway.get("/healthz")[0] in (200, 503)  # 503 until the first word of the supervisor
    wait_until(lambda: configured.gateway.get("/readyz")[0] == 200, "readiness")
    assert configured.gateway.get("/healthz")[::2] == (200, "ok\n")
    assert configured.gateway.get("/nothing")[0] == 404
    assert configured.gateway.get("/healthz", method="POST")[0] == 405


def test_alive_but_not_ready_while_the_server_is_away(configured, devserver):
    devserver.suspend()
    configured.start_ready()
    wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "being alive")
    wait_until(lambda: "widgets is not in sync" in configured.gateway.get("/readyz")[2], "the reason")
    assert configured.gateway.get("/readyz")[0] == 503
    devserver.resume()
    wait_until(lambda: configured.gateway.get("/readyz")[0] == 200, "readiness")


@pytest.mark.slow
def test_a_silent_supervisor_is_not_healthy(configured):
    configured.start_ready()
    wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "being alive")
    os.kill(configured.pid, signal.SIGSTOP)
    try:
        wait_until(lambda: configured.gateway.get("/healthz")[0] == 503, "the silence to be noticed")
        assert "silent" in configured.gateway.get("/healthz")[2]
        assert configured.gateway.get("/metrics")[0] == 503
    finally:
        os.kill(configured.pid, signal.SIGCONT)
    wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "being alive again")


def test_metrics(configured, widgets, make_handler, handler):
    configured.start_ready().wait_synced()
    widgets.create("a", spec={})
    widgets.create("b", spec={})
    gateway = configured.gateway
    gateway.wait('workqueue_adds_total{name="widgets"}', 2)
    gateway.wait('controller_runtime_reconcile_total{controller="widgets",result="success"}', 2)
    found = gateway.metrics()
    assert found['workqueue_depth{name="widgets"}'] == "0"
    assert found['workqueue_work_duration_seconds_count{name="widgets"}'] == "2"
    assert found['workqueue_work_duration_seconds_bucket{name="widgets",le="+Inf"}'] == "2"
    assert float(found['workqueue_work_duration_seconds_sum{name="widgets"}']) > 0
    assert found['workqueue_queue_duration_seconds_count{name="widgets"}'] == "2"
    assert found['reconciled_watch_synced{watch="widgets"}'] == "1"
    gateway.wait('reconciled_watch_objects{watch="widgets"}', 2)
    wait_until(lambda: float(gateway.metrics()['reconciled_watch_events_total{watch="widgets"}']) >= 2, "events")
    wait_until(lambda: float(gateway.metrics()['rest_client_requests_total{code="2xx"}']) >= 2, "requests")
    for role, name in (("supervisor", 0), ("watcher", "widgets"), ("worker", 0), ("credential", 0), ("gateway", 0)):
        sample = f'reconciled_process_resident_memory_bytes{{role="{role}",name="{name}"}}'
        wait_until(lambda s=sample: float(gateway.metrics()[s]) > 500_000, sample)


@pytest.mark.slow
def test_what_a_watch_goes_through_is_counted(configured, devserver):
    configured.start_ready().wait_synced()

    def value(name):
        return float(configured.gateway.metrics()[f'reconciled_watch_{name}{{watch="widgets"}}'])

    wait_until(lambda: value("lists_total") == 1, "the first list")
    assert value("reconnects_total") == value("relists_total") == value("lag_seconds") == 0
    devserver.close_watches("clean")
    wait_until(lambda: value("reconnects_total") >= 1, "a watch that was begun anew")
    assert value("relists_total") == 0
    devserver.fault(match={"verb": "watch", "resource": "widgets"}, times=1, status=410, reason="Expired", message="too old")
    devserver.close_watches("clean")
    wait_until(lambda: value("relists_total") >= 1, "a list after the first")
    devserver.fault(match={"resource": "widgets"}, times=0, status=503, reason="ServiceUnavailable", message="not now")
    devserver.close_watches("clean")
    wait_until(lambda: value("lag_seconds") > 0, "a watch that does not work")
    devserver.clear_faults()
    wait_until(lambda: value("lag_seconds") == 0, "a watch that works again")


def test_failures_are_counted(devserver, operator, make_handler, free_port, widgets):
    operator.configure(devserver, [watch("widgets", make_handler("exit 75"), retry={"first": "1h", "max": "1h"})],
                       gateway={"listen": f"127.0.0.1:{free_port}"}, heartbeat={"interval": "100ms", "deadline": "30s"})
    operator.start_ready()
    widgets.create("a", spec={})
    gateway = Gateway(free_port)
    wait_until(lambda: gateway.metrics(), "metrics")
    gateway.wait('controller_runtime_reconcile_total{controller="widgets",result="error"}', 1)
    gateway.wait('controller_runtime_reconcile_errors_total{controller="widgets"}', 1)
    gateway.wait('workqueue_retries_total{name="widgets"}', 1)


def check_openmetrics(text):
    """The rules of the format that scrapers insist on."""
    assert text.endswith("# EOF\n")
    types, current = {}, None
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split(" ")
            assert current not in types, f"two families {current}"
            types[current] = kind
        elif not line.startswith("#"):
            match = re.fullmatch(r'([a-z_]+)(\{[a-zA-Z_]+="[^"\\]*"(,[a-zA-Z_]+="[^"\\]*")*\})? [0-9.]+', line)
            assert match, line
            suffixes = {"counter": ["_total"], "gauge": [""], "histogram": ["_bucket", "_count", "_sum"]}[types[current]]
            assert match.group(1) in [current + suffix for suffix in suffixes], line


def test_the_format(configured):
    configured.start_ready().wait_synced()
    wait_until(lambda: configured.gateway.metrics(), "metrics")
    status, headers, text = configured.gateway.get("/metrics", {"Accept": "application/openmetrics-text;version=1.0.0,*/*"})
    assert status == 200 and headers["Content-Type"].startswith("application/openmetrics-text")
    check_openmetrics(text)
    assert configured.gateway.get("/metrics")[1]["Content-Type"].startswith("text/plain; version=0.0.4")


def test_a_token_is_asked_for(devserver, operator, handler, free_port):
    token = operator.folder / "token"
    token.write_text("secret\n", encoding="utf-8")
    operator.user.give(token, 0o600)
    operator.configure(devserver, [watch("widgets", handler)], heartbeat={"interval": "100ms", "deadline": "30s"},
                       gateway={"listen": f"127.0.0.1:{free_port}", "tokenFile": str(token)})
    operator.start_ready()
    gateway = Gateway(free_port)
    wait_until(lambda: gateway.get("/healthz")[0] == 200, "being alive, for which no token is needed")
    assert gateway.get("/metrics")[0] == 401
    assert gateway.get("/metrics", {"Authorization": "Bearer secretly"})[0] == 401
    assert gateway.get("/metrics", {"Authorization": "Bearer secret"})[0] == 200
    token.write_text("another", encoding="utf-8")
    assert gateway.get("/metrics", {"Authorization": "Bearer secret"})[0] == 401
    assert gateway.get("/metrics", {"Authorization": "Bearer another"})[0] == 200
    token.write_text("", encoding="utf-8")
    assert gateway.get("/metrics", {"Authorization": "Bearer "})[0] == 401


def test_unix_socket(devserver, operator, handler):
    path = operator.runtime_directory / "gateway.sock"
    operator.configure(devserver, [watch("widgets", handler)], gateway={"listen": f"unix:{path}"},
                       heartbeat={"interval": "100ms", "deadline": "30s"})
    operator.start_ready()
    wait_until(lambda: Gateway(path).get("/readyz")[0] == 200, "readiness")
    operator.stop()
    assert not path.exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
@pytest.mark.slow
def test_its_death_is_the_operators(configured, number):
    configured.start_ready()
    configured.child("gateway").kill(number)
    configured.wait_exit(expect=70)
    configured.assert_no_processes()


def test_a_taken_port_is_told(devserver, operator, handler):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        operator.configure(devserver, [watch("widgets", handler)], gateway={"listen": listen})
        operator.start()
        operator.wait_exit(expect=70)
    assert f"gateway.listen: {listen}: Address already in use" in operator.output.text()


THIEF = """
import socket, sys
OPTIONS = [[socket.SO_REUSEADDR], [socket.SO_REUSEPORT], [socket.SO_REUSEADDR, socket.SO_REUSEPORT]]
while True:
    for options in OPTIONS:
        with socket.socket() as thief:
            for option in options:
                thief.setsockopt(socket.SOL_SOCKET, option, 1)
            try:
                thief.bind(("127.0.0.1", int(sys.argv[1])))
                thief.listen()
            except OSError:
                continue
            print("taken", flush=True)
            sys.stdin.read()
"""


def test_another_user_does_not_get_the_port_between_two_lives(configured, devserver, handler, free_port):
    configured.start_ready()
    with subprocess.Popen(["/usr/bin/python3", "-c", THIEF, str(free_port)], user=65534, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as thief:
        try:
            for resync in ("1h", "2h", "3h"):
                wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "its gateway")
                with socket.create_connection(("127.0.0.1", free_port)):  # what the end of a life leaves of it is nobody's either
                    configured.configure(devserver, [watch("widgets", handler, resync=resync)], workers=1,
                                         gateway={"listen": f"127.0.0.1:{free_port}"})
                    configured.reload()
                    wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "its gateway")
        finally:
            thief.kill()
        assert thief.stdout.read() == ""


def scrape(port):
    """As Prometheus does, which leaves the connection open."""
    scraper = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    scraper.request("GET", "/metrics")
    scraper.getresponse().read()
    return scraper


@pytest.mark.parametrize("stays", [True, False])
def test_it_has_its_port_again_at_once_after_a_scrape(configured, free_port, stays):
    configured.start_ready()
    wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "its gateway")
    scraper = scrape(free_port)
    configured.stop()
    try:
        if not stays:
            scraper.close()
        configured.start_ready()
        wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "its gateway")
    finally:
        scraper.close()


def test_two_operators_of_one_user_do_not_share_a_port(configured, make_operator, devserver, handler, free_port):
    configured.start_ready()
    other = make_operator()
    other.configure(devserver, [watch("widgets", handler)], operator="other.example.com",
                    gateway={"listen": f"127.0.0.1:{free_port}"})
    other.user = configured.user
    for path in (other.folder, other.config_file, other.folder / "kubeconfig", other.state_directory, other.runtime_directory):
        other.user.give(path, 0o700)
    other.start()
    other.wait_exit(expect=70)
    assert "Address already in use" in other.output.text()


@pytest.mark.parametrize("listen", ["9464", "127.0.0.1", "127.0.0.1:http", "127.0.0.1:70000", "unix:relative"])
def test_a_wrong_address_is_a_mistake_of_the_configuration(devserver, operator, handler, listen):
    operator.configure(devserver, [watch("widgets", handler)], gateway={"listen": listen})
    operator.start()
    operator.wait_exit(expect=78)
    assert "gateway.listen" in operator.output.text()


@pytest.mark.plain_only("a sanitized gateway may fork")
def test_it_runs_no_programs(configured, sandbox):
    configured.start_ready()
    status = open(f"/proc/{configured.child('gateway').pid}/status", encoding="utf-8").read()
    assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status


def test_many_slow_clients_do_not_stop_it(configured):
    configured.start_ready()
    wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "being alive")
    slow = [socket.create_connection(("127.0.0.1", configured.gateway.address)) for _ in range(100)]
    try:
        for client in slow:
            try:
                client.sendall(b"GET /metrics HT")
            except OSError:
                pass
    finally:
        for client in slow:
            client.close()
    wait_until(lambda: configured.gateway.get("/healthz")[0] == 200, "an answer")


def test_the_dashboard_and_the_manual_know_the_metrics(configured):
    configured.start_ready().wait_synced()
    wait_until(lambda: configured.gateway.metrics(), "metrics")
    text = configured.gateway.get("/metrics")[2]
    families = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    known = families | {f"{family}{suffix}" for family in families for suffix in ("_total", "_bucket", "_count", "_sum")}
    dashboard = json.loads((SOURCE / "deploy" / "grafana-dashboard.json").read_text(encoding="utf-8"))
    asked = {name for panel in dashboard["panels"] for target in panel["targets"]
             for name in re.findall(METRIC, target["expr"])}
    assert asked and asked <= known, asked - known
    manual = (SOURCE / "docs" / "metrics.md").read_text(encoding="utf-8")
    told = set(re.findall(r"`(_?[a-z_]+)`", manual))
    alerts = set(re.findall(METRIC, manual.split("## Worth an alert")[1]))
    assert alerts <= known | told, alerts - known - told
    assert "reconciled_watch_refused_namespaces" in asked & alerts
    for family in families:
        assert {family, family + "_total", "_" + family.split("reconciled_watch_")[-1] + "_total"} & told, family
    results = set(re.findall(r'^reconciled_runs_total{.*result="([a-z]+)"', text, re.M))
    [row] = [line for line in manual.splitlines() if line.startswith("| `reconciled_runs_total`")]
    promised = row.split("|")[3].replace("(see below)", "")
    assert results == set(re.findall(r"[a-z]+", promised)), results
