# SPDX-License-Identifier: Apache-2.0
"""reconciled-devserver by itself: what the conformance suite cannot hold against a real API server, because it has
controllers, options or a life of its own there."""
import copy
import stat

import pytest
import yaml

from harness import ApiError, WIDGET_CRD, Devserver, wait_until, watch
from harness.api import Api, Kubeconfig
from harness.process import start

NO_UID = "11111111-2222-3333-4444-555555555555"


def reference(owner, **more):
    return {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], **more}


def gone(resource, name):
    wait_until(lambda: not resource.exists(name), f"the end of {name}")


@pytest.mark.parametrize("name", ["labels", "annotations"])
@pytest.mark.parametrize("value", [["a"], [{}], [None]], ids=str)
def test_metadata_of_a_wrong_type_is_refused(api, name, value):
    configmaps = api.resource("v1", "configmaps", "default")
    with pytest.raises(ApiError) as refused:
        configmaps.create("wrong", **{name: value})
    assert refused.value.code == 422 and f"metadata.{name}: " in str(refused.value)
    configmaps.create("right", **{name: {"a": "b"}})


# Garbage collection

def test_what_is_owned_goes_with_its_owner(api, widgets):
    configmaps = api.resource("v1", "configmaps", "default")
    owner = widgets.create("owner")
    child = configmaps.create("child", ownerReferences=[reference(owner)])
    configmaps.create("grandchild", ownerReferences=[reference(child)])
    configmaps.create("bystander")
    widgets.delete("owner")
    gone(configmaps, "child")
    gone(configmaps, "grandchild")
    assert configmaps.exists("bystander")


def test_the_last_owner_counts(widgets):
    first, second = widgets.create("first"), widgets.create("second")
    widgets.create("child", ownerReferences=[reference(first), reference(second)])
    widgets.delete("first")
    assert widgets.exists("child")
    widgets.delete("second")
    gone(widgets, "child")


def test_a_finalizer_holds_what_is_collected(widgets):
    owner = widgets.create("owner")
    widgets.create("child", ownerReferences=[reference(owner)], finalizers=["example.com/hold"])
    widgets.delete("owner")
    wait_until(lambda: widgets.get("child")["metadata"].get("deletionTimestamp"), "the child to be asked to go")
    widgets.merge_patch("child", {"metadata": {"finalizers": None}})
    gone(widgets, "child")


def test_an_owner_that_never_was(widgets):
    absent = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "absent", "uid": NO_UID}
    with widgets.watch() as seen:
        widgets.create("child", ownerReferences=[absent])
        assert [event["type"] for event in seen.take(2)] == ["ADDED", "DELETED"]


def test_an_owner_of_that_name_but_another_uid_is_no_owner(widgets):
    old = widgets.create("owner")
    widgets.delete("owner")
    widgets.create("owner")
    with widgets.watch(resourceVersion=widgets.list()["metadata"]["resourceVersion"]) as seen:
        widgets.create("child", ownerReferences=[reference(old)])
        assert [event["type"] for event in seen.take(2)] == ["ADDED", "DELETED"]
    assert widgets.exists("owner")


def test_orphans_stay_and_forget_their_owner(widgets):
    owner = widgets.create("owner")
    widgets.create("child", ownerReferences=[reference(owner)])
    widgets.delete("owner", {"propagationPolicy": "Orphan"})
    gone(widgets, "owner")
    wait_until(lambda: not widgets.get("child")["metadata"].get("ownerReferences"), "the reference to be removed")


def test_a_namespace_goes_with_what_is_in_it(api):
    namespaces = api.resource("v1", "namespaces")
    namespaces.create("doomed")
    inside = api.resource("example.com/v1", "widgets", "doomed")
    inside.create("a")
    with inside.watch(resourceVersion=inside.list()["metadata"]["resourceVersion"]) as seen:
        namespaces.delete("doomed")
        assert seen.next()["type"] == "DELETED"
    gone(namespaces, "doomed")
    assert inside.names() == []


# TLS, token, options

def test_tls_and_token(make_devserver, operator, handler):
    devserver = make_devserver(arguments=["--tls", "--token", "secret-of-the-test"])
    assert devserver.url.startswith("https://127.0.0.1:")
    assert stat.S_IMODE(devserver.kubeconfig.stat().st_mode) == 0o600, "it holds a token"
    devserver.api.resource("example.com/v1", "widgets", "default").create("a", spec={"size": 1})

    kubeconfig = Kubeconfig(devserver.kubeconfig)
    for token in (None, "wrong"):
        kubeconfig.token = token
        with pytest.raises(ApiError) as caught:
            Api(kubeconfig).resource("example.com/v1", "widgets", "default").list()
        assert (caught.value.code, caught.value.reason) == (401, "Unauthorized")
        assert caught.value.status["kind"] == "Status"

    operator.configure(devserver, [watch("widgets", handler)])
    operator.start_ready()
    assert handler.wait_finished(name="a").object["spec"] == {"size": 1}
    operator.stop()
    assert "secret-of-the-test" not in operator.output.text()
    assert "secret-of-the-test" not in devserver.request_log.read_text(encoding="utf-8")


def test_a_certificate_of_another_authority_is_refused(make_devserver, operator, handler):
    devserver, other = make_devserver(arguments=["--tls"]), make_devserver(arguments=["--tls"])
    text = other.kubeconfig.read_text(encoding="utf-8")
    mixed = text.replace(other.url, devserver.url)
    assert mixed != text
    other.kubeconfig.write_text(mixed, encoding="utf-8")
    operator.configure(other, [watch("widgets", handler, deadline="500ms")])
    operator.start()
    operator.wait_exit(expect=69)
    assert "certificate" in operator.logs(level="critical")[0]["message"].lower()
    assert handler.count() == 0


def test_the_token_from_a_file(sandbox):
    token = sandbox.folder / "token"
    token.write_text("from-a-file\n", encoding="utf-8")
    devserver = Devserver(sandbox, arguments=["--token-file", str(token)]).start()
    assert Kubeconfig(devserver.kubeconfig).token == "from-a-file"
    assert devserver.api.resource("v1", "namespaces").exists("default")


def test_other_addresses_than_loopback_must_be_meant(sandbox):
    user = sandbox.user()
    popen = start(user, [sandbox.program("reconciled-devserver"), "--listen", "0.0.0.0:0"])
    assert popen.wait(timeout=20) == 64


def test_history_is_bounded(make_devserver):
    devserver = make_devserver(arguments=["--history", "5"])
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    version = widgets.create("a", spec={"n": 0})["metadata"]["resourceVersion"]
    for n in range(1, 10):
        widgets.merge_patch("a", {"spec": {"n": n}})
    try:
        with widgets.watch(resourceVersion=version) as seen:
            status = seen.next()["object"]
    except ApiError as error:
        status = error.status
    assert status["code"] == 410


def test_bookmarks_as_often_as_asked_for(make_devserver):
    devserver = make_devserver(arguments=["--bookmark-interval", "50ms"])
    widgets = devserver.api.resource("example.com/v1", "widgets", "default")
    with widgets.watch(allowWatchBookmarks="true") as seen:
        first = seen.next_bookmark()["object"]
        elsewhere = devserver.api.resource("v1", "configmaps", "default").create("a")["metadata"]["resourceVersion"]
        wait_until(lambda: int(seen.next_bookmark()["object"]["metadata"]["resourceVersion"]) >= int(elsewhere),
                   "a bookmark past a write to another resource")
    assert first["kind"] == "Widget"


def test_it_starts_with_what_it_was_told_to_load(make_devserver):
    devserver = make_devserver(load=[
        WIDGET_CRD, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}},
        {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "team"}, "spec": {"n": 1}}])
    loaded = devserver.api.resource("example.com/v1", "widgets", "team").get("a")
    assert loaded["spec"] == {"n": 1} and loaded["metadata"]["uid"] and loaded["metadata"]["generation"] == 1


def test_a_database_that_was_kept_goes_on_where_it_was(make_devserver, sandbox):
    """With UIDs and resourceVersions, the cluster's identity among them; a watch may begin there, and not before."""
    first = make_devserver(load=[WIDGET_CRD])
    first.api.resource("example.com/v1", "widgets", "default").create("a", spec={"n": 1})
    kept = []
    for api_version, plural, kind in (("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition"),
                                      ("v1", "namespaces", "Namespace"), ("example.com/v1", "widgets", "Widget")):
        body = first.api.resource(api_version, plural).list()
        kept.append({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": body["metadata"]["resourceVersion"]},
                     "items": [{**item, "apiVersion": api_version, "kind": kind} for item in body["items"]]})
    file = sandbox.folder / "kept.yaml"
    file.write_text(yaml.safe_dump_all(kept), encoding="utf-8")
    file.chmod(0o644)
    second = make_devserver(load=[], arguments=["--load-as-is", "--load", str(file)])
    widgets = second.api.resource("example.com/v1", "widgets", "default")
    assert widgets.list() == first.api.resource("example.com/v1", "widgets", "default").list()
    identities = [[server.api.resource("v1", "namespaces").get(name)["metadata"][key] for key in ("uid", "resourceVersion")
                   for name in ("kube-system", "default")] for server in (first, second)]
    assert identities[0] == identities[1]
    version = widgets.list()["metadata"]["resourceVersion"]
    with widgets.watch(resourceVersion=version) as seen:
        assert int(widgets.create("b")["metadata"]["resourceVersion"]) == int(version) + 1
        assert seen.next()["object"]["metadata"]["name"] == "b"
    with widgets.watch(resourceVersion=str(int(version) - 1)) as seen:
        assert seen.next()["object"]["code"] == 410


def test_a_manifest_that_it_cannot_load(sandbox):
    manifest = sandbox.folder / "wrong.yaml"
    manifest.write_text("apiVersion: nowhere.example.com/v1\nkind: Thing\nmetadata: {name: a}\n", encoding="utf-8")
    with pytest.raises(RuntimeError, match="Thing"):
        Devserver(sandbox, arguments=["--load", str(manifest)]).start()


def test_each_start_is_another_cluster(devserver, widgets):
    system = devserver.api.resource("v1", "namespaces").get("kube-system")["metadata"]["uid"]
    widgets.create("a")
    devserver.restart()
    assert devserver.api.resource("v1", "namespaces").get("kube-system")["metadata"]["uid"] != system
    assert devserver.api.resource("example.com/v1", "widgets", "default").names() == []


def test_open_watches_do_not_hold_up_its_end(devserver, widgets):
    with widgets.watch() as seen:
        devserver.stop()
        seen.wait_end()


def test_names_that_differ_in_case_are_two(api):
    maps = api.resource("v1", "configmaps", "default")
    data = {"a": "1", "A": "2"}
    for made in (maps.create("posted", data=data),
                 maps.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": data})):
        assert made["data"] == data
        assert set(made["metadata"]["managedFields"][0]["fieldsV1"]["f:data"]) - {"."} == {"f:a", "f:A"}
    applied = api.request("PATCH", "/api/v1/namespaces/default/configmaps/yaml?fieldManager=m",
                          "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\ndata: {a: '1', A: '2'}", "application/apply-patch+yaml")
    assert applied["data"] == data


@pytest.mark.slow
def test_an_object_of_many_members_is_taken(api):
    """100,000 of them, well below the 3 MiB of a request; a lookup among all for each would take half a minute."""
    maps = api.resource("v1", "configmaps", "default")
    made = maps.create("wide", data={f"k{number}": "" for number in range(100000)})
    assert len(made["data"]) == 100000
    assert maps.replace({**made, "data": {**made["data"], "k1": "x"}})["data"]["k1"] == "x"


# Schemas: what a real server does as well is told by tests/conformance/test_schema.py

def schema_crd(**spec):
    crd = copy.deepcopy(WIDGET_CRD)
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] = {"type": "object", **spec}
    return crd


SIZES = {"properties": {"size": {"type": "integer", "default": 1, "maximum": 9}}}
WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a", "namespace": "default"}}


def test_rules_that_it_does_not_evaluate_are_told(devserver):
    crd = schema_crd(**{"x-kubernetes-validations": [{"rule": "self.size > 1"}], **SIZES})
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    answer = devserver.api.raw("PATCH", path, {"spec": crd["spec"]}, "application/merge-patch+json")
    assert answer.code == 200
    assert answer.headers["Warning"] == '299 - "x-kubernetes-validations are not evaluated by reconciled-devserver"'
    wait_until(lambda: '"widgets.example.com" has x-kubernetes-validations' in devserver.output(), devserver.output)


def test_what_it_loads_is_held_against_the_schema(make_devserver, sandbox):
    devserver = make_devserver(load=[schema_crd(**SIZES), {**WIDGET, "spec": {"other": 1}}])
    assert devserver.api.resource("example.com/v1", "widgets", "default").get("a")["spec"] == {"size": 1}
    for number, (documents, said) in enumerate([
            ([schema_crd(**SIZES), {**WIDGET, "spec": {"size": 10}}],
             'Widget "a" is invalid: spec.size: Invalid value: 10: spec.size in body should be less than or equal to 9'),
            ([schema_crd(properties={"a": {}})], r"properties\[spec\].properties\[a\].type: Required value"),
            ([schema_crd(properties=[])], "cannot unmarshal")]):
        manifest = sandbox.folder / f"wrong-{number}.yaml"
        manifest.write_text(yaml.safe_dump_all(documents), encoding="utf-8")
        for more in ([], ["--load-as-is"]):
            with pytest.raises(RuntimeError, match=said):
                Devserver(sandbox, arguments=[*more, "--load", str(manifest)]).start()


def test_a_database_is_not_judged_by_the_schema(make_devserver, sandbox):
    file = sandbox.folder / "database.yaml"
    items = [schema_crd(**SIZES), {**WIDGET, "spec": {"size": 10, "other": 1}}]
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "100"}, "items": items}))
    devserver = make_devserver(load=[], arguments=["--load-as-is", "--load", str(file)])
    assert devserver.api.resource("example.com/v1", "widgets", "default").get("a")["spec"] == {"size": 10}


def test_no_schema_and_no_object_takes_long(devserver, widgets):
    deep = {"type": "string"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    spec = 1
    for _ in range(200):
        spec = {"a": spec}
    crd = schema_crd(properties={
        "deep": deep, "list": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string", "pattern": "^(a+)+$"}}})
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"
    assert devserver.api.raw("PATCH", path, {"spec": crd["spec"]}, "application/merge-patch+json").code == 200
    answer = devserver.api.raw("POST", widgets.path, {**WIDGET, "spec": {"deep": spec}})
    assert answer.code == 422 and "must be of type string" in answer.body["message"]
    answer = devserver.api.raw("POST", widgets.path, {**WIDGET, "spec": {"list": [f"{n}" for n in range(50000)]}})
    assert answer.code == 422 and len(answer.body["details"]["causes"]) == 200
