# SPDX-License-Identifier: Apache-2.0
"""A machine without memory (tmpfs) for Secrets: an operator that has some refuses to start, unless it may use a disk."""
import json
import subprocess

import pytest

from harness import watch
from harness.operator import MESSAGE_ID
from harness.process import clean_environment

EXT4 = "0xEF53"
SECRETS = {"apiVersion": "v1", "kind": "Secret"}
ALLOWED = {"secrets": {"allowDisk": True}}


@pytest.fixture
def no_memory(operator, shim):
    operator.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_STATFS=EXT4)
    return operator


@pytest.mark.parametrize("more", [SECRETS, {"confidential": True}, {"owns": [SECRETS]}, {"onFailure": "rollback"}], ids=str)
def test_secrets_are_refused(devserver, no_memory, handler, more):
    no_memory.configure(devserver, [watch("w", handler, **more)])
    no_memory.start().wait_exit(expect=78)
    [said] = [record["message"] for record in no_memory.logs() if record["level"] in ("error", "critical")]
    assert "Secrets would reach a disk" in said and str(no_memory.runtime_directory) in said and "allowDisk" in said
    assert not (no_memory.runtime_directory / "secrets").exists()


def test_a_disk_that_is_allowed(devserver, no_memory, handler):
    no_memory.configure(devserver, [watch("s", handler, **SECRETS)], **ALLOWED)
    no_memory.start_ready().wait_synced()
    [said] = no_memory.logs(message_id=MESSAGE_ID["SECRETS_ON_DISK"])
    assert "as secrets.allowDisk says" in said["message"] and no_memory.ctl.status()["secrets"]["onDisk"] is True
    no_memory.stop()


def test_who_has_no_secrets_needs_no_memory_and_is_reloaded_to_none(devserver, no_memory, handler, widgets):
    no_memory.configure(devserver, [watch("widgets", handler)])
    no_memory.start_ready()
    no_memory.configure(devserver, [watch("widgets", handler), watch("s", handler, **SECRETS)])
    no_memory.begin_reload()
    no_memory.wait_for_log("Secrets would reach a disk")
    widgets.create("a", spec={})
    handler.wait_finished(name="a")
    no_memory.configure(devserver, [watch("widgets", handler), watch("s", handler, **SECRETS)], **ALLOWED)
    no_memory.reload()
    no_memory.wait_for_log(message_id=MESSAGE_ID["SECRETS_ON_DISK"])
    no_memory.stop()


@pytest.mark.parametrize("allowed", [False, True])
def test_a_run_by_hand(devserver, no_memory, handler, sandbox, allowed):
    no_memory.configure(devserver, [watch("s", handler, **SECRETS)], **(ALLOWED if allowed else {}))
    given = no_memory.folder / "given.json"
    given.write_text(json.dumps({**SECRETS, "metadata": {"name": "a", "namespace": "default"}}), encoding="utf-8")
    given.chmod(0o644)
    command = [str(sandbox.program("reconciledctl")), "run", "--object", str(given), "--config", str(no_memory.config_file)]
    done = subprocess.run(no_memory.user.command(command), env={**clean_environment(no_memory.user), **no_memory.environment},
                          capture_output=True, text=True, timeout=60, check=False)
    assert ("Secrets would reach a disk" in done.stderr) == (not allowed), done
    assert done.returncode == (0 if allowed else 78), done
