/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one table of the columns of a row. The structs, the statements, the checksum, and all that reads,
 * writes, copies, compares or frees a row derive from it; there is no second list to keep in step. A new
 * column goes to the end of its table: the checksum is made of the values in this order. Columns that are times hold microseconds of the ledger's clock.
 *
 *   X(kind, index, number, column, field)
 *   kind    NUMBER  uint64_t; 0 until something is known
 *           FLAG    bool; false until something is known
 *           TEXT    char *; "" until something is known; LEDGER_TEXT_MAX bytes are kept
 *           LONG    as TEXT, of any length
 *           REASON  enum run_reason; RUN_REASON_NONE until something is known. The file has the name,
 *                   because people read the file. An unknown name is read as RUN_RETRY
 *   index   INDEXED an index of the database has it, so a change of it costs more; PLAIN
 *   number  its place in the row, and of its parameter in statements; 1, 2, 3 are watch, key, uid
 *   column  its name in the database
 *   field   its name in struct ledger_row or struct ledger_run
 */

/* The format of the state folder: raise it with every change of what lies there (the tables below, object
 * stores, `under-way`, `finalizers`). A folder of another format is refused. */
#define LEDGER_SCHEMA 12

#define LEDGER_TEXT_MAX 2048 /* bytes that are kept of a column that is TEXT */

#define LEDGER_STATE(X)                                                                                     \
        /* fingerprint of the content that was handled last; 0 = none yet */                                \
        X(NUMBER, PLAIN, 4, fingerprint, fingerprint)                                                       \
        /* fingerprint of the last failed attempt: the same content is no change; 0 = none */               \
        X(NUMBER, PLAIN, 5, failed_fingerprint, failed_fingerprint)                                         \
        /* failures since the last success */                                                               \
        X(NUMBER, INDEXED, 6, attempts, attempts)                                                           \
        /* when the object is due by itself (backoff, requeueAfter, resync); 0 = never */                   \
        X(NUMBER, INDEXED, 7, next_realtime, next_realtime)                                                 \
        /* why it is due then */                                                                            \
        X(REASON, PLAIN, 8, next_reason, next_reason)                                                       \
        /* of the last failure; "" */                                                                       \
        X(TEXT, PLAIN, 9, last_error, last_error)                                                           \
        /* the first error since the last success: the root cause */                                        \
        X(TEXT, PLAIN, 10, first_error, first_error)                                                        \
        /* time of the last success; 0 */                                                                   \
        X(NUMBER, PLAIN, 11, handled_realtime, handled_realtime)                                            \
        /* failed for good with this content: the object waits for a change */                              \
        X(FLAG, INDEXED, 12, permanent, permanent)                                                          \
        /* the deletion is announced and not handled yet */                                                 \
        X(FLAG, PLAIN, 13, deleting, deleting)                                                              \
        /* unrecoverable answers in a row to our own writes */                                              \
        X(NUMBER, INDEXED, 14, throttled, throttled)                                                        \
        /* crashes of the operator that are blamed on the object, since the last success */                 \
        X(NUMBER, PLAIN, 15, crashes, crashes)                                                              \
        /* time of the last crash in which the object was at least under way; 0 */                          \
        X(NUMBER, INDEXED, 16, crashed_realtime, crashed_realtime)                                          \
        /* end of the quarantine; 0: none */                                                                \
        X(NUMBER, INDEXED, 17, quarantined_until, quarantined_until)                                        \
        /* state of an unfinished run, to go on with (RESULT_SETTLING); "" */                               \
        X(LONG, PLAIN, 18, settling, settling)                                                              \
        /* when we last wrote to the object, and its resourceVersion after that; 0, "" */                   \
        X(NUMBER, PLAIN, 19, written_realtime, written_realtime)                                            \
        X(TEXT, PLAIN, 20, written_version, written_version)                                                \
        /* up to this resourceVersion the object is what was read, and our own changes; 0 */                \
        X(NUMBER, PLAIN, 21, known_version, known_version)                                                  \
        /* the object exists, but the watch does not select it any more; not handled yet */                 \
        X(FLAG, PLAIN, 22, unselected, unselected)                                                          \
        /* fingerprint of the related objects at the last success; 0 */                                     \
        X(NUMBER, PLAIN, 23, related, related)                                                              \
        /* attempts that failed for no fault of the object: of the server, the network, our rights */       \
        X(NUMBER, PLAIN, 24, refused, refused)                                                              \
        /* kinds and namespaces of its dependents, and our versions of them (object/child-kinds.h); "" */   \
        X(LONG, PLAIN, 25, kinds, kinds)                                                                    \
        /* of a schedule: the time (CLOCK_REALTIME) that its next run, or the last one, is for; 0 */        \
        X(NUMBER, PLAIN, 26, scheduled_realtime, scheduled_realtime)                                        \
        /* its times up to this one have had their run; 0 */                                                \
        X(NUMBER, PLAIN, 27, served_realtime, served_realtime)                                              \
        /* of a schedule: the run for scheduled_realtime was given to a worker */                           \
        X(FLAG, PLAIN, 28, begun, begun)                                                                    \
        /* resourceVersion of what the handler was given at the last success, if that is kept; "" */        \
        X(TEXT, PLAIN, 29, previous_version, previous_version)

/* How the last run ended: written with the row, and read on request only. */
#define LEDGER_RUN(X)                                                                                       \
        /* when the run ended; 0: none yet */                                                               \
        X(NUMBER, PLAIN, 30, ran_realtime, ended_realtime)                                                  \
        X(NUMBER, PLAIN, 31, ran_usec, duration_usec)                                                       \
        X(TEXT, PLAIN, 32, ran_action, action)                                                              \
        X(TEXT, PLAIN, 33, ran_reason, reason)                                                              \
        X(TEXT, PLAIN, 34, ran_result, result)                                                              \
        /* resourceVersion of the object that was read; "" */                                               \
        X(TEXT, PLAIN, 35, ran_version, version)

/* Runs that did something, or failed, for people; nothing is decided by them. The object may be gone. A run that
 * ends as the one before it did, and wrote nothing, only counts there. As above: X(kind, number, column). */
#define LEDGER_HISTORY(X)                                                                                   \
        X(TEXT, 1, watch)                                                                                   \
        X(TEXT, 2, key)                                                                                     \
        X(TEXT, 3, uid)                                                                                     \
        /* of the last one; CLOCK_REALTIME */                                                               \
        X(NUMBER, 4, ended_realtime)                                                                        \
        X(NUMBER, 5, duration_usec)                                                                         \
        X(NUMBER, 6, attempt)                                                                               \
        /* how many runs this was */                                                                        \
        X(NUMBER, 7, times)                                                                                 \
        X(TEXT, 8, action)                                                                                  \
        X(TEXT, 9, reason)                                                                                  \
        X(TEXT, 10, result)                                                                                 \
        /* resourceVersion of the object that was read; "" */                                               \
        X(TEXT, 11, version)                                                                                \
        /* "" after a success */                                                                            \
        X(TEXT, 12, error)                                                                                  \
        /* what was done to children: a JSON array; "" if nothing was */                                    \
        X(TEXT, 13, writes)                                                                                 \
        /* how many more */                                                                                 \
        X(NUMBER, 14, writes_left_out)

#define HISTORY_OF_KEY 20    /* entries that are kept of one key */
#define HISTORY_IN_ALL 10000 /* and of all keys */

/* Only for columns that are texts. */
#define IF_TEXT_NUMBER(...)
#define IF_TEXT_FLAG(...)
#define IF_TEXT_REASON(...)
#define IF_TEXT_TEXT(...) __VA_ARGS__
#define IF_TEXT_LONG(...) __VA_ARGS__

/* Only for columns that an index has. */
#define IF_INDEXED_PLAIN(...)
#define IF_INDEXED_INDEXED(...) __VA_ARGS__

/* LEDGER_STATE(LEDGER_FIELD): the members of a struct. Flags and reasons stand apart: beside each other they
 * take a word or two. */
#define LEDGER_WIDE_NUMBER(field) uint64_t field;
#define LEDGER_WIDE_FLAG(field)
#define LEDGER_WIDE_TEXT(field) char *field;
#define LEDGER_WIDE_LONG(field) char *field;
#define LEDGER_WIDE_REASON(field)
#define LEDGER_SMALL_NUMBER(field)
#define LEDGER_SMALL_FLAG(field) bool field;
#define LEDGER_SMALL_TEXT(field)
#define LEDGER_SMALL_LONG(field)
#define LEDGER_SMALL_REASON(field)                       enum run_reason field;
#define LEDGER_WIDE(kind, index, number, column, field)  LEDGER_WIDE_##kind(field)
#define LEDGER_SMALL(kind, index, number, column, field) LEDGER_SMALL_##kind(field)

/* The same, borrowed. */
#define LEDGER_LENT_NUMBER(field)                       uint64_t field;
#define LEDGER_LENT_TEXT(field)                         const char *field;
#define LEDGER_LENT(kind, index, number, column, field) LEDGER_LENT_##kind(field)
#define LEDGER_LENT_ENTRY(kind, number, column)         LEDGER_LENT_##kind(column)
