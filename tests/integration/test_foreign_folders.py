# SPDX-License-Identifier: Apache-2.0
"""What others could have put there is not used: folders of other users, folders that others may write, and links."""
import os
import shutil
import subprocess

import pytest

from harness import wait_until, watch
from harness.rights import OTHER_GROUP, USER, write_list

SECRET = "not for others"

pytestmark = pytest.mark.only_where(os.getuid() == 0, "root: folders of several users")


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)])
    return operator


@pytest.fixture
def foreign(sandbox):
    """A folder of another user, in which everybody may write."""
    return sandbox.subfolder("foreign", sandbox.user(), 0o777)


def refused(operator, *said):
    operator.start().wait_exit(78)
    output = operator.output.text()
    assert all(word in output for word in said), output


@pytest.mark.parametrize("which", ["state_directory", "runtime_directory"])
def test_a_folder_of_another_user(configured, foreign, which):
    setattr(configured, which, foreign)
    refused(configured, str(foreign), "belongs to", str(foreign.stat().st_uid), "chown")
    assert not list(foreign.iterdir())


@pytest.mark.parametrize("which", ["state_directory", "runtime_directory"])
def test_below_a_folder_of_another_user(configured, foreign, which):
    (foreign / "mine").mkdir()
    configured.user.give(foreign / "mine", 0o700)
    setattr(configured, which, foreign / "mine")
    refused(configured, str(foreign), "belongs to")


@pytest.mark.parametrize("mode", [0o707, 0o777])
def test_a_folder_that_others_may_write(configured, mode):
    configured.state_directory.chmod(mode)
    refused(configured, str(configured.state_directory), "chmod o-w")
    configured.state_directory.chmod(0o755)
    configured.start_ready().stop()


@pytest.mark.parametrize("which", ["state_directory", "runtime_directory"])
@pytest.mark.parametrize("owner", ["root", "operator"])
@pytest.mark.parametrize("above", [False, True], ids=["itself", "above"])
def test_a_folder_that_another_group_may_write(configured, sandbox, which, owner, above):
    """Whoever may write there can put another ledger in the place of ours, and so make us forget a deletion."""
    folder = sandbox.subfolder("shared", mode=0o2770)
    os.chown(folder, 0 if owner == "root" else configured.user.uid, sandbox.user().uid)
    folder.chmod(0o2775)
    if above:
        (folder / "mine").mkdir()
        configured.user.give(folder / "mine", 0o700)
    setattr(configured, which, folder / "mine" if above else folder)
    refused(configured, str(folder), "chmod g-w")


@pytest.mark.parametrize("tag", [USER, OTHER_GROUP])
def test_a_folder_that_a_list_of_rights_opens(configured, sandbox, tag):
    write_list(configured.state_directory, tag, sandbox.user().uid, 7)
    refused(configured, str(configured.state_directory), "chmod g-w")
    write_list(configured.state_directory, tag, sandbox.user().uid, 5)
    configured.start_ready().stop()


@pytest.mark.parametrize("name", ["ledger.sqlite", "ledger.sqlite-wal", "instance", "store"])
def test_what_another_user_has_put_there(configured, sandbox, name):
    configured.start_ready().wait_synced().stop()
    path = configured.state_directory / name
    if path.exists():
        sandbox.user().give(path)
    else:
        path.write_bytes(b"")
        sandbox.user().give(path, 0o666)
    refused(configured, str(path), "belongs to")


@pytest.mark.parametrize("name", ["ledger.sqlite", "store", "store/widgets"])
def test_a_link(configured, sandbox, name):
    configured.start_ready().wait_synced().stop()
    path = configured.state_directory / name
    elsewhere = sandbox.subfolder("elsewhere", configured.user, 0o700) / "target"
    shutil.move(path, elsewhere)
    path.symlink_to(elsewhere)
    os.chown(path, configured.user.uid, -1, follow_symlinks=False)
    before = sorted((each.name, each.stat().st_mtime_ns) for each in elsewhere.parent.rglob("*"))
    refused(configured, str(path), "symbolic link")
    assert sorted((each.name, each.stat().st_mtime_ns) for each in elsewhere.parent.rglob("*")) == before


def test_a_link_to_a_folder_of_ones_own_is_followed(configured):
    link = configured.folder / "link"
    link.symlink_to(configured.state_directory)
    configured.state_directory, real = link, configured.state_directory
    configured.start_ready().stop()
    assert (real / "ledger.sqlite").exists()


def test_root_does_not_use_the_folder_of_another_user(configured, foreign, sandbox):
    foreign.chmod(0o700)
    runtime = sandbox.subfolder("run-of-root", mode=0o700)
    done = subprocess.run([sandbox.program("reconciled"), "--config", configured.config_file, "--log", "text",
                           "--state-directory", foreign, "--runtime-directory", runtime], capture_output=True, text=True,
                          timeout=60, check=False)
    assert done.returncode == 78 and str(foreign) in done.stderr and "belongs to" in done.stderr, done


@pytest.mark.parametrize("planted", [False, True])
def test_a_record_folder_of_another_user(configured, devserver, widgets, sandbox, handler, planted):
    other = sandbox.user()
    folder = sandbox.subfolder("record", other if not planted else configured.user, 0o777)
    configured.arguments += ["--record", str(folder)]
    configured.start_ready().wait_synced()
    if planted:  # what the next run would be written to
        for worker in configured.user.processes():
            if worker.program == "reconciled-worker":
                path = folder / f".{worker.pid}.new"
                path.write_bytes(b"")
                other.give(path, 0o666)
    widgets.create("w", spec={"secret": SECRET})
    handler.wait_finished(name="w")
    configured.stop()
    assert "runs are not recorded" in configured.output.text() and str(folder) in configured.output.text()
    assert not any(SECRET in path.read_text(encoding="utf-8") for path in folder.iterdir())


def test_a_record_folder_of_ones_own(configured, widgets, sandbox, handler):
    folder = sandbox.subfolder("record", configured.user, 0o700)
    configured.arguments += ["--record", str(folder)]
    configured.start_ready().wait_synced()
    widgets.create("w", spec={"secret": SECRET})
    wait_until(lambda: any(SECRET in path.read_text(encoding="utf-8") for path in folder.glob("*.jsonl")), "the record")
    configured.stop()
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in folder.iterdir())


@pytest.mark.parametrize("which", ["state_directory", "runtime_directory"])
@pytest.mark.only_where(os.getuid() == 0 and os.stat("/proc/self/ns/pid").st_ino == 0xEFFFFFFC,
                        "root on a machine itself, not in a container: to mount a file system that everybody may write")
def test_a_mount_that_everybody_may_write(configured, which):
    """Root's, and mode 0777: in a container it would be a volume of the pod, here every user of the machine could tamper."""
    path = getattr(configured, which)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m,mode=0777", "reconciled-test", str(path)], check=True)
    try:
        refused(configured, str(path), "chmod o-w")
        assert not list(path.iterdir())
        setattr(configured, which, path / "inside")
        refused(configured, str(path), "chmod o-w")
        path.chmod(0o1777)
        configured.start_ready().stop()
        assert (path / "inside").stat().st_mode & 0o777 == 0o700
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)
