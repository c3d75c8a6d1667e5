# SPDX-License-Identifier: Apache-2.0
"""The configuration as a person writes it: every mistake with its place, and what the keys of a watch mean."""
import signal
import subprocess

import pytest

from harness import wait_until, watch
from harness.operator import MESSAGE_ID
from harness.process import clean_environment

WATCH = """operator: widgets.example.com
watches:
  - name: widgets
    apiVersion: example.com/v1
    kind: Widget
    handler: {exec: [/bin/true]}
"""


@pytest.fixture
def check(operator):
    """check(text) -> (exit code, what it said) of `reconciledctl check`."""
    def check(text, environment=None):
        result = operator.ctl.run("check", str(operator.write_config(text)), environment=environment)
        return result.returncode, result.stdout + result.stderr

    return check


@pytest.mark.parametrize("text, said", [
    (WATCH + "    metadataOnly: perhaps\n", 'reconciled.yaml:7: watches[0].metadataOnly: "perhaps" is neither true nor false'),
    (WATCH + "    onDeadline: explode\n", "reconciled.yaml:7: watches[0].onDeadline"),
    (WATCH + "    onDeadline: explode\n", "none of: fatal, isolate"),
    (WATCH + '    namespaces: ["Team"]\n', "neither the name of a namespace nor a pattern"),
    (WATCH + '    namespaces: ["!"]\n', "neither the name of a namespace nor a pattern"),
    (WATCH + "    fieldSelector: spec.nodeName=${NOT_SET}\n", "the environment has no variable NOT_SET"),
    (WATCH + "    fieldSelector: spec.nodeName=$NODE\n", "$$ stands for the sign itself"),
    (WATCH + "---\noperator: other.example.com\n", "reconciled.yaml:8: a second document begins here"),
    ("[" * 100000, "too many nested brackets"),
    (WATCH.replace("}\n", ", rate: {burst: 2}}\n"), "reconciled.yaml:6: watches[0].handler.rate"),
    (WATCH.replace("}\n", ", rate: {perSecond: 0}}\n"),
     'watches[0].handler.rate.perSecond: "0" is not a number of runs from 0.001 to 100000'),
    (WATCH.replace("}\n", ", rate: {perSecond: 10, burst: 0}}\n"), "reconciled.yaml:6: watches[0].handler.rate.burst"),
    (WATCH.replace("}\n", ", limits: {cpu: many}}\n"), '"many" is not a number of CPUs from 0.01 to 1000'),
    (WATCH + "    metadataonly: true\n", 'did you mean "metadataOnly"?'),
])
def test_mistakes_have_their_place(check, text, said):
    code, output = check(text)
    assert code == 78 and said in output, output


def test_what_is_right_is_accepted(check):
    code, output = check(WATCH + '    metadataOnly: true\n    required: false\n    onDeadline: isolate\n'
                                 '    namespaces: ["team-*", "!team-x?"]\n    fieldSelector: spec.nodeName=${NODE}$$\n',
                         {"NODE": "node-1"})
    assert code in (0, 69), output
    assert "watches[0]" not in output


def test_kinds_of_children(check):
    code, output = check(WATCH + "    children: {kinds: [{apiVersion: apps/v1, kind: Deployment}]}\n")
    assert code in (0, 69) and "children of watch widgets may be of apps/v1 Deployment" in output, output
    code, output = check(WATCH + "    children: {kinds: [{apiVersion: /v1, kind: Deployment}]}\n")
    assert code == 78 and 'watches[0].children.kinds[0].apiVersion: "/v1" is neither a version' in output, output
    code, output = check(WATCH + "    owns: [{apiVersion: apps/v1/x, kind: Deployment}]\n")
    assert code == 78 and 'watches[0].owns[0].apiVersion: "apps/v1/x" is neither a version' in output, output


NODE = "{apiVersion: v1, kind: Node}"
LABELLED = '{apiVersion: v1, kind: Pod, labelSelector: app=a}'


@pytest.mark.parametrize("text, said", [
    (f"    owns:\n    - {NODE}\n    - {NODE}\n", ":9: watches[0].owns[1]: warning: says the same as owns[0] (v1 Node); keep one"),
    (f"    owns:\n    - {LABELLED}\n    - {LABELLED}\n", ":9: watches[0].owns[1]: warning: says the same as owns[0] (v1 Pod)"),
    (f"    owns: [{LABELLED}, {LABELLED.replace('=a', '=b')}]\n", None),
    (f"    related: [{NODE}, {NODE}]\n", ":7: watches[0].related[1]: warning: says the same"),
    (f"    related: [{NODE[:-1]}, names: .a}}, {NODE[:-1]}, names: .b}}]\n", None),
    (f"    children:\n      kinds: [{NODE}, {NODE}]\n", ":8: watches[0].children.kinds[1]: warning: says the same"),
    (f"    finalizer: true\n    patches: [{NODE}, {NODE}]\n", ":8: watches[0].patches[1]: warning: says the same"),
    ("formerNames:\n- a.example.com\n- b.example.com\n- a.example.com\n", ': formerNames: warning: "a.example.com" is given twice'),
    ("    children: {prune: before}\n", ":7: watches[0].children.prune: warning: `before` means before the others are ready"),
    ("    children: {prune: before, wait: 1m}\n", None),
])
def test_what_is_said_twice_or_in_vain(check, text, said):
    code, output = check(WATCH + text)
    assert code in (0, 69), output
    assert said in output if said else "warning" not in output, output


@pytest.mark.parametrize("kind", ["exec", "serve"])
@pytest.mark.parametrize("argument, warned", [("./handler", True), ("handler", True), ("../nothing", False), ("-u", False),
                                              ("./missing", False), (".", False)])
def test_an_argument_that_is_meant_to_be_a_file_beside_the_configuration(beside, check, kind, argument, warned):
    code, output = check(WATCH.replace("{exec: [/bin/true]}", f"{{{kind}: [/bin/true, x, {argument}]}}"))
    said = f':6: watches[0].handler.{kind}[2]: warning: the handler starts in /, where "{argument}" names no file'
    assert code in (0, 69) and (f"{said} beside this one; if it is meant, write {beside}" in output if warned
                                else "starts in /" not in output), output


BESIDE = WATCH.replace("[/bin/true]", "[./handler, beside]")


@pytest.fixture
def beside(operator):
    """A handler beside the configuration: it answers its arguments."""
    path = operator.folder / "handler"
    path.write_text("#!/bin/sh\nprintf '{\"status\": {\"arguments\": \"%s\", \"folder\": \"%s\"}}' \"$*\" \"$PWD\"\n", encoding="utf-8")
    operator.user.give(path, 0o755)
    return path


@pytest.mark.parametrize("named, folder", [("{0}/reconciled.yaml", "/"), ("reconciled.yaml", "."), ("{0.name}/reconciled.yaml", ".."),
                                           ("./reconciled.yaml", ".")])
def test_a_program_beside_the_configuration(operator, beside, named, folder):
    """Wherever the command is given, and however it names the file."""
    operator.write_config(BESIDE)
    where = (operator.folder / folder).resolve()
    command = [operator.sandbox.program("reconciledctl"), "check", named.format(operator.folder)]
    done = subprocess.run(operator.user.command(command), cwd=where, env=clean_environment(operator.user),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("program, said", [
    ("handler", '"handler" is not a path: a path begins with / or, relative to this file, with ./'),
    ("../handler", "/../handler: No such file or directory"),
    ("./missing", "/missing: No such file or directory"),
    ("./reconciled.yaml", "/reconciled.yaml: no executable file"),
    (".", '"." is not a path'),
])
def test_a_program_that_is_not_beside_the_configuration(operator, beside, check, program, said):
    code, output = check(BESIDE.replace("./handler", program))
    assert code == 78 and "reconciled.yaml:6: watches[0].handler.exec: " in output and said in output, output


@pytest.mark.parametrize("line, code, said", [
    ("#!/bin/sh\r\n", 78, "/handler: its first line ends with a carriage return"),
    ("#!/usr/bin/env sh\r\n", 78, "/handler: its first line ends with a carriage return"),
    ("#! /usr/bin/pyton3 -u\n", 78, "/handler: its interpreter /usr/bin/pyton3: No such file or directory"),
    ("#!/usr/bin/env pyton3\n", 0, "/handler: its interpreter pyton3 is not in the PATH here"),
    ("#!/usr/bin/env -S pyton3 -u\n", 0, None),
    ("#!/usr/bin/env sh\n", 0, None),
    ("#!/bin/sh", 0, None),
    ("#!", 0, None),
    ("echo\r\n", 0, None),
    ("", 0, None),
])
def test_the_first_line_of_a_script(beside, check, line, code, said):
    beside.write_text(line, encoding="utf-8", newline="")
    found, output = check(BESIDE)
    assert found == code and (said in output if said else "/handler: " not in output), output


def test_a_handler_beside_the_configuration_runs(operator, beside, devserver, widgets):
    """It starts in /, as every handler does; a reload finds it again."""
    operator.configure(devserver, [{**watch("widgets", []), "handler": {"exec": ["./handler", "beside"]}}])
    operator.start_ready().wait_synced()
    widgets.create("a", spec={})
    wait_until(lambda: widgets.get("a").get("status") == {"arguments": "beside", "folder": "/"}, "the status")
    operator.configure(devserver, [{**watch("widgets", []), "handler": {"exec": ["./handler", "reloaded"]}}])
    operator.popen.send_signal(signal.SIGHUP)
    operator.wait_for_log(message_id=MESSAGE_ID["RELOADED"])
    widgets.create("b", spec={})
    wait_until(lambda: widgets.get("b").get("status") == {"arguments": "reloaded", "folder": "/"}, "the status after the reload")
