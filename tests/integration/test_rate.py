# SPDX-License-Identifier: Apache-2.0
"""`handler.rate`: how often a handler runs, over all workers; what may not run yet waits in the queue."""
import json
import re
import time

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway

SLOW = {"perSecond": 0.001, "burst": 3}


@pytest.fixture
def start(devserver, operator, handler, free_port):
    def start(rate, *more, **options):
        operator.configure(devserver, [watch("widgets", handler, handler_options={"rate": rate}, **options), *more], workers=4,
                           gateway={"listen": f"127.0.0.1:{free_port}"}, heartbeat={"interval": "100ms", "deadline": "20s"})
        operator.gateway = Gateway(free_port)
        return operator.start_ready().wait_synced()

    return start


def create(widgets, count):
    for number in range(count):
        widgets.create(f"w{number}")


def waiting(operator):
    return operator.ctl.status()["watches"][0].get("rateWaiting")


def test_what_waits_is_seen_and_a_reload_lets_it_go(start, operator, devserver, handler, widgets, api, make_handler):
    other = make_handler()
    start(SLOW, watch("maps", other, api_version="v1", kind="ConfigMap"))
    create(widgets, 8)
    wait_until(lambda: waiting(operator) == 5 and handler.count() == 3,
               lambda: f"the burst and no more: {operator.ctl.status()['watches'][0]}")
    api.resource("v1", "configmaps", "default").create("free")
    other.wait_finished(name="free")
    ran = {request.name for request in handler.requests()}
    [held, *_] = sorted({f"w{number}" for number in range(8)} - ran)
    said = json.loads(operator.ctl.run("explain", "--json", "widgets", f"default/{held}").stdout)
    assert re.search(r"it waits for the rate of its handler \(handler.rate\) \(added\), for .*, and the next one may run in 1[56]m",
                     said["conclusion"]), said
    assert 900e6 < said["queue"]["rateIn"] <= 1000e6
    for verb in ("top", "status"):
        assert "5 wait for the rate of its handler (handler.rate)" in operator.ctl.run(verb).stdout
    operator.gateway.wait('reconciled_queue_rate_waiting{watch="widgets"}', 5)
    assert operator.ctl.run("retry", "widgets", f"default/{min(ran)}").returncode == 0
    assert handler.count() == 3, "also by hand"
    operator.configure(devserver, [watch("widgets", handler, handler_options={"rate": {"perSecond": 100}})], workers=4)
    operator.reload()
    wait_until(lambda: {request.name for request in handler.requests()} >= {f"w{number}" for number in range(8)}, "all of them")
    operator.stop()


def test_as_often_as_it_may_over_all_workers(start, operator, handler, widgets):
    """Each run notes when it began."""
    handler.behave('date +%s%N >>"${0%/*}/began"')
    start({"perSecond": 5, "burst": 2})
    create(widgets, 12)
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] >= 12, "all")
    operator.gateway.wait('reconciled_queue_rate_waiting{watch="widgets"}', 0)
    metrics = operator.gateway.metrics()
    assert float(metrics['reconciled_rate_waited_runs_total{watch="widgets"}']) >= 9
    assert float(metrics['reconciled_rate_waited_seconds_total{watch="widgets"}']) > 5
    operator.stop()
    began = sorted(int(line) for line in (handler.folder / "began").read_text().split())
    assert len(began) == 12 and began[-1] - began[0] >= 1.8e9, "ten of them wait for 200 ms each, but for what a start takes"


def test_a_run_without_its_handler_uses_nothing_up(start, operator, handler, widgets):
    """Its finalizer alone is put on again, and a run that finds nothing to do."""
    start({"perSecond": 0.001, "burst": 2}, finalizer=True)
    widgets.create("a")
    handler.wait_finished(name="a")
    for _ in range(3):
        widgets.merge_patch("a", {"metadata": {"finalizers": None}})
        wait_until(lambda: widgets.get("a")["metadata"].get("finalizers"), "its finalizer")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_finished(name="a", count=2)
    operator.stop()


def test_many_that_wait_cost_no_processor_time(start, operator, widgets, devserver):
    start(SLOW)
    create(widgets, 300)
    wait_until(lambda: waiting(operator) == 297, "the rest to wait")

    def used():
        return float(operator.gateway.metrics()['reconciled_process_cpu_seconds_total{role="supervisor",name="0"}'])

    before, began = used(), time.monotonic()
    wait_until(lambda: time.monotonic() - began > 2, "two seconds")
    assert used() - before < 0.5, "a supervisor that looked for work all the time would take two"
    operator.stop()
