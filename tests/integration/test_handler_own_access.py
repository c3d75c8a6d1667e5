# SPDX-License-Identifier: Apache-2.0
"""handler.kubernetes is another account than the operator's: the operator's own access is refused with its place."""
import base64
import json
import os
import signal

import pytest
import yaml

from harness import watch


def entry(handler, kubernetes):
    return watch("widgets", handler, handler_options={"kubernetes": kubernetes})


def token_of(account, serial=1):
    claims = json.dumps({"iss": "test", "sub": f"system:serviceaccount:{account}", "x": "??>>~~", "jti": serial}).encode()
    return "e30." + base64.urlsafe_b64encode(claims).decode().rstrip("=") + ".c2lnbmF0dXJl"


def assert_refused(operator, words):
    """By the check, with file and line, and by the start."""
    checked = operator.ctl.check(operator.config_file)
    assert checked.returncode == 78, checked.stdout
    line = next(line for line in checked.stdout.splitlines() if words in line)
    number = line.removeprefix(f"{operator.config_file}:").split(":")[0]
    assert line.startswith(f"{operator.config_file}:") and int(number) > 1, line
    operator.start()
    assert operator.wait_exit() == 78
    operator.wait_for_log(words)


@pytest.mark.parametrize("token", [[], ["--token", "first-secret"]], ids=["nobody", "token"])
@pytest.mark.parametrize("named", ["same", "copy", "link"])
def test_a_handler_is_not_given_the_operators_own_kubeconfig(make_devserver, operator, handler, token, named):
    server = make_devserver(arguments=token)
    own = operator.kubeconfig_for(server)
    path = own if named == "same" else operator.folder / "handlers"
    if named == "copy":
        path.write_text(own.read_text(), encoding="utf-8")
        operator.user.give(path, 0o600)
    elif named == "link":
        path.symlink_to(own)
    operator.configure(server, [entry(handler, {"kubeconfig": str(path)})])
    assert_refused(operator, "operator's own access to the API server")


@pytest.mark.parametrize("what", ["kubeconfig", "copy", "token", "another token"])
def test_a_handler_is_not_given_the_operators_own_access_as_a_file(make_devserver, operator, handler, what):
    """handler.credentials hands on files as they are."""
    server = make_devserver(arguments=["--token", token_of("ops:reconciled")])
    own = operator.kubeconfig_for(server)
    path = own if what == "kubeconfig" else operator.folder / "file"
    if what != "kubeconfig":
        path.write_text({"copy": own.read_text(), "token": token_of("ops:reconciled") + "\n",
                         "another token": token_of("ops:reconciled", serial=2)}[what], encoding="utf-8")
        operator.user.give(path, 0o600)
    operator.configure(server, [watch("widgets", handler, handler_options={"credentials": {"file": str(path)}})])
    assert_refused(operator, "operator's own access to the API server")


def test_another_accounts_token_and_other_files_are_handed_on(make_devserver, operator, handler):
    server = make_devserver(arguments=["--token", token_of("ops:reconciled")])
    given = {"token": token_of("ops:handler"), "text": "a: [b", "empty": ""}
    for name, text in given.items():
        (operator.folder / name).write_text(text, encoding="utf-8")
        operator.user.give(operator.folder / name, 0o600)
    operator.configure(server, [watch("widgets", handler, handler_options={
        "credentials": {name: str(operator.folder / name) for name in given}})])
    operator.start_ready()


def test_another_token_of_the_operators_own_account(make_devserver, operator, handler):
    """In a pod they change every hour."""
    server = make_devserver(arguments=["--token", token_of("ops:reconciled")])
    own = operator.kubeconfig_for(server)
    path = operator.folder / "handlers"
    path.write_text(own.read_text().replace(token_of("ops:reconciled"), token_of("ops:reconciled", serial=2)), encoding="utf-8")
    operator.user.give(path, 0o600)
    operator.configure(server, [entry(handler, {"kubeconfig": str(path)})])
    assert_refused(operator, "another token of the same account")


def test_a_kubeconfig_that_is_found_by_the_environment_is_the_operators_own_as_well(make_devserver, operator, handler):
    server = make_devserver(arguments=["--token", "first-secret"])
    own = operator.kubeconfig_for(server)
    operator.environment["KUBECONFIG"] = str(own)
    operator.configure(server, [entry(handler, {"kubeconfig": str(own)})], cluster=None)
    operator.start()
    assert operator.wait_exit() == 78
    operator.wait_for_log(f"{operator.config_file}:")
    operator.wait_for_log("operator's own access to the API server (the same token)")


def test_another_user_in_the_operators_own_file_is_no_mistake(make_devserver, operator, handler):
    server = make_devserver(arguments=["--token", "first-secret"])
    own = operator.kubeconfig_for(server)
    config = yaml.safe_load(own.read_text())
    context = config["contexts"][0]["context"]
    config["users"].append({"name": "other", "user": {"token": "of-the-handler"}})
    config["contexts"].append({"name": "handlers", "context": {**context, "user": "other"}})
    name, config["current-context"] = config["current-context"], "handlers"
    shared = operator.folder / "shared"
    shared.write_text(yaml.safe_dump(config), encoding="utf-8")
    operator.user.give(shared, 0o600)
    operator.configure(server, [entry(handler, {"kubeconfig": str(shared)})],
                       cluster={"kubeconfig": str(shared), "context": name})
    operator.start_ready()


@pytest.mark.parametrize("named", [{"serviceAccount": "reconciled", "namespace": "ops"}, {"serviceAccount": "reconciled"}])
def test_a_handler_is_not_given_the_operators_own_service_account(make_devserver, operator, handler, named):
    token = token_of("ops:reconciled" if "namespace" in named else "default:reconciled")
    server = make_devserver(arguments=["--token", token])
    operator.configure(server, [entry(handler, named)])
    assert_refused(operator, "is the operator's own service account")
    assert not server.requests(lambda request: request["path"].endswith("/token"))


def test_an_own_account_in_a_new_configuration_leaves_the_old_one_in_force(make_devserver, operator, handler):
    server = make_devserver(arguments=["--token", token_of("ops:reconciled")])
    operator.configure(server, [watch("widgets", handler)])
    operator.start_ready()
    operator.configure(server, [entry(handler, {"serviceAccount": "reconciled", "namespace": "ops"})])
    os.kill(operator.pid, signal.SIGHUP)
    operator.wait_for_log("the new configuration is rejected")
    server.api.resource("example.com/v1", "widgets", "default").create("a", spec={})
    assert "KUBECONFIG" not in handler.wait_finished(name="a").environment


def test_rbac_gives_no_handler_the_operators_own_account(devserver, operator, handler):
    operator.configure(devserver, [entry(handler, {"serviceAccount": "reconciled"})])
    printed = operator.ctl.run("rbac", "--config", str(operator.config_file))
    assert printed.returncode == 78 and not printed.stdout, printed.stdout
    assert f"{operator.config_file}:" in printed.stderr and "is the operator's own account" in printed.stderr
    other = operator.ctl.run("rbac", "--config", str(operator.config_file), "--service-account", "widgets-operator")
    accounts = [manifest["metadata"]["name"] for manifest in yaml.safe_load_all(other.stdout)
                if manifest["kind"] == "ServiceAccount"]
    assert sorted(accounts) == ["reconciled", "widgets-operator"]
