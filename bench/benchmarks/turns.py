# SPDX-License-Identifier: Apache-2.0
import json
import signal

from harness import WIDGET_CRD, Devserver, wait_until

from . import parts

OBJECTS = 100_000
CHANGES = 300
CONFIG_MAPS = [{"apiVersion": "v1", "kind": "ConfigMap"}]


def _server(box):
    """All of them in one namespace, so that each related change concerns them all."""
    widgets = box.folder / "widgets.json"
    with open(widgets, "w", encoding="utf-8") as file:
        file.write(json.dumps(WIDGET_CRD) + "\n---\n")
        for number in range(OBJECTS):
            json.dump({"apiVersion": "example.com/v1", "kind": "Widget",
                       "metadata": {"name": f"widget-{number:06}", "namespace": "default"}, "spec": {"size": number}}, file)
            file.write("\n---\n")
    widgets.chmod(0o644)
    return Devserver(box, (), ["--history", "1000000", "--load", str(widgets)]).start()


def _configure(operator, server, handler, **more):
    operator.configure(server, [parts.watch("widgets", handler, related=CONFIG_MAPS, retry={"first": "1h", "max": "1h"}, **more)],
                       workers=4, gateway={"listen": f"unix:{operator.runtime_directory}/gateway.sock"})


def _settled(operator):
    watches = operator.ctl.status()["watches"]
    return watches[0]["queued"] + watches[0]["running"] == 0


def _wait_runs(operator, count):
    """So many runs are over, and nothing is left to be run."""
    operator.runs.wait(count, 900)
    wait_until(lambda: _settled(operator), "rest", 120)


class _Phases:
    """The longest turn up to now, as status says it: one that was longer than all before it belongs to what was done last."""

    def __init__(self, operator):
        self.operator = operator
        self.lives = {}  # by when each began: a reload that changes the configuration begins another one

    def over(self, name):
        status = self.operator.ctl.status()
        turns = self.lives[status["startedAt"]] = status["turns"]
        longest, processor = turns["longest"], turns["longestProcessor"]
        print(f"   {name}: {turns['count']} turns, {turns['slow']} slow; by the wall {longest['took'] / 1000:.1f} ms "
              f"({longest['what']}), of the processor {processor['processor'] / 1000:.1f} ms ({processor['what']})", flush=True)


def turns(report):
    """The supervisor's longest turn at 100,000 objects: a first sync, 300 changes of `related`, a failure of all, lists, `retry --all-failed` with a reload in the middle, a reload with another selection, a restart, `uninstall`."""
    command = None
    with parts.sandbox() as box:
        server = _server(box)
        operator = parts.operator(box, server, noop_worker=True)
        command = [str(box.program("bench-noop"))]
        _configure(operator, server, command)
        phases = _Phases(operator)
        operator.start_ready().wait_synced(900)
        _wait_runs(operator, OBJECTS)
        phases.over("first sync")
        config_maps = server.api.resource("v1", "configmaps", "default")
        for number in range(CHANGES):
            config_maps.create(f"settings-{number:04}", data={"level": str(number)})
        _wait_runs(operator, 2 * OBJECTS)
        phases.over("related")
        operator.runs.fail(True)
        before = operator.runs.value
        config_maps.merge_patch("settings-0000", {"data": {"level": "all fail"}})
        _wait_runs(operator, before + OBJECTS)
        phases.over("all fail")
        for command_line in (["status"], ["get", "failing"], ["get", "failing", "-n", "nobody"], ["get", "waiting"]):
            operator.ctl.run(*command_line)
        phases.over("lists")
        operator.runs.fail(False)
        before = operator.runs.value
        operator.ctl.run("retry", "--all-failed")
        phases.over("retry --all-failed")
        _configure(operator, server, command, resync="9h")
        operator.popen.send_signal(signal.SIGHUP)
        _wait_runs(operator, before + OBJECTS)
        phases.over("the rest of that, after a reload in the middle")
        _configure(operator, server, command, labelSelector="!nobody")
        operator.popen.send_signal(signal.SIGHUP)
        wait_until(lambda: operator.ctl.status()["watches"][0]["state"] == "in-sync", "the watch after a reload", 600)
        phases.over("a reload with another selection")
        operator.stop()
        operator.start_ready().wait_synced(600)
        phases.over("a restart")
        before = operator.runs.value
        _configure(operator, server, command, finalizer=True)
        operator.popen.send_signal(signal.SIGHUP)
        operator.runs.wait(before + OBJECTS, 600)
        operator.ctl.run("uninstall", "--yes", "--timeout", "1s")
        wait_until(lambda: operator.ctl.status()["watches"][0]["held"] == 0, "the end of all finalizers", 100)
        phases.over("uninstall")
        lives = phases.lives.values()
        operator.stop()
    processor = max((life["longestProcessor"] for life in lives), key=lambda turn: turn["processor"])
    wall = max((life["longest"] for life in lives), key=lambda turn: turn["took"])
    count, slow = (sum(life[key] for life in lives) for key in ("count", "slow"))
    report.row("supervisor's longest turn, its processor time", "ms", processor["processor"] / 1000,
               note=f"{processor['what']}; {slow} of {count:,} turns took more than 10 ms")
    report.row("supervisor's longest turn, by the wall", "ms", wall["took"] / 1000,
               note=f"{wall['what']}; {wall['processor'] / 1000:.1f} ms of it were its own")
