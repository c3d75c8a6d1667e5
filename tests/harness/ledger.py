# SPDX-License-Identifier: Apache-2.0
"""Reads an operator's ledger; and changes its rows while it does not run, so that they are still rows that it takes."""
import contextlib
import ctypes
import sqlite3

INTEGER, TEXT = 1, 3  # SQLite's types
MASK = 2**64 - 1

# Each table with its name in `sums`, and its columns as the program lists them (lib/ledger/database/columns.h).
TABLES = {
    "ledger": ("row", "watch key uid fingerprint failed_fingerprint attempts next_realtime next_reason last_error first_error"
                      " handled_realtime permanent deleting throttled crashes crashed_realtime quarantined_until settling"
                      " written_realtime written_version known_version unselected related refused kinds scheduled_realtime served_realtime begun"
                      " previous_version"
                      " ran_realtime ran_usec ran_action ran_reason ran_result ran_version"),
    "scope": ("scope", "watch scope cluster"),
    "paused": ("pause", "watch since_realtime user reason"),
    "doubtful": ("doubt", "watch key uid unread crashes crashed_realtime until_realtime error"),
}


def _row_sum(*values):
    """As lib/ledger/database/sums.c computes it."""
    xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits_withSeed
    xxh3.restype, xxh3.argtypes = ctypes.c_uint64, [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64]
    total = len(values)
    for value in values:
        number = isinstance(value, int)
        data = (value & MASK).to_bytes(8, "little") if number else value.encode()
        total = xxh3(data, len(data), (total + (INTEGER if number else TEXT)) & MASK)
    return total - 2**64 if total >= 2**63 else total


def read(operator, query):
    """All rows of it, also while the operator runs."""
    ledger = f"file:{operator.state_directory}/ledger.sqlite?mode=ro"
    with contextlib.closing(sqlite3.connect(ledger, uri=True)) as database:
        return database.execute(query).fetchall()


@contextlib.contextmanager
def edit(operator):
    """The open database; what is changed in `with` is summed anew and committed."""
    with contextlib.closing(sqlite3.connect(operator.state_directory / "ledger.sqlite")) as database, database:
        database.create_function("row_sum", -1, _row_sum)
        yield database
        for table, (prefix, order) in TABLES.items():
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            assert sorted(order.split() + ["checksum"]) == sorted(columns), f"{table} has other columns now"
            database.execute(f"UPDATE {table} SET checksum = row_sum({', '.join(order.split())})")
            sums = [row[0] for row in database.execute(f"SELECT checksum FROM {table}")]
            total = sum(sums) & MASK
            database.execute(f"UPDATE sums SET ({prefix}_count, {prefix}_total) = (?, ?)",
                             (len(sums), total - 2**64 if total >= 2**63 else total))
