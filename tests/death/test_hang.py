# SPDX-License-Identifier: Apache-2.0
"""What hangs, and what does not want to end."""
import os
import signal

import pytest

from harness import wait_until, watch

FULL = os.environ.get("RECONCILED_FULL") == "1"
MEGABYTES = 10_000 if FULL else 300

pytestmark = pytest.mark.quiet


@pytest.mark.parametrize("role", ["credential", "watcher", "worker", "gateway", "spawner"])
def test_the_watchdog_is_not_fed_for_it(devserver, make_operator, handler, role):
    operator = make_operator(watchdog=10.0)
    operator.configure(devserver, [watch("widgets", handler)], workers=1, heartbeat={"interval": "50ms", "deadline": "700ms"},
                       gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})
    operator.start_ready()
    operator.wait_notification("WATCHDOG", "1")
    child = operator.child(role)
    child.kill(signal.SIGSTOP)
    operator.wait_exit(expect=70)
    operator.assert_no_processes()
    cause = operator.logs(level="critical")
    assert len(cause) == 1 and role in cause[0]["message"] and f"pid {child.pid}" in cause[0]["message"]
    assert "hangs: no heartbeat" in cause[0]["message"]
    fed = [told["_received"] for told in operator.notifications if told.get("WATCHDOG") == "1"]
    assert not [when for when in fed if when > cause[0]["_received"] + 0.1], "fed after the cause was known"


# Each would be at it for ever.
HANDLERS = {
    "forks-a-daemon": "setsid -f sh -c \"trap '' TERM HUP; while :; do sleep 1; done\" <&- >&- 2>&-",
    "forks-a-daemon-and-stays": "setsid -f sh -c \"trap '' TERM HUP; while :; do sleep 1; done\" <&- >&- 2>&-\nsleep 1000",
    "closes-its-pipes": "exec <&- >&- 2>&-\nsleep 1000",
    "closes-its-pipes-and-is-done": "exec <&- >&- 2>&-\n(trap '' TERM; sleep 1000) &",
    "writes-without-end": f"trap '' TERM\ndd if=/dev/zero bs=1M count={MEGABYTES} 2>/dev/null\nsleep 1000",
    "writes-lines-without-end": f"trap '' TERM\nyes | dd bs=1M count={MEGABYTES // 10} iflag=fullblock >&2 2>/dev/null\nsleep 1000",
    "leaves-its-session": "exec setsid sh -c \"trap '' TERM HUP; while :; do sleep 1; done\"",
    "stops-itself": "kill -STOP $$",
    "stops-its-group": "kill -STOP 0",
    "is-many": "for i in $(seq 40); do (trap '' TERM; while :; do sleep 1; done) & done\nwait",
    "breeds": "trap '' TERM\nbreed() { while :; do (trap '' TERM; sleep 0.05; setsid -f sleep 1000) & sleep 0.02; done; }\nbreed",
}


@pytest.fixture
def misbehaving(devserver, operator, make_handler, widgets):
    """One worker more than there are bad objects (`bad`, or by their names), which get handlers of their own; others get one that
    is done at once."""
    def start(*script, timeout="1500ms", **named):
        cases = "".join(f"{name})\n{text}\n;;\n" for name, text in [*zip(["bad"], script), *named.items()])
        handler = make_handler(f"case $RECONCILED_NAME in\n{cases}esac\nexit 0")
        operator.configure(devserver, [watch("widgets", handler, retry={"first": "1h", "max": "1h"},
                                             handler_options={"timeout": timeout, "grace": "200ms"})],
                           workers=len(script) + len(named) + 1, stop={"grace": "200ms"})
        operator.start_ready().wait_synced()
        return handler

    return start


@pytest.mark.parametrize("name", HANDLERS)
def test_it_ends_with_all_that_it_started_and_harms_nobody(misbehaving, operator, widgets, name):
    handler = misbehaving(HANDLERS[name])
    widgets.create("bad", spec={})
    handler.wait_for(name="bad")
    for i in range(5):
        widgets.create(f"good-{i}", spec={})
        handler.wait_finished(name=f"good-{i}", deadline=10)
    wait_until(lambda: all(worker["state"] == "idle" for worker in operator.ctl.status()["workers"]), "both workers to be idle")
    ours = {operator.pid} | {child.pid for child in operator.children()}
    wait_until(lambda: {found.pid for found in operator.processes()} == ours,
               lambda: f"the end of what it started: {operator.processes()}")
    widgets.create("after-1", spec={})
    widgets.create("after-2", spec={})
    handler.wait_finished(name="after-1")
    handler.wait_finished(name="after-2")
    assert len(handler.requests(name="bad")) == 1
    operator.stop()


# Those that do not end by themselves.
STAY = [name for name in HANDLERS if name not in ("forks-a-daemon", "closes-its-pipes-and-is-done", "leaves-its-session", "breeds")]


def test_others_are_served_while_it_is_at_it(misbehaving, operator, widgets):
    """As many workers as bad objects are gone for an hour; the one that is left serves all others."""
    bad = {f"bad-{i}": HANDLERS[name] for i, name in enumerate(STAY)}
    handler = misbehaving(timeout="1h", **bad)
    for name in bad:
        widgets.create(name, spec={})
        handler.wait_for(name=name)
    for i in range(5):
        widgets.create(f"good-{i}", spec={})
        handler.wait_finished(name=f"good-{i}")

    def busy_with():
        return sorted(worker.get("key", "") for worker in operator.ctl.status()["workers"] if worker["state"] != "idle")

    wait_until(lambda: busy_with() == [f"default/{name}" for name in bad], lambda: f"all others to be done: {busy_with()}")
    operator.stop()
    operator.assert_no_processes()


def test_it_reads_nothing_of_a_large_request(misbehaving, operator, widgets):
    handler = misbehaving("")
    original = handler.script.rename(handler.folder / "original")
    handler.script.write_text(f"#!/bin/sh\ncase $RECONCILED_NAME in bad) exec sleep 1000 ;; esac\nexec {original}\n")
    handler.script.chmod(0o755)
    widgets.create("bad", spec={"text": "x" * 1_000_000})
    widgets.create("good", spec={"text": "x" * 1_000_000})
    handler.wait_finished(name="good")
    operator.wait_for_log("did not end within its timeout", key="default/bad")
    ours = {operator.pid} | {child.pid for child in operator.children()}
    wait_until(lambda: {found.pid for found in operator.processes()} == ours, "its end")
    operator.stop()


def test_memory_is_not_what_it_writes(misbehaving, operator, widgets):
    """It gets rid of all of it."""
    handler = misbehaving(f"dd if=/dev/zero bs=1M count={MEGABYTES} 2>/dev/null && : >$REQUEST.written", timeout="30m")
    widgets.create("bad", spec={})
    request = handler.wait_for(name="bad")
    wait_until(request.path.with_name(f"{request.path.name}.written").exists, "all of it to be taken", 1200 if FULL else 60)
    for worker in operator.children("worker"):
        with open(f"/proc/{worker.pid}/status", encoding="utf-8") as status:
            peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM:"))
        assert peak < 64 * 1024, f"{peak} kB"
    operator.stop()


def test_a_handler_that_stops_its_worker(misbehaving, operator, widgets):
    """Same user, so it can. It is found, named, and all of it ends."""
    operator_deadline = {"interval": "100ms", "deadline": "1s"}
    handler = misbehaving("kill -STOP $PPID; sleep 1000")
    operator.stop()
    operator.write_config(operator.config_file.read_text() + f"heartbeat: {operator_deadline}\n")
    operator.start_ready().wait_synced()
    widgets.create("bad", spec={})
    handler.wait_for(name="bad")
    operator.wait_exit(expect=70)
    operator.assert_no_processes()
    cause = operator.logs(level="critical")
    assert len(cause) == 1 and "hangs" in cause[0]["message"] and "busy with default/bad" in cause[0]["message"]


def test_a_stalled_reader_of_the_log_stops_nobody(devserver, operator, make_handler, widgets):
    """stdout of everything is a pipe that nobody reads: lines are dropped and counted, runs go on."""
    handler = make_handler("yes 'a line of a talkative handler, a hundred and more bytes long, so that it is soon too much for "
                           "any pipe' | head -n 20000 >&2; exit 0")
    operator.configure(devserver, [watch("widgets", handler)], workers=1, heartbeat={"interval": "100ms", "deadline": "20s"})
    operator.start_ready().wait_synced()
    operator.output.pause()
    try:
        for i in range(6):
            widgets.create(f"w{i}", spec={})
            handler.wait_finished(name=f"w{i}")
        wait_until(lambda: operator.ctl.status()["logLinesDropped"] > 0, "the count of dropped lines")
    finally:
        operator.output.resume()
    widgets.create("last", spec={})
    handler.wait_finished(name="last")
    operator.stop()
