# SPDX-License-Identifier: Apache-2.0
"""reconciledctl torture: it finds each kind of fault in a handler of twenty lines, and has nothing to say of the mended twin."""
import copy
import json
import os
import pathlib
import signal
import subprocess
import xml.etree.ElementTree

import pytest
import yaml

from harness import wait_until
from harness.session import Document
from harness.setup import BUILD, SOURCE
from harness.wait import SLOWNESS

CTL = BUILD / "ctl" / "reconciledctl"

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
    "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
             "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                 "type": "object", "properties": {
                     "spec": {"type": "object", "required": ["size"], "properties": {"size": {"type": "integer", "minimum": 2, "maximum": 3}}},
                     "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}}}]}}

WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"},
          "spec": {"size": 2}}

TIER = {"tier": {"type": "string", "enum": ["gold", "tin"]}}
CONFIG = {"config": {"type": "object", "properties": {"owner": {"type": "string"}}}}

# Started for each run: what only some of them need is imported there, since urllib.request alone takes 50 ms of processor time.
PREFACE = """\
#!/usr/bin/python3 -IS
import json, os, sys
request = json.load(sys.stdin)
spec, status = request["object"].get("spec", {}), request["object"].get("status", {})
def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}
def answer(**members):
    print(json.dumps(members))
def create(manifest):  # with the handler's own access; False: it is there already
    for line in open(os.environ["KUBECONFIG"]).read().replace('"', " ").split():
        if line.startswith("http"):
            server = line.rstrip(",}")
    import http.client
    connection = http.client.HTTPConnection(server.partition("//")[2])
    token = open(os.environ["RECONCILED_CREDENTIALS_DIRECTORY"] + "/token").read()
    connection.request("POST", "/api/v1/namespaces/default/configmaps", json.dumps(manifest),
                       {"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    code = connection.getresponse().status
    if code not in (201, 409):
        sys.exit(f"the server answers {code}")
    return code == 201
"""

OWN = {"kubernetes": {"serviceAccount": "handler"}}
CHILDREN = {"owns": [{"apiVersion": "v1", "kind": "ConfigMap"}]}
OWNER = ('owner = [{"apiVersion": "example.com/v1", "kind": "Widget", "name": "a", '
         '"uid": request["object"]["metadata"]["uid"]}]\n')
ALIVE = 'if request["action"] != "reconcile": sys.exit(0)\n'

# name: the case that finds it, what is beside the handler in its watch, the fault, and the mended twin
FAULTS = {
    "acts on a stale list of children": (
        "stale", {"handler": OWN, "owns": [{"apiVersion": "v1", "kind": "ConfigMap"}]},
        ALIVE + OWNER + """\
if not request.get("children"):
    made = config_map("", serial="1")
    made["metadata"] = {"generateName": "serial-", "namespace": "default", "ownerReferences": owner}
    create(made)
""",
        ALIVE + OWNER + """\
if not request.get("children"):
    made = config_map("serial", serial="1")
    made["metadata"] |= {"namespace": "default", "ownerReferences": owner}
    create(made)
"""),
    "is stopped between two writes": (
        "killed-before", {"handler": OWN},
        ALIVE + OWNER + """\
first, second = config_map("first"), config_map("second")
first["metadata"]["ownerReferences"] = second["metadata"]["ownerReferences"] = owner
if create(first):
    create(second)
""",
        ALIVE + OWNER + """\
first, second = config_map("first"), config_map("second")
first["metadata"]["ownerReferences"] = second["metadata"]["ownerReferences"] = owner
create(first)
create(second)
"""),
    "misses a state in between": (
        "missed", CHILDREN,
        ALIVE + """\
first = status.get("firstSize", spec["size"])
answer(children=[config_map("a", disk=str(first))], status={"firstSize": first})
""",
        ALIVE + """\
answer(children=[config_map("a", disk=str(spec["size"]))])
"""),
    "leaves something behind": (
        "left", {"handler": OWN},
        ALIVE + """\
create(config_map("forgotten"))
""",
        ALIVE + OWNER + """\
kept = config_map("forgotten")
kept["metadata"]["ownerReferences"] = owner
create(kept)
"""),
    "takes a value not back": (
        "value", {"fields": TIER},
        ALIVE + """\
if "tier" in spec:
    answer(patch={"metadata": {"labels": {"tier": spec["tier"]}}})
""",
        ALIVE + """\
answer(patch={"metadata": {"labels": {"tier": spec.get("tier")}}})
"""),
    "crashes on an empty field": (
        "value", {"fields": CONFIG, "spec": {"config": {"owner": "me"}}},
        ALIVE + """\
answer(status={"owner": spec["config"]["owner"].upper()})
""",
        ALIVE + """\
answer(status={"owner": spec.get("config", {}).get("owner", "").upper()})
"""),
    "counts its runs": (
        "repeated", {},
        ALIVE + """\
answer(status={"runs": status.get("runs", 0) + 1})
""",
        ALIVE + """\
answer(status={"runs": 1})
"""),
    "takes an unknown past for none": (
        "forgotten", {"previous": True},
        ALIVE + """\
if "previous" not in request:
    answer(status={"size": status.get("size", spec["size"])})
elif request["previous"]["spec"] != spec:
    answer(status={"size": spec["size"]})
""",
        ALIVE + """\
if "previous" not in request or request["previous"]["spec"] != spec:
    answer(status={"size": spec["size"]})
"""),
    "forgets what it began when it is killed": (
        "handler-killed", CHILDREN,
        ALIVE + """\
answer(children=[config_map("a", attempt=str(request["attempt"]))])
""",
        ALIVE + """\
answer(children=[config_map("a", attempt="any")])
"""),
}


class Bench:
    def __init__(self, folder):
        self.folder = folder
        folder.chmod(0o755)

    def prepare(self, code, handler=None, fields=None, spec=None, **watch):
        program = self.folder / "handler"
        program.write_text(PREFACE + code, encoding="utf-8")
        program.chmod(0o755)
        handler = {"exec": ["./handler"], "dryRun": True, **(handler or {})}
        config = {"operator": "torture.example.com", "watches": [
            {"name": "widgets", "apiVersion": "example.com/v1", "kind": "Widget", "handler": handler, **watch}]}
        (self.folder / "reconciled.yaml").write_text(json.dumps(config), encoding="utf-8")
        definition, widget = copy.deepcopy(DEFINITION), copy.deepcopy(WIDGET)
        definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].update(fields or {})
        widget["spec"].update(spec or {})
        (self.folder / "objects.yaml").write_text(yaml.safe_dump_all([definition, widget]), encoding="utf-8")
        return self

    def command(self, *options):
        return [CTL, "torture", "--config", self.folder / "reconciled.yaml", "--timeout", f"{20 * SLOWNESS}s", *options]

    def run(self, *options):
        return subprocess.run(self.command(*options), capture_output=True, text=True, timeout=300 * SLOWNESS, check=False)


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.slow
@pytest.mark.plain_only("the operator and the server that it starts run under sanitizers elsewhere")
def test_each_fault_is_found_and_its_mended_twin_is_not_blamed(bench, name):
    case, watch, fault, mended = FAULTS[name]
    cases = "value,missed" if case == "missed" else case
    found = bench.prepare(fault, **watch).run("--json", "--only", cases)
    assert found.returncode == 1, found.stdout + found.stderr
    failed = [result for result in json.loads(found.stdout)["results"] if result["result"] == "failed"]
    assert failed and {result["case"] for result in failed} == {case}, found.stdout
    assert all(result["steps"] and result["failure"] for result in failed)
    clean = bench.prepare(mended, **watch).run("--only", cases)
    assert clean.returncode == 0 and " 0 failed" in clean.stdout, clean.stdout + clean.stderr


@pytest.mark.slow
def test_a_failure_is_told_step_by_step_and_recorded(bench, tmp_path):
    """As docs/torture.md shows it."""
    shown = next(each for each in Document("docs/torture.md").examples if each.language == "text")
    record, junit = tmp_path / "record", tmp_path / "junit.xml"
    record.mkdir(mode=0o700)
    _case, watch, fault, _mended = FAULTS["takes a value not back"]
    bench.prepare(fault, **watch)
    told = bench.run("--only", "repeated,value", "--record", str(record), "--junit", str(junit))
    assert told.returncode == 1, told.stdout + told.stderr
    text = told.stdout
    assert shown.text in text
    suite = xml.etree.ElementTree.parse(junit).getroot()
    assert int(suite.get("failures")) == len(suite.findall("testcase/failure")) == 2
    kept = list(record.iterdir())
    assert [str(folder) in text for folder in kept] == [True, True]
    replayed = subprocess.run([CTL, "replay", "--config", bench.folder / "reconciled.yaml", kept[0]], capture_output=True, text=True,
                              timeout=120 * SLOWNESS, check=False)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


@pytest.mark.plain_only("of reconciledctl alone")
def test_a_handler_that_does_not_promise_to_do_nothing_else_is_not_run_without_a_word(bench, tmp_path):
    bench.prepare(f"open({str(tmp_path / 'ran')!r}, 'w')\n", handler={"dryRun": False})
    refused = bench.run("--only", "repeated")
    assert refused.returncode == 64 and "--run-anyway" in refused.stderr and not (tmp_path / "ran").exists()


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_the_request_says_that_it_is_a_trial(bench, tmp_path):
    seen = tmp_path / "seen"
    bench.prepare(f"open({str(seen)!r}, 'w').write(repr((request.get('dryRun'), os.environ.get('RECONCILED_DRY_RUN'), os.environ.get('KUBECONFIG'))))\n",
                  handler={"environment": {"KUBECONFIG": "/root/.kube/config"}})
    assert bench.run("--only", "repeated").returncode == 0
    assert seen.read_text() == "(True, 'true', '/nonexistent/kubeconfig')"


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_what_differs_without_a_fault_is_masked_and_told(bench):
    bench.prepare(ALIVE + "import time\nif not status: answer(status={'since': time.time_ns()})\n")
    masked = bench.run("--json", "--only", "repeated,restarted")
    assert masked.returncode == 0, masked.stdout
    assert json.loads(masked.stdout)["masked"] == ["Widget.example.com default/a: status.since"]


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_a_handler_that_fails_without_any_fault_is_told_so(bench):
    failing = bench.prepare("sys.exit('out of order')\n").run()
    assert failing.returncode == 1 and "without any fault" in failing.stdout and "out of order" in failing.stdout


CORRECT = {
    "in steps": ("repeated,left", {}, ALIVE + """\
step = status.get("step", 0)
if step < 3:
    answer(status={"step": step + 1}, requeueAfter="1h")
"""),
    "a cleanup in steps": ("left,reused", {"finalizer": True}, """\
if request["action"] == "finalize" and not status.get("cleaning"):
    answer(done=False, requeueAfter="1h", status={"cleaning": True})
"""),
    "a value is refused": ("value,missed", {}, ALIVE + """\
answer(**({"status": {"size": 2}} if spec["size"] == 2 else {"error": "no", "permanent": True}))
"""),
    "nothing is as good as an empty object": ("value,missed", {"fields": TIER}, ALIVE + """\
answer(status={"tier": spec.get("tier")})
"""),
    "a time that changes now and then": ("restarted,relisted", {}, ALIVE + """\
import time
if "since" not in status:
    answer(status={"since": int(time.time() / 3)})
"""),
}


@pytest.mark.parametrize("name", CORRECT)
@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_a_correct_handler_is_not_blamed(bench, name):
    cases, watch, code = CORRECT[name]
    passed = bench.prepare(code, **watch).run("--only", cases)
    assert passed.returncode == 0 and " 0 failed" in passed.stdout, passed.stdout + passed.stderr


ENDLESS = {"runs again and again": ({}, "answer(requeueAfter='10ms')\n", "it comes to no end, after "),
           "a cleanup that never succeeds": ({"finalizer": True}, ALIVE.replace("sys.exit(0)", "sys.exit('broken')"), "a is given up: "),
           "a cleanup that fails once the object is gone": ({}, ALIVE.replace("sys.exit(0)", "sys.exit('broken')"), "a is given up: ")}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_what_goes_on_for_ever_is_reported(bench, name):
    watch, code, words = ENDLESS[name]
    told = subprocess.run([*bench.prepare(code, **watch).command("--only", "left"), "--timeout", f"{2 * SLOWNESS}s"], capture_output=True,
                          text=True, timeout=120 * SLOWNESS, check=False)
    assert told.returncode == 1 and words in told.stdout, told.stdout + told.stderr


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_values_of_the_configuration_are_as_they_are_written(bench, tmp_path):
    seen = tmp_path / "seen"
    written = {"A": "1.10", "B": "0x10", "C": "y", "D": "no", "E": "1e3", "F": "12345678901234567890", "G": "010"}
    bench.prepare(f"open({str(seen)!r}, 'w').write(json.dumps({{name: os.environ[name] for name in 'ABCDEFG'}}))\n")
    config = json.loads((bench.folder / "reconciled.yaml").read_text(encoding="utf-8"))
    text = ", ".join(f"{name}: {value}" for name, value in written.items())
    config["watches"][0]["handler"]["environment"] = "ENVIRONMENT"
    (bench.folder / "reconciled.yaml").write_text(json.dumps(config).replace('"ENVIRONMENT"', "{" + text + "}"), encoding="utf-8")
    assert bench.run("--only", "left").returncode == 0
    assert json.loads(seen.read_text(encoding="utf-8")) == written


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_objects_as_a_server_shows_them_and_files_that_are_there_twice(bench):
    bench.prepare(ALIVE)
    shown = {**WIDGET, "metadata": {**WIDGET["metadata"], "uid": "x", "resourceVersion": "5", "generation": 3}, "status": {"size": 1}}
    (bench.folder / "again.yaml").write_text(yaml.safe_dump_all([DEFINITION, shown]), encoding="utf-8")
    (bench.folder / "broken.yaml").write_text("kind: [", encoding="utf-8")
    done = bench.run("--only", "left", "--object", bench.folder / "again.yaml", "--object", bench.folder / "again.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    done = bench.run("--only", "left")
    assert done.returncode == 0 and "broken.yaml:2: " in done.stderr and "passed over" in done.stderr


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_objects_that_are_not_selected(bench):
    told = bench.prepare(ALIVE, filter=".spec.size == 7").run("--only", "left")
    assert told.returncode == 1 and "the watch selects none of these objects" in told.stdout


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_results_may_go_to_a_pipe(bench, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE, text=True)
    done = bench.prepare(ALIVE).run("--only", "left", "--junit", pipe)
    assert done.returncode == 0 and pipe.is_fifo(), done.stderr
    assert "<testsuite " in reader.communicate(timeout=60 * SLOWNESS)[0]


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_confidential_values_are_not_shown(bench):
    bench.prepare(ALIVE + "answer(children=[config_map('a', key='hunter' + str(request['attempt']))])\n",
                  owns=[{"apiVersion": "v1", "kind": "ConfigMap", "confidential": True}])
    told = bench.run("--only", "handler-killed")
    assert told.returncode == 1 and "another value, not shown" in told.stdout and "hunter" not in told.stdout, told.stdout


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_a_refusal_for_good_is_an_answer(bench):
    bench.prepare(ALIVE + """\
if spec.get("tier") == "tin":
    answer(error="tin is sold out", permanent=True)
""", fields=TIER)
    refused = bench.run("--json", "--only", "value")
    assert refused.returncode == 0, refused.stdout
    assert json.loads(refused.stdout)["refused"] == ['spec.tier is "tin"']


@pytest.mark.slow
@pytest.mark.plain_only("of reconciledctl alone")
def test_an_interrupt_leaves_nothing_behind(bench):
    bench.prepare(ALIVE)
    process = subprocess.Popen(bench.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)

    def children():
        found = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="utf-8").split()
        return found if len(found) == 2 else None

    started = wait_until(children, "the server and the operator")
    process.send_signal(signal.SIGINT)
    assert process.wait(60 * SLOWNESS) == 70
    assert not [pid for pid in started if os.path.exists(f"/proc/{pid}")]


@pytest.mark.parametrize("options, words", [
    (["--only", "nothing"], "there is no case nothing; use repeated"),
    (["--only", ""], "--only takes at least one case"),
    (["--only", "stale"], "none of the cases of --only applies"),
    (["--record", "/dev/null"], "an absolute path of a folder"),
    (["--minutes", "0"], "--minutes one from 1 on"),
    (["--seed", "x"], "--seed takes a number"),
    (["--record", "here"], "an absolute path"),
    (["--object", "/nonexistent.yaml"], "/nonexistent.yaml: No such file"),
])
def test_mistakes_are_told(bench, options, words):
    told = bench.prepare(ALIVE).run(*options)
    assert told.returncode == 64 and words in told.stderr, told


@pytest.mark.parametrize("owner, mode, former, words", [
    (65534, 0o700, None, "belongs to the user"),
    (0, 0o777, None, "may be written by others"),
    (0, 0o700, "002-left", "002-left is there already; remove it, or name a new folder"),
])
@pytest.mark.plain_only("of reconciledctl alone")
def test_a_folder_for_recordings_that_is_not_fit(bench, tmp_path, owner, mode, former, words):
    """What is there would be removed with the recording of a case that succeeds."""
    record = tmp_path / "record"
    record.mkdir()
    os.chown(record, owner, owner)
    record.chmod(mode)
    if former:
        (record / former).mkdir()
        (record / former / "important").touch()
    told = bench.prepare(ALIVE).run("--only", "repeated,left", "--record", str(record))
    assert told.returncode == 64 and words in told.stderr, told
    assert not former or (record / former / "important").exists()


@pytest.mark.parametrize("example", ["website", "database", "namespace-defaults", "bundle"])
@pytest.mark.long
@pytest.mark.plain_only("of reconciledctl alone")
def test_the_examples_pass(example, tmp_path):
    """That of widgets: test_readme.py."""
    folder = SOURCE / "examples" / example
    objects = [each for path in ("crd.yaml", "objects.yaml") if (folder / path).exists()
               for each in yaml.safe_load_all((folder / path).read_text(encoding="utf-8"))]
    (tmp_path / "objects.yaml").write_text(yaml.safe_dump_all(
        [each for each in objects if each["metadata"]["name"] != "broken"]), encoding="utf-8")  # what is there to show a failure
    passed = subprocess.run([CTL, "torture", "--run-anyway", "--config", folder / "reconciled.yaml", "--object", tmp_path / "objects.yaml"],
                            capture_output=True, text=True, timeout=1500 * SLOWNESS, check=False)
    assert passed.returncode == 0 and " 0 failed" in passed.stdout, passed.stdout + passed.stderr
