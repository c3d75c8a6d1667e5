# SPDX-License-Identifier: Apache-2.0
"""What a tenant cannot do by objects that fail in new ways for ever: fill the disk."""
import pytest

from harness import wait_until, watch

# A new cause each time, and more of it than anybody reads.
FAILS = """head -c 60000 /dev/urandom | base64 -w 1500 >&2; echo "cause $RECONCILED_NAME $(date +%N)" >&2; exit 1"""
LOG_OF_LEDGER = 17 * 1024 * 1024  # what it may keep allocated
RECORDS, WORKERS, PRUNE_EVERY = 1000, 4, 16


def files(*folders):
    """{path: bytes on the disk} of all files below."""
    return {path: path.stat().st_blocks * 512 for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("runs", [pytest.param(250, marks=pytest.mark.slow), pytest.param(1500, marks=pytest.mark.long)])
def test_objects_that_fail_in_new_ways_for_ever_fill_no_folder(devserver, operator, make_handler, widgets, runs):
    """In state, runtime and recordings: no file for each failure, and none that grows with their number."""
    handler = make_handler(FAILS)
    records = operator.folder / "records"
    operator.arguments += ["--record", str(records)]
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "10ms", "max": "20ms"})], workers=WORKERS)
    operator.start_ready().wait_synced()
    for number in range(WORKERS):
        widgets.create(f"w{number}", spec={})

    def after(count):
        wait_until(lambda: handler.count() >= count, f"{count} runs", 300)
        return files(operator.state_directory, operator.runtime_directory)

    # By then the history holds as many runs of each object as it may.
    first, last = after(runs // 2), after(runs)
    operator.stop()
    assert set(first) == set(last)
    for path, size in last.items():
        assert size <= (LOG_OF_LEDGER if path.name == "ledger.sqlite-wal" else max(first[path], 1024 * 1024)), path
    assert len(files(records)) <= RECORDS + WORKERS * PRUNE_EVERY
