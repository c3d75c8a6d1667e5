# SPDX-License-Identifier: Apache-2.0
"""What became of each fault, kept in a file, and the table of all."""
import collections
import threading

from .driver import NOT_MET, PROGRAMS, Fault

BROKEN = "BROKEN"
COLUMNS = {"worked and stopped": lambda how: how == "clean", "ended with 70": lambda how: how == "exit 70",
           "with 69 or 77": lambda how: how in ("exit 69", "exit 77"), "with 74": lambda how: how == "exit 74",
           "said so and went on": lambda how: how.startswith("stuck"), "not survived": lambda how: how.startswith(BROKEN)}


class Outcomes:
    """A line a fault: `PROGRAM CALL N MODE: how it ended`; the last one of a fault counts, and further lines of a
    description begin with a blank."""

    def __init__(self, path=None):
        self.ended_early = False
        self._how = {}
        self._lock = threading.Lock()
        self._file = open(path, "a+", encoding="utf-8") if path else None
        if self._file:
            self._file.seek(0)
            for line in self._file:
                if not line.startswith(" "):
                    fault, how = line.rstrip("\n").split(": ", 1)
                    program, call, nth, mode = fault.split()
                    self._how[Fault(program, call, int(nth), mode)] = how

    def add(self, fault, how):
        line = f"{fault}: {how}".replace("\n", "\n ")
        with self._lock:
            self._how[fault] = how
            print(line, flush=True)
            if self._file:
                self._file.write(line + "\n")
                self._file.flush()

    def known(self, fault):
        return fault in self._how and not self._how[fault].startswith(BROKEN)

    def not_met(self, fault):
        return self._how.get(fault) == NOT_MET

    def broken(self):
        return [fault for fault, how in self._how.items() if how.startswith(BROKEN)]

    def table(self):
        lines = ["| program | faults met | of them memory | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 3) + "|"]
        for program in PROGRAMS:
            met = {fault: how for fault, how in self._how.items() if fault.program == program and how != NOT_MET}
            ends = collections.Counter(next(column for column, fits in COLUMNS.items() if fits(how)) for how in met.values())
            memory = sum(fault.call == "memory" for fault in met)
            lines.append(f"| {program} | {len(met)} | {memory} | " + " | ".join(str(ends[c] or "") for c in COLUMNS) + " |")
        return "\n".join(lines)
