# SPDX-License-Identifier: Apache-2.0
"""Handlers that are shared objects: loaded by a process of their own, which may be lost without harm."""
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.setup import BUILD, SOURCE


@pytest.fixture
def start(devserver, operator, sandbox):
    def start(plugin, workers=1, **options):
        folder = sandbox.subfolder("plugin")
        path = pathlib.Path(shutil.copy(plugin, folder))
        path.chmod(0o644)
        entry = watch("widgets")
        entry["handler"] = {"plugin": str(path), **options}
        operator.configure(devserver, [entry], workers=workers)
        operator.start_ready().wait_synced()
        return operator

    return start


def example():
    return BUILD / "plugin" / "widgets.so"


def trouble():
    return BUILD / "plugin" / "trouble.so"


def status_of(widgets, name):
    return widgets.get(name).get("status")


def hosts(operator):
    return [found for found in operator.processes() if found.program == "reconciled-plugin-host"]


def test_the_example(start, widgets):
    operator = start(example())
    widgets.create("first")
    wait_until(lambda: status_of(widgets, "first") == {"runs": 1, "attempt": 1}, "the status of the first")
    widgets.create("second")
    wait_until(lambda: status_of(widgets, "second") == {"runs": 2, "attempt": 1}, "the status of the second")
    widgets.create("xerxes")
    operator.wait_for_log("must not begin with x", key="default/xerxes")
    widgets.delete("first")
    assert operator.wait_for_log("cleaning up after first")["action"] == "deleted"
    assert len(hosts(operator)) == 1
    operator.stop()
    operator.assert_no_processes()


def test_the_example_builds_with_the_installed_header_alone(sandbox, start, widgets):
    folder = sandbox.subfolder("built")
    include = folder / "include"
    include.mkdir()
    shutil.copy(SOURCE / "plugin" / "reconciled-plugin.h", include)
    subprocess.run(["cc", "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-D_DEFAULT_SOURCE", "-shared", "-fPIC",
                    "-I", include, "-o", folder / "widgets.so", SOURCE / "examples" / "plugin" / "widgets.c"], check=True)
    operator = start(folder / "widgets.so")
    widgets.create("first")
    wait_until(lambda: status_of(widgets, "first") == {"runs": 1, "attempt": 1}, "the status")
    operator.stop()


def test_answers(start, widgets, operator):
    start(trouble())
    widgets.create("pretty")
    wait_until(lambda: status_of(widgets, "pretty") == {"text": "two\nlines"}, "the status over many lines")
    for name, text in (("broken", "is no JSON object"), ("trailing", "followed by something else"),
                       ("array", "is no JSON object"), ("forged", "id: belongs to the host"),
                       ("unknown", "statsu: is unknown"), ("never", "did not say why"), ("fail", 'no "luck"')):
        widgets.create(name)
        operator.wait_for_log(text, key=f"default/{name}")
    widgets.create("empty")
    widgets.create("talk")
    assert operator.wait_for_log("is only output")["key"] == "default/talk"
    wait_until(lambda: operator.ctl.status()["watches"][0]["running"] == 0, "rest")
    assert len(hosts(operator)) == 1, "nothing of this ends the process"
    operator.stop()
    assert operator.logs(lambda record: "stopped in order" in record["message"])


def test_a_crash_fails_the_run_and_nothing_else(start, widgets, operator):
    start(trouble())
    widgets.create("crash")
    operator.wait_for_log(f"was killed by signal {int(signal.SIGABRT)}", key="default/crash")
    widgets.create("pretty")
    wait_until(lambda: status_of(widgets, "pretty"), "the other object's status")
    widgets.delete("crash")
    operator.stop()


def test_a_run_over_its_timeout_ends_the_process(start, widgets, operator):
    start(trouble(), timeout="200ms", grace="10s")
    # The first request waits for the process to start: let another object's do that.
    widgets.create("pretty")
    wait_until(lambda: status_of(widgets, "pretty"), "a process that is ready")
    first = [host.pid for host in hosts(operator)]
    widgets.create("hang")
    operator.wait_for_log("did not answer within its timeout", key="default/hang")
    widgets.delete("hang")
    widgets.create("talk")
    operator.wait_for_log("is only output", key="default/talk")
    wait_until(lambda: hosts(operator) and first != [host.pid for host in hosts(operator)], "another process")
    operator.stop()


def test_recycled(start, widgets, operator):
    start(example(), recycle={"runs": 2})
    for number in range(4):
        widgets.create(f"widget-{number}")
    wait_until(lambda: sorted((status_of(widgets, f"widget-{number}") or {}).get("runs", 0) for number in range(4))
               == [1, 1, 2, 2], "two runs of each process")
    operator.stop()


def test_no_credential_reaches_it(start, widgets, operator):
    start(example())
    widgets.create("first")
    wait_until(lambda: status_of(widgets, "first"), "the status")
    [host] = hosts(operator)
    environment = pathlib.Path(f"/proc/{host.pid}/environ").read_bytes()
    assert b"KUBECONFIG" not in environment and b"NOTIFY_SOCKET" not in environment
    opened = [os.readlink(entry) for entry in pathlib.Path(f"/proc/{host.pid}/fd").iterdir()]
    assert {target.split(":")[0] for target in opened} == {"pipe", "/dev/null"}, opened
    operator.stop()


@pytest.mark.parametrize("source, text", [
    ("int nothing;", "cannot be loaded"),
    ("void *reconciled_plugin(void) { return 0; }", "returns no table"),
    ("static int run(void) { return 0; } static struct { unsigned v; void *a; int (*run)(void); void *b; } p = {99, 0, run, 0};"
     "void *reconciled_plugin(void) { return &p; }", "version 99"),
], ids=["no export", "no table", "another version"])
def test_what_is_no_plugin(sandbox, start, widgets, source, text):
    folder = sandbox.subfolder("built")
    (folder / "wrong.c").write_text(source, encoding="utf-8")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", folder / "wrong.so", folder / "wrong.c"], check=True)
    operator = start(folder / "wrong.so")
    widgets.create("first")
    assert re.search(text, operator.wait_for_log(text)["message"])
    operator.stop()


@pytest.mark.slow
def test_one_that_cannot_start_is_tried_again_for_each_attempt(devserver, operator, sandbox, widgets):
    folder = sandbox.subfolder("built", operator.user)
    (folder / "broken.c").write_text("""#include <reconciled-plugin.h>
#include <stdio.h>
#include <time.h>
static int start(void **state)
{
        FILE *file = fopen(STARTS, "a");
        struct timespec now;

        *state = NULL;
        clock_gettime(CLOCK_REALTIME, &now);
        fprintf(file, "%.6f\\n", (double)now.tv_sec + (double)now.tv_nsec / 1e9);
        fclose(file);
        return 1;
}
static int run(void *state, const struct reconciled_request *request, struct reconciled_answer *answer)
{
        (void)state, (void)request, (void)answer;
        return RECONCILED_DONE;
}
const struct reconciled_plugin *reconciled_plugin(void)
{
        static const struct reconciled_plugin plugin = {RECONCILED_PLUGIN_VERSION, start, run, NULL};

        return &plugin;
}
""", encoding="utf-8")
    starts = folder / "starts"
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{SOURCE / 'plugin'}", f'-DSTARTS="{starts}"', "-o", folder / "broken.so",
                    folder / "broken.c"], check=True)
    entry = watch("widgets", retry={"first": "200ms", "max": "10s"})
    entry["handler"] = {"plugin": str(folder / "broken.so")}
    operator.configure(devserver, [entry], workers=1)
    widgets.create("a")
    operator.start_ready()
    wait_until(lambda: len(starts.read_text(encoding="utf-8").split()) >= 4, "four starts")
    operator.stop()
    times = [float(line) for line in starts.read_text(encoding="utf-8").split()]
    for number, pause in enumerate((0.1, 0.2, 0.4)):
        assert times[number + 1] - times[number] >= pause, f"by the backoff of its object: {times}"


def test_configuration(devserver, operator):
    entry = watch("widgets")
    entry["handler"] = {"plugin": "/nowhere/widgets.so"}
    operator.configure(devserver, [entry])
    operator.start().wait_exit(78)
    assert operator.logs(lambda record: "handler.plugin: /nowhere/widgets.so" in record["message"])
    entry["handler"] = {"plugin": "/bin/sh", "serve": ["/bin/sh"]}
    operator.configure(devserver, [entry])
    operator.start().wait_exit(78)
    assert operator.logs(lambda record: "more than one of exec, serve and plugin" in record["message"])


def test_an_answer_above_the_bound_is_permanent_and_names_it(start, widgets, operator):
    start(trouble())
    widgets.create("long")
    record = operator.wait_for_log("the handler's answer is larger than 1048576 bytes", key="default/long")
    assert record["message_id"] == MESSAGE_ID["RUN_PERMANENT"], record
    widgets.create("talk")
    wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 1, "the next run, in the same process")
    assert len(operator.logs(where=lambda record: "started as" in record["message"])) == 1
