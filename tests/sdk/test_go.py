# SPDX-License-Identifier: Apache-2.0
"""What only the kit for Go has: values that are no JSON, and its shape."""
import pytest

import kits
from test_expectations import ask_for

ONLY_GO = pytest.mark.parametrize("kit", [kits.parameter("go")], indirect=True)


@ONLY_GO
def test_what_is_no_answer(probe):
    answer = probe.ask(ask_for("channel"))
    assert "the answer is no JSON: " in answer["error"] and "unsupported type: chan int" in answer["error"]
    assert probe.ask(ask_for("nil"))["error"].startswith("panic: runtime error: invalid memory address")
    assert probe.ask(ask_for("nothing")) == {"id": 1}, "it lives on"


@ONLY_GO
def test_members_that_only_look_like_the_fields(probe):
    """encoding/json takes them for fields; the API server keeps them as unknown ones, and checks nothing."""
    request = ask_for("status", size=1, **{"ſize": 1_000_000, "SIZE": 1_000_000})
    request["object"]["Metadata"] = {"name": "other", "namespace": "kube-system"}
    request["object"]["metadata"]["ſize"] = {"Name": "other"}
    answer = probe.ask(request)
    assert answer["status"] == {"name": "apple", "size": 1}
    del request["object"]["spec"]["size"]
    assert probe.ask(request)["status"] == {"name": "apple", "size": 0}


@ONLY_GO
def test_the_shape(kit):
    assert not kits.run([kits.GO.replace("bin/go", "bin/gofmt"), "-l", kit.folder / "sdk/go", kit.folder / "tests/sdk/probe-go"])
