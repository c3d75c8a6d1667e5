/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The queue: what is to be run, next, and when. A pure data structure: no clock (every call is told the
 * time, CLOCK_BOOTTIME usec), no process, no ledger; tested by itself.
 *
 * One entry per (watch, key) that is not at rest. An entry holds the work that is pending for the key: the
 * ends of old UIDs (deleted; not selected any more), in order of arrival, then at most one update (the newest
 * wins) and one nudge; a run of the object is for both. States:
 *   QUEUED        may run now           RUNNING        a worker has it, nothing new came
 *   RUNNING_DIRTY a worker has it and something came in the meantime: exactly one more run
 *   DELAYED       waits for its time (backoff, requeueAfter)
 *   SUSPECT       the operator has crashed over it: runs alone, when nothing else is to be done; after
 *                 QUEUE_PATIENCE_USEC it holds others back, for half of the time (alone.c)
 *   HELD          waits for a run of the same object in another watch of its kind: what one has begun is
 *                 over before another one takes the object over
 * Never: two runs of one key at once, also in two watches of a kind; an update before a deletion of the same
 * key; an entry that is forgotten without queue_done().
 *
 * A watch that is paused runs nothing but what is not over (settling) and what was asked for by hand
 * (urgent); everything else is kept.
 *
 * A watch whose handler may not run so often (queue_set_rate()) runs nothing but what is not over until it has a token (rate.c).
 *
 * Concurrency counts the runs that have not been answered (queue_answered()); a concurrency of one counts until the end.
 *
 * Order: round robin between watches that have work and are below their concurrency; within a watch normal
 * before low priority; in each of them round robin between namespaces; in a namespace what has begun
 * (settling) before what is new, FIFO. What was asked for by hand goes before all that. With ageing: every
 * QUEUE_AGEING-th pick takes what was passed over. So of many tenants each has its turn, however many keys one
 * of them has, and nothing that may run waits forever: QUEUE_OVERTAKEN().
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/message.h"
#include "ipc/run-reason.h"

#define QUEUE_AGEING        8
#define QUEUE_PATIENCE_USEC (2 * UINT64_C(1000000))

struct queue;

enum queue_priority { QUEUE_NORMAL, QUEUE_LOW, QUEUE_PRIORITY_COUNT };

/* Work for a key as it comes in. Strings are copied. */
struct queue_item {
        const char *key, *uid;
        enum change_kind kind; /* UPDATED or DELETED */
        enum queue_priority priority;
        uint64_t fingerprint; /* content of an update */
        uint64_t version;     /* its resourceVersion; 0: unknown */
        uint64_t sequence;    /* number of the announcement, for HANDLED */
        uint64_t not_before;  /* delay until; 0 = at once */
        bool suspect;         /* runs alone and last */
        bool urgent;          /* somebody waits for it: also while the watch is paused */
        bool nudge;           /* an update: not the object has changed, but something that it depends on */
        bool bare;            /* a nudge that starts no handler: any other run of the key does it as well */
        bool on_record;       /* a nudge that the ledger knows: of two, its reason stays */
        enum run_reason reason;
};

enum queue_push_result {
        QUEUE_ADDED,  /* a new entry */
        QUEUE_MERGED, /* joined what was pending for this key; its credit is free again at once */
};

/* The next run for a worker. Strings belong to the entry and live until queue_done() for it. */
struct queue_run {
        uint64_t id; /* names this run in queue_done(); grows; also RUN's sequence */
        unsigned watch;
        const char *key, *uid;
        enum change_kind kind;
        uint64_t fingerprint, sequence;
        enum run_reason reason;
        uint64_t waited_usec; /* since it became ready */
        unsigned behind;      /* number of runs in a row that ended with `behind`, at most 255 */
};

struct queue_counts {
        size_t queued, running, delayed; /* keys */
        size_t settling;                 /* delayed entries whose run is unfinished */
        size_t answered;                 /* running ones that count no more against the concurrency */
};

int queue_new(struct queue **ret);
void queue_free(struct queue *queue);

/* An update with not_before in the future delays a key that is at rest or delayed (the earliest time wins);
 * an immediate one takes the delayed entry's place. Returns enum queue_push_result or -ENOMEM. */
int queue_push(struct queue *queue, unsigned watch, const struct queue_item *item, uint64_t now);

/* Moves keys that are due from delayed to queued (a bounded number at a time), then picks a run. False if
 * nothing may run now. */
bool queue_next(struct queue *queue, uint64_t now, struct queue_run *ret);
/* The same, but only for watches for which is_taken() reports a free worker. It is not called for a suspect,
 * which runs alone. */
bool queue_next_for(struct queue *queue, uint64_t now,
                    bool (*is_taken)(const void *userdata, unsigned watch), const void *userdata,
                    struct queue_run *ret);

/* The result of a finished run, as far as the queue is concerned. */
struct queue_outcome {
        bool handled;           /* success, permanent or stale: this work is done */
        uint64_t fingerprint;   /* content that was read; updates with the same fingerprint are done too */
        uint64_t known_version; /* pending updates up to this resourceVersion are our own writes; 0 = none */
        uint64_t own_fingerprint; /* content after our own write, done from that version on; 0 = none */
        uint64_t delay_usec;    /* not handled: again after this; handled: with `again` set, as a new run */
        bool again;             /* handled, but requeueAfter is set: delay_usec from now */
        bool backs_off;         /* the run failed: a nudge is no reason to run before its time */
        bool behind;            /* nothing ran, because the store is behind our own writes */
        enum run_reason reason; /* why the next run is due (RUN_RETRY, RUN_REQUEUE_AFTER) */
};
/* -ENOENT if no such run is in flight (a lie of a worker). A pending update with another fingerprint is queued at
 * once, whatever delay_usec says: a change of essence runs at once. */
int queue_done(struct queue *queue, uint64_t run, const struct queue_outcome *outcome, uint64_t now);
/* The handler of this run is over, and something is left to do. */
void queue_answered(struct queue *queue, uint64_t run);
/* Called before queue_done() or queue_return(): whether the handler was asked in this run, and so has used
 * up its token. */
void queue_handler_ran(struct queue *queue, unsigned watch, uint64_t run, bool handler_ran, uint64_t now);
/* Takes back a run that was never begun: its work is the first of its line again. -ENOENT as above. */
int queue_return(struct queue *queue, uint64_t run, uint64_t now);
/* Drops the pending deletion of a key's UID; false if there is none. */
bool queue_take_deletion(struct queue *queue, unsigned watch, const char *key, const char *uid, uint64_t now,
                         uint64_t *ret_sequence);
/* The object exists after all: its pending deletion is dropped, and if a worker has it, it does not come back,
 * whatever the result. */
void queue_withdraw_deletion(struct queue *queue, unsigned watch, const char *key, const char *uid,
                             uint64_t now);
/* Forgets what is pending for a key's UID (unselected); a running run goes on. */
void queue_forget(struct queue *queue, unsigned watch, const char *key, const char *uid, uint64_t now);

DEFINE_CLEANUP(struct queue *, queue_free);
