# SPDX-License-Identifier: Apache-2.0
"""Objects and children from a backup have new UIDs, and their fields have another manager."""
import pytest

from harness import restored, watch


@pytest.mark.parametrize("owns", [[], [{"apiVersion": "v1", "kind": "ConfigMap"}]], ids=["unwatched", "owned"])
def test_it_goes_on_after_a_restore(devserver, operator, handler, widgets, api, owns):
    def start():
        operator.configure(devserver, [watch("widgets", handler, finalizer=True, owns=owns, retry={"first": "50ms", "max": "200ms"})])
        operator.start_ready().wait_synced()

    restored.goes_on_after_a_restore(start, operator, handler, widgets, api.resource("v1", "configmaps", "default"))
