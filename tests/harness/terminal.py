# SPDX-License-Identifier: Apache-2.0
"""A program on a terminal of its own."""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import threading

from .process import clean_environment
from .wait import scaled, wait_until


class Terminal:
    """Terminal(user, command): text is all that it has written; screen() is what one sees after the last time that the
    picture was drawn anew; press("q"); resize(rows, columns)."""

    def __init__(self, user, command, rows=24, columns=100, environment=None, cwd="/"):
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        self._slave = slave
        self._text = b""
        self.popen = subprocess.Popen(user.command(command), stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
                                      start_new_session=True,
                                      env=clean_environment(user, {"TERM": "xterm", **(environment or {})}))
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self):
        while True:
            try:
                data = os.read(self.master, 65536)
            except OSError:
                return
            self._text += data

    @property
    def text(self):
        return self._text.decode(errors="replace")

    @property
    def plain(self):
        """What it has written, without colours and movements."""
        return self._plain(self.text)

    @staticmethod
    def _plain(text):
        return re.sub(r".\x08", "", re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", text))

    def screen(self):
        """The lines of the last whole picture, without colours."""
        pictures = self.text.split("\x1b[H")
        whole = [picture for picture in pictures if "\x1b[J" in picture]
        return self._plain(whole[-1]).splitlines() if whole else []

    def wait_screen(self, *parts):
        def seen():
            screen = "\n".join(self.screen())
            return all(part in screen for part in parts)

        wait_until(seen, lambda: f"{parts} on the screen:\n" + "\n".join(self.screen()))

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self.master, keys.encode())

    def wait_exit(self):
        return self.popen.wait(timeout=scaled(20))

    def is_as_before(self):
        """Whether the terminal's settings are what they were."""
        return termios.tcgetattr(self._slave) == self.before

    def close(self):
        if self.popen.poll() is None:
            self.popen.kill()
            self.popen.wait()
        os.close(self._slave)
        # The descriptor goes when nobody reads from it any more: its number may be that of another file at once.
        self._thread.join(scaled(20))
        assert not self._thread.is_alive(), "somebody else has the terminal open"
        os.close(self.master)
