/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Decides, without asking anybody, what to do with one more Event: the first of its kind is created, the
 * first repeat turns it into a series, later ones are counted here and written when the count has doubled or
 * some minutes have passed. No object gets more than a burst of Events, then one in five minutes. Both as
 * client-go does it. The table is bounded: the series that was not seen for longest is forgotten, and so is what
 * an object has used up. So a namespace has a bound as well, or else one with more objects than the table holds would
 * have none.
 */
#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

#define SERIES_MAX                   256
#define SERIES_BURST                 25
#define SERIES_REFILL_USEC           (300 * UINT64_C(1000000)) /* one more Event of the same object */
/* The same for the objects of a namespace. */
#define SERIES_NAMESPACE_BURST       2000
#define SERIES_NAMESPACE_REFILL_USEC UINT64_C(1000000)
#define SERIES_FINISH_USEC           (360 * UINT64_C(1000000)) /* silent for so long: the next one begins again */
#define SERIES_REFRESH_USEC          (300 * UINT64_C(1000000)) /* a count is never older than this */
#define SERIES_NAME_MAX              254

struct series_table;

struct series {
        uint64_t object, identity, count,
                written;             /* how often; and how many of these were written, or passed on */
        uint64_t last, last_written; /* CLOCK_BOOTTIME */
        char namespace_name[64], name[SERIES_NAME_MAX];
};

enum series_verdict {
        SERIES_CREATE, /* the caller fills namespace_name and name, and creates the Event */
        SERIES_WRITE,  /* its count must be written now */
        SERIES_COUNTED,
        SERIES_DROPPED, /* the spam guard */
};

int series_table_new(struct series_table **ret);
void series_table_free(struct series_table *table);
/* A hash of the namespace of the object with this key. */
uint64_t series_place(const char *key);
/* Hashes of the object, and of all Events about it that are counted as one; never 0. about: what else tells them
 * apart; "" if nothing does. */
uint64_t series_object(const char *uid);
uint64_t series_identity(const char *uid, const char *type, const char *reason, const char *action,
                         const char *about);
/* `count` more of them. *ret: borrowed, until the next call; NULL when dropped. */
enum series_verdict series_note(struct series_table *table, uint64_t place, uint64_t object,
                                uint64_t identity, uint64_t count, uint64_t now, struct series **ret);
/* The one that is being counted, or NULL. */
struct series *series_find(struct series_table *table, uint64_t identity, uint64_t now);
/* The next one whose count is due to be written, or NULL. */
struct series *series_due(struct series_table *table, uint64_t now);
void series_written(struct series *series, uint64_t now);
/* The Event is gone, or was never made: the next one begins a new series. */
void series_forget(struct series_table *table, const char *namespace_name, const char *name);
DEFINE_CLEANUP(struct series_table *, series_table_free);
