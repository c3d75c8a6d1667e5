# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: they build, the same twice, keep Debian's rules, install, run, upgrade and purge."""
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from harness import wait_until
from harness.documents import examples
from harness.node import Node
from harness.operator import MESSAGE_ID
from harness.setup import SOURCE
from harness.system import System, unavailable
from harness.wait import scaled

# Built once, while the other tests of this folder share a system.
pytestmark = pytest.mark.xdist_group("package")


def run(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, timeout=scaled(600), **options)
    assert done.returncode == 0, f"{command}: exit {done.returncode}: {done.stdout[-5000:]}{done.stderr[-5000:]}"
    return done.stdout


def build(folder):
    """The packages of this source tree: {name: path}."""
    source = folder / "reconciled-0.1.0"
    listed = subprocess.run(["git", "ls-files", "-c"], cwd=SOURCE, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = [name for name in listed.stdout.splitlines() if (SOURCE / name).is_file()]
        for name in names:
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(SOURCE / name, source / name)
    else:
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("build*", ".git"))
    # As a clone has it.
    run("git", "init", "-q", cwd=source)
    run("git", "add", "-A", cwd=source)
    run("git", "-c", "user.name=x", "-c", "user.email=x", "commit", "-q", "-m", "x", cwd=source)
    # What is stripped need not be made, and unoptimized programs are packed alike. Before a release all is as it will be.
    quick = os.environ.get("RECONCILED_FULL") != "1"
    run("dpkg-buildpackage", "-us", "-uc", "-b", cwd=source,
        env={**os.environ, "DEB_BUILD_OPTIONS": f"parallel={os.cpu_count()} noautodbgsym{' noopt' if quick else ''}",
             **({"DEB_CFLAGS_APPEND": "-g0"} if quick else {})})
    return {path.name.split("_")[0]: path for path in folder.glob("*.deb")}


@pytest.fixture(scope="module")
def packages():
    reason = unavailable() or (None if shutil.which("dpkg-buildpackage") else "there is no dpkg-buildpackage")
    if reason:
        pytest.skip(reason)
    folder = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-package-"))
    yield build(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def bare():
    """A system without our programs."""
    reason = unavailable()
    if reason:
        pytest.skip(reason)
    system = System(install=False)
    try:
        yield system.boot()
    finally:
        system.close()


@pytest.mark.long
def test_lintian_has_nothing_to_say(packages):
    run("lintian", "--fail-on=error,warning", *packages.values())


@pytest.mark.long
def test_it_is_built_the_same_twice(packages):
    with tempfile.TemporaryDirectory(prefix="reconciled-test-package-again-") as folder:
        again = build(pathlib.Path(folder))
        assert set(again) == set(packages) == {"reconciled", "reconciled-devserver"}
        for name, path in again.items():
            assert hashlib.sha256(path.read_bytes()).digest() == hashlib.sha256(packages[name].read_bytes()).digest(), name


def test_a_build_leaves_nothing_untracked(packages):
    source = packages["reconciled"].parent / "reconciled-0.1.0"
    assert run("git", "status", "--porcelain", "--untracked-files=all", cwd=source) == ""


def test_the_documents_that_are_named_are_in_the_packages(packages, tmp_path):
    """By manuals, by units, and by each other."""
    for path in packages.values():
        run("dpkg", "-x", path, tmp_path)
    share = tmp_path / "usr" / "share"
    doc = share / "doc" / "reconciled"
    named = set()
    for page in [*share.glob("man/man*/*.gz"), *tmp_path.glob("usr/lib/systemd/**/*.service"), *tmp_path.glob("usr/lib/systemd/catalog/*")]:
        text = run("zcat", page) if page.suffix == ".gz" else page.read_text(encoding="utf-8")
        named |= {doc / path for path in re.findall(r"\bdocs/[\w.-]+\.md", text)}
        named |= {tmp_path / path for path in re.findall(r"/(usr/share/[\w./-]*\w)", text)}
        named |= {doc / "drop-ins" / name for name in re.findall(r"\b(?:cgroups|credentials|host|user)\.conf\b", text)}
    for page in doc.glob("**/*.md"):
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        # What only the source has is called by its whole path: tests/, tools/, bench/.
        links = [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if not re.match(r"(\.\./)?(dependencies|tests|tools|bench)\b", link)]
        named |= {(page.parent / link).resolve() for link in links}
    assert len(named) > 15, named
    assert sorted(str(path.relative_to(tmp_path)) for path in named if not path.exists()) == []


def restarts(node):
    return json.loads(node.run("reconciledctl", "status", "--json").stdout)["restarts"]


def test_install_run_upgrade_purge(bare, packages):
    node = Node(bare)
    for path in packages.values():
        shutil.copy(path, bare.root / "root")
    # As a user does it; what it depends on is there, so nothing is fetched.
    install = ["apt-get", "install", "-y", "--no-install-recommends", "--reinstall", *(f"/root/{path.name}" for path in packages.values())]
    node.run(*install)
    assert node.run("systemctl", "is-active", node.unit, check=False).stdout == "inactive\n"
    assert node.run("systemctl", "is-enabled", node.unit, check=False).stdout == "disabled\n"
    for path in ("bash-completion/completions/reconciledctl", "zsh/vendor-completions/_reconciledctl"):
        assert "reconciledctl" in (bare.root / "usr" / "share" / path).read_text(encoding="utf-8")
    node.start_server()
    node.mark()
    node.configure("echo '{\"status\": {\"seen\": true}}'")
    steps = next(example for example in examples().values() if example.document == "docs/systemd.md").commands()
    assert [step.split()[0] for step in steps] == ["dpkg-buildpackage", "install", "$EDITOR", "systemctl"], "the manual's steps"
    node.run("sh", "-ec", f"cd /run && mv /etc/credstore/reconciled.kubeconfig my.kubeconfig && {steps[1]}")
    node.run("sh", "-ec", steps[3])
    node.wait_synced()
    node.create_widget("a")
    wait_until(lambda: node.widget("a").get("status") == {"seen": True}, "the handler's status")
    # The package's installation has told journald's catalog.
    assert "Subject: The operator starts" in node.run("journalctl", "-x", "-u", node.unit,
                                                      f"MESSAGE_ID={MESSAGE_ID['STARTED']}").stdout
    before, starts = node.main_pid(), restarts(node)
    node.run(*install)
    wait_until(lambda: node.main_pid() not in (0, before), "the upgrade to restart it")
    wait_until(lambda: node.run("reconciledctl", "health", "--ready", check=False).returncode == 0, "it to be ready again")
    assert restarts(node) == starts + 1, "the ledger is the one from before"
    node.create_widget("b")
    wait_until(lambda: node.widget("b").get("status") == {"seen": True}, "the status of what came after the upgrade")
    node.run("dpkg", "--remove", "reconciled")
    assert node.run("systemctl", "is-active", node.unit, check=False).stdout == "inactive\n"
    node.run("test", "-f", "/var/lib/reconciled/ledger.sqlite")
    node.run("rm", "/etc/reconciled/reconciled.yaml")
    node.run("dpkg", "--purge", "reconciled", "reconciled-devserver")
    left = node.run("sh", "-c", "find / -xdev -name '*reconciled*' -not -path '/proc/*' -not -path '/root/*' "
                    "-not -path '/sys/*' -not -path '/etc/credstore/*'").stdout.split()
    assert [path for path in left if not path.startswith(("/var/lib/dpkg", "/run", "/var/log", "/tmp"))] == []
    assert node.run("dpkg", "--audit").stdout == ""
