# SPDX-License-Identifier: Apache-2.0
"""What programs write on stderr, read while they write it."""
import json
import re
import threading
import time

_SANITIZER = re.compile(r"ERROR: (Address|Leak|Thread|UndefinedBehavior)Sanitizer|LeakSanitizer has encountered"
                        r"|SUMMARY: \w+Sanitizer|runtime error: ")


def sanitizer_report(text, crashed_on_purpose=()):
    """The part of `text` from a sanitizer's first complaint on, or ''. What it says about a process to which the test
    itself has sent SIGSEGV or the like is no complaint."""
    for pid in crashed_on_purpose:
        text = re.sub(rf"=={pid}==ERROR: AddressSanitizer: .*?(=={pid}==ABORTING|\Z)", "", text, flags=re.S)
    match = _SANITIZER.search(text)
    return text[match.start():match.start() + 8000] if match else ""


class Output:
    """Reads a pipe to its end in a thread; keeps every line, with the time it came."""

    def __init__(self, stream, copy):
        self._line = []
        self._lock = threading.Lock()
        self._stream = stream
        self._copy = copy
        self._reading = threading.Event()
        self._reading.set()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        with open(self._copy, "ab") as copy:
            for line in self._stream:
                self._reading.wait()
                copy.write(line)
                copy.flush()
                with self._lock:
                    self._line.append((time.monotonic(), line.decode(errors="replace").rstrip("\n")))

    def pause(self):
        """From now on nobody reads."""
        self._reading.clear()

    def resume(self):
        self._reading.set()

    def join(self, timeout):
        """Waits for the end of the pipe; False when somebody still holds it."""
        self._thread.join(timeout)
        return not self._thread.is_alive()

    def lines(self):
        with self._lock:
            return [text for _, text in self._line]

    def text(self):
        return "\n".join(self.lines())

    def records(self):
        """The lines that are JSON objects, parsed, with the time of arrival as `_received`."""
        found = []
        with self._lock:
            lines = list(self._line)
        for received, text in lines:
            if text.startswith("{"):
                try:
                    found.append({**json.loads(text), "_received": received})
                except json.JSONDecodeError:
                    pass
        return found
