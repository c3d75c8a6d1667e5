/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The last runs of objects, for `reconciledctl history` and `explain`: those that wrote to children, that failed, or
 * that succeeded after failures. Other runs are many, and tell nothing; the row of the object has the last
 * of them.
 */
#include "base/text.h"
#include "controller/controller.h"

struct supervisor;

/* Keeps how a run has ended, if that is worth it. */
int history_note(struct supervisor *supervisor, const struct assignment *given,
                 const struct message_done *done);

/* The last runs of the key, or of all keys of the watch (""): {"runs": [...]}. -ENOMEM, or the ledger's errno. */
int history_write(const struct watch *watch, const char *key, struct text *json);
/* Members of a run: endedAt, took, action, reason, result, resourceVersion. */
void history_write_run(const struct ledger_run *run, struct text *json);
/* Members of the run of this UID that ended at this time, if the history has it: attempt, error, writes,
 * writesLeftOut. */
int history_write_more(const struct supervisor *supervisor, const char *watch, const char *key,
                       const char *uid, uint64_t ended_realtime, struct text *json);
/* Members of an object whose run waits for children: waitsFor, the words of when that began ("": they are unknown), and
 * waitsUntil. For any other object, no member. */
void history_write_wait(const struct supervisor *supervisor, const char *watch, const struct ledger_row *row,
                        struct text *json);
