/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which children the request shows to the handler, and how: a child is written as it was shown, or not at all. What the
 * store of an owned kind lacks although the object's list names it comes from the API server (dependents/present.c).
 */
#include "object/identity.h"
#include "store/record.h"

struct shown_child {
        const struct record_watch *config; /* of the owned kind; borrowed */
        char *key;
        char uid[IDENTITY_UID_MAX + 1], version[IDENTITY_VERSION_MAX + 1];
        uint64_t essence;
        char *json; /* not from the store: the request takes it from here, and "" is not there; else NULL */
};

/* The end of the message of a run that has written nothing for that reason; by it the next run knows that the
 * store is behind. */
#define SHOWN_AGAIN "the handler runs again and is shown it"

struct shown {
        struct shown_child **item;
        size_t count, allocated;
        size_t bytes; /* of the kept texts, in all */
        void *index;  /* tsearch */
};

/* json: as the store, or the server, has it. is_kept: a copy is kept for the request. 0; -EBADMSG: it is no object. */
int shown_add(struct shown *shown, const struct record_watch *config, const char *json, size_t size,
              bool is_kept);
/* Notes that the child does not exist, whatever the store says. */
int shown_add_gone(struct shown *shown, const struct record_watch *config, const char *key);
/* Whether the child was asked for by itself, so that the store is not believed. */
bool shown_is_known(const struct shown *shown, const struct record_watch *config, const char *key);
/* Forgets those from stores, as a request is built again. */
void shown_forget_stored(struct shown *shown);
void shown_done(struct shown *shown);
/* NULL: it was not shown. key: "namespace/name" or "name". */
const struct shown_child *shown_find(const struct shown *shown, const struct record_watch *config,
                                     const char *key);
/* Whether it still is what was shown, as far as a handler can have meant it: its status and its version may differ. */
bool shown_is_same(const struct shown_child *child, const char *json, size_t size);
