# SPDX-License-Identifier: Apache-2.0
"""Secrets on a real API server: what it and kubectl add to them (managedFields, last-applied-configuration) reaches no disk either,
nor does the log of its refusals, nor a core file of a process that held them."""
import json
import resource
import signal

import pytest

from harness import wait_until, watch
from harness.needle import encoded, found_on_disk, new_needle, secret

SECRETS = {"apiVersion": "v1", "kind": "Secret"}
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.fixture
def core_files():
    """Whoever dies of SIGABRT would leave one, in its folder."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


def test_no_byte_of_a_secret_is_on_the_disk(cluster, namespace, operator, handler, widgets, core_files):
    """Watched, owned and related ones; the handler of one fails, a child is refused, and a process of each kind dies of SIGABRT."""
    watched, related, child, refused = (new_needle() for _ in range(4))
    needles = (watched, related, child, refused)
    record = operator.folder / "record"
    record.mkdir()
    operator.user.give(record, 0o700)
    selected = {"labelSelector": "for=us"}
    # A watch that answers nothing: the server refuses a Secret whose type changes, and says so.
    wrong = {**secret("typed", refused), "type": "kubernetes.io/basic-auth"}
    children = {"children": [secret("child", child), wrong]}
    handler.behave(f"""case $RECONCILED_WATCH/$RECONCILED_NAME in
        secrets/bad) exit 75;;
        widgets/w) echo '{json.dumps(children)}';;
        esac""")
    operator.configure(cluster, [
        watch("secrets", handler, namespaces=[namespace], retry={"first": "1h", "max": "1h"}, **SECRETS, **selected),
        watch("widgets", handler, namespaces=[namespace], owns=[SECRETS], related=[{**SECRETS, **selected}], retry={"first": "1h", "max": "1h"})],
        record=str(record))
    secrets = cluster.api.resource("v1", "secrets", namespace)
    for name, needle in (("good", watched), ("bad", watched), ("other", related)):
        secrets.create(body=secret(name, needle, labels={"for": "us"}, annotations={LAST_APPLIED: json.dumps(secret(name, needle))}))
    secrets.create(body={**secret("typed", refused), "type": "Opaque"})
    operator.start_ready().wait_synced()
    widgets.create("w")
    handler.wait_finished(name="w")
    assert encoded(watched) in handler.wait_finished(name="good").text, "the handler has it"
    operator.wait_for_log("typed", level="warning")
    wait_until(lambda: secrets.exists("child"), "the child")
    wait_until(lambda: found_on_disk(child, operator.runtime_directory), "the store in memory to have it")

    def assert_nowhere(when):
        # The records of the handler of this test are its own.
        for needle in needles:
            assert not found_on_disk(needle, operator.folder, operator.state_directory), when
        assert not [path for path in operator.folder.rglob("core*") if path.is_file()], when

    assert_nowhere("while it runs")
    for role in ("watcher", "worker"):
        operator.children(role)[0].kill(signal.SIGABRT)
        operator.wait_exit(expect=70)
        assert_nowhere(f"after the death of a {role}")
        operator.start_ready().wait_synced()
    operator.send_signal(signal.SIGABRT)
    operator.wait_exit(expect=-signal.SIGABRT)
    assert_nowhere("after the death of the supervisor")
    operator.start_ready().wait_synced()
    # A sync that compares the memory of the former life with the server, and a change.
    secrets.merge_patch("good", {"metadata": {"labels": {"more": "yes"}}})
    handler.wait_finished(name="good", count=2)
    operator.stop()
    assert_nowhere("after a stop")
