# SPDX-License-Identifier: Apache-2.0
"""What a reader of a document does with it: files are saved, and commands are typed one after the other."""
import os
import pathlib
import re
import select
import subprocess
import time

from .documents import of_markdown
from .process import clean_environment
from .setup import SOURCE
from .wait import scaled, wait_until

# Commands that may be asked again until what they show is what the document shows.
LOOKS = ("kubectl get ", "reconciledctl explain ", "reconciledctl status", "ls ")


class Document:
    """The examples of a document, in order; `named` are the files that it tells to save, by name."""

    def __init__(self, name):
        self.examples = list(of_markdown(name, (SOURCE / name).read_text(encoding="utf-8").splitlines()))
        self.named = self.files_of(self.examples)

    @staticmethod
    def files_of(found):
        """{name: text} of the examples below a sentence that ends with a file's name: Save it as `handler.py`:"""
        named = ((re.search(r"`(?:[\w.-]*/)*([\w.-]+)`:$", example.above), example) for example in found)
        return {match.group(1): example.text for match, example in named if match}

    def section(self, heading):
        found = [example for example in self.examples if example.heading == heading]
        assert found, f"there is no section {heading!r}, or it has no example"
        return found


def shows(output, expected):
    """The first line of `expected` that the output lacks behind those before it, or None. Durations, and
    numbers of versions, are others each time; a line may go on behind what is shown."""
    rest = output.splitlines()
    for line in filter(str.strip, expected.splitlines()):
        pattern = re.escape(line.rstrip())
        pattern = re.sub(r"\b\d+(?:ms|h|m|s)\b", r"[0-9hms]+", pattern)
        pattern = re.sub(r"resourceVersion\\ \d+", r"resourceVersion\\ [0-9]+", pattern)
        pattern = re.sub(r"(?:\\ ){2,}", r" +", pattern)
        place = next((number for number, there in enumerate(rest) if re.match(pattern, there)), None)
        if place is None:
            return line
        rest = rest[place + 1:]
    return None


class Session:
    def __init__(self, sandbox, folder):
        self.folder = pathlib.Path(folder)
        self.log = self.folder / "session.log"
        self.number = 0
        with self.log.open("ab") as log:
            self.bash = subprocess.Popen(["bash", "--noprofile", "--norc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                         env=clean_environment(sandbox.user(), {"HOME": str(self.folder)}), cwd=self.folder)

    def type(self, command, expect=0):
        """Returns what it wrote to standard output; its exit status must be the expected one."""
        self.number += 1
        mark = f"--- {self.number} "
        self.bash.stdin.write(f"{command}\nresult=$?; echo; echo \"{mark}$result\"\n".encode())
        self.bash.stdin.flush()
        said, end = "", time.monotonic() + scaled(60)
        while not (found := re.search(rf"^{mark}(\d+)\n", said, re.M)):
            ready = select.select([self.bash.stdout], [], [], max(0, end - time.monotonic()))[0]
            chunk = os.read(self.bash.stdout.fileno(), 65536).decode(errors="replace") if ready else ""
            assert chunk, f"{command} does not end: {said}\n{self.errors()}"
            said += chunk
        said = said[:found.start()]
        assert int(found.group(1)) == expect, f"{command}: exit {found.group(1)}: {said}\n{self.errors()}"
        return said

    def errors(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def follow(self, found, replace=()):
        """Types the commands of these examples, and compares what they show with the example behind them."""
        for example, following in zip(found, [*found[1:], None]):
            if example.language != "sh":
                continue
            expected = following.text if following and following.language == "text" else ""
            commands = example.commands()
            for old, new in replace:
                commands = [command.replace(old, new) for command in commands]
            if expected and all(command.startswith(LOOKS) for command in commands):
                self.look(commands, expected)
            else:
                said = "".join(self.type(command) for command in commands)
                assert shows(said, expected) is None, f"{commands} did not show {shows(said, expected)!r} but {said}\n{self.errors()}"

    def look(self, commands, expected):
        last = ""

        def as_shown():
            nonlocal last
            last = "".join(self.type(command) for command in commands)
            return shows(last, expected) is None

        wait_until(as_shown, lambda: f"{commands} to show {shows(last, expected)!r}, not {last}\n{self.errors()}")

    def close(self):
        """What it has started in the background must have ended."""
        left = self.type("jobs -rp").split()
        if left:
            self.type(f"kill {' '.join(left)}; wait {' '.join(left)}; true")
        self.bash.stdin.close()
        self.bash.wait(scaled(60))
        self.bash.stdout.close()
        assert not left, f"still running: {left}\n{self.errors()}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            self.close()
        except Exception:
            self.bash.kill()
            if kind is None:
                raise
