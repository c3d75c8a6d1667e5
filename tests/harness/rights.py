# SPDX-License-Identifier: Apache-2.0
"""Lists of rights (POSIX ACLs), in the kernel's form."""
import os
import struct

import pytest

USER, OTHER_GROUP = 0x02, 0x08
NONE = 0xffffffff


def write_list(path, tag, number, rights, kind="access"):
    """Owner and others as the mode says, the group nothing, and one more entry. `kind`: "default" is for what is made in a folder."""
    mode = os.stat(path).st_mode
    entries = [(0x01, mode >> 6 & 7, NONE), (0x04, 0, NONE), (tag, rights, number), (0x10, 7, NONE), (0x20, mode & 7, NONE)]
    value = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in sorted(entries))
    try:
        os.setxattr(path, f"system.posix_acl_{kind}", value)
    except OSError as error:
        pytest.skip(f"no lists of rights here: {error}")
