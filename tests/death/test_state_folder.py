# SPDX-License-Identifier: Apache-2.0
"""The state folder: on which file systems, and what happens when it can no longer be written. A clear end with 74, and nothing
lost once it can be written again."""
import contextlib
import errno
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import time

import pytest

from harness import ledger, wait_until, watch

# statfs(2) and its manual page
NETWORK = {"nfs": 0x6969, "smb": 0x517B, "smb2": 0xFE534D42, "cifs": 0xFF534D42, "fuse": 0x65735546, "ceph": 0x00C36400,
           "9p": 0x01021997, "afs": 0x5346414F, "coda": 0x73757245, "gfs2": 0x01161970, "ocfs2": 0x7461636F,
           "lustre": 0x0BD00BD0, "gpfs": 0x47504653, "vboxsf": 0x786F4256}
LOCAL = {"ext4": 0xEF53, "xfs": 0x58465342, "btrfs": 0x9123683E, "zfs": 0x2FC12FC1, "tmpfs": 0x01021994, "overlay": 0x794C7630,
         "f2fs": 0xF2F52010}


@pytest.fixture
def configured(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler)], workers=1, heartbeat={"interval": "100ms", "deadline": "10s"})
    return operator


@pytest.mark.parametrize("name", NETWORK)
def test_a_network_file_system_is_refused(configured, shim, name):
    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_STATFS=hex(NETWORK[name]))
    configured.start()
    configured.wait_exit(expect=78)
    configured.assert_no_processes()
    said = [record["message"] for record in configured.logs() if record["level"] in ("error", "critical")]
    assert len(said) == 1 and str(configured.state_directory) in said[0] and "use a local disk" in said[0], said
    assert not (configured.state_directory / "ledger.sqlite").exists()


@pytest.mark.parametrize("name", LOCAL)
def test_a_local_one_is_not(configured, shim, name):
    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_STATFS=hex(LOCAL[name]))
    configured.start_ready()
    configured.stop()


# ---- a disk that is full

@pytest.fixture
def small_disk(configured):
    """The state folder is a disk of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount one")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size=8m,mode=0700,uid={configured.user.uid},gid={configured.user.uid}",
                    "reconciled-test", str(configured.state_directory)], check=True)
    yield configured.state_directory
    subprocess.run(["umount", "--lazy", str(configured.state_directory)], check=True)


def fill(folder):
    filler = folder / "filler"
    with open(filler, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError as error:
            assert error.errno == errno.ENOSPC
    return filler


def assert_goes_on(operator, handler, names):
    """After the cause is gone: everything is handled, and once more it would be at rest."""
    operator.start_ready().wait_synced()
    for name in names:
        handler.wait_finished(name=name)
    operator.stop()
    assert not handler.requests(action="deleted")


def test_full_while_it_runs(configured, small_disk, handler, widgets):
    widgets.create("before", spec={})
    configured.start_ready().wait_synced()
    handler.wait_finished(name="before")
    filler = fill(small_disk)
    names = [f"w{i}" for i in range(200)]
    for name in names:
        widgets.create(name, spec={"text": "x" * 5000})
    configured.wait_exit(expect=74)
    configured.assert_no_processes()
    cause = configured.logs(level="critical")
    assert len(cause) == 1 and "No space left on device" in cause[0]["message"], cause
    filler.unlink()
    assert_goes_on(configured, handler, ["before", *names])


def test_full_while_a_list_fills_it(configured, small_disk, widgets):
    """The write that meets the end of the disk is cut short, which is no defect of the disk."""
    for i in range(60):
        widgets.create(f"w{i}", spec={"text": "x" * 200_000})
    configured.start()
    configured.wait_exit(expect=74)
    configured.assert_no_processes()
    cause = configured.logs(level="critical")
    assert len(cause) == 1 and "No space left on device" in cause[0]["message"], cause


def test_a_list_leaves_others_a_part_of_the_disk(configured, small_disk, widgets):
    subprocess.run(["mount", "-o", "remount,size=160m", str(small_disk)], check=True)
    with open(small_disk / "filler", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 144 << 20)
    for i in range(90):
        widgets.create(f"w{i}", spec={"text": "x" * 200_000})
    configured.start()
    configured.wait_exit(expect=74)
    configured.wait_for_log("leaves 5 % of the file system", level="critical")
    disk = os.statvfs(small_disk)
    assert disk.f_bavail * disk.f_frsize >= 160 / 20 * (1 << 20)


def test_full_at_the_start(configured, small_disk, handler, widgets):
    widgets.create("a", spec={})
    filler = fill(small_disk)
    configured.start()
    configured.wait_exit(expect=74)
    configured.assert_no_processes()
    assert "No space left on device" in configured.output.text() or "disk is full" in configured.output.text()
    filler.unlink()
    assert_goes_on(configured, handler, ["a"])


def test_read_only(configured, handler, widgets, small_disk):
    widgets.create("a", spec={})
    configured.start_ready().wait_synced()
    handler.wait_finished(name="a")
    configured.stop()
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    configured.start()
    configured.wait_exit(expect=74)
    configured.assert_no_processes()
    assert "Read-only file system" in configured.output.text()
    subprocess.run(["mount", "-o", "remount,rw", str(small_disk)], check=True)
    widgets.create("b", spec={})
    assert_goes_on(configured, handler, ["a", "b"])
    assert len(handler.requests(name="a")) == 1


# ---- a disk that fails

@pytest.mark.parametrize("program, pattern", [("reconciled", "ledger.sqlite"), ("reconciled-watcher", "data.mdb")])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_writing_fails(configured, shim, handler, widgets, program, pattern, number):
    armed = configured.folder / "armed"
    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_ARMED=armed,
                                  RECONCILED_DEATH_WRITES=f"{program} {pattern} {number}")
    widgets.create("before", spec={})
    configured.start_ready().wait_synced()
    handler.wait_finished(name="before")
    armed.touch()
    armed.chmod(0o644)
    widgets.create("a", spec={})
    widgets.delete("before")
    configured.wait_exit(expect=74)
    configured.assert_no_processes()
    cause = configured.logs(level="critical")
    assert len(cause) == 1 and "cannot be written" in cause[0]["message"], cause
    armed.unlink()
    configured.start_ready().wait_synced()
    handler.wait_finished(name="a")
    handler.wait_finished(name="before", action="deleted")
    configured.stop()


def log_salt(operator):
    """Another one each time that the ledger's log begins anew."""
    return (operator.state_directory / "ledger.sqlite-wal").read_bytes()[16:24]


def test_a_slow_disk_stops_nobody(configured, devserver, shim, handler, widgets):
    """The ledger's log is synced, checkpointed and begun anew while runs come and go; whoever syncs in the loop hangs."""
    armed = configured.folder / "armed"
    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_ARMED=armed, RECONCILED_DEATH_SYNCS="reconciled ledger.sqlite")
    works = handler.folder / "works"
    failing = f"[ -e {works} ] || {{ echo {'x' * 3000} >&2; exit 1; }}"  # rows of many pages
    configured.configure(devserver, [watch("widgets", ["/bin/sh", "-c", failing], retry={"first": "10ms", "max": "10ms"})], workers=2,
                         heartbeat={"interval": "100ms", "deadline": "10s"})
    configured.start_ready().wait_synced()
    armed.touch()
    armed.chmod(0o644)
    before = log_salt(configured)
    for i in range(20):
        widgets.create(f"w{i}", spec={})
    wait_until(lambda: configured.ctl.status()["watches"][0]["failing"] == 20 and log_salt(configured) != before,
               "the log to begin anew while people ask", deadline=60)
    works.touch()
    wait_until(lambda: configured.ctl.status()["watches"][0]["failing"] == 0, "all to be handled on the slow disk")
    assert not configured.logs(level="critical")
    armed.unlink()
    configured.stop()


def test_whoever_holds_the_ledger_with_a_tool_stops_nobody(configured, handler, widgets):
    configured.start_ready().wait_synced()
    with contextlib.closing(sqlite3.connect(configured.state_directory / "ledger.sqlite", isolation_level=None)) as tool:
        tool.execute("BEGIN IMMEDIATE")
        widgets.create("a", spec={})
        wait_until(lambda: configured.ctl.status()["workers"][0]["state"] != "idle", "a run that waits for its record")
        held = time.monotonic() + 1.5  # more than SQLite would wait by itself
        wait_until(lambda: configured.ctl.status() and time.monotonic() > held, "time to go by")
        configured.wait_for_log("the ledger could not be written for a second: another program holds it", level="warning")
        assert not handler.requests()
        tool.execute("ROLLBACK")
    handler.wait_finished(name="a")
    configured.stop()


# ---- the power fails

def on_the_disk(operator, name, folder):
    """Of the ledger, what had been synced for sure."""
    path = operator.state_directory / name
    synced = path.with_name(f"{name}.synced")
    with contextlib.suppress(FileNotFoundError):
        shutil.copy(synced if synced.exists() or name.endswith("-wal") else path, folder / name)


def rows_on_the_disk(operator, folder):
    for name in ("ledger.sqlite", "ledger.sqlite-wal"):
        on_the_disk(operator, name, folder)
    (folder / "ledger.sqlite-shm").unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(folder / "ledger.sqlite")) as database:
        return {key: (attempts, fingerprint)
                for key, attempts, fingerprint in database.execute("SELECT key, attempts, fingerprint FROM ledger")}


def lose_power(operator, folder):
    """Everything ends at once; of the ledger there is what had been synced, and the store is of another boot."""
    rows_on_the_disk(operator, folder)
    operator.send_signal(signal.SIGKILL)
    operator.wait_exit()
    operator.assert_no_processes()
    for path in operator.state_directory.glob("ledger.sqlite*"):
        path.unlink()
    for name in ("ledger.sqlite", "ledger.sqlite-wal"):
        with contextlib.suppress(FileNotFoundError):
            shutil.copy(folder / name, operator.state_directory / name)
            os.chown(operator.state_directory / name, operator.user.uid, operator.user.uid)
    current = operator.state_directory / "store" / "widgets" / "CURRENT"
    generation, _ = current.read_text(encoding="ascii").split()
    current.write_text(f"{generation} 00000000-0000-0000-0000-000000000000\n", encoding="ascii")


def test_power_is_lost(configured, devserver, shim, handler, widgets, tmp_path):
    """What was written a moment ago is run again; what is older is neither repeated, nor is its backoff forgotten."""
    names = ["a", "b", "bad", "gone", "poison"]
    configured.configure(devserver, [watch("widgets", handler, retry={"first": "1h", "max": "1h"})], workers=1,
                         heartbeat={"interval": "100ms", "deadline": "10s"})
    for name in names:
        widgets.create(name, spec={"size": 1})
    configured.start_ready().wait_synced()
    for name in names:
        handler.wait_finished(name=name)
    configured.stop()
    with ledger.edit(configured) as database:
        now = int(time.time() * 1e6)
        database.execute("UPDATE ledger SET crashes = 3, crashed_realtime = ?, quarantined_until = ? WHERE key LIKE '%poison'",
                         (now, now + 3600 * 1000000))

    configured.environment.update(LD_PRELOAD=shim, RECONCILED_DEATH_SYNCS="reconciled ledger.sqlite")
    handler.behave("[ $RECONCILED_NAME != bad ]")
    configured.start_ready().wait_synced()
    done = rows_on_the_disk(configured, tmp_path)
    for name in ("a", "bad"):
        widgets.merge_patch(name, {"spec": {"size": 2}})
    wait_until(lambda: (now := rows_on_the_disk(configured, tmp_path)) and now["default/bad"][0] == 1 and
               now["default/a"][1] != done["default/a"][1], "a run and a failure to be on the disk")
    widgets.create("late", spec={"size": 1})
    handler.wait_finished(name="late")
    lose_power(configured, tmp_path)
    widgets.delete("gone")

    configured.environment.pop("LD_PRELOAD")
    configured.start_ready().wait_synced()
    handler.wait_finished(name="gone", action="deleted")
    widgets.create("end", spec={"size": 1})
    handler.wait_finished(name="end")
    status = configured.ctl.status()
    assert status["watches"][0]["failing"] == 1
    assert [one["key"] for one in status["quarantine"]] == ["default/poison"]
    configured.stop()
    count = {name: len(handler.requests(name=name, action="reconcile")) for name in [*names, "late"]}
    assert count.pop("late") in (1, 2)
    assert count == {"a": 2, "b": 1, "bad": 2, "gone": 1, "poison": 1}
    assert [run.name for run in handler.requests(action="deleted")] == ["gone"]


# ---- no descriptors

@pytest.mark.parametrize("limit", [6, 9, 12, 16, 18, 20])
def test_too_few_descriptors_at_the_start(configured, handler, widgets, limit):
    """A named end or a start, never something in between."""
    command = configured.user.command
    configured.user.command = lambda words: ["prlimit", f"--nofile={limit}:{limit}", "--", *command(words)]
    try:
        configured.start()
    finally:
        configured.user.command = command
    wait_until(lambda: configured.popen.poll() is not None or any("READY" in told for told in configured.notifications),
               "its start or its end")
    if configured.popen.poll() is not None:
        assert configured.wait_exit() in (70, 74)
        assert "Too many open files" in configured.output.text() or "unable to open database file" in configured.output.text()
    else:
        configured.stop()
    configured.assert_no_processes()
    widgets.create("a", spec={})
    assert_goes_on(configured, handler, ["a"])


HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def limit_descriptors(operator, pid, soft):
    """As its own user: root in a container may not."""
    subprocess.run(operator.user.command(["prlimit", f"--pid={pid}", f"--nofile={soft}:"]), check=True)


def test_no_descriptors_for_the_watcher_any_more(configured, handler, widgets, devserver):
    """Its next connection cannot be opened: it waits, degraded, and goes on when it can."""
    configured.start_ready().wait_synced()
    pid = configured.child("watcher").pid
    limit_descriptors(configured, pid, 3)
    devserver.close_watches("cut")
    widgets.create("a", spec={})
    wait_until(lambda: configured.ctl.status()["watches"][0]["state"] != "in-sync", "the watch to be in trouble")
    limit_descriptors(configured, pid, HARD)
    handler.wait_finished(name="a")
    configured.stop()


def test_no_descriptors_for_a_worker_any_more(configured, handler, widgets):
    """It cannot start a handler: that is a failed attempt, with this reason."""
    configured.start_ready().wait_synced()
    pid = configured.child("worker").pid
    limit_descriptors(configured, pid, 3)
    widgets.create("a", spec={})
    wait_until(lambda: "Too many open files" in str(configured.ctl.status()["failing"]), "an attempt to fail")
    limit_descriptors(configured, pid, HARD)
    handler.wait_finished(name="a")
    wait_until(lambda: not configured.ctl.status()["failing"], "the failure to be over")
    configured.stop()
    assert not configured.logs(level="critical")


def rows_of(operator, name):
    return ledger.read(operator, f"SELECT handled_realtime > 0 FROM ledger WHERE key = 'default/{name}'")


def processor_time(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        return sum(int(ticks) for ticks in stat.read().rsplit(")", 1)[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def test_no_descriptors_for_the_supervisor_any_more(configured, handler, widgets):
    """Who asks must wait, and does not keep it from its work."""
    widgets.create("before", spec={})
    configured.start_ready().wait_synced()
    handler.wait_finished(name="before")
    wait_until(lambda: rows_of(configured, "before") == [(1,)] and configured.ctl.status()["workers"][0]["state"] == "idle",
               "its record: what the supervisor needs for a run it has from then on")
    limit_descriptors(configured, configured.pid, 3)
    command = configured.user.command([str(configured.sandbox.program("reconciledctl")), "--runtime-directory",
                                       str(configured.runtime_directory), "status"])
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as asking:
        configured.wait_for_log("cannot answer reconciledctl, which waits: Too many open files")
        used, end = processor_time(configured.pid), time.monotonic() + 1
        widgets.create("a", spec={})
        handler.wait_finished(name="a")
        wait_until(lambda: time.monotonic() > end, "a second to go by")
        assert processor_time(configured.pid) - used < (time.monotonic() - end + 1) / 2, "it does nothing else"
        limit_descriptors(configured, configured.pid, HARD)
        wait_until(lambda: asking.poll() is not None, "an answer, or no more patience")
    assert configured.ctl.status()["watches"][0]["state"] == "in-sync"
    configured.stop()
    assert len(configured.logs(where=lambda record: "cannot answer reconciledctl" in record["message"])) == 1


def test_a_folder_that_is_not_ours(configured):
    os.chown(configured.state_directory, 0, 0)
    configured.start()
    configured.wait_exit(expect=74)
    assert "Permission denied" in configured.output.text()
