# SPDX-License-Identifier: Apache-2.0
"""One test's folder and everything it started. Nothing of it survives the test."""
import os
import pathlib
import shutil
import tempfile

from .process import User, find_processes
from .setup import stage
from .wait import ENDED, Timeout, wait_until


class Sandbox:
    """folder      0755, outside the source tree and outside pytest's own temporary folders, which are closed to others
    programs    {name: path} of the programs under test
    """

    def __init__(self, programs, name="test"):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=f"reconciled-test-{name[:34]}-"))
        self.folder.chmod(0o755)
        self.programs = programs
        self._part = []
        self._memory = []
        self._user = []
        self._unused = []
        self._number = 0

    def user(self):
        """A user of its own for something that is to be started."""
        if self._unused:
            return self._unused.pop()
        user = User()
        self._user.append(user)
        return user

    def give_back(self, user):
        """Nothing runs as this user any more: another one may have it. There are a thousand of them in a session."""
        self._unused.append(user)

    def subfolder(self, name, user=None, mode=0o755):
        """A new folder, whose name is made unique."""
        self._number += 1
        path = self.folder / f"{self._number}-{name}"
        path.mkdir()
        path.chmod(mode)
        if user:
            user.give(path)
        return path

    def memory(self):
        """A new folder that is no more than memory, as /run is; on a machine without one, an ordinary folder."""
        if not os.path.ismount("/dev/shm"):
            return self.subfolder("memory")
        path = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-", dir="/dev/shm"))
        path.chmod(0o755)
        self._memory.append(path)
        return path

    def register(self, part):
        """part.close() will be called at the end, last registered first; it raises when something is wrong."""
        self._part.append(part)
        return part

    def forget(self, part):
        """It is closed, and was one of very many."""
        self._part.remove(part)

    def program(self, name):
        if name not in self.programs:
            raise AssertionError(f"the program {name} is not built; run meson compile, or ./check")
        return self.programs[name]

    def close(self, keep=False):
        """Ends everything. Raises AssertionError that tells of all that was not as it must be."""
        trouble = []
        for part in reversed(self._part):
            try:
                part.close()
            except Exception as error:  # every part must get its turn
                trouble.append(f"{part}: {error}")
        trouble += self._end_survivors()
        if keep or os.environ.get("RECONCILED_KEEP"):
            print(f"kept: {self.folder}")
        else:
            for folder in [self.folder, *self._memory]:
                shutil.rmtree(folder, ignore_errors=True)
        if trouble:
            raise AssertionError("\n".join(trouble))

    def _survivors(self):
        return find_processes(lambda process: not process.zombie and any(user.owns(process) for user in self._user),
                              uids={user.uid for user in self._user})

    def _end_survivors(self):
        try:
            wait_until(lambda: not self._survivors(), "the test's processes to end", ENDED)
            return []
        except Timeout:
            pass
        found = self._survivors()
        for process in found:
            try:
                process.kill()
            except ProcessLookupError:
                pass
        return [f"still alive after the test (killed now): {process!r}" for process in found]


def stage_programs():
    """The programs under test, copied to where every user can run them: (folder, {name: path})."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="reconciled-test-programs-"))
    folder.chmod(0o755)
    return folder, stage(folder)
