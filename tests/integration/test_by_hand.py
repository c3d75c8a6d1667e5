# SPDX-License-Identifier: Apache-2.0
"""`reconciledctl run`, `--record` and `reconciledctl replay`: how authors try a handler without an operator."""
import json
import signal
import stat
import subprocess
import unicodedata
import urllib.error
import urllib.request

import pytest
import yaml

from harness import wait_until, watch
from harness.process import clean_environment
from harness.wait import scaled

CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}


@pytest.fixture
def manifests(by_hand, operator):
    def write(*objects, name="objects.yaml"):
        path = by_hand.folder / name
        path.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        operator.user.give(path)
        return path

    return write


def widget(name="w", namespace="default", **more):
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name, "namespace": namespace},
            "spec": {"size": 1}, **more}


def writes(devserver):
    return devserver.requests(lambda request: request["method"] not in ("GET", "CONNECT"))


def test_a_file_needs_no_cluster(devserver, operator, handler, by_hand, manifests):
    handler.answer({"status": {"size": 7}, "children": [CHILD]})
    operator.configure(devserver, [watch("widgets", handler)])
    path = manifests(widget(status={"size": 3}), widget("x", "elsewhere"))
    before = len(devserver.requests())
    shown = by_hand("run", "--object", path).stdout
    assert "widgets: reconcile default/w" in shown and "widgets: reconcile elsewhere/x" in shown
    assert "- status.size: 3\n    + status.size: 7" in shown, "the definition was made up, the status kept"
    assert "+ create ConfigMap default/child" in shown and '+ data.a: "1"' in shown
    assert len(devserver.requests()) == before, "the cluster of the configuration was not asked"
    assert handler.requests(name="w")[0].object["status"] == {"size": 3}


def test_a_file_has_the_namespaces_of_children(devserver, operator, handler, by_hand, manifests):
    handler.answer({"children": [{**CHILD, "metadata": {"name": "child", "namespace": "edge"}}]})
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "edge", "labels": {"of": "file"}}}
    operator.configure(devserver, [watch("widgets", handler, children={"namespaces": ["edge", "team-*", "!team-b"]})])
    for objects in ([widget()], [widget(), namespace]):
        shown = by_hand("run", "--object", manifests(*objects)).stdout
        assert "+ create ConfigMap edge/child" in shown and "! refused" not in shown


def test_a_handler_with_a_user_runs_as_whoever_tries_it(devserver, operator, handler, by_hand, manifests):
    handler.behave("ulimit -d >\"$REQUEST.limit\"; id -u >\"$REQUEST.uid\"")
    operator.configure(devserver, [watch("widgets", handler, handler_options={"user": "games", "limits": {"memory": "1Gi"}})])
    tried = by_hand("run", "--object", manifests(widget()))
    assert "runs as you, not as the user games" in tried.stderr
    request = handler.wait_finished(name="w")
    with open(f"{request.path}.uid", encoding="utf-8") as file:
        assert int(file.read()) == operator.user.uid
    with open(f"{request.path}.limit", encoding="utf-8") as file:
        assert int(file.read()) == 1024 * 1024


def test_the_cluster_keeps_nothing(devserver, operator, handler, by_hand, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    handler.answer({"status": {"size": 7}, "children": [CHILD], "events": [{"reason": "Tried", "note": "n"}]})
    operator.configure(devserver, [watch("widgets", handler, finalizer=True, owns=[
        {"apiVersion": "v1", "kind": "ConfigMap"}])])
    before = widgets.create("w", {"size": 1})
    done = by_hand("run", "--object", "default/w")
    shown = done.stdout
    assert "was created" not in done.stderr, "nothing was"
    assert "+ status.size: 7" in shown and "+ create ConfigMap default/child" in shown
    assert "~ change Widget default/w\n" in shown and "+ create Widget" not in shown and "spec.size" not in shown, shown
    assert '+ metadata.finalizers[0]: "widgets.example.com/finalizer"' in shown
    assert "+ create Event" in shown and '+ reason: "Tried"' in shown
    assert "Nothing was written; --apply writes it." in shown
    assert widgets.get("w") == before and not config_maps.exists("child")
    [created, *ours] = writes(devserver)
    assert created["path"].endswith("/widgets") and ours
    assert all("dryRun=All" in request["query"] for request in ours), ours


def test_apply_writes(devserver, operator, handler, by_hand, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    handler.answer({"status": {"size": 7}, "children": [CHILD]})
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w")
    shown = by_hand("run", "--object", "default/w", "--watch", "widgets", "--apply").stdout
    assert "Nothing was written" not in shown
    assert widgets.get("w")["status"] == {"size": 7} and config_maps.get("child")["data"] == {"a": "1"}
    config_maps.merge_patch("child", {"data": {"a": "2"}})
    refused = by_hand("run", "--object", "default/w", "--apply", expect=1).stdout
    assert "! refused (HTTP 409): PATCH /api/v1/namespaces/default/configmaps/child: Apply failed with 1 conflict" in refused
    operator.configure(devserver, [watch("widgets", handler, children={"force": True})])
    shown = by_hand("run", "--object", "default/w", "--apply").stdout
    assert '~ change ConfigMap default/child\n    - data.a: "2"\n    + data.a: "1"' in shown, shown
    found = config_maps.get("child")["metadata"]
    handler.answer({"children": []})
    lines = [json.loads(line) for line in by_hand("run", "--object", "default/w", "--apply", "--json").stdout.splitlines()]
    assert [line["type"] for line in lines if line["type"] != "exchange"] == ["run", "request", "answer", "end"]
    [deleted] = [line["sent"] for line in lines if line.get("method") == "DELETE"]
    assert deleted["preconditions"] == {key: found[key] for key in ("uid", "resourceVersion")}, "not another one that has the name by then"
    assert deleted["propagationPolicy"] == "Background" and not config_maps.exists("child")


def test_a_change_of_what_was_not_read_before_is_no_creation(devserver, operator, handler, by_hand, widgets, api):
    secrets = api.resource("v1", "secrets", "default")
    secrets.create("s", type="Opaque", data={"old": "YQ=="})
    child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "type": "Opaque", "data": {"new": "Yg=="}}
    handler.answer({"children": [{"manifest": child, "adopt": True}]})
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w")
    shown = by_hand("run", "--object", "default/w").stdout
    assert "~ change Secret default/s\n    (nothing changes apart from what is confidential" in shown and "+ create Secret" not in shown, shown


@pytest.mark.parametrize("name", ["nosuch.yaml", "nosuch.yml", "nosuch.json", "./nosuch", "folder/../nosuch", "/nosuch"])
def test_a_file_that_is_missing_is_no_key(devserver, operator, handler, by_hand, name):
    operator.configure(devserver, [watch("widgets", handler)])
    assert by_hand("run", "--object", name, expect=64).stderr == f"reconciledctl: {name}: No such file or directory\n"


def test_a_folder_is_no_file_of_objects(devserver, operator, handler, by_hand):
    operator.configure(devserver, [watch("widgets", handler)])
    assert by_hand("run", "--object", "./", expect=64).stderr == "reconciledctl: ./: is not a regular file\n"


def test_what_can_go_wrong_is_said(devserver, operator, handler, by_hand, widgets, manifests):
    operator.configure(devserver, [watch("widgets", handler, labelSelector="on=yes"), watch("others", handler, id="others")])
    widgets.create("w")
    assert "--watch NAME" in by_hand("run", "--object", "default/w", expect=64).stderr
    assert "no watch \"x\"" in by_hand("run", "--watch", "x", "--object", "default/w", expect=64).stderr
    said = by_hand("run", "--watch", "widgets", "--object", "default/w", expect=64).stderr
    assert "default/w: there is no Widget (example.com/v1) that the watch widgets selects" in said
    said = by_hand("run", "--watch", "others", "--object", manifests({"kind": "Widget"}), expect=70).stderr
    assert "lacks apiVersion, kind or metadata.name" in said
    handler.answer({"error": "no room"})
    shown = by_hand("run", "--watch", "others", "--object", "default/w", expect=1).stdout
    assert "result: retry" in shown and "the handler has failed: no room" in shown
    by_hand("run", "--watch", "others", "--object", "default/w", "--json", expect=1)
    devserver.fault({"verb": "patch"}, status=422)
    handler.answer({"status": {"a": 1}})
    shown = by_hand("run", "--watch", "others", "--object", "default/w", expect=1).stdout
    assert "! refused (HTTP 422): PATCH" in shown and "result: unrecoverable" in shown
    devserver.stop()
    assert by_hand("run", "--watch", "others", "--object", "default/w", expect=69).stderr


def test_the_server_of_a_file_is_nobody_elses(devserver, operator, handler, by_hand, manifests):
    handler.behave(handler.held)
    operator.configure(devserver, [watch("widgets", handler)])
    running = subprocess.Popen(by_hand.command("run", "--object", manifests(widget())), cwd=by_hand.folder,
                               env=clean_environment(operator.user, {"TMPDIR": str(by_hand.folder)}),
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    handler.wait_for(name="w")
    [kubeconfig] = by_hand.folder.glob("reconciledctl-*/kubeconfig")
    url = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"]
    for path, data in (("/apis/example.com/v1/widgets", None), ("/devserver/snapshot", None), ("/devserver/faults", b"{}")):
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(url + path, data=data, timeout=scaled(20))
    handler.let_go()
    shown, _ = running.communicate(timeout=scaled(60))
    assert running.returncode == 0 and "result: success" in shown, shown


def test_interrupted_it_leaves_nothing(devserver, operator, handler, by_hand, widgets):
    handler.behave("sleep 300")
    operator.configure(devserver, [watch("widgets", handler)])
    widgets.create("w")
    environment = clean_environment(operator.user, {"TMPDIR": str(by_hand.folder)})
    running = subprocess.Popen(by_hand.command("run", "--object", "default/w"), env=environment,
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=by_hand.folder)
    handler.wait_for(name="w")
    [process] = [process for process in operator.user.processes() if process.program == "reconciledctl"]
    process.kill(signal.SIGINT)
    assert running.wait(scaled(30)) == 130
    wait_until(lambda: not operator.user.processes(), lambda: f"the end of all: {operator.user.processes()}")
    assert not list(by_hand.folder.glob("reconciledctl-*"))


@pytest.fixture
def recorded(devserver, operator, sandbox, widgets):
    """What an operator with --record has kept of runs for the widgets `names`."""
    folder = sandbox.subfolder("records", operator.user, 0o700) / "kept"

    def record(watches, names, finished):
        operator.configure(devserver, watches)
        operator.arguments = ["--record", str(folder)]
        operator.start()
        operator.wait_ready().wait_synced()
        for name in names:
            widgets.create(name, {"size": 1})
        wait_until(finished, "the runs to be recorded")
        operator.stop()
        return folder

    record.folder = folder
    return record


def records(folder):
    return [[json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
            for path in sorted(folder.glob("*.jsonl"))] if folder.exists() else []


def test_what_was_recorded_runs_again(operator, handler, by_hand, recorded):
    handler.answer({"status": {"size": 7}})
    folder = recorded([watch("widgets", handler)], ["a", "b"], lambda: len(records(recorded.folder)) == 2)
    kept = records(folder)
    assert sorted(lines[0]["key"] for lines in kept) == ["default/a", "default/b"]
    for path in folder.glob("*.jsonl"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    run, request, answer, end = kept[0]
    assert (run["watch"], run["action"], run["attempt"]) == ("widgets", "reconcile", 1)
    assert request["body"]["object"]["metadata"]["name"] == run["key"].split("/")[1]
    assert answer["body"] == {"status": {"size": 7}} and end["result"] == "success"
    handler.forget()
    assert by_hand("replay", folder).stdout == "2 runs: 2 as recorded, 0 different\n"
    assert sorted(request.name for request in handler.requests()) == ["a", "b"]
    handler.answer({"status": {"size": 8, "more": True}})
    shown = by_hand("replay", folder, expect=1).stdout
    assert "    - status.size: 7\n    + status.size: 8\n    + status.more: true" in shown
    assert shown.endswith("2 runs: 0 as recorded, 2 different\n")
    found = json.loads(by_hand("replay", folder, "--json", expect=1).stdout)
    assert (found["runs"], found["different"], found["leftOut"]) == (2, 2, 0)
    assert sorted(each["key"] for each in found["differences"]) == ["default/a", "default/b"]
    assert found["differences"][0]["recorded"]["answer"] == {"status": {"size": 7}}
    assert found["differences"][0]["now"]["answer"] == {"status": {"size": 8, "more": True}}
    (folder / "0.jsonl").write_text("half a li", encoding="utf-8")
    assert "1 left out" in by_hand("replay", folder, expect=1).stdout
    handler.behave("echo broken >&2; exit 3")
    assert "+ result: the handler exited with 3: broken" in by_hand("replay", folder, expect=1).stdout


STEERS = "\x1b]0;mine\x07\u009b31m\u202e"


def is_harmless(shown):
    return not any(unicodedata.category(each) in ("Cc", "Cf") and each != "\n" for each in shown)


def test_no_text_steers_the_terminal(devserver, operator, handler, by_hand, manifests):
    handler.answer({"message": STEERS, "status": {f"k{STEERS}": STEERS}, "children": [{**CHILD, "data": {"a": STEERS}}]})
    operator.configure(devserver, [watch("widgets", handler)])
    shown = by_hand("run", "--object", manifests(widget())).stdout
    assert "+ create ConfigMap" in shown and is_harmless(shown), ascii(shown)
    shown = by_hand("run", "--json", "--object", manifests(widget())).stdout
    assert is_harmless(shown), ascii(shown)
    assert any(json.dumps(STEERS)[1:-1] in json.dumps(json.loads(line)) for line in shown.splitlines()), "it is the same text still"


def test_no_list_of_children_steers_the_terminal(devserver, operator, handler, by_hand, widgets):
    widgets.create("a", annotations={"widgets.example.com/children": f"g.com/v1/K{STEERS}/other/z"})
    operator.configure(devserver, [watch("widgets", handler, owns=[{"apiVersion": "v1", "kind": "ConfigMap"}], finalizer=True,
                                         patches=[{"apiVersion": "v1", "kind": "Node"}])])
    operator.start_ready().wait_synced()
    shown = by_hand("check", operator.config_file).stdout
    assert "g.com/v1" in shown and is_harmless(shown), ascii(shown)


def test_no_record_steers_the_terminal(operator, handler, by_hand, recorded):
    """Somebody else has made it."""
    handler.answer({"status": {"size": 7}})
    folder = recorded([watch("widgets", handler)], ["a"], lambda: len(records(recorded.folder)) == 1)
    lines = records(folder)[0]
    lines[0]["key"] += STEERS
    lines[2]["body"]["status"] = {f"k{STEERS}": STEERS}
    lines[3].update(message=STEERS, waitStatus=256)
    next(folder.glob("*.jsonl")).unlink()
    (folder / f"0{STEERS}.jsonl").write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    (folder / f"1{STEERS}.jsonl").write_text("half a li", encoding="utf-8")
    done = by_hand("replay", folder, expect=1)
    assert "1 different" in done.stdout and "left out" in done.stderr
    assert is_harmless(done.stdout) and is_harmless(done.stderr), ascii(done.stdout + done.stderr)


PASSWORD_ONCE = """import base64, json, os
children = json.load(open(os.environ["REQUEST"]))["children"]
password = base64.b64decode(children[0]["data"]["p"]).decode() if children else "hunter2"
print(json.dumps({"children": [
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"p": password}},
    {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"ours": str(bool(password))}}]}))
"""


def test_no_secret_is_recorded_and_its_runs_are_replayed(operator, handler, by_hand, recorded, widgets):
    script = by_hand.folder / "password.py"
    operator.user.give(script.write_text(PASSWORD_ONCE, encoding="utf-8") and script, 0o644)
    handler.behave(f"/usr/bin/python3 {script}")

    def finished():  # the second run has the Secret in its request
        kept = records(recorded.folder)
        if len(kept) == 1 and "second" not in widgets.get("a")["metadata"].get("labels", {}):
            widgets.merge_patch("a", {"spec": {"size": 2}, "metadata": {"labels": {"second": "run"}}})
        return len(kept) > 1

    folder = recorded([watch("widgets", handler, owns=[{"apiVersion": "v1", "kind": "Secret"}])], ["a"], finished)
    kept = records(folder)
    (_, _, answer, _), (_, request, again, _) = kept[0], kept[-1]
    assert answer["redacted"] and [child["kind"] for child in answer["body"]["children"]] == ["Secret", "ConfigMap"]
    assert request["redacted"] and request["body"]["children"][0]["data"] == {"p": "cmVkYWN0ZWQ="}
    assert again["body"]["children"][0]["stringData"] == {"p": "redacted"}
    assert "hunter2" not in "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    assert by_hand("replay", folder).stdout == \
        '{0} runs: {0} as recorded, 0 different; {0} with Secrets, each value of which is "redacted"\n'.format(len(kept))
    script.write_text(PASSWORD_ONCE.replace('"p": password', '"q": password'), encoding="utf-8")
    shown = by_hand("replay", folder, expect=1).stdout
    assert "hunter2" not in shown and f"{len(kept)} different" in shown, shown


@pytest.mark.plain_only(reason="the sanitizers take memory of their own")
def test_a_large_request_is_recorded_in_parts(operator, handler, recorded, api):
    """A tree of all of it would take a hundred times as much as its text."""
    peaks = []

    def finished():
        peaks.extend(process.peak_kib() for process in operator.children("worker"))
        return records(recorded.folder)

    handler.answer({"status": {"size": 7}})
    secrets, maps = api.resource("v1", "secrets", "default"), api.resource("v1", "configmaps", "default")
    secrets.create("s", data={"p": "aHVudGVyMg=="})
    maps.create(body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "huge"}, "data": {str(n): "" for n in range(90_000)}})
    for name in "abc":
        maps.create(body={"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {str(n): "" for n in range(60_000)}})
    related = [{"apiVersion": "v1", "kind": kind} for kind in ("Secret", "ConfigMap")]
    folder = recorded([watch("widgets", handler, related=related)], ["w"], finished)
    _, request, answer, _ = records(folder)[0]
    shown = {each["metadata"]["name"]: each for each in request["body"]["related"]}
    assert request["redacted"] and shown["s"]["data"] == {"p": "cmVkYWN0ZWQ="} and len(shown["a"]["data"]) == 60_000
    assert request["body"]["object"]["metadata"]["name"] == "w" and answer["body"] == {"status": {"size": 7}}
    assert max(peaks) < 64 << 10, f"{max(peaks)} KiB at most"


def test_runs_of_a_watch_of_secrets_are_left_out(handler, by_hand, recorded, api):
    handler.answer({"patch": {"data": {"p": "aHVudGVyMg=="}}})
    api.resource("v1", "secrets", "default").create("s", data={"p": "aHVudGVyMg=="})
    folder = recorded([watch("secrets", handler, "v1", "Secret")], [], lambda: records(recorded.folder))
    assert "aHVudGVyMg" not in "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    assert "0 runs: 0 as recorded, 0 different; " in (said := by_hand("replay", folder).stdout)
    assert "left out (of a confidential or another watch, or unreadable)\n" in said


def test_a_serving_handler_is_replayed(operator, sandbox, by_hand, recorded):
    script = by_hand.folder / "serve.py"
    script.write_text("#!/usr/bin/python3\nimport json, sys\nfor line in sys.stdin:\n    request = json.loads(line)\n"
                      "    print(json.dumps({'id': request['id'], 'status': {'n': request['object']['metadata']['name']}}),"
                      " flush=True)\n", encoding="utf-8")
    operator.user.give(script, 0o755)
    folder = recorded([{**watch("widgets"), "handler": {"serve": [str(script)]}}], ["a", "b", "c"],
                      lambda: len(records(recorded.folder)) == 3)
    assert by_hand("replay", folder, "--watch", "widgets").stdout == "3 runs: 3 as recorded, 0 different\n"


def test_the_answer_for_a_confidential_object_is_said_to_be_hidden(devserver, operator, handler, by_hand, manifests):
    """Not to be missing: an author who sees "none" looks for a mistake that is not there."""
    handler.answer({"patch": {"data": {"password": "aHVudGVyMg=="}}})
    operator.configure(devserver, [watch("secrets", handler, "v1", "Secret")])
    secret = manifests({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "default"}})
    shown = by_hand("run", "--object", secret).stdout
    assert "answer: not shown, because the object is confidential\n" in shown and "result: success" in shown, shown
    assert "answer: none" not in shown and "aHVudGVyMg" not in shown
    assert "~ change Secret default/s\n    (not shown, because the object is confidential)\n" in shown, shown
    lines = by_hand("run", "--object", secret, "--json").stdout
    assert "aHVudGVyMg" not in lines and "\"PATCH\"" in lines, "the patch does not name its kind; its path does"
