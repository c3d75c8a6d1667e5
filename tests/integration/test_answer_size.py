# SPDX-License-Identifier: Apache-2.0
"""An answer below 1 MiB may hold many small things. None of them holds up the worker: others are served meanwhile."""
import json

import pytest

from harness import wait_until, watch

MANY = 20000


def config_map(number):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"c{number}"}}


REFUSED = {
    "conditions": ([{"type": f"T{number}", "status": "True"} for number in range(25000)], "conditions: more than 100"),
    "events": ([{"reason": f"R{number}"} for number in range(MANY)], "events[100]: at most 100 are accepted"),
    "children": ([config_map(number) for number in range(12000)], "children: more than 1000"),
}
ACCEPTED = {
    "status": {f"k{number}": number for number in range(MANY)},
    "patch": {"spec": {f"k{number}": number for number in range(MANY)}},
    "children": [{**config_map(0), "data": {f"k{number}": "" for number in range(MANY)}}],
}


def start(devserver, operator, handler, widgets, answer):
    path = handler.folder / "answer"
    path.write_text(json.dumps(answer), encoding="utf-8")
    assert path.stat().st_size < 1 << 20
    path.chmod(0o644)
    handler.behave(f'[ "$RECONCILED_NAME" != big ] || cat {path}')
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("big")


def serves_others(operator, handler, widgets):
    widgets.create("other")
    handler.wait_finished(name="other")
    assert operator.popen.poll() is None
    operator.stop()


@pytest.mark.parametrize("key", REFUSED)
def test_too_many_are_refused(devserver, operator, handler, widgets, key):
    answer, message = REFUSED[key]
    start(devserver, operator, handler, widgets, {key: answer})
    assert f"the handler's answer: {message}" in operator.wait_for_log(message, key="default/big")["message"]
    wait_until(lambda: operator.ctl.status()["watches"][0]["permanent"] == 1, "the failure")
    serves_others(operator, handler, widgets)


def test_a_hundred_conditions_are_written(devserver, operator, handler, widgets):
    start(devserver, operator, handler, widgets, {"conditions": REFUSED["conditions"][0][:100]})
    wait_until(lambda: len(widgets.get("big").get("status", {}).get("conditions", [])) == 100, "all of them")
    serves_others(operator, handler, widgets)


@pytest.mark.parametrize("key", ACCEPTED)
@pytest.mark.slow
def test_many_members_are_written(devserver, operator, handler, widgets, key):
    start(devserver, operator, handler, widgets, {key: ACCEPTED[key]})
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the success", 60)
    serves_others(operator, handler, widgets)
