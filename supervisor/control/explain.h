/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Why an object did or did not run: all that is known here about one key, for `reconciledctl explain`, which
 * draws the conclusion. The content of the store is unknown here: the answer says where it is.
 */
#include "base/text.h"
#include "controller/controller.h"

struct supervisor;

/* Negative: the ledger cannot be read; -ENOMEM. */
int explain_write(const struct watch *watch, const char *key, struct text *json);
/* Writes where `previous` of the watch is kept, and which versions of the objects of this key count (key "":
 * none is asked for). */
int explain_write_previous(const struct watch *watch, const char *key, struct text *json);
int explain_write_keys(const struct watch *watch, const char *begun, struct text *json);
/* Keeps how a run has ended. */
void explain_ended(struct supervisor *supervisor, const struct assignment *given,
                   const struct message_done *done);
