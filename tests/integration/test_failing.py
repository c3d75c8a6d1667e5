# SPDX-License-Identifier: Apache-2.0
"""What has failed and needs somebody: seen in the status and in the metrics, and run again all at once."""
import json

import pytest

from harness import wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID

# What its spec says: ok, retry, permanent, refused.
BEHAVIOUR = """[ -e {folder}/mended ] && exit 0
case $RECONCILED_NAME in retry*) echo no luck >&2; exit 75;; permanent*) echo wrong size >&2; exit 65;; esac
printf '{{"status":{{"seen":true}}}}'"""


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        handler.behave(BEHAVIOUR.format(folder=handler.folder))
        more = {"onUnrecoverable": "throttle", "retry": {"first": "1h", "max": "1h", "throttle": "1h"}, **more}
        operator.configure(devserver, [watch("widgets", handler, **more)], heartbeat={"interval": "100ms", "deadline": "30s"},
                           gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})
        operator.gateway = Gateway(operator.runtime_directory / "gateway.sock")
        return operator.start_ready().wait_synced()

    return start


def counts(operator):
    row = operator.ctl.status()["watches"][0]
    return row["failing"], row["permanent"], row["throttled"]


def wait_counts(operator, expected):
    wait_until(lambda: counts(operator) == expected, lambda: f"{expected}: {counts(operator)}")


@pytest.fixture
def refused(devserver):
    return devserver.fault(match={"verb": "patch", "name": "refused"}, times=1, status=422, reason="Invalid",
                           message="status.seen: Invalid")


def test_they_are_seen(start, operator, widgets, refused):
    start()
    for name in ("ok", "retry", "permanent", "refused"):
        widgets.create(name)
    wait_counts(operator, (3, 1, 1))
    failing = operator.ctl.status()["failing"]
    assert [entry["key"] for entry in failing] == ["default/permanent", "default/refused", "default/retry"], "the worst first"
    assert [(entry["permanent"], entry["throttled"]) for entry in failing] == [(True, 0), (False, 1), (False, 0)]
    text = operator.ctl.run("status").stdout
    assert "default/permanent of watch widgets has failed for good" in text and "wrong size" in text
    assert "default/refused of watch widgets is throttled" in text and "HTTP 422" in text
    assert "default/retry of watch widgets has failed (attempt 1); next try in " in text and "no luck" in text
    assert "default/ok" not in text and "more: reconciledctl" not in text
    for family, value in (("failing", 3), ("failed_permanently", 1), ("throttled", 1)):
        operator.gateway.wait(f'reconciled_{family}{{watch="widgets"}}', value)
    operator.gateway.wait('controller_runtime_reconcile_errors_total{controller="widgets"}', 3)


def test_counters_agree(start, operator, handler, widgets, devserver):
    """RECONCILED_ATTEMPT, the log, lists and `explain`; failures that count as no attempt are counted apart."""
    start()
    fault = devserver.fault(match={"verb": "patch", "name": "outage"}, times=0, status=503, message="not now")

    def logged(key, count):
        found = wait_until(lambda: len(said := operator.logs(message_id=MESSAGE_ID["RUN_FAILED"], key=key)) == count and said,
                           f"{count} failures of {key}")
        return [(int(each["attempt"]), "does not count as an attempt" in each["message"]) for each in found]

    def told(name):
        return [request.body["attempt"] for request in handler.requests(name=name)]

    def listed(name):
        [row] = [row for row in json.loads(operator.ctl.run("get", "failing", "-o", "json").stdout)["objects"]
                 if row["key"] == f"default/{name}"]
        [object_row] = json.loads(operator.ctl.run("explain", "--json", "widgets", f"default/{name}").stdout)["objects"]
        assert (row["attempts"], row["refused"]) == (object_row["attempts"], object_row["refused"])
        return row["attempts"], row["refused"]

    widgets.create("retry")
    assert logged("default/retry", 1) == [(1, False)] and listed("retry") == (1, 0)
    widgets.merge_patch("retry", {"spec": {"size": 2}})
    assert logged("default/retry", 2) == [(1, False), (2, True)] and told("retry") == [1, 2], "it broke into the backoff"
    assert listed("retry") == (1, 0)
    assert "it has failed (attempt 1)" in operator.ctl.run("explain", "widgets", "default/retry").stdout
    widgets.create("outage")
    assert logged("default/outage", 1) == [(1, True)] and told("outage") == [1] and listed("outage") == (0, 1)
    for words in (("status",), ("explain", "widgets", "default/outage")):
        assert "(1 failure that counts as no attempt)" in operator.ctl.run(*words).stdout
    devserver.clear_faults(fault)


def test_all_of_them_run_again(start, operator, handler, widgets, refused):
    start()
    for name in ("ok", "retry", "permanent", "refused"):
        widgets.create(name)
    wait_counts(operator, (3, 1, 1))
    operator.stop()
    operator.start_ready().wait_synced()
    wait_counts(operator, (3, 1, 1))
    (handler.folder / "mended").touch()
    done = operator.ctl.run("retry", "--all-failed")
    assert done.returncode == 0 and "3 objects are due now" in done.stdout
    wait_counts(operator, (0, 0, 0))
    operator.stop()
    assert len(handler.requests(name="ok")) == 1, "what is well is left alone"
    assert all(len(handler.requests(name=name)) == 2 for name in ("retry", "permanent", "refused"))


def test_short_backoffs_end_as_well(start, operator, handler, widgets):
    start(retry={"first": "30s", "max": "30s"})
    widgets.create("retry")
    wait_counts(operator, (1, 0, 0))
    wait_until(lambda: operator.ctl.status()["watches"][0]["waiting"] == 1, "its backoff, in the queue")
    assert "1 object is due now" in operator.ctl.run("retry", "--all-failed", "widgets").stdout
    handler.wait_finished(name="retry", count=2, deadline=15)
    wait_until(lambda: operator.ctl.status()["failing"][0]["attempts"] == 2, "the second failure to be known")
    (handler.folder / "mended").touch()
    operator.ctl.run("retry", "--all-failed")
    wait_counts(operator, (0, 0, 0))


def test_what_is_under_way_runs_once_more(start, operator, handler, widgets):
    """It may have begun before the cause was mended."""
    start()
    folder = handler.folder
    handler.behave(f"[ -e {folder}/mended ] && exit 0; [ $RECONCILED_ATTEMPT = 1 ] || "
                   f"{{ touch {folder}/waits; while [ ! -e {folder}/go ]; do sleep 0.02; done; }}; exit 75")
    widgets.create("retry")
    wait_counts(operator, (1, 0, 0))
    operator.ctl.run("retry", "widgets", "default/retry")
    # its request is recorded before it looks for what is mended
    wait_until((folder / "waits").exists, "the second run to have found nothing mended")
    (folder / "mended").touch()
    assert "1 object is due" in operator.ctl.run("retry", "--all-failed").stdout
    wait_until(lambda: json.loads(operator.ctl.run("explain", "--json", "widgets", "default/retry").stdout)["queue"]["state"]
               == "running-dirty", "one more run to be wanted")
    (folder / "go").touch()
    wait_counts(operator, (0, 0, 0))
    operator.stop()
    assert [request.exit_code for request in handler.requests()] == [75, 75, 0]


@pytest.mark.slow
def test_many(start, operator, handler, widgets):
    """More than a page of the ledger, and more than the status lists."""
    handler.behave("exit 65")
    start()
    for number in range(160):
        widgets.create(f"permanent{number}")
    wait_until(lambda: counts(operator)[1] == 160, "all of them to fail", 60)
    assert len(operator.ctl.status()["failing"]) == 100
    assert "... and 150 more: reconciledctl get failing" in operator.ctl.run("status").stdout
    (handler.folder / "mended").touch()
    assert "160 objects are due" in operator.ctl.run("retry", "--all-failed").stdout
    wait_until(lambda: counts(operator) == (0, 0, 0), "all of them to succeed", 60)
    operator.stop()
    assert handler.count() == 320


def test_quarantine_stays(start, operator, handler, widgets):
    start(quarantine={"after": 1, "duration": "1h"})
    handler.behave("kill -KILL $PPID; sleep 60")
    widgets.create("poison")
    operator.wait_exit(expect=70)
    handler.behave("exit 0")
    operator.start_ready().wait_synced()
    assert "1 crash" in operator.ctl.run("status").stdout and "has failed" not in operator.ctl.run("status").stdout, "named once"
    assert operator.ctl.run("retry", "--all-failed").stdout == "no object has failed, but for those in quarantine\n"
    assert operator.ctl.run("retry", "--all", "widgets").stdout == "no object has ever run, but for those in quarantine\n"
    widgets.create("ok")
    handler.wait_finished(name="ok")
    assert len(operator.ctl.status()["quarantine"]) == 1 and len(handler.requests(name="poison")) == 1


def test_wrong_usage(start, operator):
    start()
    assert operator.ctl.run("retry", "--all-failed").stdout == "no object has failed, but for those in quarantine\n"
    assert operator.ctl.run("retry", "--all-failed", "gadgets").returncode == 70
    assert operator.ctl.run("retry", "--all-failed", "widgets", "default/a").returncode == 64
    assert operator.ctl.run("retry", "widgets").returncode == 64
    wrong = operator.ctl.run("frobnicate")
    assert wrong.returncode == 64 and "status, get, top, explain" in wrong.stderr
    assert json.loads(operator.ctl.run("status", "--json").stdout)["failing"] == []
