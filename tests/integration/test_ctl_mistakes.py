# SPDX-License-Identifier: Apache-2.0
"""What is wrong is said so that it can be mended: who was refused where, which key helps, which name is too long."""
import json

import pytest
import yaml

from harness import wait_until, watch

OWNED = [{"apiVersion": "v1", "kind": "ConfigMap"}]
CHILD = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child"}, "data": {"a": "1"}}


@pytest.fixture
def check(operator):
    def check(text, expect):
        done = operator.ctl.run("check", str(operator.write_config(text)))
        assert expect in (None, done.returncode), done.stdout + done.stderr
        return done.stdout + done.stderr

    return check


def config(name="widgets.example.com", **first):
    return yaml.safe_dump({"operator": name, "watches": [
        {"name": "widgets", "apiVersion": "example.com/v1", "kind": "Widget", "handler": {"exec": ["/bin/true"]}, **first}]})


@pytest.mark.parametrize("name", ["a..b", "a.-b", "a.b-", "a.b."])
def test_an_operator_name_that_prefixes_nothing_is_refused(check, name):
    assert "is not a DNS name with a dot" in check(config(name), 78)


def test_an_operator_name_that_is_no_field_manager_is_refused(check):
    name = ".".join(["a" * 32] * 4)
    assert len(name) == 131
    said = check(config(name), 78)
    assert "longer than 128 bytes" in said and "operator" in said
    assert "operator: " not in check(config(name[3:]), None), "128 bytes"


@pytest.mark.parametrize("key, said", [("owns", "owns"), ("related", "is related to")])
def test_a_watch_named_like_an_owned_one_is_refused(check, key, said):
    text = yaml.safe_load(config(**{key: OWNED}))
    text["watches"].append({**yaml.safe_load(config())["watches"][0], "name": f"widgets.{key}.ConfigMap.0"})
    found = check(yaml.safe_dump(text), 78)
    assert f'"widgets.{key}.ConfigMap.0"' in found and f"that watch widgets {said}" in found


SELECTORS = [
    ({"labelSelector": "app in web"}, "labelSelector", 'a list of values, like (a,b), is expected instead of "web"'),
    ({"labelSelector": "app=a=b"}, "labelSelector", 'a comma is expected instead of "=" (character 6 of "app=a=b")'),
    ({"labelSelector": "-app"}, "labelSelector", '"-app" is not a key of a label'),
    ({"fieldSelector": "metadata.name"}, "fieldSelector", '"metadata.name" has none of =, == and !='),
    ({"fieldSelector": "metadata.name in (a)"}, "fieldSelector", "has none of =, == and !="),
    ({"owns": [{**OWNED[0], "labelSelector": "a b"}]}, "owns[0].labelSelector", "is expected instead of"),
    ({"related": [*OWNED, {**OWNED[0], "labelSelector": "a,"}]}, "related[1].labelSelector", "is expected at the end"),
]


@pytest.mark.parametrize("first, key, said", SELECTORS)
def test_a_selector_that_no_server_reads_is_refused(check, operator, first, key, said):
    found = check(config(**first), 78)
    lines = operator.config_file.read_text(encoding="utf-8").splitlines()
    [number] = [i for i, line in enumerate(lines, 1) if line.lstrip("- ").startswith(key.rsplit(".", maxsplit=1)[-1] + ":")]
    assert f"{operator.config_file}:{number}: watches[0].{key}: " in found and said in found, found


@pytest.mark.parametrize("first", [{"labelSelector": "app in (a, b),!old,example.com/tier!=x,size>3"},
                                   {"fieldSelector": "metadata.name!=a,status.phase==b"}])
def test_a_selector_that_a_server_reads_is_not_refused(check, first):
    assert "Selector" not in check(config(**first), None)


def test_a_selector_that_the_server_refuses_is_named_beside_the_limit(devserver, operator, handler):
    operator.configure(devserver, [watch("widgets", handler, fieldSelector="spec.unknown=1")])
    operator.start()
    operator.wait_for_log("limit is left out for an hour, though its labelSelector or fieldSelector may be the cause")


def test_a_wrong_key_of_the_document_has_its_line(check, operator):
    assert f"{operator.config_file}:2: operator: " in check("workers: 2\noperator: Widgets\nwatches: []\n", 78)
    assert f"{operator.config_file}:3: watches: is missing or empty" in check("workers: 2\noperator: a.example\nwatches: []\n", 78)
    assert f"{operator.config_file}:3: gateway.tokenFile: " in check(
        "operator: a.example\ngateway:\n  tokenFile: token\nwatches: []\n", 78)
    assert f"{operator.config_file}: operator: is missing" in check("workers: 2\nwatches: []\n", 78)


def test_a_variable_that_is_not_set_is_one_mistake(check):
    said = check(config(handler={"exec": ["/bin/true"], "credentials": {"token": "${TOKEN_FILE_OF_NOBODY}"}}), 78)
    assert "the environment has no variable TOKEN_FILE_OF_NOBODY" in said and len(said.splitlines()) == 1, said


def test_a_configuration_that_is_missing_is_told_once(operator):
    path = str(operator.folder / "nowhere.yaml")
    for verb, options in (("check", [path]), ("run", ["--config", path, "--object", "default/w"])):
        done = operator.ctl.run(verb, *options)
        said = (done.stdout + done.stderr).splitlines()
        assert done.returncode == 78 and said == [f"{path}: cannot be read: No such file or directory"], said


def test_check_praises_nothing_that_it_then_refuses(operator, handler):
    operator.configure(None, [watch("widgets", handler)], workers=1, cluster={"kubeconfig": "/nowhere"})
    done = operator.ctl.run("check", str(operator.config_file))
    assert done.returncode == 78 and "/nowhere" in done.stdout
    lines = operator.config_file.read_text(encoding="utf-8").splitlines()
    [number] = [i for i, line in enumerate(lines, 1) if "kubeconfig: /nowhere" in line]
    assert f"{operator.config_file}:{number}: cluster.kubeconfig: " in done.stdout, done.stdout
    assert "no mistakes" not in done.stdout and "its access to the cluster cannot be used" in done.stdout
    assert "1 watch, 1 worker:" in done.stdout


def test_a_configuration_that_nobody_named_names_the_option(operator):
    done = operator.ctl.run("run", "--object", "default/w")
    assert done.returncode == 78 and "reconciledctl: give the file with --config" in done.stderr, done.stderr


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_says_who_was_refused_where(devserver, operator, handler, status):
    devserver.fault(match={"resource": "widgets"}, times=0, status=status, reason="Unauthorized", message="Unauthorized")
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start()
    wait_until(lambda: "Unauthorized" in operator.output.text(), "the refusal")
    wait_until(lambda: operator.ctl.run("status").returncode == 0 and operator.ctl.status()["watches"][0]["reason"], "its reason")
    reason = operator.ctl.status()["watches"][0]["reason"]
    server = yaml.safe_load(operator.folder.joinpath("kubeconfig").read_text(encoding="utf-8"))["clusters"][0]["cluster"]["server"]
    assert server in reason and "as user " in reason and str(operator.folder / "kubeconfig") in reason, reason
    assert ("`reconciledctl rbac` prints all it needs" in reason) == (status == 403), reason


@pytest.mark.parametrize("answer, resource, result", [
    ({"patch": {"spec": {"size": 1}}}, "widgets", "forbidden"),
    ({"children": [CHILD]}, "configmaps", "unavailable"),
])
def test_a_write_for_which_a_right_is_missing_names_the_command_that_prints_it(devserver, operator, handler, widgets, answer, resource, result):
    """The result is that of docs/metrics.md: only a right to the watch's own kind concerns the whole watch."""
    devserver.fault(match={"resource": resource, "verb": "patch"}, times=0, status=403, reason="Forbidden",
                    message=f'{resource} "w" is forbidden: User "operator" cannot patch resource "{resource}"')
    handler.answer(answer)
    operator.configure(devserver, [watch("widgets", handler, retry={"first": "100ms"})])
    operator.start_ready().wait_synced()
    widgets.create("w")
    wait_until(lambda: "`reconciledctl rbac` prints all it needs" in operator.output.text(), "the advice")

    def results():
        return {run["result"] for run in json.loads(operator.ctl.run("history", "widgets", "-o", "json").stdout)["runs"]}

    wait_until(lambda: results() == {result}, lambda: f"{result}: {results()}")


def test_a_conflict_names_the_key_that_ends_it(devserver, operator, handler, widgets, api):
    config_maps = api.resource("v1", "configmaps", "default")
    config_maps.create("child", data={"a": "2"})
    handler.answer({"children": [{"manifest": CHILD, "adopt": True}]})
    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready().wait_synced()
    widgets.create("w")
    wait_until(lambda: operator.ctl.status()["failing"], "the failure")
    error = operator.ctl.status()["failing"][0]["lastError"]
    assert "children.force" in error and "Apply failed with 1 conflict" in error, json.dumps(error)


WORDS = 'configmaps "child" is forbidden: User "system:serviceaccount:ops:operator" cannot patch resource "configmaps" in API group ""'


@pytest.mark.parametrize("fault, shown", [
    ({"status": 403, "reason": "Forbidden", "message": WORDS},
     'all it needs: configmaps "child" is forbidden: the operator\'s user cannot patch resource "configmaps" in API group ""'),
    ({"status": 403, "reason": "Forbidden", "message": 'configmaps "child" is forbidden: user "system:serviceaccount:ops:operator" '
      '(groups=["system:serviceaccounts" "system:serviceaccounts:ops"]) is attempting to grant RBAC permissions'},
     "is forbidden: the operator's user is attempting to grant RBAC permissions"),
    ({"status": 401, "reason": "Unauthorized", "message": "Unauthorized"}, "cannot be applied: Unauthorized"),
    ({"reset": True}, "the API server: "),
])
def test_tenants_do_not_learn_who_the_operator_is(devserver, operator, handler, widgets, api, fault, shown):
    """Its user, the server's address and its files: the log has them, what is written to the object has not."""
    devserver.fault(match={"resource": "configmaps", "verb": "patch"}, times=0, **fault)
    handler.answer({"children": [CHILD]})
    operator.configure(devserver, [watch("widgets", handler, readyCondition=True, retry={"first": "100ms"})])
    operator.start_ready().wait_synced()
    widgets.create("w")
    server = devserver.url.rstrip("/")
    events = api.resource("events.k8s.io/v1", "events", "default")

    def said():
        conditions = widgets.get("w").get("status", {}).get("conditions", [])
        return [each["message"] for each in conditions if each["status"] == "False"], [each["note"] for each in events.list()["items"]]

    wait_until(lambda: all(said()), lambda: f"the condition and the Event: {said()}")
    operator.stop()
    for text in sum(said(), []):
        assert shown in text, text
        for secret in (server, server.split("://")[1].split(":", maxsplit=1)[0], "system:serviceaccount", "kubeconfig", " as user "):
            assert secret not in text, text
    assert server in operator.output.text() and ("status" not in fault or " as user " in operator.output.text())


NOT_SERVED = [
    ({"kind": "Widgte"}, 'kind: of watch widgets: the server has no kind Widgte in example.com/v1; did you mean "Widget"?'),
    ({"kind": "widget"}, 'did you mean "Widget"?'),
    ({"kind": "widgets"}, 'did you mean "Widget"?'),
    ({"apiVersion": "example.com/v2"}, 'the server has no example.com/v2; did you mean "example.com/v1"?'),
    ({"apiVersion": "exmaple.com/v1"}, 'the server has no exmaple.com/v1; did you mean "example.com/v1"?'),
    ({"apiVersion": "v2", "kind": "Pod"}, 'the server has no v2; did you mean "v1"?'),
    ({"owns": [{"apiVersion": "v1", "kind": "configMap"}]}, 'watches[0].owns[0].kind: of watch widgets.owns.configMap.0: the server has no kind configMap in v1; did you mean "ConfigMap"?'),
    ({"children": {"kinds": [{"apiVersion": "apps/v1beta1", "kind": "Deployment"}]}},
     'watches[0].children.kinds[0]: of watch widgets: the server has no apps/v1beta1; did you mean "apps/v1"?'),
    ({"finalizer": True, "patches": [{"apiVersion": "v1", "kind": "Nod"}]},
     'watches[0].patches[0]: of watch widgets: the server has no kind Nod in v1; did you mean "Node"?'),
    ({"owns": [{"apiVersion": "v1", "kind": "Deployment"}]}, 'the server has no kind Deployment in v1; did you mean "apps/v1"?'),
    ({"owns": [{"apiVersion": "apps/v1", "kind": "ConfigMap"}]}, 'the server has no kind ConfigMap in apps/v1; did you mean "v1"?'),
]


@pytest.mark.parametrize("first, said", NOT_SERVED, ids=lambda value: json.dumps(value) if isinstance(value, dict) else "")
def test_check_asks_the_server_for_kinds(devserver, operator, first, said):
    operator.configure(devserver, [{**watch("widgets"), "handler": {"exec": ["/bin/true"]}, **first}])
    done = operator.ctl.check(operator.config_file)
    assert done.returncode == 78 and said in done.stdout and "no mistakes found" not in done.stdout, done
    lines = operator.config_file.read_text(encoding="utf-8").splitlines()
    listed = first.get("owns") or first.get("patches") or first.get("children", {}).get("kinds")
    line = max(number for number, text in enumerate(lines) if text.endswith(f" kind: {listed[0]['kind']}")) if listed else 4
    assert f"{operator.config_file}:{line}: " in done.stdout, done.stdout
    assert not json.loads(operator.ctl.run("check", "--json", str(operator.config_file)).stdout)["valid"]


def test_check_where_the_server_tells_nothing(devserver, operator):
    def checked(code=0):
        done = operator.ctl.check(operator.config_file)
        assert done.returncode == code, done.stdout
        return done.stdout

    first = {**watch("widgets"), "handler": {"exec": ["/bin/true"]}}
    operator.configure(devserver, [{**first, "apiVersion": "elsewhere.org/v1"}])
    assert "warning: " in (said := checked()) and "the server has no elsewhere.org/v1 (is its CRD installed?)" in said
    operator.configure(devserver, [{**first, "kind": "Widgte", "required": False}])
    assert "warning: " in (said := checked()) and 'did you mean "Widget"?' in said, "it may come later"
    operator.configure(devserver, [first])
    assert "was not asked" not in (said := checked()) and "no mistakes found" in said
    operator.configure(devserver, [{**first, "kind": "Foo", "apiVersion": "v1"}])
    assert "did you mean" not in checked(), "Pod is no word that is nearly the same"
    operator.configure(devserver, [first])
    devserver.fault(match={"verb": "discovery"}, status=403, times=0)
    assert "note: the server was not asked whether it serves these kinds: " in checked()
    devserver.kill()
    assert "note: the server was not asked whether it serves these kinds: " in checked()
