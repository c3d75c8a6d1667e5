# SPDX-License-Identifier: Apache-2.0
"""tools/picture: in a small made-up tree, each of its rules is broken once."""
import json
import os
import subprocess

import pytest

from harness.setup import SOURCE

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */\n"
MARKERS = "<!-- picture: made by tools/picture --write -->\n<!-- picture: end -->\n"
CLEAN = {
    "tools/layers": "# lowest first\nlib/base\nlib/os\ngateway ctl\n",
    "docs/architecture.md": f"# Architecture\n{MARKERS}\nbehind\n",
    "lib/base/text.h": LICENCE + "int text_size(void);\n",
    "lib/base/text.c": LICENCE + '#include "base/text.h"\nint text_size(void) { return 1; }\n',
    "lib/os/file.h": LICENCE + "int file_read(void);\n",
    "lib/os/file.c": LICENCE + '#include "os/file.h"\n#include "base/text.h"\nint file_read(void) { return text_size(); }\n',
    "gateway/main.c": LICENCE + '#include "gateway/tls/tls.h"\nint main(void) { return tls_start(); }\n',
    "gateway/tls/tls.h": LICENCE + "int tls_start(void);\n",
    "gateway/tls/tls.c": LICENCE + '#include "gateway/tls/tls.h"\n#include "os/file.h"\nint tls_start(void) { return file_read(); }\n',
    "ctl/main.c": LICENCE + '#include "base/text.h"\nint main(void) { return 0; }\n',
}
OBJECTS = {}  # what most tests leave as it is, is compiled once


@pytest.fixture
def tree(tmp_path):
    """tree(changed, write=True): what --check says of the small project with these files changed (None: gone),
    once its picture was written; tree.run(*arguments): the script, there."""
    def put(name, text):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text, encoding="utf-8")

    def compile_all():
        entries, headers = [], [path.read_text(encoding="utf-8") for path in sorted(tmp_path.rglob("*.h"))]
        for source in sorted(tmp_path.rglob("*.c")):
            name = str(source.relative_to(tmp_path))
            output = "build/" + name.replace("/", "_") + ".o"
            (tmp_path / "build").mkdir(exist_ok=True)
            key = (name, source.read_text(encoding="utf-8"), *headers)
            if key not in OBJECTS:
                subprocess.run(["cc", "-c", "-w", "-I.", "-Ilib", "-o", output, name], cwd=tmp_path, check=True)
                OBJECTS[key] = (tmp_path / output).read_bytes()
            (tmp_path / output).write_bytes(OBJECTS[key])
            entries.append({"directory": str(tmp_path / "build"), "file": "../" + name, "output": output[len("build/"):]})
        put("build/compile_commands.json", json.dumps(entries))

    def run(*arguments):
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
        return subprocess.run([tmp_path / "tools" / "picture", *arguments], cwd=tmp_path, capture_output=True, text=True,
                              check=False, env=environment)

    def tree(changed, write=True):
        for name, text in {**CLEAN, **changed}.items():
            put(name, text)
        put("tools/picture", (SOURCE / "tools" / "picture").read_text(encoding="utf-8"))
        (tmp_path / "tools" / "picture").chmod(0o755)
        compile_all()
        if write:
            assert run("--write").returncode == 0
        done = run("--check", "build", "--results", "build/results")
        assert done.stderr == ""
        assert done.returncode == (1 if done.stdout else 0)
        result = (tmp_path / "build" / "results").read_text(encoding="utf-8").splitlines()[-1]
        assert result == "lint: picture\t" + ("failed" if done.stdout else "passed")
        return done.stdout

    tree.run = run
    tree.put = put
    tree.read = lambda name: (tmp_path / name).read_text(encoding="utf-8")
    return tree


def test_a_clean_tree_has_nothing_to_say(tree):
    assert tree({}) == ""


def test_the_picture_stands_between_its_markers(tree):
    tree({})
    document = tree.read("docs/architecture.md")
    assert document.startswith("# Architecture\n<!-- picture: made") and document.endswith("picture: end -->\n\nbehind\n")
    assert "\n```\ngateway  ctl\nlib/os\nlib/base\n```\n" in document
    assert "| `gateway` | 3 (tls 2) | 100 | `lib/os` |\n" in document
    assert "| `ctl` | 1 | 100 | (`lib/base`) |\n" in document
    printed = tree.run().stdout
    assert printed.strip() in document


INCLUDES_A_PROCESS = {"lib/os/file.c": LICENCE + '#include "gateway/tls/tls.h"\nint file_read(void) { return 0; }\n'}
CALLS_A_PROCESS = {"lib/os/file.c": LICENCE + "int tls_start(void);\nint file_read(void) { return tls_start(); }\n"}
BETWEEN_PROCESSES = {"ctl/main.c": LICENCE + '#include "gateway/tls/tls.h"\nint main(void) { return 0; }\n'}
UPWARDS = {"lib/base/text.c": LICENCE + "int file_read(void);\nint text_size(void) { return file_read(); }\n"}
CIRCLE = {
    "gateway/tls/pair.h": LICENCE + "int pair(int);\n",
    "gateway/tls/pair.c": LICENCE + "/* Halves. */\nint tls_start(void);\nint pair(int a) { return a ? pair(a - 1) : tls_start(); }\n",
    "gateway/tls/tls.c": LICENCE + "int pair(int);\nint file_read(void);\nint tls_start(void) { return pair(1) + file_read(); }\n",
}


# tls/ calls up into web/, which calls tls/.
ROOMS = {
    "gateway/web/web.h": LICENCE + "int web_start(void);\n",
    "gateway/web/web.c": LICENCE + '/* Circle: so. */\n#include "gateway/web/web.h"\nint tls_start(void);\n'
                                   "int web_start(void) { return tls_start(); }\n",
    "gateway/tls/tls.h": CLEAN["gateway/tls/tls.h"] + '#include "gateway/web/web.h"\n',
}
CIRCLE_OF_ROOMS = "gateway/tls: stands on itself in a circle with gateway/web"


@pytest.mark.parametrize("changed, said", [
    (INCLUDES_A_PROCESS, "lib/os/file.c:2: includes gateway/tls/tls.h, and gateway is not below lib/os"),
    (CALLS_A_PROCESS, "lib/os/file.c: calls tls_start() of gateway/tls/tls.c, and gateway is not below lib/os"),
    (BETWEEN_PROCESSES, "ctl/main.c:2: includes gateway/tls/tls.h, and gateway is not below ctl"),
    (UPWARDS, "lib/base/text.c: calls file_read() of lib/os/file.c, and lib/os is not below lib/base"),
    ({"tools/layers": "lib/base\nlib/os\nctl\n"}, "tools/layers: gateway is in no layer"),
    ({"tools/layers": CLEAN["tools/layers"] + "plugin\n"}, "tools/layers: there is no folder plugin"),
    ({"tools/layers": CLEAN["tools/layers"] + "exception ctl -> gateway: so it was\n"},
     "tools/layers: nothing needs the exception ctl -> gateway"),
    ({f"gateway/tls/part{number}.h": LICENCE for number in range(24)},
     "gateway/tls: 26 .c and .h files at one level; at most 25"),
    ({"gateway/tls/pem.c": LICENCE + "int pem_read(void) { return 0; }\n"},
     "gateway/tls/pem.c: gives pem_read() to others, and has no header of its own"),
    ({"gateway/tls/pem.c": LICENCE + "int pem_read(void) { return 0; }\n", "gateway/tls/pem.h": LICENCE},
     "gateway/tls/pem.c: pem_read() is declared elsewhere than in gateway/tls/pem.h"),
    ({"gateway/tls/text.h": LICENCE}, "lib/base/text.h: gateway/tls/text.h has that name already"),
    ({"ctl/own.c": LICENCE + "int tls_start(void) { return 0; }\n", "ctl/own.h": LICENCE + "int tls_start(void);\n"},
     "gateway/tls/tls.c: ctl/own.c has a tls_start() already"),
    (CIRCLE, "gateway/tls/pair.c: calls itself in a circle with gateway/tls/tls.c"),
    (ROOMS, CIRCLE_OF_ROOMS),
    ({"tools/layers": CLEAN["tools/layers"] + "circle gateway: so it was\n"}, "tools/layers: the rooms of gateway have no circle"),
])
def test_a_broken_rule_is_found(tree, changed, said):
    assert said in tree(changed).splitlines()


@pytest.mark.parametrize("changed", [
    {**BETWEEN_PROCESSES, "tools/layers": CLEAN["tools/layers"] + "exception ctl -> gateway: so it is\n"},
    {"gateway/tls/pem.c": LICENCE + "int pem_read(void) { return 0; }\n",
     "gateway/tls/internal.h": LICENCE + "int pem_read(void);\n"},
    {"gateway/tls/pem.c": LICENCE + "static int pem_read(void) { return 0; }\n"},
    {f"gateway/tls/part{number}.h": LICENCE for number in range(23)},
    {**CIRCLE, "gateway/tls/pair.c": CIRCLE["gateway/tls/pair.c"].replace("Halves.", "Halves. Circle: a start begins again.")},
    {**ROOMS, "gateway/tls/tls.h": CLEAN["gateway/tls/tls.h"]},
    {**ROOMS, "tools/layers": CLEAN["tools/layers"] + "circle gateway: so it is\n"},
])
def test_what_is_allowed_is_let_pass(tree, changed):
    assert tree(changed) == ""


def test_a_circle_is_explained_in_the_opening_comment(tree):
    later = CIRCLE["gateway/tls/pair.c"] + "/* Circle: too late. */\n"
    assert "in a circle" in tree({**CIRCLE, "gateway/tls/pair.c": later})


@pytest.mark.slow
def test_a_picture_that_is_missing_or_old_is_found(tree):
    assert "docs/architecture.md: has no picture" in tree({"docs/architecture.md": "# Architecture\n"}, write=False)
    assert tree.run("--write").returncode == 1
    tree({})
    kept = tree.read("docs/architecture.md")
    moved = {"docs/architecture.md": kept, "ctl/main.c": LICENCE + "int text_size(void);\nint main(void) { return text_size(); }\n"}
    assert "docs/architecture.md: of ctl the picture is not what the code says" in tree(moved, write=False)
    lower = {"docs/architecture.md": kept, "tools/layers": "lib/base\nlib/os\nctl\ngateway\n"}
    assert "docs/architecture.md: the layers are not what tools/layers says" in tree(lower, write=False)


def test_numbers_may_be_off_by_a_tenth(tree):
    grown = {f"gateway/tls/part{number}.h": LICENCE for number in range(20)}
    tree(grown)
    kept = {"docs/architecture.md": tree.read("docs/architecture.md"), **grown}
    more = {f"gateway/tls/more{number}.h": LICENCE for number in range(3)}
    assert tree({**kept, "gateway/tls/more0.h": LICENCE}, write=False) == ""
    for name in more:
        tree.put(name, None)
    assert "of gateway the picture is not" in tree({**kept, **more}, write=False)


def test_a_source_that_is_not_compiled_is_found(tree):
    tree({})
    tree.put("gateway/tls/old.c", LICENCE)
    assert "gateway/tls/old.c: is not compiled" in tree.run("--check", "build").stdout


@pytest.mark.parametrize("arguments", [["--check"], ["--wrong"], ["build", "more"]])
def test_wrong_usage_is_told(tree, arguments):
    tree({})
    done = tree.run(*arguments)
    assert done.returncode == 64 and "tools/picture [BUILD]" in done.stderr
