# SPDX-License-Identifier: Apache-2.0
"""`metrics` of an answer: the operator shows them beside its own, bounded, whatever a handler says."""
import json

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID


@pytest.fixture
def start(devserver, operator, handler, free_port):
    def start(*more, **options):
        operator.configure(devserver, [watch("widgets", handler, **options), *more], gateway={"listen": f"127.0.0.1:{free_port}"},
                           heartbeat={"interval": "100ms", "deadline": "20s"})
        operator.gateway = Gateway(free_port)
        return operator.start_ready().wait_synced()

    return start


def run(handler, widgets, name, *metrics, **more):
    handler.answer({"metrics": list(metrics), **more})
    widgets.create(name)
    handler.wait_finished(name=name)


def metric(action, name, value=1, **more):
    return {"name": name, "action": action, "value": value, **more}


def shown(operator, sample):
    return operator.gateway.metrics().get(sample)


def wait_shown(operator, sample, value):
    wait_until(lambda: shown(operator, sample) == value, lambda: f"{sample} to be {value}, not {shown(operator, sample)}")


def test_each_action_also_after_a_reload(start, operator, devserver, handler, widgets):
    start()
    run(handler, widgets, "a", metric("set", "widget_size", 3, labels={"zone": "b", "name": "a"}), metric("add", "widget_calls", 2),
        metric("observe", "widget_age", 0.3), metric("observe", "widget_bytes", 70, buckets=[50, 100]))
    run(handler, widgets, "b", metric("set", "widget_size", 4.5, labels={"name": "a", "zone": "b"}), metric("add", "widget_calls_total"),
        metric("observe", "widget_bytes", 700), metric("set", "widget_gone"))
    wait_shown(operator, 'widget_size{watch="widgets",name="a",zone="b"}', "4.5")
    wait_shown(operator, 'widget_calls_total{watch="widgets"}', "3")
    samples = operator.gateway.metrics()
    assert [samples[f'widget_bytes_bucket{{watch="widgets",le="{bound}"}}'] for bound in ("50", "100", "+Inf")] == ["0", "1", "2"]
    assert (samples['widget_bytes_sum{watch="widgets"}'], samples['widget_bytes_count{watch="widgets"}']) == ("770", "2")
    assert samples['widget_age_bucket{watch="widgets",le="0.25"}'] == "0" and samples['widget_age_bucket{watch="widgets",le="0.5"}'] == "1"
    text = operator.gateway.get("/metrics")[2]
    for line in ("# TYPE widget_size gauge", "# TYPE widget_calls counter", "# TYPE widget_bytes histogram"):
        assert text.count(line + "\n") == 1
    assert text.endswith("# EOF\n")
    run(handler, widgets, "c", {"name": "widget_gone", "action": "remove"})
    wait_shown(operator, 'widget_gone{watch="widgets"}', None)
    operator.configure(devserver, [watch("widgets", handler, resync="1h")], gateway={"listen": f"127.0.0.1:{operator.gateway.address}"},
                       heartbeat={"interval": "100ms", "deadline": "20s"})
    operator.reload()
    wait_shown(operator, 'widget_size{watch="widgets",name="a",zone="b"}', "4.5")
    operator.stop()


def test_a_failure_counts_and_a_wrong_metric_fails_the_run(start, operator, handler, widgets):
    start(retry={"first": "1h", "max": "1h"})
    run(handler, widgets, "a", metric("add", "widget_failures"), error="no luck")
    wait_shown(operator, 'widget_failures_total{watch="widgets"}', "1")
    run(handler, widgets, "b", metric("add", "widget_calls"), metric("set", "reconciled_starts", 9))
    operator.wait_for_log("the handler's answer: metrics[1].name: begins as the operator's own metrics do", key="default/b")
    assert shown(operator, "reconciled_starts_total") == "1" and shown(operator, 'widget_calls_total{watch="widgets"}') is None
    operator.stop()


def test_labels_of_strangers(start, operator, handler, widgets):
    start()
    run(handler, widgets, "a", metric("set", "widget_size", labels={"text": 'x\n"y"\\\r} 1\nreconciled_starts_total 99\n# EOF'}))
    wait_until(lambda: "\nwidget_size{" in operator.gateway.get("/metrics")[2], "the metric")
    text = operator.gateway.get("/metrics")[2]
    [line] = [line for line in text.split("\n") if line.startswith("widget_size{")]
    assert line.endswith('\\n# EOF"} 1') and text.count("\n# EOF") == 1
    assert [line for line in text.split("\n") if line.startswith("reconciled_starts_total")] == ["reconciled_starts_total 1"]
    operator.stop()


def test_a_name_with_two_actions_is_dropped_and_told_once(start, operator, handler, widgets, make_handler):
    other = make_handler()
    start(watch("maps", other, api_version="v1", kind="ConfigMap"))
    run(handler, widgets, "a", metric("set", "widget_size", 3))
    for name in "bc":
        run(handler, widgets, name, metric("add", "widget_size", 1), metric("add", "widget_calls"))
    wait_shown(operator, 'widget_calls_total{watch="widgets"}', "2")
    wait_shown(operator, 'reconciled_handler_metrics_dropped_total{watch="widgets",reason="clash"}', "2")
    assert shown(operator, 'widget_size{watch="widgets"}') == "3"
    [told] = operator.logs(message_id=MESSAGE_ID["METRIC_DROPPED"])
    assert "the metric widget_size of the handler of watch widgets is dropped (add): another action" in told["message"]
    assert "2 metrics of its handler were dropped (see the log)" in operator.ctl.run("status").stdout
    assert operator.ctl.status()["watches"][0]["succeeded"] == 3, "no run fails for that"
    operator.stop()


@pytest.mark.slow
def test_a_series_for_each_run_harms_nobody(start, operator, handler, widgets):
    """Twelve thousand."""
    handler.behave("""i=0; echo '{"metrics": ['; while [ $i -lt 99 ]; do
echo "{\\"name\\": \\"widget_size\\", \\"action\\": \\"set\\", \\"value\\": $i, \\"labels\\": {\\"of\\": \\"$RECONCILED_NAME-$i\\"}},"
i=$((i + 1)); done; echo '{"name": "widget_calls", "action": "add", "value": 1}]}'""")
    start()
    for number in range(122):
        widgets.create(f"w{number}")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 122, "all runs")
    wait_shown(operator, "reconciled_handler_metric_samples", "10000")
    wait_shown(operator, 'reconciled_handler_metrics_dropped_total{watch="widgets",reason="too_many"}', str(122 * 99 + 1 - 10000))
    assert len(operator.logs(message_id=MESSAGE_ID["METRIC_DROPPED"])) == 1
    assert operator.gateway.get("/healthz")[0] == 200
    operator.stop()


@pytest.mark.slow
def test_a_watch_takes_no_place_of_another(start, operator, handler, widgets, make_handler, api):
    """Eleven thousand samples of one watch, and then a name of another."""
    handler.behave("""i=0; echo '{"metrics": ['; while [ $i -lt 99 ]; do
echo "{\\"name\\": \\"widget_size\\", \\"action\\": \\"set\\", \\"value\\": $i, \\"labels\\": {\\"of\\": \\"$RECONCILED_NAME-$i\\"}},"
i=$((i + 1)); done; echo '{"name": "widget_calls", "action": "add", "value": 1}]}'""")
    other = make_handler()
    other.answer({"metrics": [metric("add", "maps_checked")]})
    start(watch("maps", other, api_version="v1", kind="ConfigMap"))
    for number in range(111):
        widgets.create(f"w{number}")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 111, "all runs")
    api.resource("v1", "configmaps", "default").create("innocent")
    wait_shown(operator, 'maps_checked_total{watch="maps"}', "1")
    wait_shown(operator, "reconciled_handler_metric_samples", "5001")
    [told] = operator.logs(message_id=MESSAGE_ID["METRIC_DROPPED"])
    assert "as many names or samples as it may (100 names, 5000 samples)" in told["message"]
    operator.stop()


def test_a_run_by_hand_shows_them(operator, devserver, handler, sandbox):
    handler.answer({"metrics": [metric("set", "widget_size", 3)]})
    operator.configure(devserver, [watch("widgets", handler)])
    thing = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}
    path = sandbox.subfolder("by-hand", operator.user) / "object.json"
    path.write_text(json.dumps(thing), encoding="utf-8")
    done = operator.ctl.run("run", "--config", operator.config_file, "--object", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"name":"widget_size"' in done.stdout.replace(" ", "") and "success" in done.stdout
