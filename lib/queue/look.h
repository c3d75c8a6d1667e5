/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Questions to the queue, which change nothing. Times as everywhere in it: CLOCK_BOOTTIME usec. */
#include "queue/queue.h"

/* The place of a key in the queue, for people. */
enum queue_state {
        QUEUE_AT_REST,
        QUEUE_QUEUED,
        QUEUE_SUSPECT,
        QUEUE_RUNNING,
        QUEUE_RUNNING_DIRTY,
        QUEUE_DELAYED,
};
struct queue_view {
        enum queue_state state;
        const char *uid; /* the object that runs, or is next; borrowed; NULL at rest */
        enum run_reason reason;
        uint64_t since; /* QUEUED, SUSPECT: since when it could run */
        size_t ahead;   /* QUEUED: keys of its namespace before it in its line, at most QUEUE_AHEAD_MAX */
        size_t sharing; /* QUEUED: namespaces that take turns with its own, which is one of them */
        uint64_t due;   /* DELAYED */
        bool goes_on;   /* QUEUED: its run had begun, so it needs no token of queue_rate() */
        bool behind;    /* its last run waits for its watch to show what was written */
};
#define QUEUE_AHEAD_MAX 10000
struct queue_view queue_look(const struct queue *queue, unsigned watch, const char *key);

/* The reason of the run that a worker has of this very object, unless it is of its deletion or tells that it
 * is not selected any more; RUN_REASON_NONE: there is none. */
enum run_reason queue_running(const struct queue *queue, unsigned watch, const char *key, const char *uid);
/* Whether a run for this UID, for its deletion or another reason, is pending or running. Work for another UID
 * of the key does not count. */
bool queue_has(const struct queue *queue, unsigned watch, const char *key, const char *uid,
               enum change_kind kind);
/* Whether an update of another UID of this key is pending: one more would take its place. */
bool queue_has_other(const struct queue *queue, unsigned watch, const char *key, const char *uid);
/* When something delayed is due and may run, something gets its token, or what a suspect holds back may begin; USEC_INFINITY = never. */
uint64_t queue_next_time(const struct queue *queue);
/* The reason of the nudge that is pending; RUN_REASON_NONE: there is none. */
enum run_reason queue_nudge(const struct queue *queue, unsigned watch, const char *key, const char *uid);
/* Keys of one namespace in a watch, where some of them are queued or running. */
struct queue_share {
        unsigned watch;
        const char *namespace; /* "" for a kind without namespaces; borrowed */
        size_t queued, running;
        uint64_t
                since; /* of the one that has waited longest among those that come next; 0 if there is none */
};
/* The first `max` by what they have queued. Of more than QUEUE_SHARES_LOOKED in a line, those are looked at whose
 * turn comes next. */
#define QUEUE_SHARES_LOOKED 2000
size_t queue_shares(const struct queue *queue, struct queue_share *ret, size_t max);
bool queue_is_alone(const struct queue *queue, uint64_t run); /* nothing else starts beside it */
struct queue_counts queue_count(const struct queue *queue, unsigned watch);
/* Whether a key of this namespace ("" for a kind without) is queued. */
bool queue_has_namespace(const struct queue *queue, unsigned watch, const char *namespace, size_t length);
struct queue_counts queue_count_all(const struct queue *queue);
