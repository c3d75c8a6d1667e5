# SPDX-License-Identifier: Apache-2.0
"""What ./check relies on: the lint finds what it is there for, the count is right, and only what is missing is
installed."""
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess
import sys
from datetime import date, timedelta

import pytest

from harness.setup import SOURCE

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
ID = "5c1d1e3b6a5f4b0c9a7d0f5e8b2c4d61"
CLEAN = {
    "lib/base/exit-code.h": LICENCE + "enum {\n        EXIT_CODE_IO = 74,\n};\n",
    "lib/base/thing.c": LICENCE + "/* strcpy( in a comment is none */\nint thing(void)\n{\n        return log(MESSAGE_ID_A);\n}\n",
    "ipc/message-id.h": LICENCE + f'#define MESSAGE_ID_A "{ID}"\n',
    "man/reconciled.1": "74  the ledger cannot be written\n",
    "units/reconciled.catalog": f"-- {ID}\nSubject: A\n\n@MESSAGE@\n",
    "tests/integration/test_a.py": f"# {LICENCE}\nMESSAGE_ID['A']\n",
}


@pytest.fixture
def lint(tmp_path):
    """lint({path: text}): what lint-source prints about a small clean project with these files changed."""
    (tmp_path / "tools").mkdir()
    tool = shutil.copy(SOURCE / "tools" / "lint-source", tmp_path / "tools")

    def run(changed):
        for name, text in {**CLEAN, **changed}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        results = tmp_path / "results"
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
        done = subprocess.run([tool, "--results", results], capture_output=True, text=True, check=False, env=environment)
        failed = [line for line in results.read_text(encoding="utf-8").splitlines() if line.endswith("\tfailed")]
        assert done.returncode == (1 if failed else 0), done.stderr
        assert bool(done.stdout) == bool(failed)
        return done.stdout

    return run


def function(lines):
    return LICENCE + "int thing(void)\n{\n" + "        step();\n" * lines + "}\n"


def test_tables_code_and_links_may_be_wide(lint):
    wide = "word " * 27
    assert lint({"docs/a.md": f"| {wide}|\n\n    {wide}\n\n```\n{wide}\n```\n[a](https://example.com/{'x' * 130})\n"}) == ""


def test_lint_is_content_with_a_clean_project(lint):
    assert lint({}) == ""


@pytest.mark.parametrize("name, text, said", [
    ("base/a.c", LICENCE + "int a(void)\n{\n        strcpy(x, y);\n}\n", "strcpy() is banned"),
    ("base/a.c", LICENCE + "int a(void)\n{\n        return system (x);\n}\n", "system() is banned"),
    ("base/a.c", "int a;\n", "lacks the line"),
    ("tests/same-code.txt", "integration/test_a.py::test_gone\n", "there is no test integration/test_a.py::test_gone"),
    ("base/a.py", "a = 1\n", "lacks the line"),
    ("base/a.c", LICENCE + "/* TO" "DO: more */\n", "unfinished work"),
    ("base/a.c", LICENCE + "\n" * 700, "at most 700"),
    ("docs/a.md", "word " * 27 + "\n", "at most 130"),
    ("base/a.c", function(81), "a function of 81 lines"),
    ("tests/a.c", LICENCE + "void a(void)\n{\n        usleep(5);\n}\n", "usleep() in a test"),
    ("tests/a.py", "# SPDX-License-Identifier: Apache-2.0\nimport time\ntime." "sleep(1)\n", "use wait_until()"),
    ("tools/a", "#!/bin/bash\n# SPDX-License-Identifier: Apache-2.0\nif true\n", "syntax error"),
    ("lib/base/exit-code.h", LICENCE + "enum {\n        EXIT_CODE_IO = 7,\n};\n", "EXIT_CODE_IO (7) is not explained"),
    ("units/reconciled.catalog", "", "MESSAGE_ID_A has no entry"),
    ("units/reconciled.catalog", f"-- {ID}\nA\n\n-- {ID[::-1]}\nB\n", "is not defined in"),
    ("units/reconciled.catalog", f"-- {ID}\n" + "word " * 16 + "\n", "at most 76"),
    ("ipc/message-id.h", LICENCE + f'#define MESSAGE_ID_A "{ID}"\n#define MESSAGE_ID_B "{ID}"\n', "the value of another"),
    ("lib/base/thing.c", LICENCE, "MESSAGE_ID_A is never logged"),
    ("tests/integration/test_a.py", LICENCE, "MESSAGE_ID_A is named by no test"),
    ("ctl/a.c", LICENCE + "static int thing(void)\n{\n}\n", "lib/base/thing.c:3: ctl/a.c has a thing() already"),
    ("ctl/a.c", LICENCE + "/* as other_thing() does */\n", "ctl/a.c:2: there is no other_thing()"),
    ("ctl/a.c", LICENCE + "/* as lib/base/other.c has it */\n", "ctl/a.c:2: there is no lib/base/other.c"),
    ("docs/architecture.md", "`base/other.h`\n", "there is no base/other.h"),
])
def test_lint_finds(lint, name, text, said):
    assert said in lint({name: text})


def test_what_waits_is_marked(lint):
    def told(definition):
        return lint({"base/wait.h": LICENCE + "int wait_a(void) _suspends_;\n", "base/a.c": LICENCE + definition})

    marked = "static int a(void) _suspends_\n{\n        return wait_a();\n}\n"
    assert told(marked) == ""
    assert "a() calls wait_a(), which may wait" in told(marked.replace(" _suspends_", ""))
    assert "b() calls a(), which may wait" in told(marked + "\nstatic int b(void)\n{\n        return a();\n}\n")
    assert "on_end() may wait, and is a callback" in told(marked.replace("int a(", "int on_end("))
    assert "a_done() may wait, and is a callback" in told(marked.replace("int a(", "int a_done("))


def test_an_unsteady_test_may_stand_for_a_week(lint):
    def told(days):
        return lint({"tests/unsteady.tsv": f"# comment\nwatch: test_a\t{date.today() - timedelta(days)}\tan early deadline\n"})

    assert told(7) == "" and "watch: test_a has been unsteady since" in told(8)
    assert "which is to come" in told(-1)
    assert "tests/unsteady.tsv:1: is not" in lint({"tests/unsteady.tsv": "watch: test_a\tyesterday\tx\n"})
    assert "tests/unsteady.tsv:1: is not" in lint({"tests/unsteady.tsv": f"watch: test_a\t{date.today()}\t\n"})


def test_lint_lets_pass_what_only_looks_like_it(lint):
    assert lint({"base/a.c": function(80) + "int b = other.system(1), c = my_strcpy(2);\n"
                 'static const char *text = "strcpy(x)";\n'}) == ""


@pytest.fixture
def count(tmp_path):
    """count(sections, {file: text}, ci=False): what count-results prints as its last line, and its exit status; count.said:
    what it printed before."""
    def run(sections, files, ci=False):
        (tmp_path / "sections").write_text("".join(f"{name}\t{status}\n" for name, status in sections), encoding="utf-8")
        for name, text in files.items():
            (tmp_path / name).write_text(text, encoding="utf-8")
        environment = {**os.environ, "CI": "true" if ci else ""}
        done = subprocess.run([SOURCE / "tools" / "count-results", tmp_path], capture_output=True, text=True, check=False,
                              env=environment)
        *run.said, last = done.stdout.splitlines()
        return last, done.returncode

    return run


PYTEST = """<testsuites><testsuite><testcase classname="c" name="good"/><testcase classname="c" name="bad"><failure/></testcase>
<testcase classname="c" name="broken"><error/></testcase><testcase classname="c" name="later"><skipped/></testcase>
</testsuite></testsuites>"""


def test_count_adds_all_kinds(count):
    assert count([("a", 1), ("b", 0), ("c", 0)], {
        "a.xml": PYTEST,
        "b.json": '{"name": "one", "result": "OK"}\n{"name": "two", "result": "TIMEOUT"}\n',
        "c.tsv": "lint\tpassed\n",
    }) == ("3 passed, 3 failed, 1 skipped", 1)


@pytest.mark.parametrize("files", [{}, {"a.xml": "<testsuites/>"}, {"a.xml": "<testsu"}, {"a.json": "no json\n"}])
def test_a_part_without_results_has_failed(count, files):
    assert count([("a", 0)], files) == ("0 passed, 1 failed, 0 skipped", 1)


def test_a_part_that_failed_without_a_failed_test_has_failed(count):
    assert count([("a", 139)], {"a.tsv": "x\tpassed\n"}) == ("1 passed, 1 failed, 0 skipped", 1)


def test_nothing_run_is_a_failure(count):
    assert count([], {}) == ("0 passed, 0 failed, 0 skipped", 1)


def test_a_skip_fails_only_in_continuous_integration(count):
    files = {"a.tsv": "x\tpassed\ny\tskipped\n"}
    assert count([("a", 0)], files) == ("1 passed, 0 failed, 1 skipped", 0)
    assert count([("a", 0)], files, ci=True) == ("1 passed, 0 failed, 1 skipped", 1)


def test_what_this_machine_cannot_run_is_named_and_fails_nothing(count):
    files = {"a.tsv": "x\tpassed\n", "a.left-out": "a/test_b.py::test_c\ta thing\n"}
    assert count([("a", 0)], files, ci=True) == ("1 passed, 0 failed, 0 skipped", 0)
    assert count.said == ["left out: a: a/test_b.py::test_c (needs a thing)"]


UNSTEADY_SUITE = """
import os
import pathlib
import pytest

PLACE = pathlib.Path(os.environ["RECONCILED_TEST_PLACE"])

def fails_once(name, why="comes too early"):
    if not (PLACE / name).exists():
        (PLACE / name).touch()
        pytest.fail(f"{name} {why}")

def is_first(name):
    there = (PLACE / name).exists()
    (PLACE / name).touch()
    return not there

def test_good():
    pass
"""


@pytest.fixture
def judge(tmp_path):
    """judge(always=N, once=N, tests=[text], options=[]): what is said of a suite with so many tests that fail always, and once, and with
    these: (lines, exit status)."""
    def run(always=0, once=0, tests=(), options=()):
        results, suite = tmp_path / "results", tmp_path / "suite"
        results.mkdir()
        suite.mkdir()
        tests = [*tests, *(f"def test_always_{n}():\n    assert False\n" for n in range(always))]
        tests += [f"def test_once_{n}():\n    fails_once('once-{n}')\n" for n in range(once)]
        (suite / "test_it.py").write_text(UNSTEADY_SUITE + "\n".join(tests), encoding="utf-8")
        (suite / "pytest.ini").write_text("[pytest]\naddopts = -p harness.failures -p no:cacheprovider\n", encoding="utf-8")
        environment = {**os.environ, "PYTHONPATH": SOURCE / "tests", "RECONCILED_TEST_PLACE": str(tmp_path)}
        done = subprocess.run([sys.executable, "-m", "pytest", "-c", "suite/pytest.ini", "--rootdir", "suite", "-q", *options,
                               f"--junitxml={results}/a.xml", "suite"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              check=False)
        (results / "sections").write_text(f"a\t{done.returncode}\n", encoding="utf-8")
        environment.pop("RECONCILED_TEST_PLACE")
        subprocess.run([SOURCE / "tools" / "run-again", results], env=environment, check=True)
        done = subprocess.run([SOURCE / "tools" / "count-results", results], env=environment, capture_output=True, text=True, check=False)
        run.results = results
        return done.stdout.splitlines(), done.returncode

    return run


@pytest.mark.slow
def test_what_fails_once_is_unsteady_and_what_fails_always_is_red(judge):
    said, status = judge(always=1, once=1, options=("-n", "2"))
    assert status == 1 and said[-1] == "1 passed, 1 failed, 0 skipped"
    assert said[0] == "failed: a: test_it.test_always_0"
    assert said[1].startswith("1 unsteady") and said[2].startswith("a: test_it.test_once_0\t20")
    log = (judge.results / "unsteady.log").read_text(encoding="utf-8")
    assert "once-0 comes too early" in log and "load " in log and "always" not in log


@pytest.mark.slow
def test_a_test_of_a_group_is_run_again(judge):
    said, status = judge(tests=["pytestmark = pytest.mark.xdist_group('g')\n\ndef test_it():\n    fails_once('x')\n"],
                         options=("-n", "2", "--dist", "loadgroup"))
    assert status == 0 and said[-1] == "1 passed, 0 failed, 0 skipped" and said[1].startswith("a: test_it.test_it@g\t"), said


@pytest.mark.slow
def test_an_unsteady_test_is_told_and_is_not_red(judge):
    said, status = judge(once=1)
    assert status == 0 and said[-1] == "1 passed, 0 failed, 0 skipped" and said[0].startswith("1 unsteady")


@pytest.mark.slow
def test_what_is_certain_and_what_does_not_pass_is_red(judge):
    tests = ["fails_once('x', 'left: ERROR: AddressSanitizer: heap-use-after-free')",
             "is_first('y') and pytest.fail('early')\n    pytest.skip('not now')",
             "is_first('z') and os.kill(os.getpid(), 9)"]
    said, status = judge(tests=[f"def test_{n}():\n    {test}\n" for n, test in enumerate(tests)], options=("-n", "1"))
    assert status == 1 and said[-1] == "1 passed, 3 failed, 0 skipped", said


@pytest.mark.slow
def test_six_unsteady_tests_are_red(judge):
    said, status = judge(once=6)
    assert status == 1 and said[0] == "failed: 6 tests are unsteady, at most 5 may be"
    assert said[-1] == "1 passed, 1 failed, 0 skipped"


@pytest.mark.slow
def test_what_fails_by_the_dozen_is_not_run_again(judge):
    said, status = judge(once=21)
    assert status == 1 and said[-1] == "1 passed, 21 failed, 0 skipped" and not (judge.results / "again.tsv").exists()


def test_a_suite_that_breaks_off_is_red_whatever_its_tests_say(count):
    files = {"a.xml": PYTEST, "again.tsv": "a: c.bad\tunsteady\na: c.broken\tunsteady\n"}
    assert count([("a", 1)], files) == ("1 passed, 0 failed, 1 skipped", 0)
    assert count([("a", 3)], files) == ("1 passed, 1 failed, 1 skipped", 1)


@pytest.fixture
def missing(tmp_path):
    """missing(lines, scope): what would be installed for this scope of a file `dependencies` of these lines."""
    (tmp_path / "tools").mkdir()
    shutil.copy(SOURCE / "tools" / "install-dependencies", tmp_path / "tools")

    def run(lines, scope):
        (tmp_path / "dependencies").write_text(lines, encoding="utf-8")
        done = subprocess.run(["bash", "-uc", f". tools/install-dependencies; dependencies_missing {scope}"],
                              cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.split()

    return run


def test_only_what_is_missing_is_installed(missing):
    lines = ("# comment\nbuild  dpkg            is there\nbuild  no-such-package:sh  a program stands in\n"
             "build  no-such-package  is not\ntest   not-of-this-scope  either\n")
    assert missing(lines, "build") == ["no-such-package"]
    assert missing(lines, "run") == []


def test_the_analyser_looks_again_at_code_and_not_at_comments():
    loader = importlib.machinery.SourceFileLoader("lint_tidy", str(SOURCE / "tools" / "lint-tidy"))
    tidy = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(tidy)
    code = b'int a = 1; /* one */\nchar *b = "/* no comment */"; // "text\nchar c = \'"\'; /* "more */\n'
    assert tidy.significant(code) == b'int a = 1;\nchar *b = "/* no comment */";\nchar c = \'"\';'
    assert tidy.significant(b"a(); /* NOLINT */") != tidy.significant(b"a();")
    entry = {"command": "gcc -c lib/base/backoff.c", "directory": str(SOURCE)}
    files = ["lib/base/backoff.c", "lib/base/backoff.h"]
    assert tidy.key(entry, files, b"") != tidy.key(entry, files[:1], b"") and tidy.key(entry, None, b"") is None
