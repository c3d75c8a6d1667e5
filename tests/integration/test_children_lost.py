# SPDX-License-Identifier: Apache-2.0
"""What others do to the annotations of an object that has children."""
import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID


def config_map(name, **metadata):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}}


@pytest.fixture
def config_maps(api):
    return api.resource("v1", "configmaps", "default")


@pytest.fixture
def start(devserver, operator, handler):
    def start(**more):
        more.setdefault("retry", {"first": "50ms", "max": "100ms"})
        operator.configure(devserver, [watch("widgets", handler, **more)])
        operator.start_ready().wait_synced()
        return operator

    return start


def test_annotations_that_others_have_filled_harm_that_object_only(start, handler, widgets, config_maps):
    """The API server takes no more than 256 KiB of them; that is no error of the operator."""
    handler.behave("""printf '{"children": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s"}}]}' $RECONCILED_NAME""")
    operator = start()
    full = "\"" * (256 * 1024 - 40)  # as JSON it is twice as long
    widgets.create("full", metadata={"annotations": {"example.org/full": full}})
    said = operator.wait_for_log(message_id=MESSAGE_ID["RUN_PERMANENT"], key="default/full")
    assert "no room" in said["message"] and "256 KiB" in said["message"]
    widgets.create("other")
    wait_until(lambda: config_maps.exists("other"), "the child of another object")
    assert not config_maps.exists("full")
    widgets.merge_patch("full", {"metadata": {"annotations": {"example.org/full": "\"" * (250 * 1024)}}})
    wait_until(lambda: config_maps.exists("full"), "its child, once there is room")
    operator.stop()
