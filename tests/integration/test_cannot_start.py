# SPDX-License-Identifier: Apache-2.0
"""An operator that cannot start says why, with a MESSAGE_ID, and with the exit code that decides over its restart."""
import pytest

from harness import watch
from harness.operator import MESSAGE_ID


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator


def cannot_start(operator, code, text):
    operator.start()
    operator.wait_exit(expect=code)
    [record] = operator.logs(message_id=MESSAGE_ID["CANNOT_START"])
    assert text in record["message"] and record["exit_code"] == str(code), record
    assert f"exit code {code}" in record["message"] and record["level"] == "error"


@pytest.mark.parametrize("which", ["runtime_directory", "state_directory"])
def test_a_file_in_the_place_of_a_folder(configured, sandbox, which):
    path = sandbox.subfolder("file", configured.user) / "file"
    path.touch()
    setattr(configured, which, path)
    cannot_start(configured, 78, f"{path} is not a folder")


def test_a_ledger_that_cannot_be_opened(configured):
    """What is wrong with the disk may pass: it is restarted. The journal knows what it is by its MESSAGE_ID."""
    (configured.state_directory / "ledger.sqlite").mkdir()
    cannot_start(configured, 74, "ledger")


def test_a_folder_whose_parent_is_missing(configured, sandbox):
    path = sandbox.subfolder("gone", configured.user) / "not mounted" / "run"
    configured.runtime_directory = path
    cannot_start(configured, 74, str(path))
