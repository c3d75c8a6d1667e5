# SPDX-License-Identifier: Apache-2.0
"""handler.environment: variables that a handler is given, without showing them to anybody else."""
import ctypes
import json
import os

import pytest

from harness import wait_until, watch

SECRET = "correct-horse-battery"
ENVIRONMENT = {"DATABASE": "db.example.com", "PASSWORD": "${TEST_PASSWORD}", "PRICE": "5$$", "EMPTY": "",
                      "PATH": "/usr/bin:/bin"}


def configure(operator, devserver, handler, environment, **options):
    operator.configure(devserver, [watch("widgets", handler,
                                         handler_options={"environment": environment, **options})])


def seen(environment):
    return {name: environment.get(name) for name in ENVIRONMENT}


WANTED = {"DATABASE": "db.example.com", "PASSWORD": SECRET, "PRICE": "5$", "EMPTY": "", "PATH": "/usr/bin:/bin"}


def test_a_handler_gets_its_environment_and_nobody_else_sees_it(devserver, operator, widgets, handler):
    operator.environment["TEST_PASSWORD"] = SECRET
    configure(operator, devserver, handler, ENVIRONMENT)
    operator.start_ready()
    widgets.create("a", spec={})
    request = handler.wait_finished(name="a")
    assert seen(request.environment) == WANTED
    assert "TEST_PASSWORD" not in request.environment
    assert SECRET not in json.dumps(operator.logs())
    assert SECRET not in operator.ctl.run("status", "--json").stdout


SERVE = """#!/usr/bin/python3
import json, os, sys
for line in sys.stdin:
    request = json.loads(line)
    names = json.loads(sys.argv[1])
    print(json.dumps({"id": request["id"], "status": {"seen": {n: os.environ.get(n) for n in names}}}), flush=True)
"""


def test_a_serving_handler_gets_its_environment(devserver, operator, widgets, sandbox):
    script = sandbox.folder / "serve.py"
    script.write_text(SERVE, encoding="utf-8")
    script.chmod(0o755)
    operator.environment["TEST_PASSWORD"] = SECRET
    entry = watch("widgets")
    entry["handler"] = {"serve": [str(script), json.dumps(sorted(WANTED))], "environment": ENVIRONMENT}
    operator.configure(devserver, [entry])
    operator.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status", {}).get("seen") == WANTED, "the handler's environment in the status")


@pytest.mark.parametrize("environment, key, complaint", [
    ({"PASSWORD": "${NOT_THERE}"}, "PASSWORD", "the environment has no variable NOT_THERE"),
    ({"PASSWORD": "a$b"}, "PASSWORD", "$$ stands for the sign itself"),
    ({"2ND": "x"}, "2ND", "is not a name of a variable"),
    ({"A-B": "x"}, "A-B", "is not a name of a variable"),
    ({"RECONCILED_NAME": "x"}, "RECONCILED_NAME", "are set by reconciled"),
    ({"LIST": ["x"]}, "LIST", "a text is expected"),
])
def test_a_mistake_in_the_environment_is_told_with_its_place(devserver, operator, handler, environment, key, complaint):
    configure(operator, devserver, handler, environment)
    operator.start()
    assert operator.wait_exit() == 78
    line = next(number for number, text in enumerate(operator.config_file.read_text().splitlines(), 1)
                if text.strip().strip("'").startswith(key))
    wanted = f"{operator.config_file}:{line}: watches[0].handler.environment.{key}: "
    assert [text for text in (record["message"] for record in operator.logs()) if wanted in text and complaint in text]
    checked = operator.ctl.check(operator.config_file)
    assert checked.returncode == 78 and wanted in checked.stdout + checked.stderr


@pytest.mark.parametrize("given, key", [
    ('{exec: [/bin/true], environment: {TOKEN: "a\\0b"}}', "environment.TOKEN"),
    ('{exec: [/bin/true], environment: {"TOKEN\\0X": a}}', "environment.TOKEN"),
    ('{exec: [/bin/true], version: "1\\0b"}', "version"), ('{exec: [/bin/true, "a\\0b"]}', "exec"),
    ('{exec: [/bin/true], timeout: "2m\\0b"}', "timeout"), ('{exec: [/bin/true], "version\\0x": "1"}', "version"),
])
def test_a_text_with_a_nul_is_no_text(operator, given, key):
    """It would end there, and nobody be told of the rest: of a password, half."""
    config = operator.config_file
    config.write_text("operator: nul.example.com\nwatches:\n  - name: widgets\n    apiVersion: example.com/v1\n"
                      f"    kind: Widget\n    handler: {given}\n", encoding="utf-8")
    checked = operator.ctl.check(config)
    assert checked.returncode == 78, checked.stdout
    assert f"{config}:6: watches[0].handler.{key}: holds a NUL character" in checked.stdout, checked.stdout


@pytest.mark.parametrize("given, said", [
    ("requestLimit: 4095Ki", "requestLimit: 4095Ki is out of range (4Mi to 16Gi)"), ("requestLimit: 17Gi", "17Gi is out of range (4Mi to 16Gi)"),
    ("requestLimit: much", '"much" is not a size'), ('version: ""', "version: is empty; give a text, or leave the key out"),
])
def test_a_value_out_of_range_and_an_empty_one_are_told_as_such(operator, given, said):
    config = operator.config_file
    config.write_text("operator: wrong.example.com\nwatches:\n  - name: widgets\n    apiVersion: example.com/v1\n    kind: Widget\n"
                      f"    handler: {{exec: [/bin/true], {given}}}\n", encoding="utf-8")
    checked = operator.ctl.check(config)
    assert checked.returncode == 78 and said in checked.stdout, checked.stdout


def test_a_handler_has_a_session_and_no_terminal(devserver, operator, widgets, handler):
    """It can neither type into the operator's terminal nor hide in the process group of another handler."""
    handler.behave("""session=$(cut -d' ' -f6 /proc/$$/stat)
        terminal=$( (exec </dev/tty) 2>/dev/null && echo yes || echo no)
        printf '{"status":{"session":%s,"pid":%s,"terminal":"%s"}}' "$session" $$ "$terminal" """)
    configure(operator, devserver, handler, {})
    operator.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status"), "the status")
    status = widgets.get("a")["status"]
    assert status["session"] == status["pid"] and status["terminal"] == "no", status


# keyctl(), add_key()
NUMBERS = {"x86_64": (250, 248), "aarch64": (219, 217)}.get(os.uname().machine)
SESSION_KEYRING = -3


def call(number, *arguments):
    return ctypes.CDLL(None).syscall(number, *arguments)


def has_keys():
    return bool(NUMBERS) and call(NUMBERS[0], 0, SESSION_KEYRING, 0) >= 0  # KEYCTL_GET_KEYRING_ID


# Of a process that serves, the request begins with {"id":1,
COUNT_KEYS = """#!/bin/sh
while read -r request; do
        id=${request#'{"id":'}
        keys=$(grep -c of-the-operator /proc/keys)
        [ "$id" = "$request" ] || printf '{"id":%d,' "${id%%,*}"
        [ "$id" != "$request" ] || printf '{'
        echo '"status":{"keys":'"$keys"'}}'
done
"""


@pytest.mark.only_where(has_keys(), "the kernel's keys, which most containers do not allow")
@pytest.mark.parametrize("kind", ["exec", "serve"])
def test_a_handler_has_no_key_of_the_operators_session(devserver, operator, widgets, sandbox, kind):
    assert call(NUMBERS[0], 1, None) >= 0  # KEYCTL_JOIN_SESSION_KEYRING: this process has one, and so has the operator that it starts
    assert call(NUMBERS[1], b"user", b"of-the-operator", b"secret", 6, SESSION_KEYRING) >= 0
    folder = sandbox.subfolder("handler", operator.user)
    (folder / "handler").write_text(COUNT_KEYS, encoding="utf-8")
    (folder / "handler").chmod(0o755)
    entry = watch("widgets")
    entry["handler"] = {kind: [str(folder / "handler")]}
    operator.configure(devserver, [entry])
    operator.start_ready()
    widgets.create("a", spec={})
    wait_until(lambda: "keys" in widgets.get("a").get("status", {}), "the handler's status")
    assert widgets.get("a")["status"]["keys"] == 0
