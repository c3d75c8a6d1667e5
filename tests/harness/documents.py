# SPDX-License-Identifier: Apache-2.0
"""The examples of the documentation: fenced and indented blocks of Markdown, literal blocks of the manual pages, and the
pages' one-line displays. An example is named by its file and its first line;
a further one that begins alike has " (again)" behind that."""
import collections
import dataclasses
import re

from .setup import SOURCE

DOCUMENTS = (SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs").glob("**/*.md")),
             *sorted((SOURCE / "man").glob("*.[0-9]")))

# What roff makes of a character that a reader copies must be what a program reads: these have to be written otherwise.
ROFF_UNSAFE = {"'": r"\(aq", "`": r"\(ga", "^": r"\(ha", "~": r"\(ti", "-": r"\-"}
ROFF_ESCAPES = {r"\(dq": '"', r"\(aq": "'", r"\(ga": "`", r"\(ha": "^", r"\(ti": "~", r"\-": "-", r"\e": "\\", r"\&": ""}
LITERAL = {".Bd": ".Ed", ".EX": ".EE", ".nf": ".fi"}


@dataclasses.dataclass(frozen=True)
class Example:
    document: str
    line: int  # of its first line
    language: str  # what a fence says, or ""
    text: str
    heading: str = ""  # of its section, in Markdown
    above: str = ""  # the line of text above it, in Markdown; "" where another example is between

    @property
    def beginning(self):
        first = next((line for line in self.text.splitlines() if line.strip()), "")
        return f"{self.document}: {re.sub(r' {2,}.*$', '', first.strip())[:70].rstrip()}"

    def commands(self):
        """Its lines without comments behind them and without empty ones."""
        lines = (re.sub(r"\s+# .*$|^#.*$", "", line).strip() for line in self.text.splitlines())
        return [line for line in lines if line]


def unescape(line, where):
    def replace(match):
        found = match.group(0)
        if found in ROFF_UNSAFE:
            raise AssertionError(f"{where}: {found} is not shown as it is; write {ROFF_UNSAFE[found]}")
        if found not in ROFF_ESCAPES:
            raise AssertionError(f"{where}: {found} is not known in an example")
        return ROFF_ESCAPES[found]

    # Only code has to be exact: a line that is a sentence of a page never comes here.
    return re.sub(r"\\f[BIR]|\\\(..|\\.|['`^~-]", lambda match: "" if match.group(0).startswith(r"\f") else replace(match), line)


def of_manual(name, lines):
    start = end = None
    for number, line in enumerate(lines, 1):
        word = line.split(" ")[0]
        if end and word == end:
            text = "\n".join(unescape(inner, f"{name}:{start + i}") for i, inner in enumerate(lines[start - 1:number - 1]))
            yield Example(name, start, "", text + "\n")
            end = None
        elif not end and word in LITERAL:
            start, end = number + 1, LITERAL[word]
        elif not end and word == ".Dl":
            yield Example(name, number, "", unescape(line[4:], f"{name}:{number}") + "\n")
    assert not end, f"{name}:{start}: the example does not end"


def of_markdown(name, lines):
    fence, start, block, before, heading, above = None, 0, [], "", "", ""
    for number, line in enumerate([*lines, ""], 1):
        if fence is not None:
            if line.strip() == "```":
                yield Example(name, fence[0], fence[1], "\n".join(block) + "\n", heading, above)
                fence, block, above = None, [], ""
            else:
                block.append(line)
        elif line.startswith("    ") and (block or not before.strip() or before.startswith("#")):
            start = start if block else number
            block.append(line[4:])
        elif block and not line.strip() and number <= len(lines):
            block.append("")
        else:
            if block:
                while not block[-1].strip():
                    block.pop()
                yield Example(name, start, "", "\n".join(block) + "\n", heading, above)
                block, above = [], ""
            if line.startswith("```"):
                fence = (number + 1, line[3:].strip())
            elif line.strip():
                above, heading = line, line.lstrip("# ") if line.startswith("#") else heading
        before = line
    assert fence is None, f"{name}:{fence and fence[0]}: the example does not end"


@dataclasses.dataclass(frozen=True)
class Key:
    """An entry of reconciled.yaml(5): .It Ic NAME [, Ic NAME ...] Pq TYPE; default VALUE|required"""
    line: int
    names: tuple
    type: str
    default: str  # "required" when there must be one
    example: str  # its .Dl


def keys_of_manual(path=SOURCE / "man" / "reconciled.yaml.5"):
    """Its entries in order; an example belongs to the entry above it."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        entry = re.fullmatch(r"\.It (Ic [\w.\[\]]+(?: , Ic [\w.\[\]]+)*) Pq ([^;]+); (?:default )?(.+)", line)
        if entry:
            found.append(Key(number, tuple(re.findall(r"Ic (\S+)", entry.group(1))), entry.group(2), entry.group(3), ""))
        elif line.startswith(".Dl "):
            found[-1] = dataclasses.replace(found[-1], example=unescape(line[4:], f"{path.name}:{number}"))
    return found


def examples():
    """All of them, by name."""
    found, seen = {}, collections.Counter()
    for path in DOCUMENTS:
        name = str(path.relative_to(SOURCE))
        lines = path.read_text(encoding="utf-8").splitlines()
        for example in (of_markdown if path.suffix == ".md" else of_manual)(name, lines):
            beginning = example.beginning
            found[beginning + " (again)" * seen[beginning]] = example
            seen[beginning] += 1
    return found
