# SPDX-License-Identifier: Apache-2.0
"""What an object goes back to while its handler runs, or while the operator is down, is handled: on a real API server, whose
generations and versions tell what a run has seen."""
import signal

import pytest

from harness import wait_until, watch


@pytest.fixture
def running_with_the_change(cluster, operator, handler, widgets, namespace):
    """A was handled, and the handler has begun with B."""
    handler.behave(f"""case $(cat $REQUEST) in
*'"size":2'*) {handler.held};;
esac
echo '{{"status":{{"seen":true}}}}'""")
    operator.configure(cluster, [watch("widgets", handler, namespaces=[namespace])], stop={"grace": "100ms"})
    operator.start_ready().wait_synced()
    widgets.create("a", spec={"size": 1})
    wait_until(lambda: widgets.get("a").get("status"), "the status of the first run")
    widgets.merge_patch("a", {"spec": {"size": 2}})
    handler.wait_for(name="a", count=2)
    return operator


def test_while_its_handler_runs(running_with_the_change, handler, widgets):
    generation = widgets.merge_patch("a", {"spec": {"size": 1}})["metadata"]["generation"]
    widgets.create("behind", spec={"size": 3})
    handler.wait_finished(name="behind")
    handler.let_go()
    seen = handler.wait_finished(name="a", count=3)
    assert seen.object["spec"] == {"size": 1} and seen.metadata["generation"] == generation
    running_with_the_change.stop()
    assert len(handler.requests(name="a")) == 3


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_while_the_operator_is_down(running_with_the_change, handler, widgets, number):
    operator = running_with_the_change
    operator.send_signal(number)
    operator.wait_exit(expect=0 if number == signal.SIGTERM else -number)
    generation = widgets.merge_patch("a", {"spec": {"size": 1}})["metadata"]["generation"]
    handler.let_go()  # the stored object may run first, before the change is read
    operator.start_ready().wait_synced()
    seen = handler.wait_finished(name="a", where=lambda request: request.metadata["generation"] == generation)
    assert seen.object["spec"] == {"size": 1}
    operator.stop()
