# SPDX-License-Identifier: Apache-2.0
"""TokenRequest: tokens of service accounts, for handlers that ask the API server themselves."""
import datetime

import pytest

from harness import ApiError

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def ask(server, name, method="POST", **spec):
    return server.api.request(method, f"{ACCOUNTS}/{name}/token",
                              {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})


def make(server, name):
    server.api.request("POST", ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}})


def test_a_token_is_given_for_as_long_as_asked(server):
    make(server, "asked")
    answer = ask(server, "asked", expirationSeconds=1200)
    assert answer["kind"] == "TokenRequest" and answer["apiVersion"] == "authentication.k8s.io/v1"
    assert answer["spec"]["expirationSeconds"] == 1200 and answer["spec"]["audiences"]
    ends = datetime.datetime.fromisoformat(answer["status"]["expirationTimestamp"].replace("Z", "+00:00"))
    left = (ends - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
    assert 1100 < left < 1300 and answer["status"]["token"]


def test_a_token_lasts_an_hour_unless_asked(server):
    make(server, "unasked")
    assert ask(server, "unasked")["spec"]["expirationSeconds"] == 3600


def test_there_is_no_token_for_an_account_that_is_not_there(server):
    with pytest.raises(ApiError) as refused:
        ask(server, "missing")
    assert refused.value.code == 404 and refused.value.reason == "NotFound"
    assert 'serviceaccounts "missing" not found' in refused.value.message


@pytest.mark.parametrize("seconds, text", [(599, "may not specify a duration less than 10 minutes"),
                                           (1 << 33, "may not specify a duration larger than 2^32 seconds")])
def test_a_life_out_of_bounds_is_refused(server, seconds, text):
    make(server, f"bounds-{seconds}")
    with pytest.raises(ApiError) as refused:
        ask(server, f"bounds-{seconds}", expirationSeconds=seconds)
    assert refused.value.code == 422 and refused.value.reason == "Invalid"
    assert f"spec.expirationSeconds: Invalid value: {seconds}: {text}" in refused.value.message
    assert refused.value.message.startswith('TokenRequest.authentication.k8s.io ')


def test_tokens_are_only_made(server):
    make(server, "only")
    with pytest.raises(ApiError) as refused:
        server.api.request("GET", f"{ACCOUNTS}/only/token")
    assert refused.value.code == 405


def test_discovery_knows_tokens(server):
    found = [entry for entry in server.api.request("GET", "/api/v1")["resources"] if entry["name"] == "serviceaccounts/token"]
    assert found == [{"name": "serviceaccounts/token", "singularName": "", "namespaced": True,
                      "group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest", "verbs": ["create"]}]
