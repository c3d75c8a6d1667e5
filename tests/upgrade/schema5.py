# SPDX-License-Identifier: Apache-2.0
"""Moves the times in a ledger of schema 5 (commit 8412dad), so that it is as if the operator had ended just now, or so long ago. What
the programs of that release wrote beside each row, its sum, is computed anew as they did it; later schemas never change this file."""
import contextlib
import ctypes
import re
import sqlite3

INTEGER, TEXT = 1, 3
MASK = 2**64 - 1
ROW = ("watch key uid fingerprint failed_fingerprint attempts next_realtime next_reason last_error first_error handled_realtime"
       " permanent deleting throttled crashes crashed_realtime quarantined_until settling written_realtime written_version"
       " known_version unselected related ran_realtime ran_usec ran_action ran_reason ran_result ran_version").split()
TIMES = {"ledger": [name for name in ROW if name.endswith("_realtime")] + ["quarantined_until"], "paused": ["since_realtime"],
         "doubtful": ["crashed_realtime", "until_realtime"]}
ORDER = {"ledger": ROW, "paused": "watch since_realtime user reason".split(),
         "doubtful": "watch key uid unread crashes crashed_realtime until_realtime error".split()}
PREFIX = {"ledger": "row", "paused": "pause", "doubtful": "doubt"}


def _signed(number):
    return number - 2**64 if number >= 2**63 else number


def _row_sum():
    xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    xxh3.restype, xxh3.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]

    def row_sum(*values):
        total = len(values)
        for value in values:
            number = isinstance(value, int)
            data = (value & MASK).to_bytes(8, "little") if number else value.encode()
            total = xxh3(data, len(data), (total + (INTEGER if number else TEXT)) & MASK)
        return _signed(total)

    return row_sum


def move_times(path, usec):
    def settling(text):
        return re.sub(r'"deadline":"(\d+)"', lambda found: f'"deadline":"{int(found[1]) + usec}"', text)

    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.create_function("row_sum", -1, _row_sum())
        database.create_function("moved", 1, settling)
        database.execute("UPDATE ledger SET settling = moved(settling) WHERE settling <> ''")
        for table, names in TIMES.items():
            for name in names:
                database.execute(f"UPDATE {table} SET {name} = {name} + ? WHERE {name} > 0", [usec])
            database.execute(f"UPDATE {table} SET checksum = row_sum({', '.join(ORDER[table])})")
            total = sum(row[0] for row in database.execute(f"SELECT checksum FROM {table}"))
            database.execute(f"UPDATE sums SET {PREFIX[table]}_total = ?", [_signed(total & MASK)])
