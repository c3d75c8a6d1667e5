/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects in trouble, for `reconciledctl get`: found by the ledger's indexes, a page at a time, because a
 * thousand of them take longer than a turn of the loop may.
 */
#include "base/text.h"

struct listing;
struct supervisor;

/* The objects that are "failing", "waiting" or "quarantined", of a watch and a namespace ("": of all), as a
 * document that grows page by page. -EINVAL: there is no such state; -ENOMEM. */
int listing_new(struct supervisor *supervisor, const char *state, const char *watch, const char *namespace,
                struct listing **ret);
/* Goes on as far as there is time in this turn. 1: the document is complete, 0: call again; negative
 * errno. */
int listing_continue(struct listing *listing);
const struct text *listing_document(const struct listing *listing);
void listing_free(struct listing *listing);
