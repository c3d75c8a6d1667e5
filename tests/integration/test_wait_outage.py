# SPDX-License-Identifier: Apache-2.0
"""An outage of the API server longer than the rest of `children.wait` fails no attempt and deletes no child that is ready."""
import time

import pytest

from harness import wait_until, watch

SET = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": {"replicas": 1}}
READY = {"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1, "updatedReplicas": 1, "currentReplicas": 1, "observedGeneration": 9}}
OWNED = {"owns": [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]}
WAIT = 3  # seconds


@pytest.fixture
def sets(api):
    return api.resource("apps/v1", "statefulsets", "default")


@pytest.fixture
def start(devserver, operator, handler, widgets, sets):
    def start(**more):
        more = {"onFailure": "rollback", "readyCondition": True, "retry": {"first": "1h", "max": "1h", "attempts": 1},
                "children": {"wait": f"{WAIT}s", "settle": f"{WAIT}s"}, **more}
        operator.configure(devserver, [watch("widgets", handler, **more)])
        operator.start_ready().wait_synced()
        widgets.create("w")
        wait_until(lambda: condition(widgets).get("reason") == "Waiting", "the wait")
        return sets.get("s")["metadata"]["uid"]

    handler.answer({"children": [SET]})
    return start


def condition(widgets):
    found = widgets.get("w").get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == "Ready"), {})


def outlast(seconds):
    """An outage of this length: nothing that can be seen from outside ends it."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() > end, "the end of the outage", seconds + 30)


def still_there_and_a_success(operator, handler, widgets, sets, uid):
    wait_until(lambda: condition(widgets).get("status") == "True", lambda: f"the success: {condition(widgets)}", 60)
    assert sets.get("s")["metadata"]["uid"] == uid, "the child that was ready was deleted"
    assert len(handler.requests(name="w")) == 1, "the wait went on as the same attempt"
    assert not operator.logs(lambda record: "failed (attempt" in record["message"], key="default/w")
    operator.stop()


@pytest.mark.parametrize("policy", ["rollback", "keep"])
@pytest.mark.parametrize("status,more", [(503, {}), (403, {}), (429, {"retryAfter": 2 * WAIT})])
@pytest.mark.slow
def test_the_server_refuses_our_looks(start, devserver, operator, handler, widgets, sets, status, more, policy):
    uid = start(onFailure=policy)
    fault = devserver.fault({"verb": "get", "resource": "statefulsets"}, status=status, times=0, **more)
    wait_until(lambda: devserver.faults()[fault]["hit"] > 0, "a look that is refused")
    sets.merge_patch("s", READY, subresource="status")
    outlast(2 * WAIT)
    devserver.clear_faults()
    still_there_and_a_success(operator, handler, widgets, sets, uid)


@pytest.mark.parametrize("more", [{}, OWNED], ids=["asked", "from the store"])
@pytest.mark.slow
def test_the_server_stands_still(start, devserver, operator, handler, widgets, sets, more):
    uid = start(**more)
    devserver.suspend()
    outlast(2 * WAIT)
    devserver.resume()
    sets.merge_patch("s", READY, subresource="status")
    still_there_and_a_success(operator, handler, widgets, sets, uid)


@pytest.mark.slow
def test_the_operator_is_killed_in_the_middle(start, devserver, operator, handler, widgets, sets):
    uid = start()
    fault = devserver.fault({"verb": "get", "resource": "statefulsets"}, status=503, times=0)
    wait_until(lambda: devserver.faults()[fault]["hit"] > 0, "a look that is refused")
    outlast(WAIT)
    operator.send_signal(9)
    operator.wait_exit(expect=-9)
    sets.merge_patch("s", READY, subresource="status")
    before = devserver.faults()[fault]["hit"]
    operator.start_ready()
    wait_until(lambda: devserver.faults()[fault]["hit"] > before, "a look of the next life")
    devserver.clear_faults()
    still_there_and_a_success(operator, handler, widgets, sets, uid)


@pytest.mark.slow
def test_one_that_is_not_ready_after_the_outage_fails_in_the_end(start, devserver, operator, widgets, sets):
    start()
    fault = devserver.fault({"verb": "get", "resource": "statefulsets"}, status=503, times=0)
    wait_until(lambda: devserver.faults()[fault]["hit"] > 0, "a look that is refused")
    outlast(2 * WAIT)
    devserver.clear_faults()
    assert sets.exists("s")
    operator.wait_for_log("was not ready within", key="default/w")
    wait_until(lambda: not sets.exists("s"), "the rollback")


@pytest.mark.slow
def test_an_outage_while_an_attempt_is_undone(start, devserver, operator, sets):
    start()
    devserver.fault({"verb": "delete", "resource": "statefulsets"}, status=503, times=0)
    wait_until(lambda: devserver.requests(lambda request: request["method"] == "DELETE"), "a deletion that is refused", 60)
    outlast(2 * WAIT)
    devserver.clear_faults()
    wait_until(lambda: not sets.exists("s"), "the rollback", 60)
    operator.wait_for_log("was not ready within", key="default/w")
