-- SPDX-License-Identifier: Apache-2.0
-- A ledger of schema 2, with rows in each of its tables.
CREATE TABLE ledger (  watch TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL,  fingerprint INTEGER NOT NULL DEFAULT 0, failed_fingerprint INTEGER NOT NULL DEFAULT 0,  attempts INTEGER NOT NULL DEFAULT 0,  next_realtime INTEGER NOT NULL DEFAULT 0, next_reason TEXT NOT NULL DEFAULT '',  last_error TEXT NOT NULL DEFAULT '', first_error TEXT NOT NULL DEFAULT '',  handled_realtime INTEGER NOT NULL DEFAULT 0,  permanent INTEGER NOT NULL DEFAULT 0, deleting INTEGER NOT NULL DEFAULT 0, throttled INTEGER NOT NULL DEFAULT 0, crashes INTEGER NOT NULL DEFAULT 0, crashed_realtime INTEGER NOT NULL DEFAULT 0, quarantined_until INTEGER NOT NULL DEFAULT 0, settling TEXT NOT NULL DEFAULT '', written_realtime INTEGER NOT NULL DEFAULT 0, written_version TEXT NOT NULL DEFAULT '', known_version INTEGER NOT NULL DEFAULT 0, unselected INTEGER NOT NULL DEFAULT 0,  PRIMARY KEY (watch, key, uid)) WITHOUT ROWID;
CREATE INDEX ledger_due ON ledger (next_realtime) WHERE next_realtime > 0;
CREATE TABLE scope (  watch TEXT NOT NULL PRIMARY KEY, scope TEXT NOT NULL, cluster TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX ledger_quarantine ON ledger (watch, key) WHERE quarantined_until > 0;
CREATE TABLE doubtful (  watch TEXT NOT NULL, key TEXT NOT NULL, uid TEXT NOT NULL, unread INTEGER NOT NULL,  crashes INTEGER NOT NULL, crashed_realtime INTEGER NOT NULL, until_realtime INTEGER NOT NULL,  error TEXT NOT NULL, PRIMARY KEY (watch, key, uid)) WITHOUT ROWID;
INSERT INTO ledger VALUES ('w', 'd/a', 'uid-a', -1, 104, 105, 106, 'next_reason of a, it''s', 'last_error of a, it''s', 'first_error of a, it''s', 110, 1, 0, 113, 114, 115, 116, 'settling of a, it''s', 118, 'written_version of a, it''s', 120, 1);
INSERT INTO ledger VALUES ('w', 'd/b', 'uid-b', -2, 204, 205, 206, 'next_reason of b, it''s', 'last_error of b, it''s', 'first_error of b, it''s', 210, 0, 1, 213, 214, 215, 216, 'settling of b, it''s', 218, 'written_version of b, it''s', 220, 0);
INSERT INTO scope VALUES ('w', 'scope of a, it''s', 'cluster of a, it''s');
INSERT INTO doubtful VALUES ('w', 'd/a', 'uid-a', 1, 104, 105, 4102444800000000, 'error of a, it''s');
INSERT INTO doubtful VALUES ('w', 'd/b', 'uid-b', 0, 204, 205, 4102444800000001, 'error of b, it''s');
PRAGMA user_version = 2;
