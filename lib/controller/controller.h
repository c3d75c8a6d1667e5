/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The controller decides what is owed, what runs next, and what a result means. It is pure: its caller tells
 * it the time and what has happened (the inputs: the functions of the headers in change/, run/ and order/),
 * and carries out what follows from that (the effects: struct controller_effects). Queue and ledger are its
 * memory; there is no process, socket, timer, clock or log in it, so all orders in which things happen can
 * be tried (tests/simulation).
 *
 *   change/  what a watcher announces: from "key changed" to a row of the ledger and an entry of the queue
 *   run/     which worker gets which run, what a result means, what is due by itself
 *   order/   what people ask for: pause, resume, release, retry, uninstall
 *
 * Calls go one way: controller.c calls what has pages to take or runs to give; inputs (change/change.c,
 * run/outcome.c, order/) call what decides about one subject; below all of these are due/push.c,
 * due/due.c, and the caller's time and effects (effects.h).
 *
 * Whether a changed object runs is decided in change/change.c, by the table of change/decision.c.
 *
 * Inputs change queue and ledger; controller_settle() then picks runs, commits the ledger once,
 * and only after that lets the effects go that depend on it (RUN, HANDLED). An effect must not call an
 * input.
 *
 * All times are in microseconds: `now` as the caller has told it; times in rows of the ledger by the
 * ledger's clock (ledger_time), which nobody sets. Functions return 0 or a negative errno unless they say
 * otherwise; -ENOMEM and -EPROTO are the caller's to judge, a ledger that fails ends in the effect `fatal`.
 */
#include "base/cleanup.h"
#include "controller/controller-watch.h"
#include "ipc/log.h"
#include "queue/queue.h"

/*
 * How much at once: pages of the ledger, records of a message, credit. In the simulation they are so small
 * that their boundaries are met all the time (RECONCILED_SMALL_SIZES).
 */
#ifdef RECONCILED_SMALL_SIZES
#define SIZE(usual, small) (small)
#else
#define SIZE(usual, small) (usual)
#endif

/* Changes of one watch that may wait here, unannounced or queued: they bound our memory. */
#define CREDIT_LIMIT SIZE(2000, 4)

#define PAGE_DUE       SIZE(50, 1)
#define PAGE_RETRY     SIZE(50, 1)
#define PAGE_RELATED   SIZE(50, 1)
#define PAGE_OWED      SIZE(200, 1)
#define PAGE_UNINSTALL SIZE(200, 1)
#define PAGE_HANDLED   SIZE(400, 1)

/* So many keys in one message are looked up in one transaction. */
#define CROWD SIZE(16, 2)

#define RUNS_AT_ONCE   16 /* a worker has at most this many runs without a handler yet */
#define GIVEN_MAX      (WINDOW_MAX > RUNS_AT_ONCE ? WINDOW_MAX : RUNS_AT_ONCE) /* in a worker */
#define CHILD_NEWS_MAX 1000 /* as many children as an object may have */

/* A run that a worker was given. */
struct assignment {
        struct queue_run run;    /* its strings belong to the queue's entry until queue_done() */
        bool to_send, is_first;  /* is_first: of its object, as far as the ledger knows */
        bool is_cancelled;       /* before it was sent: it goes back to the queue */
        bool is_first_of_time;   /* of a schedule: schedule_give() */
        uint64_t reloads, epoch; /* when it was given out */
        uint64_t attempt;        /* as the handler sees it */
        bool aside;              /* it waits for the API server, and the worker is free for others */
        bool first_of_watch; /* ... or for its process, and the worker begins no other run of its watch */
        bool answered;       /* ... and its handler is over */
        uint64_t since;      /* CLOCK_BOOTTIME: when the worker was given it */
        uint64_t expected_usec, took_usec;
        unsigned place; /* the caller's, as is the next one */
        uint64_t
                named; /* RUN leaves once the leader record has this (supervisor/lead-lasting.h); 0: it is in none */
        /* Changes of children that came while the run was in flight. Those that it made itself are dropped
         * at its end. */
        struct child_news {
                uint64_t version;
                unsigned watch;
                bool deleted; /* or not this owner's any more: its last version */
        } * news;             /* owned by whoever has the assignment */
        size_t news_count, news_room;
};

struct worker {
        struct controller *controller;
        bool is_up; /* told by the caller: it takes messages */
        bool filling;
        /* In the order in which they were given. The handler of the first run that is not aside is at work;
         * later runs have no handler yet. */
        struct assignment given[GIVEN_MAX];
        size_t given_count, aside_count;
        uint64_t expected_usec;    /* of those that are not aside */
        uint64_t started_boottime; /* since when the first of these is the first */
};

/* The caller must call these inputs later. */
enum controller_wake {
        WAKE_QUEUE,  /* controller_settle() */
        WAKE_COMMIT, /* controller_commit_time() */
        WAKE_DUE,    /* due_take() */
        WAKE_COUNT
};

struct controller_effects {
        /* controller_settle() must be called after the messages that have arrived. */
        void (*settle)(void *userdata);
        /* at: CLOCK_BOOTTIME; UINT64_MAX: not any more. A later call for the same one replaces it. */
        void (*wake)(void *userdata, enum controller_wake what, uint64_t at);
        /* controller_idle() must be called when there is nothing else to do. */
        void (*idle)(void *userdata);
        /* owed_page() must be called, after all messages that have arrived. */
        void (*next_page)(void *userdata, struct watch *watch);
        /* To a worker, between two calls of `batch`. */
        void (*batch)(void *userdata, struct worker *worker, bool begins);
        void (*run)(void *userdata, struct worker *worker, struct assignment *given,
                    const struct message_run *run);
        /* A run has ended that is not in the ledger yet. True if the ledger should be committed. */
        bool (*ended)(void *userdata, struct worker *worker, const struct assignment *given, bool has_begun);
        void (*committed)(void *userdata);
        void (*recall)(void *userdata, struct worker *worker, const char *reason);
        void (*cancel)(void *userdata, struct worker *worker, uint64_t run, const char *reason);
        /* To a watcher. */
        void (*handled)(void *userdata, struct watch *watch, const struct message_handled *handled);
        void (*credit)(void *userdata, struct watch *watch, uint64_t amount, bool again);
        int (*owed)(void *userdata, struct watch *watch, const struct message_owed *owed);
        /* The reason why the server refuses this watch has changed: health must be judged again. -ENOMEM. */
        int (*health)(void *userdata, struct watch *watch);
        /* For people. `field` ends with a NULL name, or is NULL. */
        void (*log)(void *userdata, int priority, const char *message_id, const struct log_field *field,
                    const char *text);
        /* Ends the operator; the first call counts. key: of the object that is the reason, or "". */
        void (*fatal)(void *userdata, int exit_code, const char *key, const char *cause);
        /* Questions. */
        bool (*has_time)(const void *userdata); /* this turn goes on */
        /* Whether the RUN may leave; if not now, controller_settle() must be called once it may. */
        bool (*may_leave)(void *userdata, struct assignment *given);
        bool (*has_room)(const void *userdata, const struct watch *watch); /* its watcher reads on */
        uint64_t (*random)(void *userdata);
};

struct controller_now {
        uint64_t boottime, realtime, monotonic;
};

struct controller {
        const struct controller_effects *effects;
        void *userdata;
        const struct config *config;
        struct queue *queue;
        struct ledger *ledger;
        const char *ledger_folder; /* for messages */
        struct controller_now now;
        uint64_t clock_offset; /* of the ledger's clock, from CLOCK_BOOTTIME */
        struct watch *watch;   /* places */
        size_t watch_count;    /* places in use: all, once the watches have begun */
        size_t watch_room;     /* of all places */
        struct worker *worker;
        size_t worker_count;
        bool is_over;        /* `fatal` was called: no other effect is */
        bool is_ending;      /* no run begins any more */
        bool has_cancelled;  /* some RUNs that have not left are cancelled */
        bool startup_over;   /* nothing of this start waits for `startup` any more, also after a reload */
        char *startup_error; /* of the last failure of `startup` in this life; NULL if there was none */
        int64_t clock_ahead; /* of the realtime clock before that of the boot, when schedules were last planned by it; 0: not yet */
        bool has_credential; /* workers can do something */
        bool ledger_lost;    /* objects that it does not know may have been handed out */
        bool hearsay_dropped; /* rows that the leader record still has (run/last-life.h); the caller clears it */
        uint64_t unsure_times; /* number of starts after which the runs in flight were unknown */
        uint64_t reloads;      /* of the same configuration, in this life */
        uint64_t started;      /* of the operator, by the ledger's clock; a restart in place is no start */
        struct {
                bool active; /* only finalizers are taken off; kept in the ledger (order/uninstall.c) */
                bool told;   /* ... and the report that none is left */
                uint64_t realtime, by; /* since when, and by which user */
        } uninstall;
        struct {
                bool due;       /* something must not leave before the ledger has it */
                bool told;      /* it was reported that it takes long */
                bool is_armed;  /* WAKE_COMMIT */
                uint64_t since; /* CLOCK_MONOTONIC: the ledger has been busy since then; 0: it is not */
        } commit;
        struct {
                size_t synced;  /* watches in sync, when it was last asked what is due */
                uint64_t armed; /* by the ledger's clock: what WAKE_DUE is for; 0 = nothing */
        } due;
};

/* config, queue and ledger are borrowed. workers: all that there will be. -ENOMEM. */
int controller_init(struct controller *controller, const struct controller_effects *effects, void *userdata,
                    size_t workers, size_t watch_room);
void controller_done(struct controller *controller); /* queue and ledger are the caller's */

/* Its watcher is gone and none of its runs is in flight: as at a start, but for counters and health. -EBUSY; -EAGAIN: it
 * takes another turn. */
int watch_renew(struct watch *watch);

/* The end of a turn: runs are picked, the ledger is committed, and what waits for the commit leaves. */
void controller_settle(struct controller *controller);
void controller_commit_time(struct controller *controller); /* WAKE_COMMIT */

/* Must be called every few seconds: what is planned for a time of day keeps it if somebody sets the clock. */
void controller_see_clock(struct controller *controller);

/* Does a portion of the work that can wait: rows that are made due, related objects, an uninstallation. */
void controller_idle(struct controller *controller);
