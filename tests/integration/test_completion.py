# SPDX-License-Identifier: Apache-2.0
"""What shells complete on reconciledctl's command line: asked of the program, and for real in bash and zsh."""
import os
import shutil
import signal
import subprocess

import pytest

from harness import wait_until, watch
from harness.process import clean_environment
from harness.setup import SOURCE
from harness.terminal import Terminal
from harness.wait import scaled

SCRIPTS = SOURCE / "ctl" / "completion"


@pytest.fixture
def running(devserver, operator, handler, widgets):
    handler.behave("case $RECONCILED_NAME in bad*) exit 65;; esac")
    operator.configure(devserver, [watch("widgets", handler, owns=[{"apiVersion": "apps/v1", "kind": "Deployment"}]),
                                   watch("maps", handler, api_version="v1", kind="ConfigMap")])
    operator.start_ready().wait_synced()
    for name in ("apple", "apricot", "bad"):
        widgets.create(name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["runs"] == 3, "the runs")
    return operator


def complete(operator, *words):
    done = operator.ctl.run("__complete", *words)
    assert done.returncode == 64, "only as the first word"
    command = [operator.sandbox.program("reconciledctl"), "__complete", "--runtime-directory", operator.runtime_directory]
    done = subprocess.run(operator.user.command(command + list(words)), capture_output=True, text=True, check=False,
                          timeout=scaled(20), env=clean_environment(operator.user))
    assert (done.returncode, done.stderr) == (0, "")
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def test_words(running):
    assert complete(running, "re") == ["retry", "release", "resume", "reload", "replay"]
    assert complete(running, "pause", "") == ["widgets", "maps"], "nothing runs of what they own"
    assert complete(running, "explain", "widgets", "default/ap") == ["default/apple", "default/apricot"]
    assert complete(running, "explain", "widgets", "default/apple") == ["default/apple"]
    assert complete(running, "explain", "maps", "default/a") == []
    assert complete(running, "explain", "nothing", "") == []
    assert complete(running, "explain", "widgets", "default/apple", "") == []
    assert complete(running, "retry", "widgets", "") == ["default/bad"]
    assert complete(running, "release", "widgets", "") == []
    assert complete(running, "check", "/etc/") == complete(running, "status", "--runtime-directory", "/r") == [":files"]
    assert complete(running, "run", "--watch", "w") == ["widgets"]
    assert complete(running, "pause", "--reason", "") == []


def test_a_key_that_a_shell_would_obey_is_not_offered(devserver, operator, handler, api):
    """Names of RBAC kinds may have all characters but / and %."""
    operator.configure(devserver, [watch("roles", handler, api_version="rbac.authorization.k8s.io/v1", kind="Role")])
    operator.start_ready().wait_synced()
    roles = api.resource("rbac.authorization.k8s.io/v1", "roles", "default")
    for name in ("x$(touch${IFS}owned)", "x;reboot", "x`reboot`", "x y", "x'", "x:plain"):
        roles.create(name)
    wait_until(lambda: operator.ctl.status()["watches"][0]["runs"] == 6, "the runs")
    assert complete(operator, "explain", "roles", "default/") == ["default/x:plain"]


def test_options_are_those_of_the_verb(running):
    assert complete(running, "retry", "--a") == ["--all", "--all-failed"]
    assert complete(running, "status", "--a") == []
    always = {"--help", "--version", "--runtime-directory"}
    assert set(complete(running, "--")) == always
    assert set(complete(running, "release", "--")) == always | {"--finalizer", "--json", "--namespace", "--reason", "--yes"}
    assert complete(running, "logs", "widgets", "--", "--f") == []
    assert complete(running, "get", "") == ["failing", "waiting", "quarantined"]
    assert complete(running, "get", "failing", "w") == ["widgets"]
    assert complete(running, "status", "-o", "") == ["wide", "json", "yaml"]
    assert complete(running, "explain", "-n", "default", "widgets", "default/ap") == ["default/apple", "default/apricot"]


def test_every_verb_is_in_the_help_and_in_the_manual(running):
    told = running.ctl.run("--help").stdout
    manual = (SOURCE / "man" / "reconciledctl.1").read_text(encoding="utf-8")
    for verb in complete(running, ""):
        assert verb in told and verb in manual, verb
        assert "--json" in complete(running, verb, "--"), verb


@pytest.mark.slow
def test_without_an_operator_or_with_one_that_hangs(running):
    os.kill(running.pid, signal.SIGSTOP)
    try:
        assert complete(running, "pause", "") == []
    finally:
        os.kill(running.pid, signal.SIGCONT)
    running.stop()
    assert complete(running, "pause", "") == complete(running, "explain", "widgets", "") == []
    assert complete(running, "stat") == ["status"]


def test_bash(running, tmp_path):
    def completed(*words):
        script = (f"source {SCRIPTS}/reconciledctl.bash; complete -p reconciledctl >&2; COMP_WORDS=(\"$@\"); "
                  "COMP_CWORD=$(($# - 1)); compopt() { :; }; _reconciledctl \"$1\" \"${@: -1}\" \"\"; "
                  "printf '%s\\n' \"${COMPREPLY[@]}\"")
        command = ["bash", "--norc", "-c", script, "bash", running.sandbox.program("reconciledctl"),
                   "--runtime-directory", str(running.runtime_directory), *words]
        done = subprocess.run(running.user.command(command), capture_output=True, text=True, check=True,
                              env=clean_environment(running.user), cwd=running.sandbox.folder)
        assert "-F _reconciledctl reconciledctl" in done.stderr
        return done.stdout.split()

    assert completed("expl") == ["explain"]
    assert completed("explain", "wid") == ["widgets"]
    assert completed("explain", "widgets", "default/ap") == ["default/apple", "default/apricot"]
    assert completed("explain", "widgets", "default/zz") == []
    assert f"{running.folder}" in " ".join(completed("check", f"{running.sandbox.folder}/"))


@pytest.mark.skipif(not shutil.which("zsh"), reason="there is no zsh (package zsh)")
def test_zsh(running):
    home = running.sandbox.subfolder("zsh", running.user)
    program = running.sandbox.program("reconciledctl")
    shutil.copy(SCRIPTS / "_reconciledctl", home)
    (home / ".zshrc").write_text(f"PS1='> '; PATH=$PATH:{os.path.dirname(program)}; fpath=({home} $fpath); "
                                 "autoload -U compinit; compinit -u -D; setopt no_beep\n", encoding="utf-8")
    shell = Terminal(running.user, ["zsh", "-i"], cwd=home, environment={
        "HOME": home, "ZDOTDIR": home, "RUNTIME_DIRECTORY": running.runtime_directory})
    try:
        wait_until(lambda: "> " in shell.plain, lambda: f"the prompt: {shell.text!r}")
        shell.press("reconciledctl expl\t")
        wait_until(lambda: "explain " in shell.plain, lambda: f"the verb: {shell.text!r}")
        shell.press("wid\tdefault/appl\t")
        wait_until(lambda: "widgets default/apple" in shell.plain, lambda: f"watch and key: {shell.text!r}")
        shell.press("\x15reconciledctl re\t")
        wait_until(lambda: "let an object out of quarantine" in shell.plain, lambda: f"what verbs mean: {shell.text!r}")
    finally:
        shell.close()
