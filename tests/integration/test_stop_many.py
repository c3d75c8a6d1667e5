# SPDX-License-Identifier: Apache-2.0
"""What a stop costs grows with the number of serving handlers, not with its square."""
import os

import pytest

from harness import wait_until, watch

WORKERS, WATCHES = 4, 16
PROGRAM = """#!/bin/sh
{first}
while read -r line || {stubborn}; do
    id=${{line#*\\"id\\":}}
    echo "{{\\"id\\":${{id%%[!0-9]*}}}}"
done
"""


def reads(pid):
    """The read() calls of a process, and of all that it has waited for."""
    with open(f"/proc/{pid}/io", encoding="utf-8") as file:
        return int(dict(line.split(": ") for line in file.read().splitlines())["syscr"])


@pytest.mark.only_where(os.getuid() == 0, "root: other users' /proc/PID/io")
@pytest.mark.plain_only("a sanitizer's runtime reads /proc by itself")
@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.slow
def test_a_stop_does_not_look_through_all_processes_for_each_handler(operator, devserver, widgets, sandbox, stubborn):
    program = sandbox.subfolder("program") / "handler"
    program.write_text(PROGRAM.format(first="trap '' TERM" if stubborn else ":", stubborn="sleep 100" if stubborn else "false"),
                       encoding="utf-8")
    program.chmod(0o755)
    operator.configure(devserver, [{**watch(f"w{i}"), "id": f"w{i}", "handler": {"serve": [str(program)]}} for i in range(WATCHES)],
                       workers=WORKERS)
    operator.start_ready().wait_synced()
    names = [f"x{i}" for i in range(4 * WORKERS)]
    for name in names:
        widgets.create(name, spec={"turn": 0})
    turn = 0

    def all_serve():
        nonlocal turn
        turn += 1
        for name in names:
            widgets.merge_patch(name, {"spec": {"turn": turn}})
        return sum(str(program) in process.command for process in operator.user.processes()) == WORKERS * WATCHES

    wait_until(all_serve, "each worker to have a handler of each watch", deadline=120)
    before = 0

    def at_rest():  # a shell reads its request byte by byte: a run that is under way would count for thousands
        nonlocal before
        last, before = before, sum(reads(process.pid) for process in operator.user.processes())
        return before - last < 500

    wait_until(at_rest, "the last runs to end", interval=0.5)
    machine = sum(name.isdigit() for name in os.listdir("/proc"))
    supervisor = operator.pid
    operator.send_signal(15)
    # It stays a zombie, with the accounts of all that were below it.
    os.waitid(os.P_PID, supervisor, os.WEXITED | os.WNOWAIT)
    after = reads(supervisor)
    operator.wait_exit(0)
    # Handlers that must be killed are looked for once or twice by each worker, together.
    walks = 4 * WORKERS * machine if stubborn else 0
    assert after - before < 40 * WORKERS * WATCHES + walks, f"{after - before} reads for {WORKERS * WATCHES} handlers"
