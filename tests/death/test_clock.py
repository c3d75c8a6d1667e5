# SPDX-License-Identifier: Apache-2.0
"""The machine's clock is set while the operator runs, or while it does not: what waits waits for as long as it was meant
to, and nothing runs before its time."""
import pytest

from harness import ledger, wait_until, watch

HOUR = 3600 * 1_000_000
ANOTHER_BOOT = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def configured(devserver, operator, handler, clock):
    def configured(**more):
        operator.configure(devserver, [watch("widgets", handler, **more)])
        return operator

    return configured


def recorded(operator):
    wait_until(lambda: ledger.read(operator, "SELECT key FROM ledger WHERE next_realtime > 0"), "the record of its next run")


def another_boot(operator):
    operator.environment["RECONCILED_BOOT"] = ANOTHER_BOOT


SHORT = {"retry": {"retry": {"first": "3s", "max": "3s"}}, "requeueAfter": {}, "resync": {"resync": "3s"}}
BEHAVIOUR = {"retry": "exit 1", "requeueAfter": "echo '{\"requeueAfter\": \"3s\"}'", "resync": "exit 0"}


@pytest.mark.parametrize("boots", [False, True], ids=["same-boot", "another-boot"])
@pytest.mark.parametrize("kind", SHORT)
def test_set_back_while_it_is_down(configured, handler, widgets, clock, kind, boots):
    handler.behave(BEHAVIOUR[kind])
    operator = configured(**SHORT[kind])
    operator.start_ready().wait_synced()
    widgets.create("a")
    handler.wait_finished(name="a")
    recorded(operator)
    operator.stop()
    if boots:
        another_boot(operator)
    clock.set(-HOUR)
    count = handler.count()
    operator.start_ready()
    assert handler.wait_for(name="a", count=count + 1).body["reason"] == kind
    operator.stop()


@pytest.mark.parametrize("boots", [False, True], ids=["same-boot", "another-boot"])
def test_a_quarantine_ends_although_the_clock_was_set_back(configured, handler, widgets, clock, boots):
    handler.behave("kill -9 $PPID; sleep 60")
    operator = configured(quarantine={"after": 1, "duration": "3s"})
    operator.start_ready()
    widgets.create("a")
    operator.wait_exit(expect=70)
    handler.behave("exit 0")
    clock.set(-HOUR)
    if boots:
        another_boot(operator)
    count = handler.count()
    operator.start_ready()
    handler.wait_finished(name="a", count=count + 1)
    wait_until(lambda: not ledger.read(operator, "SELECT key FROM ledger WHERE quarantined_until > 0"), "the end of its quarantine")
    operator.stop()


def test_set_back_while_it_runs(configured, handler, widgets, clock):
    """Both wait in the ledger alone, as they wait for more than a minute."""
    handler.behave("[ $RECONCILED_NAME = a ] || exit 1; echo '{\"requeueAfter\": \"61s\"}'")
    operator = configured(retry={"first": "61s", "max": "61s"})
    operator.start_ready().wait_synced()
    for name in "ab":
        widgets.create(name)
        handler.wait_finished(name=name)
    recorded(operator)
    clock.set(-HOUR)
    assert handler.wait_for(name="a", count=2, deadline=100).body["reason"] == "requeueAfter"
    assert handler.wait_for(name="b", count=2, deadline=60).body["reason"] == "retry"
    operator.stop()


@pytest.mark.parametrize("down", [False, True], ids=["running", "down"])
def test_set_forward(configured, handler, widgets, clock, down):
    """By a day: no backoff and no requeueAfter is over for that."""
    handler.behave("[ $RECONCILED_NAME = b ] && exit 1; [ $RECONCILED_NAME != a ] || echo '{\"requeueAfter\": \"10m\"}'")
    operator = configured(retry={"first": "10m", "max": "10m"}, resync="20h")
    operator.start_ready().wait_synced()
    for name in "abc":
        widgets.create(name)
        handler.wait_finished(name=name)
    wait_until(lambda: len(ledger.read(operator, "SELECT key FROM ledger WHERE next_realtime > 0")) == 3, "their records")
    if down:
        operator.stop()
    clock.set(24 * HOUR)
    if down:
        operator.start_ready().wait_synced()
    for name in ("d", "e", "f"):  # some turns of its loop
        widgets.create(name)
        handler.wait_finished(name=name)
    assert [len(handler.requests(name=name)) for name in "abcdef"] == [1] * 6
    operator.stop()


def test_its_uptime_is_that_of_the_machine(configured, clock):
    """As on a machine that boots in 1970 and has its time later."""
    operator = configured()
    operator.start_ready()
    started = operator.ctl.status()["startedAt"]
    clock.set(24 * HOUR)
    operator.ctl.status()  # a turn of its loop, at the latest now
    assert abs(operator.ctl.status()["startedAt"] - started - 24 * HOUR) < HOUR
    operator.stop()
