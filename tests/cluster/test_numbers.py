# SPDX-License-Identifier: Apache-2.0
"""What a handler reads and writes arrives as it was; a real API server keeps 64-bit integers."""
import pytest

from harness import wait_until

VALUES = {"text": "Grüße, 世界 \U0001f600 \"quoted\" \\ \n", "large": 9007199254740993, "most": 9223372036854775807,
          "least": -9223372036854775808, "microseconds": 1700000000123456, "negative": -5, "real": 1.5,
          "small": 1e-7, "empty": {}, "list": [], "nothing": False}


def test_the_handler_reads_what_is_there(configured, handler, widgets):
    widgets.create("exact", spec=VALUES)
    configured.start_ready()
    assert handler.wait_finished(name="exact").object["spec"] == VALUES


@pytest.mark.parametrize("key", sorted(VALUES))
def test_what_the_handler_answers_is_written_exactly(configured, handler, widgets, key):
    value = {key: VALUES[key]}
    handler.answer({"status": {"seen": value}, "patch": {"spec": {"copy": value}}})
    widgets.create("exact", spec={"other": VALUES})
    configured.start_ready()
    wait_until(lambda: "status" in widgets.get("exact"), "the status")
    found = widgets.get("exact")
    assert found["status"] == {"seen": value}
    assert found["spec"] == {"other": VALUES, "copy": value}
    assert type(found["status"]["seen"][key]) is type(value[key])
