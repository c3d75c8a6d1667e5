# SPDX-License-Identifier: Apache-2.0
"""`reconciledctl plan`: what a new handler would change, over all objects, each write as the server's dry run."""
import base64
import contextlib
import json
import signal
import subprocess

import pytest

from harness import scaled, wait_until, watch
from harness.process import clean_environment

CHILD = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"\'$RECONCILED_NAME\'-c"},"data":{"a":"%s"}}'
SECRET = '{"apiVersion":"v1","kind":"Secret","metadata":{"name":"\'$RECONCILED_NAME\'-s"},"data":{"p":"%s"}}'
OWNS = [{"apiVersion": "v1", "kind": kind} for kind in ("ConfigMap", "Secret")]


def children(*texts):
    return f"printf '%s\\n' '{{\"children\": [{', '.join(texts)}]}}'"


def secret(value):
    return SECRET % base64.b64encode(value.encode()).decode()


@pytest.fixture
def plan(devserver, operator, handler, widgets, by_hand):
    """Ten objects that have been handled, and no operator any more."""
    handler.behave(children(CHILD % "1", secret("old")))
    options = watch("widgets", handler, owns=OWNS, finalizer=True, readyCondition=True, handler_options={"dryRun": True})
    operator.configure(devserver, [options])
    for index in range(10):
        widgets.create(f"w{index}", labels={"odd": str(index % 2)})
    operator.start_ready()
    wait_until(lambda: all(widget.get("status", {}).get("conditions") for widget in widgets.list()["items"]), "all runs")
    operator.stop()

    def run(*options, expect=0):
        before = devserver.requests()
        done = by_hand("plan", *options, expect=expect)
        written = [request for request in devserver.requests()[len(before):] if request["method"] not in ("GET", "CONNECT")]
        assert all("dryRun=All" in request["query"] and "wrote" not in request for request in written)
        return done.stdout

    run.options = options
    return run


@pytest.fixture
def begin(by_hand, operator):
    """The command, which goes on."""
    with contextlib.ExitStack() as stack:
        def start(*arguments):
            environment = clean_environment(operator.user, {"TMPDIR": str(by_hand.folder)})
            process = subprocess.Popen(by_hand.command(*arguments), stdout=subprocess.PIPE, text=True, cwd=by_hand.folder,
                                       env=environment, stdin=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        yield start


def test_nothing_changes(plan):
    assert plan() == "10 objects, 10 unchanged, 0 change, 0 unknown, 0 fail\n"


def test_equal_changes_are_one_group(plan, handler):
    """In the form that docs/plan.md shows."""
    handler.behave('case $RECONCILED_NAME in w3) a=3;; *) a=2;; esac; ' + children(CHILD % "'$a'", secret("old")))
    told = plan(expect=2)
    assert '9 objects: default/w0, default/w1, default/w2, default/w4, default/w5 and 4 more\n  ~ change ConfigMap NAME-c\n' \
           '      - data.a: "1"\n      + data.a: "2"\n' in told
    assert '1 object: default/w3\n' in told and told.endswith("10 objects, 0 unchanged, 10 change, 0 unknown, 0 fail\n")
    answer = json.loads(plan("--json", expect=2))
    assert (answer["objects"], answer["change"], sorted(len(group["objects"]) for group in answer["groups"])) == (10, 10, [1, 9])
    few = plan("--limit", "3", "--selector", "odd=1", expect=2)
    assert few.endswith("3 objects, 0 unchanged, 3 change, 0 unknown, 0 fail\n")


def test_a_secrets_value_changes_and_is_not_shown(plan, handler):
    handler.behave(children(CHILD % "1", secret("new")))
    told = plan(expect=2)
    assert "10 objects, 0 unchanged, 10 change" in told and "~ change Secret NAME-s\n      confidential content" in told
    assert secret("new") not in told and base64.b64encode(b"new").decode() not in told


def test_labels_of_a_secret_are_no_secret_and_count(plan, handler):
    handler.behave(children(CHILD % "1", secret("old").replace('"name"', '"labels":{"tier":"b"},"name"')))
    told = plan(expect=2)
    assert "10 objects, 0 unchanged, 10 change" in told and "~ change Secret NAME-s\n" in told, told


def test_what_would_be_created_is_shown(plan, handler):
    """In its place, and in its namespace where that is not the object's own."""
    other = CHILD.replace("-c", "-d")
    handler.behave(children(CHILD % "1", secret("old"), other % "1"))
    assert '  + create ConfigMap NAME-d\n      + data.a: "1"\n' in plan(expect=2)
    handler.behave('case $RECONCILED_NAME in w3) a=2;; *) a=1;; esac; '
                   + children(CHILD % "1", secret("old"), other % "'$a'"))
    told = plan(expect=2)
    assert "1 object: default/w3\n" in told and "9 objects: " in told, told


def test_long_values_are_shown_where_they_differ(plan, handler):
    long = "x" * 500
    handler.behave(children(CHILD % (long + "-'$RECONCILED_NAME'-1"), secret("old")))
    told = plan(expect=2)
    assert told.count("objects: ") == 1 and "(509 bytes, hash " in told, told
    handler.behave('case $RECONCILED_NAME in w3) a=2;; *) a=1;; esac; ' + children(CHILD % (long + "'$a'"), secret("old")))
    assert "1 object: default/w3\n" in plan(expect=2)


def test_a_child_elsewhere_says_where(plan, handler, operator, devserver):
    options = plan.options | {"children": {"namespaces": ["elsewhere"]}}
    operator.configure(devserver, [options])
    devserver.api.resource("v1", "namespaces", kind="Namespace").create("elsewhere")
    elsewhere = CHILD.replace('"name"', '"namespace":"elsewhere","name"').replace("-c", "-e")
    handler.behave(children(CHILD % "1", secret("old"), elsewhere % "1"))
    assert "  + create ConfigMap elsewhere/NAME-e\n" in plan(expect=2)


def test_what_another_try_helps_is_tried_again(plan, handler, devserver):
    """As the operator would: the server throttles, or another writer came first."""
    handler.behave(children(CHILD % "2", secret("old")))
    faults = [devserver.fault(match={"verb": "patch", "resource": "configmaps"}, **fault)
              for fault in ({"status": 409}, {"status": 503, "after": 3})]
    assert plan(expect=2).endswith("10 objects, 0 unchanged, 10 change, 0 unknown, 0 fail\n")
    assert [devserver.faults()[fault]["hit"] for fault in faults] == [1, 1]


def test_no_object_at_all(devserver, operator, handler, by_hand):
    operator.configure(devserver, [watch("widgets", handler, handler_options={"dryRun": True})])
    assert by_hand("plan").stdout == "0 objects, 0 unchanged, 0 change, 0 unknown, 0 fail\n"


def test_a_write_that_is_refused_is_a_failure(plan, handler, devserver):
    handler.behave(children(CHILD % "2", secret("old")))
    devserver.fault(match={"verb": "patch", "resource": "secrets"}, status=422, times=0)
    told = plan("--limit", "1", expect=1)
    assert "default/w0: failed: " in told and "Secret default/w0-s cannot be applied: HTTP 422" in told, told


def test_an_object_that_goes_meanwhile_is_left_out(plan, handler, widgets, begin):
    handler.behave(handler.held + "; " + children(CHILD % "1", secret("old")))
    process = begin("plan")
    handler.wait_for(name="w0", where=lambda request: request.body.get("dryRun"))
    widgets.merge_patch("w9", {"metadata": {"finalizers": None}})
    widgets.delete("w9")
    handler.let_go()
    told = process.communicate(timeout=scaled(60))[0]
    assert told.endswith("9 objects, 9 unchanged, 0 change, 0 unknown, 0 fail\n"), told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_leaves_nothing(plan, handler, begin, by_hand, number):
    handler.behave(handler.held)
    process = begin("plan")
    handler.wait_for(where=lambda request: request.body.get("dryRun"))
    process.send_signal(number)
    process.communicate(timeout=scaled(60))
    assert process.returncode == 128 + number and not list(by_hand.folder.iterdir())


def test_a_gate(plan, handler):
    handler.behave('case $RECONCILED_NAME in w3) a=3;; *) a=1;; esac; ' + children(CHILD % "'$a'", secret("old")))
    assert "9 unchanged, 1 change" in plan("--gate", "10%")
    plan("--gate", "9%", expect=2)


def test_what_fails(plan, handler):
    handler.behave('case $RECONCILED_NAME in w3) echo no >&2; exit 1;; esac; ' + children(CHILD % "1", secret("old")))
    told = plan("--gate", "100%", expect=1)
    assert "default/w3: failed: the handler exited with 1: no\n" in told
    assert told.endswith("10 objects, 9 unchanged, 0 change, 0 unknown, 1 fail\n")


def test_a_child_that_is_left_out_would_be_deleted(plan, handler):
    handler.behave(children(CHILD % "1"))
    told = plan(expect=2)
    assert "10 objects: " in told and "- delete Secret NAME-s" in told


def test_what_depends_on_a_write_that_was_only_tried_is_unknown(plan, handler, operator, devserver):
    options = plan.options | {"children": {"namespaces": ["later"], "kinds": [{"apiVersion": "v1", "kind": "Namespace"}]}}
    operator.configure(devserver, [options])
    inside = (CHILD % "1").replace('"name"', '"namespace":"later","name"')
    namespace = '{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"later"}}'
    handler.behave(children(namespace, inside))
    told = plan("--limit", "1", expect=1)
    assert "default/w0: unknown: " in told and told.endswith("1 object, 0 unchanged, 0 change, 1 unknown, 0 fail\n"), told


def test_the_handler_must_promise_and_gets_no_credentials(plan, handler, operator, devserver, by_hand):
    key = operator.folder / "key"
    key.write_text("secret", encoding="utf-8")
    operator.user.give(key, 0o600)
    handler.behave("exit 0")
    calm = {**plan.options, "handler": {**plan.options["handler"], "credentials": {"key": str(key)}}}
    operator.configure(devserver, [calm])
    before = handler.count()
    plan("--limit", "1")
    request = handler.requests()[-1]
    assert handler.count() == before + 1 and request.body["dryRun"] is True
    assert request.environment["KUBECONFIG"] == "/nonexistent/kubeconfig"
    assert request.environment["RECONCILED_DRY_RUN"] == "true" and "RECONCILED_CREDENTIALS_DIRECTORY" not in request.environment
    operator.configure(devserver, [{**calm, "handler": {**calm["handler"], "dryRun": False}}])
    assert "--run-anyway" in by_hand("plan", expect=64).stderr and handler.count() == before + 1


def test_several_writes_to_one_object_do_not_undo_each_other(devserver, operator, handler, widgets, by_hand):
    """A dry run keeps nothing: the next write finds the object as it was."""
    handler.behave(children(CHILD % "1"))
    options = watch("widgets", handler, owns=OWNS, finalizer=True, readyCondition=True, handler_options={"dryRun": True})
    operator.configure(devserver, [options])
    widgets.create("new")
    for told in (by_hand("plan", expect=2).stdout, by_hand("run", "--object", "default/new").stdout):
        assert "+ metadata.finalizers[0]" in told and "+ status.conditions[0].type" in told
        assert not [line for line in told.splitlines() if line.strip().startswith("- ")], told


@pytest.mark.parametrize("options", [["--limit", "0"], ["--limit", "x"], ["--gate", "5"], ["--gate", "101%"]])
def test_plan_mistakes(devserver, operator, handler, by_hand, options):
    operator.configure(devserver, [watch("widgets", handler)])
    assert "--limit takes a number" in by_hand("plan", *options, expect=64).stderr


@pytest.mark.slow
def test_all_of_many_objects_are_asked(devserver, operator, handler, widgets, by_hand):
    operator.configure(devserver, [watch("widgets", handler, handler_options={"dryRun": True})])
    for index in range(300):
        widgets.create(f"w{index}")
    assert by_hand("plan").stdout == "300 objects, 300 unchanged, 0 change, 0 unknown, 0 fail\n"


@pytest.fixture
def recorded(devserver, operator, handler, widgets, make_handler, sandbox, by_hand):
    """What an operator has recorded of three objects with a child each; nothing else is left of them."""
    handler.behave(children(CHILD % "1"))
    options = watch("widgets", handler, owns=OWNS[:1], handler_options={"dryRun": True})
    folder = sandbox.subfolder("records", operator.user, 0o700)
    operator.configure(devserver, [options], record=str(folder))
    operator.start_ready()
    for index in range(4):
        widgets.create(f"w{index}", spec={"size": index})
        handler.wait_for(name=f"w{index}")
        wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 2 * index + 1, "its child")  # noqa: B023
        widgets.merge_patch(f"w{index}", {"spec": {"more": 1}})
        wait_until(lambda: operator.ctl.status()["watches"][0]["succeeded"] == 2 * index + 2, "the run that sees it")  # noqa: B023
    widgets.delete("w3")
    handler.wait_for(name="w3", action="deleted")
    operator.stop()
    devserver.kill()
    return folder


def test_over_a_recording(recorded, handler, by_hand):
    assert by_hand("plan", "--object", recorded).stdout == "3 objects, 3 unchanged, 0 change, 0 unknown, 0 fail\n"
    handler.behave(children(CHILD % "2"))
    told = by_hand("plan", "--object", recorded, expect=2).stdout
    assert '3 objects: default/w0, default/w1, default/w2\n  ~ change ConfigMap NAME-c\n      - data.a: "1"\n' in told


def test_over_manifests(operator, handler, by_hand, devserver):
    operator.configure(devserver, [watch("widgets", handler, owns=OWNS[:1], handler_options={"dryRun": True})])
    devserver.kill()
    folder = by_hand.folder.parent
    for index in range(2):
        path = folder / f"manifests-{index}.yaml"
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [
            {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": f"m{index}", "namespace": "teams"}, "spec": {}}]}))
    handler.behave(children(CHILD % "1"))
    told = by_hand("plan", "--object", folder / "manifests-0.yaml", expect=2).stdout
    assert "1 object: teams/m0\n" in told and "  + create ConfigMap NAME-c\n" in told
    assert by_hand("plan", "--object", folder, "--limit", "1", expect=2).stdout.endswith(
        "1 object, 0 unchanged, 1 change, 0 unknown, 0 fail\n")
    empty = folder / "empty"
    empty.mkdir()
    assert "there is no object in it" in by_hand("plan", "--object", empty, expect=64).stderr
    assert "No such file" in by_hand("plan", "--object", folder / "none", expect=64).stderr


def test_manifests_of_all_sorts(operator, handler, by_hand, devserver):
    """The same object twice, others' kinds, a record that ends in the middle."""
    operator.configure(devserver, [watch("widgets", handler, owns=OWNS[:1], handler_options={"dryRun": True})])
    devserver.kill()
    folder = by_hand.folder.parent / "manifests"
    folder.mkdir()
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "m", "namespace": "teams"}, "spec": {"size": 1}}
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": "teams"}}
    (folder / "a.yaml").write_text(json.dumps(widget) + "\n---\n" + json.dumps(other))
    (folder / "b.json").write_text(json.dumps({**widget, "spec": {"size": 2}}))
    (folder / "c.jsonl").write_text(json.dumps({"type": "request", "body": {"action": "reconcile", "object": {}, "children": [1, None, {}]}})
                                    + '\n{"type": "requ')
    handler.behave(children(CHILD % "1"))
    told = by_hand("plan", "--object", folder, expect=2)
    assert "1 object, 0 unchanged, 1 change" in told.stdout and "1 records are read up to a line" in told.stderr
    assert handler.requests()[-1].body["object"]["spec"] == {"size": 2}
    (folder / "b.json").write_text("{}")
    assert "needs apiVersion, kind and metadata.name" in by_hand("plan", "--object", folder, expect=64).stderr
    assert "there is no Widget (example.com/v1)" in by_hand("plan", "--object", folder / "a.yaml", "--selector", "a=b").stderr
