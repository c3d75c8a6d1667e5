/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Questions about objects that are not where they should be, until each is answered; on disk, because there
 * may be as many as objects. 0 or a negative errno; writes go into the writer's transaction.
 */
#include <stdbool.h>
#include <stdint.h>

struct store;

struct store_question {
        char *key, *uid;
        bool owed; /* from the ledger: the store may never have known the object */
};
int store_question_add(struct store *store, const char *key, const char *uid, bool owed);
int store_question_remove(struct store *store, const char *key, const char *uid);
/* The first one behind `after` (may be NULL). -ENOENT: none. What is found is the
 * caller's (store_question_done). */
int store_question_next(struct store *store, const struct store_question *after, struct store_question *ret);
uint64_t store_question_count(const struct store *store);
void store_question_done(struct store_question *question);
