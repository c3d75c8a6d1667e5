/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch as the controller knows it: a place in an array that never moves. The caller reads it for status and
 * metrics; only `is_up`, `awaits_token` and `health` are the caller's to write. What outlives the watch is in the
 * ledger.
 */
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "config/config.h"
#include "ipc/message.h"
#include "ledger/ledger.h"
#include "queue/queue.h"

/* Counts of a watch, for metrics: a few words each; they begin at zero with each start. */
struct watch_metrics {
        uint64_t adds, retries, requeues;
        uint64_t missed;      /* runs of a schedule that could not begin in time and were left out */
        uint64_t tried_again; /* objects that were given up and got one more attempt (due/retry.c) */
        uint64_t result[RESULT_COUNT];
        uint64_t handler_cpu_usec, handler_memory_peak, handler_memory_kills;
        struct histogram queue, work; /* waiting; running */
};

void metrics_ended(struct watch_metrics *metrics, const struct message_done *done, uint64_t duration_usec);

struct controller;
struct related_cursor;

struct handled {
        char *key, *uid;
        uint64_t sequence;
};

/* The trouble of a watch that one source reports. */
struct watch_trouble {
        enum watch_health health;
        uint64_t since_realtime, failures;
        char *reason;
};

/* The API server refuses us what we write: due/watch-refusal.c. key: of the object that is tried; NULL if
 * the server does not refuse. in: whether it does so (403) in each of the namespaces that the watch names;
 * NULL: it names less than two. */
struct refusal {
        char *key, *uid;
        bool *in;
        uint64_t since_boottime;
        struct watch_trouble trouble;
};

/* Which rows due/retry.c makes due. The numbers of the last two are in the ledger; a greater number covers more
 * rows. */
enum retry_scope {
        RETRY_NOTHING,
        RETRY_REFUSED, /* those that wait for the server */
        RETRY_FAILED,
        RETRY_GIVEN_UP, /* until a change: each gets one more attempt */
        RETRY_ALL,
        RETRY_SCOPE_COUNT
};

/* A walk over the rows of a watch, page by page. */
struct retry_walk {
        enum retry_scope scope;
        char *key, *uid; /* the last row that it has visited; NULL if none */
        uint64_t due; /* number of rows that it has made due: each comes a bit later than the one before */
};

/* How far the search for its finalizers is: order/uninstall.c. */
struct watch_uninstall {
        bool asked;         /* the watcher, for all of its objects and for those that it does not select */
        char *unseen;       /* why not all of those could be looked at; "" = they were; NULL: not yet */
        bool swept, walked; /* the store, then the ledger, whose last visited row was: */
        char *key, *uid;
};

struct watch {
        struct controller *controller;
        void *userdata;    /* the caller's */
        bool is_up;        /* its watcher takes messages */
        bool awaits_token; /* none of its runs begins before its handler has a credential */
        enum watch_health health;
        const struct config_watch *config;
        uint64_t started;            /* by the ledger's clock */
        bool synced, checked, swept; /* swept: its watcher has announced all */
        bool other_cluster;          /* than the one that its rows belong to: deletions are not looked for */
        uint64_t synced_realtime;    /* the last list, or recovery */
        uint64_t objects, generation;
        uint64_t epoch, epoch_since; /* by the ledger's clock (change/epoch.h) */
        char *resource_version;      /* may be NULL */
        struct refusal refusal;
        bool waits; /* for the server: some of its objects, as far as is known */
        uint64_t credit_given, credit_used;
        uint64_t credit_runs,
                credit_monotonic; /* runs that have ended since the credit was used up; and when credit was
                                   * given last */
        /* OWED pages: where the next one begins. */
        bool owed_streaming;
        bool owes_nothing; /* the ledger knew none of its objects when its watcher began */
        char *owed_key, *owed_uid;
        struct handled *handled; /* to be reported after the commit */
        size_t handled_count;
        uint64_t successes, failures_total;
        uint64_t not_kept; /* successes whose object could not be kept for `previous` */
        struct watch_metrics metrics;
        uint64_t pace_usec; /* how long its runs take, by the last ones */
        bool pace_known;
        uint64_t spread_usec; /* jitter of the next resyncs, and for how many more */
        unsigned spread_left;
        struct related_cursor **related; /* change/related-changes.c */
        size_t related_count, related_room, related_turn;
        uint64_t related_usec;  /* CLOCK_MONOTONIC: of the last page */
        bool is_of_cluster;     /* its objects belong to no namespace, by the first row when that mattered */
        struct retry_walk walk; /* ends with this life */
        struct retry_walk kept_walk; /* the next life goes on with it: due/retry-kept.c */
        uint64_t handler_stamp;      /* of the handler that this watch begins with */
        struct watch_uninstall uninstall;
        uint64_t paused_realtime, paused_by; /* since when, by which user; 0 = it is not */
        char *pause_reason;
        void *tries; /* marks: how often our finalizer was written lately, object by object */
        /* Marks of finalized objects, until their end is announced. Their rows are gone, and others may change
         * them until then: without a mark they would be finalized twice. */
        void *finalized;
        uint64_t finalizers_written, finalizers_failed; /* by runs of their own */
        size_t doubt_count;                             /* objects that its watcher has died over */
        uint64_t behind_realtime; /* since when its store is known to lack our own writes; 0: it is not */
        bool unsure;              /* its rows may not say what was handled last (change/unsure.c) */
};

/* All, in order; NULL begins and ends. */
struct watch *watch_next(const struct controller *controller, const struct watch *watch);
#define FOREACH_WATCH(name, controller)                                                                     \
        for (struct watch *name = watch_next(controller, NULL); name; name = watch_next(controller, name))
unsigned watch_number(const struct watch *watch); /* its place, also in the queue */

/* Finds a watch by its name. */
struct watch *watch_find(const struct controller *controller, const char *name);
/* The next place, for the watch of this configuration. -ENOMEM. */
int watch_take(struct controller *controller, const struct config_watch *config, struct watch **ret);
void watch_fill(struct watch *watch, const struct config_watch *config); /* as at a start; frees nothing */

/* How many of its runs may be given to workers; 0 = as many as there is use for: one for each worker may be
 * in flight anyway. */
unsigned watch_limit(const struct controller *controller, const struct config_watch *config);

/*
 * What a watch remembers of single objects while the operator lives. There may be as many marks as objects, so
 * they are a tree of tsearch(), ordered by a hash of key and UID. NULL is an empty set.
 */
struct mark {
        uint64_t hash;
        uint64_t count, not_before; /* the caller's; 0 at first */
};

struct mark *mark_find(void *const *marks, const char *key, const char *uid); /* NULL if there is none */
struct mark *mark_add(void **marks, const char *key, const char *uid); /* or finds it; NULL: no memory */
void mark_drop(void **marks, const char *key, const char *uid);
void marks_forget(void **marks);
