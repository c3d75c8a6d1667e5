# SPDX-License-Identifier: Apache-2.0
"""What only the kits for C and Rust have: a JSON of their own, and, in C, templates."""
import json
import re
import signal
import subprocess

import pytest

from harness.setup import SOURCE
from harness.wait import scaled

import kits
from test_expectations import ask_for

OWN_JSON = pytest.mark.parametrize("kit", [kits.parameter("c"), kits.parameter("rust")], indirect=True)
ONLY_RUST = pytest.mark.parametrize("kit", [kits.parameter("rust")], indirect=True)
ONLY_C = pytest.mark.parametrize("kit", [kits.parameter("c")], indirect=True)
VALUE = {"": [], "a": {"b": [[], {}, [{}]], "": None}, "numbers": [0, -0.5, 1e300, 12345678901234567, 1.5e-3, -1],
         "texts": ["", "\\\"/", "ü€😀", "a\u0000b", "\u001f\u007f"], "truth": [True, False, None]}


@OWN_JSON
@pytest.mark.parametrize("ascii", [True, False])
def test_values_go_through(probe, ascii):
    text = json.dumps(ask_for("echo", value=VALUE), ensure_ascii=ascii)
    probe.process.stdin.write(text.replace("1e+300", "1E300").replace(": ", " :\t").encode() + b"\n")
    probe.process.stdin.flush()
    assert probe.receive() == {"id": 1, "status": {**VALUE, "more": [-7, 0.5, False, None, "'"]}}


def exit_of(kit, text):
    done = subprocess.run(kit.probe, input=text.encode(), capture_output=True, check=False, timeout=scaled(20), env=kits.ENVIRONMENT)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@OWN_JSON
@pytest.mark.parametrize("text, why", [
    ('{', "a key is missing"), ('{"a"', "a colon is missing"), ('{"a":', "no value"), ('{"a":1', "a comma or the end is missing"),
    ('{"a":1,}', "a key is missing"), ('[1 2]', "a comma or the end is missing"), ('"a', "the string does not end"),
    ('"\\', "the string does not end"), ('"\\x"', "there is no such escape"), ('"\\u12g4"', "four hexadecimal digits"), ('"\\u12"', "four hexadecimal digits"),
    ('"\\ud800\\u12"', "four hexadecimal digits"), ('"\t"', "a control character"), ("'a'", "no value"), ('01', "more behind the value"),
    ('1.', "digits are missing"), ('1e+', "digits are missing"), ('-', "no value"), ('%d', "no value"), ('{%s:1}', "a key is missing"),
    ('nul', "no value"), ("[" * 2000, "nested too deeply"), ('{"action":null}', "no object with an action"), ('\\\'', "no value")])
def test_what_is_no_json(kit, text, why):
    status, _, said = exit_of(kit, text)
    assert status == 65 and re.fullmatch(f"error: the request cannot be read: .*{why}.*\n", said)


@OWN_JSON
def test_half_of_a_pair(kit):
    assert json.loads(exit_of(kit, json.dumps(ask_for("text", text="\ud83d \ude00 \ud83dx")))[1])["message"] == "\ufffd \ufffd \ufffdx"


@ONLY_C
@pytest.mark.parametrize("template, why", [("{'a': %x}", "known are"), ("{'a' 1}", "a colon is missing")])
def test_mistakes_in_templates(kit, template, why):
    status, _, said = exit_of(kit, json.dumps(ask_for("template", template=template)))
    assert status == -signal.SIGABRT and f"error: rk_build(): {why}" in said and template in said


@ONLY_RUST
@pytest.mark.parametrize("do, number", [("infinite", "inf"), ("infinite-metric", "NaN")])
def test_numbers_that_json_lacks(probe, do, number):
    """In a value that the handler makes, and in one that the kit makes of its answer."""
    assert probe.ask(ask_for(do)) == {"id": 1, "error": f"panic: a number of JSON is finite, and not {number}"}
    assert probe.ask(ask_for("nothing")) == {"id": 1}, "it lives on"
    probe.process.send_signal(signal.SIGTERM)
    assert probe.wait() == 0


@ONLY_RUST
def test_a_panic_is_one_line(probe):
    """Its text may be a tenant's."""
    assert probe.ask(ask_for("panic", text="bad\nerror: team/other: forged"))["error"] == "panic: bad\nerror: team/other: forged"
    assert re.match(r"error: panic at src/main\.rs:\d+:\d+: bad\\nerror: team/other: forged\n", probe.said())


@ONLY_C
def test_a_walk_through_a_list_takes_linear_time(kit):
    """An object may have as many entries; a walk that went from the first one each time would take hours."""
    status, said, _ = exit_of(kit, json.dumps(ask_for("sum", list=[1] * 500000)))
    assert status == 0 and json.loads(said)["status"] == {"sum": 500000}


@ONLY_C
def test_what_is_no_answer(probe):
    assert probe.ask(ask_for("list")) == {"id": 1, "error": "the function for reconcile answered with something that is no object"}


@OWN_JSON
def test_a_program_that_the_handler_starts(probe):
    """It reads no requests, and its output is no answer."""
    probe.send(ask_for("program"))
    probe.send(ask_for("nothing", id=2))
    assert sorted(probe.receive()["id"] for _ in range(2)) == [1, 2]
    assert "of a program\n" in probe.said()


def test_the_members_of_a_request_are_those_of_the_schema():
    header = (SOURCE / "sdk/c/reconciled-kit.h").read_text(encoding="utf-8")
    header = re.sub(r"/\*.*?\*/", "", header, flags=re.S)
    members = re.findall(r"(\w+);", header[header.index("struct rk_request {"):].partition("\n\n")[0])
    schema = json.loads((SOURCE / "schema/request.json").read_text(encoding="utf-8"))
    assert set(members) == {re.sub("[A-Z]", lambda found: "_" + found[0].lower(), key) for key in schema["properties"]}
