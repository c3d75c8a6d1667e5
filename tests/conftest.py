# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all suites. What they give is described in tests/harness/__init__.py."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from harness import Devserver, Handler, Operator, Sandbox, WIDGET_CRD  # noqa: E402
from harness.cluster import TOOLS, Cluster, assets, servers  # noqa: E402
from harness.process import clean_environment  # noqa: E402
from harness.replicas import Replicas  # noqa: E402
from harness.sandbox import stage_programs  # noqa: E402
from harness.setup import SANITIZED, free_ports  # noqa: E402
from harness.wait import scaled  # noqa: E402

pytest_plugins = ("harness.failures",)
AWAY_FILES = ("cluster/test_outages.py", "cluster/test_rbac_owners.py", "cluster/test_replicas.py")  # their server: AWAY of harness.cluster
QUIET_FOLDERS = ("integration/", "watch/", "death/")  # as in quiet_section of ./check


def pytest_configure(config):
    config.addinivalue_line("markers", "plain_only(reason): not run again under the sanitizers")
    config.addinivalue_line("markers", "slow: takes more than a second and a half; ./check --fast leaves it out")
    config.addinivalue_line("markers", "quiet: its subject is time or starvation; ./check runs it when all else has ended")
    config.addinivalue_line("markers", "long: only for ./check --long")
    config.addinivalue_line("markers", "only_where(condition, need): left out where the machine has not what it needs")


def lacks(item):
    """What this machine has not and the test needs, or None."""
    where = item.get_closest_marker("only_where")
    return where.args[1] if where and not where.args[0] else None


def same_code():
    """Tests at which the sanitizers need not look, since they reach no other code: see the file."""
    if os.environ.get("RECONCILED_SANITIZED") != "1" or "RECONCILED_BLOCKS" in os.environ:
        return set()
    return set((Path(__file__).parent / "same-code.txt").read_text(encoding="utf-8").splitlines())


def server_of(item):
    """The API server that it runs on: a process of pytest-xdist starts one. Outages have one of their own, which goes away."""
    names = [name for name in ("devserver", "kube-apiserver-current", "kube-apiserver") if name in item.nodeid.partition("[")[2]]
    return (names[0] if names else servers()[-1]) + ("-away" if item.nodeid.startswith(AWAY_FILES) else "")


def test_of(item):
    """Its name without that of its group, which pytest-xdist writes behind it."""
    group = item.get_closest_marker("xdist_group")
    return item.nodeid.removesuffix(f"@{group.args[0]}") if group else item.nodeid


def is_left_out(item, same):
    return lacks(item) or (SANITIZED and item.get_closest_marker("plain_only")) or same & {test_of(item), test_of(item).partition("[")[0]}


def pytest_ignore_collect(collection_path, config):
    """Of the tests that want a quiet machine (-m "quiet..."), only the files that have some are read, by each process."""
    if config.option.markexpr.startswith("quiet") and collection_path.suffix == ".py":
        return "mark.quiet" not in collection_path.read_text(encoding="utf-8") or None
    return None


@pytest.hookimpl(hookwrapper=True)
def pytest_collection_modifyitems(config, items):
    unheard = [item.nodeid for item in items if not item.nodeid.startswith(QUIET_FOLDERS) and item.get_closest_marker("quiet")]
    if unheard:
        raise pytest.UsageError(f"marked quiet, but not in {QUIET_FOLDERS}, where ./check looks: {unheard}")
    for item in items:
        if item.nodeid.startswith(("cluster/", "conformance/")) and server_of(item) != "devserver":  # which costs nothing to start
            item.add_marker(pytest.mark.xdist_group(server_of(item)))
    yield  # the choice of the command line, and pytest-xdist, which looks at the groups
    grouped = [item for item in items if item.get_closest_marker("xdist_group")]
    if getattr(config.option, "loadgroup", False) and any(test_of(item) == item.nodeid for item in grouped):
        raise pytest.UsageError("pytest-xdist has not seen all groups: each process would start servers of its own")
    # What one process runs test after test, or waits for long, begins first: it would be what all others wait for at the end.
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
    same = same_code()
    left_out = [item for item in items if is_left_out(item, same)]
    config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    items[:] = [item for item in items if item not in gone]
    if config.option.xmlpath:
        # Beside the results, in which they are not: tools/count-results names them.
        Path(config.option.xmlpath).with_suffix(".left-out").write_text(
            "".join(f"{test_of(item)}\t{lacks(item)}\n" for item in left_out if lacks(item)), encoding="utf-8")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when == "call":
        item.call_failed = report.failed


@pytest.fixture(scope="session")
def programs():
    folder, found = stage_programs()
    yield found
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def sandbox(request, programs):
    sandbox = Sandbox(programs, re.sub(r"[^A-Za-z0-9]+", "-", request.node.name).strip("-"))
    yield sandbox
    sandbox.close()


@pytest.fixture
def make_devserver(sandbox):
    """make_devserver(load=[...], arguments=[...]): a running one; the Widget resource is loaded unless load= says
    otherwise."""
    def make(load=(WIDGET_CRD,), **options):
        return Devserver(sandbox, load=load, **options).start()

    return make


@pytest.fixture
def devserver(make_devserver):
    return make_devserver()


@pytest.fixture
def api(devserver):
    return devserver.api


@pytest.fixture
def widgets(api):
    return api.resource("example.com/v1", "widgets", "default")


@pytest.fixture
def make_operator(sandbox):
    return lambda **options: Operator(sandbox, **options)


@pytest.fixture
def operator(make_operator):
    return make_operator()


@pytest.fixture
def make_handler(sandbox):
    return lambda behaviour="exit 0": Handler(sandbox, behaviour)


@pytest.fixture
def handler(make_handler):
    return make_handler()


@pytest.fixture
def free_port():
    return free_ports()[0]


@pytest.fixture(scope="session")
def make_cluster():
    """make_cluster("kube-apiserver", extra=[...]): a running etcd and kube-apiserver of that name (servers() knows them),
    started once for the session."""
    with tempfile.TemporaryDirectory(prefix="reconciled-test-cluster-") as folder:
        running = {}

        def make(name, extra=()):
            if (name, tuple(extra)) not in running:
                if assets(name) is None:
                    pytest.skip(f"there is no {name}; tools/{TOOLS[name]} builds one")
                place = Path(folder) / f"{len(running)}"
                place.mkdir()
                running[(name, tuple(extra))] = Cluster(place, extra, name)
                running[(name, tuple(extra))].start()
            return running[(name, tuple(extra))]

        try:
            yield make
        finally:
            for found in running.values():
                found.close()


@pytest.fixture(scope="session", params=servers())
def cluster(request, make_cluster):
    """A real etcd and kube-apiserver, shared by the tests of a session; each test runs on each server that there is."""
    return make_cluster(request.param)


@pytest.fixture
def by_hand(operator, sandbox):
    """by_hand("run", "--object", ...): with the operator's configuration, and without the operator."""
    folder = sandbox.subfolder("by-hand", operator.user, 0o700)

    def command(*arguments):
        return operator.user.command([sandbox.program("reconciledctl"), "--config", operator.config_file,
                                      *map(str, arguments)])

    def run(*arguments, expect=0):
        result = subprocess.run(command(*arguments), capture_output=True, text=True, check=False, cwd=folder,
                                env=clean_environment(operator.user, {"TMPDIR": str(folder)}), timeout=scaled(60),
                                stdin=subprocess.DEVNULL)
        assert result.returncode == expect, result.stdout + result.stderr
        assert not list(folder.glob("reconciledctl-*")), "the folder of the run is removed"
        return result

    run.folder, run.command = folder, command
    return run


@pytest.fixture
def replicas(devserver, make_operator, make_handler, sandbox, widgets):
    return Replicas(devserver, make_operator, make_handler, sandbox, widgets)
