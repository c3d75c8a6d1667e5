# SPDX-License-Identifier: Apache-2.0
"""tools/lint-tidy finds mistakes of each kind that it is there for: each is sown into a small clean project."""
import json
import shutil
import subprocess

import pytest

from harness.setup import SOURCE

# What the analyser must say: (check, where it is sown).
MISTAKES = {
    "clang-analyzer-core.NullDereference": "int a(void)\n{\n        int *p = 0;\n\n        return *p;\n}\n",
    "clang-analyzer-core.DivideZero": "int a(int n)\n{\n        return n == 0 ? 7 / n : 1;\n}\n",
    "clang-analyzer-core.CallAndMessage": "int a(void)\n{\n        int n;\n\n        return abs(n);\n}\n",
    "clang-analyzer-core.NonNullParamChecker":
        "char *a(char *to, size_t n)\n{\n        char *from = n > 3 ? to : NULL;\n\n        return n > 2 ? to : memcpy(to, from, n);\n}\n",
    "clang-analyzer-core.UndefinedBinaryOperatorResult": "int a(int n)\n{\n        int m;\n\n        return n + m;\n}\n",
    "clang-analyzer-deadcode.DeadStores": "int a(int n)\n{\n        int m = n;\n\n        m = 3;\n        return n;\n}\n",
    "clang-analyzer-valist.Unterminated": "void a(int n, ...)\n{\n        va_list list;\n\n        va_start(list, n);\n}\n",
    "clang-analyzer-unix.cstring.NullArg": "size_t a(const char *s)\n{\n        return s ? 1 : strlen(s);\n}\n",
    "bugprone-suspicious-memset-usage": "void a(int *s)\n{\n        memset(s, '0', 8);\n}\n",
    "bugprone-suspicious-semicolon": "int a(int n)\n{\n        if (n);\n                n = 3;\n        return n;\n}\n",
    "bugprone-suspicious-string-compare": "int a(const char *s)\n{\n        return strcmp(s, \"x\") == 2;\n}\n",
    "bugprone-infinite-loop": "int a(int n)\n{\n        int i = 0, m = 0;\n\n        while (i < n)\n                m++;\n        return m;\n}\n",
    "misc-redundant-expression": "int a(int n)\n{\n        return n > 3 && n > 3;\n}\n",
    "cert-env33-c": "int a(const char *s)\n{\n        return system(s);\n}\n",
    "cert-flp30-c": "int a(void)\n{\n        int n = 0;\n\n        for (float f = 0; f < 1; f += 0.1F)\n                n++;\n        return n;\n}\n",
    "by way of a function": "static void fill(int *out, int n)\n{\n        if (n < 3)\n                *out = n;\n}\n\n"
                            "int a(int n)\n{\n        int m;\n\n        fill(&m, n);\n        return n + m;\n}\n",
    "behind a long way": "extern int step(int n);\n\nint a(int n)\n{\n        int *p = &n;\n\n"
                         + "        if (step(n))\n                n = step(3);\n" * 12 + "        if (n == 7)\n                p = NULL;\n"
                         "        return *p;\n}\n",
}
SAID = {"by way of a function": "clang-analyzer-core.UndefinedBinaryOperatorResult", "clang-analyzer-unix.cstring.NullArg": "NonNull",
        "behind a long way": "clang-analyzer-core.NullDereference"}
HEAD = "#include <stdarg.h>\n#include <stdlib.h>\n#include <string.h>\n\n"


@pytest.mark.slow
def test_mistakes_of_each_kind_are_found(tmp_path):
    (tmp_path / "tools").mkdir()
    tool = shutil.copy(SOURCE / "tools" / "lint-tidy", tmp_path / "tools")
    shutil.copy(SOURCE / ".clang-tidy", tmp_path)
    names = {f"{name.replace(' ', '-')}.c": name for name in MISTAKES}
    for file, name in names.items():
        (tmp_path / file).write_text(HEAD + MISTAKES[name], encoding="utf-8")
    (tmp_path / "clean.c").write_text(HEAD + "int a(int n);\n\nint a(int n)\n{\n        return n;\n}\n", encoding="utf-8")
    commands = [{"directory": str(tmp_path), "file": file, "command": f"cc -o x.o -c {file}"} for file in (*names, "clean.c")]
    (tmp_path / "compile_commands.json").write_text(json.dumps(commands), encoding="utf-8")
    done = subprocess.run([tool, tmp_path], capture_output=True, text=True, check=False,
                          env={"PATH": "/usr/bin:/bin", "RECONCILED_CACHE": str(tmp_path / "cache")})
    missed = [name for file, name in names.items()
              if not any(f"{file}:" in line and SAID.get(name, name) in line for line in done.stdout.splitlines())]
    assert done.returncode == 1 and not missed, done.stdout + done.stderr
    assert "clean.c" not in done.stdout
