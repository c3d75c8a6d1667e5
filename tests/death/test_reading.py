# SPDX-License-Identifier: Apache-2.0
"""An object whose bytes a watcher dies of, or never gets past: it alone is left out, from the first time on."""
import signal

import pytest

from harness import watch
from harness.operator import MESSAGE_ID

from .conftest import SIGNAL

pytestmark = pytest.mark.quiet


def said(operator):
    return operator.logs(message_id=MESSAGE_ID["DOUBTFUL"])


SEGV = pytest.param(signal.SIGSEGV, marks=pytest.mark.plain_only(reason="the sanitizers take SIGSEGV for themselves"))


@pytest.mark.parametrize("number", [SEGV, signal.SIGABRT, signal.SIGSTOP])
def test_it_is_blamed_once_and_all_others_are_served(devserver, operator, handler, widgets, shim, number):
    # Where a kind has two watches, the keys of annotations are looked at one by one: there the library meets it.
    operator.configure(devserver, [watch("widgets", handler), watch("others", handler, id="others", labelSelector="never=true")],
                       heartbeat={"interval": "50ms", "deadline": "1s"})
    operator.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_READS=f"deadly {SIGNAL + number}")
    operator.start_ready().wait_synced()
    for name in ("a", "poison"):
        widgets.create(name, spec={"text": "harmless"})
        handler.wait_finished(name=name)
    widgets.merge_patch("poison", {"metadata": {"annotations": {"deadly": "1"}}})
    operator.wait_exit(expect=70)
    [cause] = operator.logs(level="critical")
    assert cause["key"] == "default/poison" and "watcher" in cause["message"]
    assert [(record["key"], record["crashes"]) for record in said(operator)] == [("default/poison", "1")]
    operator.start_ready().wait_synced()
    widgets.create("b", spec={"text": "harmless"})
    handler.wait_finished(name="b")
    widgets.merge_patch("a", {"spec": {"text": "as harmless"}})
    handler.wait_finished(name="a", count=2)
    entry = operator.ctl.status()["doubtful"]
    assert [(item["key"], item["crashes"], item["unread"]) for item in entry] == [("default/poison", 1, True)]
    operator.stop()
    assert not said(operator) and len(handler.requests(name="poison")) == 1 and not handler.requests(action="deleted")
