# SPDX-License-Identifier: Apache-2.0
"""SIGHUP with a configuration that cannot be taken: nothing changes, and why is told."""
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID

pytestmark = pytest.mark.slow


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator.start_ready().wait_synced()


def test_a_wrong_configuration_changes_nothing(configured, devserver, handler, widgets):
    children = {child.pid for child in configured.children()}
    configured.configure(devserver, [watch("widgets", handler)], worker=3)
    configured.reload()
    assert "not reloaded" in configured.status_text and 'did you mean "workers"' in configured.status_text
    configured.wait_for_log(message_id=MESSAGE_ID["CONFIGURATION_WRONG"])
    assert 'did you mean "workers"' in configured.ctl.status()["notReloaded"]
    assert "refused, the old configuration is in force" in configured.ctl.run("status").stdout
    assert {child.pid for child in configured.children()} == children
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    assert configured.ctl.run("pause", "widgets").returncode == 0
    wait_until(lambda: "1 paused" in configured.status_text, "the news of that")
    assert "not reloaded" in configured.status_text, "it stays in sight"
    # And a mended one is taken.
    configured.configure(devserver, [watch("widgets", handler)])
    configured.reload()
    assert "not reloaded" not in configured.status_text and not configured.ctl.status()["notReloaded"]
    configured.configure(devserver, [watch("widgets", handler)], workers=3)
    configured.reload()
    assert len(configured.children("worker")) == 3


def test_reconciledctl_says_how_a_reload_ended(configured, devserver, handler, make_handler, widgets):
    def reload(*words, code=0):
        done = configured.ctl.run("reload", *words)
        assert done.returncode == code, done
        return done.stdout if code == 0 else done.stderr

    assert "the configuration has not changed" in reload()
    assert not json.loads(reload("--json"))["restarted"]
    configured.configure(devserver, [watch("widgets", handler)], worker=3)
    assert 'did you mean "workers"' in reload(code=70)
    # It waits for the end of a restart in place, also of one that is under way.
    handler.behave(handler.held)
    widgets.create("a", spec={})
    handler.wait_for(name="a")
    configured.configure(devserver, [watch("widgets", handler)], workers=3)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(reload, "--json", "--timeout", "5s")
        configured.wait_for_log(message_id=MESSAGE_ID["RELOADING"])
        joined = pool.submit(reload)
        assert not waiting.done()
        handler.let_go()
        answer = json.loads(waiting.result())
        assert answer["restarted"] and answer["done"] and "no run began for" in answer["message"]
        # On a busy machine it may ask when that is over.
        assert answer["message"] == joined.result().strip() or "has not changed" in joined.result()
    assert len(configured.children("worker")) == 3
    configured.stop()
    assert "no operator is running" in reload(code=69)


def test_what_no_process_could_be_told_is_not_taken(configured, devserver, handler, widgets):
    before = {child.pid for child in configured.children()}
    words = [f"word-{number:05}-" + "x" * 60 for number in range(3000)]
    configured.configure(devserver, [watch("widgets", [*handler.command, *words])])
    configured.reload()
    assert "the configuration is too large" in configured.ctl.status()["notReloaded"]
    assert {child.pid for child in configured.children()} == before
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    configured.stop()
    configured.start()
    configured.wait_exit(expect=78)
    assert configured.logs(lambda record: "the configuration is too large" in record["message"], level="error")


def test_not_while_it_is_uninstalled(devserver, operator, handler, widgets):
    operator.configure(devserver, [watch("widgets", handler, finalizer=True)])
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    assert operator.ctl.run("uninstall", "--yes").returncode == 0
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, concurrency=1)])
    operator.reload()
    assert any("not reloaded" in message.get("STATUS", "") and "uninstalled" in message["STATUS"]
               for message in operator.notifications)
    assert not operator.logs(message_id=MESSAGE_ID["RELOADED"])
    wait_until(lambda: not widgets.get("a")["metadata"].get("finalizers"), "the finalizer to come off")


def test_a_broken_kubeconfig_changes_nothing(configured, devserver, handler, widgets):
    text = configured.config_file.read_text()
    broken = configured.folder / "broken"
    configured.user.give(broken.write_text("users: [", encoding="utf-8") and broken, 0o600)
    configured.write_config(text.replace(str(configured.folder / "kubeconfig"), str(broken)))
    os.kill(configured.pid, signal.SIGHUP)
    said = configured.wait_for_log("the new configuration is rejected; the old one stays in force: ")["message"]
    assert f": {configured.config_file}:" in said and f": cluster.kubeconfig: {broken}:" in said
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    configured.write_config(text)
    configured.reload()
