# SPDX-License-Identifier: Apache-2.0
"""handler.kubernetes with a service account: a handler that asks the API server as somebody else than the operator."""
import json
import os

import pytest
import yaml

from harness import scaled, wait_until, watch
from harness.api import Api
from harness.operator import MESSAGE_ID
from harness.session import Document

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"
TOKEN_PATH = f"{ACCOUNTS}/helper/token"


@pytest.fixture
def make_server(make_devserver):
    def make(account=True, **options):
        arguments = ["--token", "first-secret", *options.pop("arguments", [])]
        server = make_devserver(arguments=arguments, **options)
        if account:
            make_account(server)
        return server
    return make


def make_account(server):
    server.api.request("POST", ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "helper"}})


def widgets_of(server):
    return server.api.resource("example.com/v1", "widgets", "default")


def entry(handler, **more):
    return watch("widgets", handler, handler_options={"kubernetes": {"serviceAccount": "helper", "namespace": "default"}}, **more)


KEEP = 'cp "$KUBECONFIG" "$REQUEST.kubeconfig"; cp "$RECONCILED_CREDENTIALS_DIRECTORY/token" "$REQUEST.token"; exit 0'


def kept(request, kind):
    with open(f"{request.path}.{kind}", encoding="utf-8") as file:
        return file.read()


def token_requests(server, **where):
    return server.requests(lambda request: request["path"].startswith(TOKEN_PATH)
                           and all(request[key] == value for key, value in where.items()))


def test_a_handler_gets_a_token_of_its_own_account(make_server, operator, handler):
    server = make_server()
    operator.configure(server, [entry(handler)])
    operator.start_ready()
    handler.behave(KEEP)
    widgets_of(server).create("a", spec={})
    request = handler.wait_finished(name="a")
    config, token = yaml.safe_load(kept(request, "kubeconfig")), kept(request, "token")
    folder = request.environment["RECONCILED_CREDENTIALS_DIRECTORY"]
    assert request.environment["KUBECONFIG"] == f"{folder}/kubeconfig"
    assert config["users"] == [{"name": "handler", "user": {"tokenFile": f"{folder}/token"}}]
    assert config["clusters"][0]["cluster"]["server"] == server.url
    assert config["contexts"][0]["context"]["namespace"] == "default"
    assert token and token != "first-secret" and "first-secret" not in kept(request, "kubeconfig")
    config["users"][0]["user"] = {"token": token}
    path = operator.sandbox.folder / "handlers-kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    assert Api(path).resource("example.com/v1", "widgets", "default").get("a")["metadata"]["name"] == "a"
    assert not operator.logs(lambda record: token in record["message"])
    assert len(token_requests(server)) == 1
    operator.wait_for_log("credentials not separated: handlers of watch widgets have access of their own")


@pytest.mark.slow
def test_no_run_begins_before_the_token_is_there(make_server, operator, handler):
    server = make_server(account=False)
    operator.configure(server, [entry(handler)])
    operator.start_ready()
    widgets_of(server).create("a", spec={})
    told = operator.wait_for_log('serviceaccounts "helper" not found', message_id=MESSAGE_ID["WATCH_DEGRADED"])
    assert "cannot get a token for service account default/helper" in told["message"]
    wait_until(lambda: len(token_requests(server, status=404)) >= 2, "a second attempt")
    status = operator.ctl.status()["watches"][0]
    assert status["state"] == "degraded" and status["accessAwaited"] and "not found" in status["reason"]
    assert not handler.requests()
    make_account(server)
    handler.wait_finished(name="a", deadline=30)
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_RECOVERED"])
    # One line for the trouble, however many attempts there were.
    assert len(operator.logs(message_id=MESSAGE_ID["WATCH_DEGRADED"])) == 1


@pytest.mark.slow
def test_a_refused_token_request_says_who_was_refused_where(make_server, operator, handler):
    server = make_server()
    server.fault({"path": TOKEN_PATH}, times=0, status=403)
    operator.configure(server, [entry(handler, deadline="2s")])
    operator.start_ready()
    assert operator.wait_exit(deadline=60) == 77
    told = operator.wait_for_log(message_id=MESSAGE_ID["WATCH_DEGRADED"])["message"]
    assert server.url in told and "user devserver" in told and str(operator.folder / "kubeconfig") in told, told
    assert operator.logs(lambda record: "longer than the watch's deadline" in record["message"])


@pytest.mark.slow
def test_a_watch_without_a_token_is_isolated_and_harms_no_other(make_server, operator, handler, make_handler):
    server, other = make_server(), make_handler()
    server.fault({"path": TOKEN_PATH}, times=0, status=403)
    maps = watch("maps", other, api_version="v1", kind="ConfigMap", namespaces=["default"])
    operator.configure(server, [entry(handler, deadline="2s", onDeadline="isolate"), maps])
    operator.start_ready()
    widgets_of(server).create("a", spec={})
    server.api.resource("v1", "configmaps", "default").create("one")
    other.wait_finished(name="one")
    operator.wait_for_log("service account default/helper", message_id=MESSAGE_ID["WATCH_FAILED"], deadline=60)
    assert not handler.requests()
    server.clear_faults()
    handler.wait_finished(name="a", deadline=60)


@pytest.mark.slow
def test_a_401_renews_the_operators_own_credential_first(make_server, operator, handler):
    server = make_server()
    token = operator.folder / "token"
    token.write_text("first-secret", encoding="utf-8")
    operator.user.give(token, 0o600)
    operator.configure(server, [entry(handler)])
    path = operator.folder / "kubeconfig"
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    config["users"][0]["user"] = {"tokenFile": str(token)}
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    server.set_token("second-secret", kubeconfig=True)
    operator.start_ready()
    wait_until(lambda: token_requests(server, status=401), "the refusal")
    token.write_text("second-secret", encoding="utf-8")
    widgets_of(server).create("a", spec={})
    handler.wait_finished(name="a", deadline=90)


@pytest.mark.slow
def test_a_token_is_renewed_in_its_place_before_it_expires(make_server, operator, handler):
    server = make_server(arguments=["--max-token-expiration", "5s"])
    operator.configure(server, [entry(handler)])
    operator.start_ready()
    handler.behave(KEEP)
    widgets_of(server).create("a", spec={})
    request = handler.wait_finished(name="a")
    first, path = kept(request, "token"), request.environment["RECONCILED_CREDENTIALS_DIRECTORY"] + "/token"

    def current():
        with open(path, encoding="utf-8") as file:
            return file.read()

    wait_until(lambda: current() != first, "another token")
    assert len(token_requests(server, status=201)) >= 2
    assert not operator.logs(message_id=MESSAGE_ID["WATCH_DEGRADED"])
    times = [request["time"] for request in token_requests(server)]
    assert all(later - earlier >= 3.9 for earlier, later in zip(times, times[1:]))


@pytest.mark.slow
@pytest.mark.quiet
def test_a_token_that_cannot_be_renewed_stays_in_use_until_it_expires(make_server, operator, handler):
    server = make_server(arguments=["--max-token-expiration", f"{scaled(8):.0f}s"])
    operator.configure(server, [entry(handler)])
    operator.start_ready()
    widgets_of(server).create("a", spec={})
    handler.wait_finished(name="a")
    server.fault({"path": TOKEN_PATH}, times=0, status=503)
    operator.wait_for_log("cannot be renewed", message_id=MESSAGE_ID["ACCESS_FAILING"], deadline=30)
    assert operator.ctl.status()["watches"][0]["state"] != "degraded"
    widgets_of(server).create("b", spec={})
    handler.wait_finished(name="b")
    operator.wait_for_log("has expired", message_id=MESSAGE_ID["WATCH_DEGRADED"], deadline=30)
    widgets_of(server).create("c", spec={})
    assert operator.ctl.status()["watches"][0]["accessAwaited"]
    server.clear_faults()
    handler.wait_finished(name="c", deadline=90)
    operator.wait_for_log(message_id=MESSAGE_ID["WATCH_RECOVERED"])


def test_the_handler_of_the_document_works(make_server, operator, sandbox):
    server = make_server(arguments=["--tls"])
    example = next(example for example in Document("docs/credentials.md").examples if example.language == "python")
    script = sandbox.folder / "handler.py"
    script.write_text(example.text, encoding="utf-8")
    script.chmod(0o755)
    operator.configure(server, [entry([str(script)])])
    operator.start_ready()
    server.api.resource("v1", "configmaps", "default").create("one")
    widgets_of(server).create("a", spec={})
    wait_until(lambda: widgets_of(server).get("a").get("status") == {"configMaps": 1},
               lambda: f"the number of ConfigMaps; the operator's output:\n{operator.output.text()}")


@pytest.mark.parametrize("kubernetes, key, complaint", [
    ({}, "kubernetes", "needs one of kubeconfig and serviceAccount"),
    ({"serviceAccount": "a/b"}, "kubernetes.serviceAccount", "is not a name of a service account"),
    ({"serviceAccount": "a", "namespace": "A"}, "kubernetes.namespace", "is not a name of a namespace"),
    ({"serviceAccount": "a", "kubeconfig": "/etc/hostname"}, "kubernetes", "needs one of kubeconfig and serviceAccount"),
    ({"kubeconfig": "/nowhere/kubeconfig"}, "kubernetes.kubeconfig", "No such file or directory"),
])
def test_a_mistake_in_the_access_is_told_with_its_place(devserver, operator, handler, kubernetes, key, complaint):
    operator.configure(devserver, [watch("widgets", handler, handler_options={"kubernetes": kubernetes})])
    operator.start()
    assert operator.wait_exit() == 78
    assert operator.logs(lambda record: f"watches[0].handler.{key}: " in record["message"] and complaint in record["message"]
                         and f"{operator.config_file}:" in record["message"])


def test_rbac_names_what_the_operator_and_the_account_need(devserver, operator, handler):
    operator.configure(devserver, [entry(handler)])
    printed = operator.ctl.run("rbac", "--config", str(operator.config_file))
    manifests = list(yaml.safe_load_all(printed.stdout))
    rules = [rule for manifest in manifests if manifest["kind"] in ("Role", "ClusterRole") for rule in manifest["rules"] or []]
    assert {"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["helper"], "verbs": ["create"]} in rules
    assert [manifest for manifest in manifests if manifest["kind"] == "ServiceAccount"
            and manifest["metadata"] == {"name": "helper", "namespace": "default"}]
    bound = [manifest for manifest in manifests if manifest["kind"] == "RoleBinding"
             and manifest["subjects"] == [{"kind": "ServiceAccount", "name": "helper", "namespace": "default"}]]
    assert len(bound) == 1 and os.path.basename(bound[0]["roleRef"]["name"]).endswith("helper")
