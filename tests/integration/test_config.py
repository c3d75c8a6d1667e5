# SPDX-License-Identifier: Apache-2.0
"""The configuration as a person writes it: every mistake with its place, and what the keys of a watch mean."""
import pytest

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
