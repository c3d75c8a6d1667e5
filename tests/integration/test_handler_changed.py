# SPDX-License-Identifier: Apache-2.0
"""A handler that has changed is a change: what failed under the former one runs again, at a start and at a reload."""
import os
import signal

import pytest

from harness import ledger, wait_until, watch
from harness.gateway import Gateway
from harness.operator import MESSAGE_ID

# What its spec says: ok-*, retry-* and permanent-*.
BROKEN = """case $RECONCILED_NAME in retry*) echo no luck >&2; exit 75;; permanent*) echo wrong >&2; exit 65;; esac
printf '{"status":{"by":"broken"}}'"""
MENDED = """printf '{"status":{"by":"mended"}}'"""


@pytest.fixture
def start(devserver, operator, handler):
    """configure(**more): of the watch; start(): and starts it."""
    def configure(command=None, keys=None, top=None, **more):
        settings = {"retry": {"first": "1h", "max": "1h"}, **more}
        entry = watch("widgets", handler, **settings)
        entry["handler"] = {**entry["handler"], **({"exec": command} if command else {}), **(keys or {})}
        operator.configure(devserver, [entry], heartbeat={"interval": "100ms", "deadline": "20s"},
                           gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"}, **(top or {}))
        operator.gateway = Gateway(operator.runtime_directory / "gateway.sock")

    def start(**more):
        configure(**more)
        return operator.start_ready().wait_synced()

    start.configure = configure
    handler.behave(BROKEN)
    return start


def release(handler, number=2):
    """What the handler's program sources is not seen; the program is."""
    new = handler.script.with_suffix(".new")
    new.write_text(handler.script.read_text(encoding="utf-8") + f"# release {number}\n", encoding="utf-8")
    new.chmod(0o755)
    new.replace(handler.script)


def mend(handler):
    handler.behave(MENDED)
    release(handler)


def row(operator):
    return operator.ctl.status()["watches"][0]


def known(operator):
    """Its handler has been looked at; which one it is (a release that looks at none says nothing)."""
    return wait_until(lambda: row(operator).get("handler", {"hash": "none"})["hash"], "the handler to be looked at")


def looked_again(operator, before):
    wait_until(lambda: known(operator) != before, "another hash")


def wait_failing(operator, failing, permanent):
    wait_until(lambda: (row(operator)["failing"], row(operator)["permanent"]) == (failing, permanent),
               lambda: f"{failing} failing, {permanent} for good: {row(operator)}")


def given_up(operator, handler, widgets, *names):
    for name in names:
        widgets.create(name)
        handler.wait_finished(name=name)
    wait_failing(operator, len(names), sum(name.startswith("permanent") for name in names))


def by(widgets, name):
    return (widgets.get(name).get("status") or {}).get("by")


def wait_mended(widgets, *names):
    for name in names:
        wait_until(lambda name=name: by(widgets, name) == "mended", lambda name=name: f"{name} to be mended: {widgets.get(name)}")


def said(operator):
    return operator.logs(message_id=MESSAGE_ID["HANDLER_CHANGED"])


def recorded(operator):
    """Which handler the ledger knows."""
    return ledger.read(operator, "SELECT scope FROM scope WHERE watch = 'widgets/handler'")


def test_what_failed_for_good_runs_at_a_reload_with_another_program(start, operator, handler, widgets):
    start()
    known(operator)
    given_up(operator, handler, widgets, "permanent-a", "permanent-b", "retry")
    widgets.create("ok")
    handler.wait_finished(name="ok")
    operator.reload()
    mend(handler)
    assert "failed for good" in operator.ctl.run("explain", "widgets", "default/permanent-a").stdout
    operator.reload()
    wait_mended(widgets, "permanent-a", "permanent-b", "retry")
    runs = handler.requests(name="permanent-a")
    assert [run.body["reason"] for run in runs] == ["added", "handlerChanged"]
    assert runs[1].body["attempt"] == 1, "it begins anew"
    assert handler.requests(name="ok")[1:] == [], "it had not failed"
    [line] = said(operator)
    assert line["watch"] == "widgets" and line["level"] == "notice" and "3 objects have failed" in line["message"]
    operator.gateway.wait('reconciled_handler_changes_total{watch="widgets"}', 1)
    operator.gateway.wait('reconciled_handler_change_objects_total{watch="widgets"}', 3)
    wait_until(lambda: "its handler changed" in operator.ctl.run("status").stdout, "the status to say it")
    wait_failing(operator, 0, 0)
    operator.stop()


def test_what_failed_for_good_runs_at_the_next_start(start, operator, handler, widgets):
    start()
    known(operator)
    given_up(operator, handler, widgets, "permanent", "retry")
    operator.stop()
    operator.start_ready().wait_synced()
    known(operator)
    assert not said(operator), "it is the same one"
    operator.stop()
    mend(handler)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent", "retry")
    assert len(handler.requests(name="permanent")) == 2
    operator.stop()


@pytest.mark.parametrize("what", ["script", "argument", "environment", "version"])
def test_all_that_makes_a_handler_counts(start, operator, handler, widgets, what):
    """A script behind its interpreter, an argument, a variable, and a version of what lies elsewhere."""
    command = ["/usr/bin/env", "sh", str(handler.script)[1:]]  # a relative path: handlers start in the root folder
    start(command=command, keys={"environment": {"TOKEN": "one"}, "version": "1"})
    before = known(operator)
    given_up(operator, handler, widgets, "permanent")
    handler.behave(MENDED)
    more = {"environment": {"TOKEN": "two" if what == "environment" else "one"}, "version": "2" if what == "version" else "1"}
    start.configure(command=command + (["-x"] if what == "argument" else []), keys=more)
    if what == "script":
        release(handler)
    operator.reload()
    looked_again(operator, before)
    wait_mended(widgets, "permanent")
    operator.stop()
    for file in operator.state_directory.glob("ledger.sqlite*"):
        assert b"two" not in file.read_bytes(), "values may be secret"


def test_a_version_may_come_from_the_operators_environment(start, operator, handler, widgets):
    """As the tag of its image, which a container is given so."""
    operator.environment["IMAGE_TAG"] = "1"
    start(keys={"version": "release-${IMAGE_TAG}"})
    known(operator)
    given_up(operator, handler, widgets, "permanent")
    operator.stop()
    operator.environment["IMAGE_TAG"] = "2"
    handler.behave(MENDED)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent")
    operator.stop()
    start.configure(keys={"version": "${NO_SUCH_TAG}"})
    assert "the environment has no variable NO_SUCH_TAG" in operator.ctl.run("check", str(operator.config_file)).stdout


def test_times_of_a_file_and_an_untouched_reload_run_nothing(start, operator, handler, widgets):
    start(keys={"environment": {"A": "1", "B": "2"}})
    before = known(operator)
    given_up(operator, handler, widgets, "permanent")
    handler.script.write_bytes(handler.script.read_bytes())
    os.utime(handler.script, (1, 1))
    start.configure(keys={"environment": {"B": "2", "A": "1"}}, resync="9h")
    operator.reload()
    widgets.create("ok")
    handler.wait_finished(name="ok")
    operator.reload()
    operator.stop()
    operator.start_ready().wait_synced()
    assert known(operator) == before
    assert len(handler.requests(name="permanent")) == 1 and not said(operator)
    operator.stop()


@pytest.mark.slow
def test_without_a_record_of_a_former_handler_nothing_has_changed(start, operator, handler, widgets):
    """As after an upgrade. The next change is seen."""
    start()
    known(operator)
    given_up(operator, handler, widgets, "permanent")
    operator.stop()
    with ledger.edit(operator) as database:
        assert database.execute("DELETE FROM scope WHERE watch = 'widgets/handler'").rowcount == 1
    release(handler, 2)
    operator.start_ready().wait_synced()
    second = known(operator)
    assert not said(operator) and len(handler.requests(name="permanent")) == 1
    (operator.state_directory / "handler-key").unlink()
    operator.stop()
    operator.start_ready().wait_synced()
    assert known(operator) != second, "another key makes other hashes"
    assert not said(operator) and len(handler.requests(name="permanent")) == 1
    operator.stop()
    handler.behave(MENDED)
    release(handler, 3)
    operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent")
    operator.stop()


def test_check_says_what_runs(start, operator):
    start.configure(onHandlerChange="all")
    said = operator.ctl.run("check", str(operator.config_file)).stdout
    assert "onHandlerChange (widgets)" in said and "every object runs again" in said


@pytest.mark.parametrize("mode", ["all", "none"])
def test_the_watch_says_what_runs(start, operator, handler, widgets, mode):
    start(onHandlerChange=mode)
    before = known(operator)
    widgets.create("ok")
    handler.wait_finished(name="ok")
    given_up(operator, handler, widgets, "permanent")
    mend(handler)
    operator.reload()
    if mode == "all":
        wait_mended(widgets, "ok", "permanent")
    else:
        looked_again(operator, before)
        assert "nothing runs for that" in said(operator)[0]["message"]
        assert handler.count() == 2
        start.configure()
        operator.reload()  # that it changed once is no change now
        widgets.create("new")
        handler.wait_finished(name="new")
        assert handler.count() == 3
    operator.stop()


def test_attempts_that_are_used_up_begin_anew(start, operator, handler, widgets):
    start(retry={"first": "1ms", "max": "1ms", "attempts": 3})
    known(operator)
    widgets.create("retry")
    wait_failing(operator, 1, 1)
    assert len(handler.requests(name="retry")) == 3
    release(handler)
    operator.reload()
    wait_until(lambda: len(handler.requests(name="retry")) == 6, "three attempts of the new one")
    wait_failing(operator, 1, 1)
    assert [run.body["attempt"] for run in handler.requests(name="retry")] == [1, 2, 3, 1, 2, 3]
    operator.stop()


def test_a_run_of_the_former_handler_that_ends_late_is_not_the_last_word(start, operator, handler, widgets):
    gate = handler.folder / "gate"
    handler.behave(f"while [ ! -e {gate} ]; do sleep 0.02; done; {BROKEN}")
    start(top={"stop": {"grace": "60s"}})
    known(operator)
    widgets.create("permanent")
    handler.wait_for(name="permanent")
    mend(handler)
    os.kill(operator.pid, signal.SIGHUP)
    wait_until(lambda: said(operator), "the change to be seen")
    gate.touch()
    wait_mended(widgets, "permanent")
    operator.stop()


@pytest.mark.slow
def test_there_and_back_while_the_operator_is_killed(start, operator, handler, widgets):
    """Each release that the operator gets to see, and SIGKILL as soon as it has: nothing is lost, nothing runs for ever."""
    first = handler.script.read_text(encoding="utf-8")
    names = [f"permanent-{number}" for number in range(30)]
    start()
    known(operator)
    given_up(operator, handler, widgets, *names)
    # A run that ends with the last release before the operator is killed is given up, and MENDED is no release.
    handler.behave(handler.held)
    for number in range(4):
        release(handler, 2) if number % 2 == 0 else handler.script.write_text(first, encoding="utf-8")
        operator.stop() if number == 0 else None
        before = recorded(operator)
        operator.start()
        wait_until(lambda: said(operator), "the change to be seen")
        # What is said before it is on disk may be undone by the end, and then the next release is no change.
        wait_until(lambda: recorded(operator) != before, "the change to be recorded")
        os.kill(operator.pid, signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
    handler.behave(MENDED)
    operator.start_ready().wait_synced()
    wait_mended(widgets, *names)
    wait_failing(operator, 0, 0)
    assert not row(operator)["handler"]["pending"]
    operator.stop()


def test_a_round_goes_on_where_the_last_life_was_killed(start, operator, handler, widgets):
    """Rows and how far the round is are of one transaction; here the first 10 were made due, and ran, before the end."""
    names = [f"permanent-{number:02}" for number in range(20)]
    start()
    known(operator)
    given_up(operator, handler, widgets, *names)
    operator.stop()
    with ledger.edit(operator) as database:
        assert database.execute("UPDATE scope SET cluster = '1 0 10 0' || char(10) || 'default/permanent-09' || char(10) ||"
                                " 'ffffffff' WHERE watch = 'widgets/handler'").rowcount == 1
    handler.behave(MENDED)
    operator.start_ready().wait_synced()
    wait_mended(widgets, *names[10:])
    wait_failing(operator, 10, 10)
    assert not row(operator)["handler"]["pending"] and not said(operator), "it was said when it was found"
    assert handler.count() == 30
    operator.stop()


def test_what_is_in_quarantine_runs_last(start, operator, handler, widgets):
    handler.behave("case $RECONCILED_NAME in poison) kill -KILL $PPID; sleep 60;; esac\n" + BROKEN)
    start(retry={"first": "1ms", "max": "1ms", "attempts": 1}, top={"workers": 1})
    known(operator)
    given_up(operator, handler, widgets, *(f"permanent-{number}" for number in range(5)))
    widgets.create("poison")
    operator.wait_exit(expect=70)
    for _ in range(2):
        operator.start()
        operator.wait_exit(expect=70)
    operator.start_ready().wait_synced()
    assert [entry["key"] for entry in operator.ctl.status()["quarantine"]] == ["default/poison"]
    mend(handler)
    operator.reload()
    wait_mended(widgets, "poison")
    assert operator.ctl.status()["quarantine"] == []
    assert handler.requests()[-1].name == "poison"
    operator.stop()


def test_a_file_that_cannot_be_read_is_said_and_version_stands_in(start, operator, handler, widgets):
    """A program may be executable for the operator, and not readable."""
    program = handler.folder / "program"
    program.write_bytes(open("/bin/sh", "rb").read())
    program.chmod(0o111)
    start(command=[str(program), str(handler.script)], keys={"version": "1"})
    before = known(operator)
    [line] = operator.logs(message_id=MESSAGE_ID["HANDLER_UNREAD"])
    assert line["level"] == "warning" and f"{program}: Permission denied" in line["message"] and "handler.version" in line["message"]
    operator.gateway.wait('reconciled_handler_unread{watch="widgets"}', 1)
    assert "Permission denied" in operator.ctl.run("status").stdout
    given_up(operator, handler, widgets, "permanent")
    handler.behave(MENDED)
    start.configure(command=[str(program), str(handler.script)], keys={"version": "2"})
    operator.reload()
    looked_again(operator, before)
    wait_mended(widgets, "permanent")
    assert len(operator.logs(message_id=MESSAGE_ID["HANDLER_UNREAD"])) == 1, "once"
    operator.stop()


def test_a_key_that_cannot_be_read_is_said(start, operator, handler, widgets):
    """Nothing can be compared then, and nothing else is amiss."""
    (operator.state_directory / "handler-key").mkdir()
    operator.user.give(operator.state_directory / "handler-key", 0o700)
    start()
    [line] = operator.logs(message_id=MESSAGE_ID["HANDLER_UNREAD"])
    assert line["watch"] == "widgets" and "handler-key: Is a directory" in line["message"]
    assert "handler-key" in row(operator)["handler"]["unread"]
    widgets.create("ok")
    handler.wait_finished(name="ok")
    (operator.state_directory / "handler-key").rmdir()
    operator.reload()
    known(operator)
    wait_until(lambda: row(operator)["handler"]["unread"] == "", "it to be well again")
    operator.stop()


def test_a_large_program_is_read_beside_the_runs(start, operator, handler, widgets):
    """200 MB: the operator serves meanwhile, and its last byte counts."""
    blob = handler.folder / "blob"
    with open(blob, "wb") as file:
        file.truncate(200_000_000)
    blob.chmod(0o644)
    start(command=[*handler.command, str(blob), str(handler.folder)])
    before = known(operator)
    given_up(operator, handler, widgets, "permanent")
    with open(blob, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"x")
    handler.behave(MENDED)
    operator.reload()
    looked_again(operator, before)
    wait_mended(widgets, "permanent")
    operator.stop()


def put(handler, text):
    new = handler.script.with_suffix(".new")
    new.write_text(text, encoding="utf-8")
    new.chmod(0o755)
    new.replace(handler.script)


@pytest.mark.parametrize("how", ["reload", "restart", "kill"])
def test_a_release_that_was_taken_back_is_a_change(start, operator, handler, widgets, how):
    """No start and no reload has ever seen the bad one, but a handler is started from its file each time."""
    handler.behave(MENDED)
    good = handler.script.read_text(encoding="utf-8")
    start()
    known(operator)
    put(handler, good + "exit 65\n")
    widgets.create("permanent")
    wait_failing(operator, 1, 1)
    if how == "kill":
        os.kill(operator.pid, signal.SIGKILL)
        operator.wait_exit(expect=-signal.SIGKILL)
    elif how == "restart":
        operator.stop()
    put(handler, good)
    if how == "reload":
        operator.reload()
    else:
        operator.start_ready().wait_synced()
    wait_mended(widgets, "permanent")
    wait_failing(operator, 0, 0)
    assert "is the former one again" in said(operator)[0]["message"]
    before = handler.count()
    operator.reload()
    widgets.create("ok")
    wait_mended(widgets, "ok")
    assert handler.count() == before + 1 and len(said(operator)) == 1, "once"
    operator.stop()


def test_a_bad_release_that_is_taken_back_while_it_runs(start, operator, handler, widgets):
    """The run ends behind the reload that has found nothing."""
    gate = handler.folder / "gate"
    handler.behave(MENDED)
    good = handler.script.read_text(encoding="utf-8")
    start(top={"stop": {"grace": "60s"}})
    known(operator)
    put(handler, good + f"while [ ! -e {gate} ]; do sleep 0.02; done\nexit 65\n")
    widgets.create("permanent")
    handler.wait_for(name="permanent")
    put(handler, good)
    operator.reload()
    gate.touch()
    wait_mended(widgets, "permanent")
    operator.stop()


def test_files_that_are_merely_new_are_no_change(start, operator, handler, widgets):
    """As those of a container after each restart: what fails under them has failed under the same handler."""
    start()
    before = known(operator)
    put(handler, handler.script.read_text(encoding="utf-8"))
    given_up(operator, handler, widgets, "permanent-a")
    operator.reload()
    given_up_too = len(handler.requests(name="permanent-a"))
    operator.stop()
    put(handler, handler.script.read_text(encoding="utf-8"))
    operator.start_ready().wait_synced()
    widgets.create("permanent-b")
    handler.wait_finished(name="permanent-b")
    wait_failing(operator, 2, 2)
    operator.reload()
    widgets.create("ok")
    handler.wait_finished(name="ok")
    operator.reload()
    assert known(operator) == before and not said(operator)
    assert len(handler.requests(name="permanent-a")) == given_up_too == 1
    operator.stop()


def test_all_objects_run_again_that_another_release_has_served(start, operator, handler, widgets):
    handler.behave(MENDED)
    good = handler.script.read_text(encoding="utf-8")
    start(onHandlerChange="all")
    known(operator)
    put(handler, good.replace("#!/bin/sh", "#!/bin/sh\nprintf '{\"status\":{\"by\":\"other\"}}'; exit 0"))
    widgets.create("ok")
    wait_until(lambda: by(widgets, "ok") == "other", "the other release")
    wait_until(lambda: row(operator)["succeeded"] == 1, "the success")
    put(handler, good)
    operator.reload()
    wait_mended(widgets, "ok")
    operator.stop()


@pytest.mark.parametrize("kind", ["exec", "serve"])
@pytest.mark.parametrize("how", ["away", "not executable"])
@pytest.mark.slow
def test_a_program_that_is_away_for_a_moment_is_no_failure_of_the_object(devserver, operator, make_handler, widgets, kind, how):
    """As while its volume is mounted, or its package upgraded."""
    handler = make_handler(MENDED)
    if kind == "serve":
        put(handler, "#!/bin/sh\nwhile read -r line; do id=${line#*\\\"id\\\":}; id=${id%%[,\\}]*};"
                     " echo \"{\\\"id\\\": $id, \\\"status\\\": {\\\"by\\\": \\\"mended\\\"}}\"; done\n")
    entry = watch("widgets", handler, retry={"first": "20ms", "max": "50ms", "attempts": 2})
    entry["handler"] = {kind: [str(handler.script)]}
    operator.configure(devserver, [entry])
    operator.start_ready().wait_synced()
    known(operator)
    away = handler.script.with_suffix(".away")
    handler.script.chmod(0o644) if how != "away" else handler.script.rename(away)
    for name in ("a", "b"):
        widgets.create(name)
    wait_until(lambda: row(operator)["failed"] >= 8, "more failures than attempts")
    assert (row(operator)["failing"], row(operator)["permanent"]) == (2, 0)
    line = operator.wait_for_log("cannot be started")["message"]
    assert "counts as no attempt" in line, line
    handler.script.chmod(0o755) if how != "away" else away.rename(handler.script)
    wait_mended(widgets, "a", "b")
    wait_failing(operator, 0, 0)
    operator.stop()
