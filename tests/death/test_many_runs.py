# SPDX-License-Identifier: Apache-2.0
"""A worker that dies with several runs: whose code ran is blamed, and nobody else; where that is unknown, nobody is."""
import signal

import pytest

from harness import ledger, wait_until, watch

from .conftest import SIGNAL

pytestmark = pytest.mark.quiet

ABORT = pytest.param(signal.SIGABRT, [("default/poison", 1)], id="SIGABRT")
HANG = pytest.param(signal.SIGSTOP, [("default/poison", 1)], id="SIGSTOP")
KILL = pytest.param(signal.SIGKILL, [(f"default/{name}", 0) for name in ("held-0", "held-1", "held-2", "poison")], id="SIGKILL")


@pytest.mark.parametrize("number,suspects", [ABORT, HANG, KILL])
def test_whose_code_ran_is_blamed(devserver, operator, handler, widgets, shim, number, suspects):
    names = [f"held-{number}" for number in range(3)]
    handler.answer({"status": {"seen": True}})
    operator.configure(devserver, [watch("widgets", handler, quarantine={"after": 10}, retry={"first": "1ms", "max": "1ms"})],
                       workers=1, heartbeat={"interval": "50ms", "deadline": "1s"})
    operator.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_SAYS=f"poison {SIGNAL + number}")
    held = [devserver.fault({"verb": "patch", "resource": "widgets/status", "name": name}, hang=True, times=0) for name in names]
    operator.start_ready().wait_synced()
    for name in names:
        widgets.create(name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["writing"] == 3, "three writes in flight")
    widgets.create("poison")
    operator.wait_exit(expect=70)
    rows = "SELECT key, crashes FROM ledger WHERE crashes > 0 OR crashed_realtime > 0 ORDER BY key"
    assert ledger.read(operator, rows) == suspects
    [cause] = operator.logs(level="critical")
    assert ("busy with default/poison" in cause["message"]) == (number != signal.SIGKILL)
    del operator.environment["RECONCILED_DEATH_SAYS"]
    for fault in held:
        devserver.clear_faults(fault)
    operator.start_ready().wait_synced()
    for name in [*names, "poison"]:
        wait_until(lambda name=name: widgets.get(name).get("status") == {"seen": True}, f"{name} to be written")
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "rest")
    operator.stop()
    assert not ledger.read(operator, rows)
