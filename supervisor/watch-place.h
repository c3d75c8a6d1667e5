/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the supervisor knows of a watch while it runs: its place (struct watch), and what the parts of the
 * supervisor keep there. All of it belongs to the supervisor (supervisor.h); what outlives it stands in the
 * ledger. Times are CLOCK_REALTIME or CLOCK_BOOTTIME in microseconds, as their names say.
 */
#include "config/config.h"
#include "ledger/ledger.h"
#include "queue/queue.h"
#include "supervisor/metrics.h"

struct child_slot;
struct finalizer_try;
struct related_cursor;

struct handled {
        char *key, *uid;
        uint64_t sequence;
};

/* The trouble of a watch, as one source reports it. */
struct watch_trouble {
        enum watch_health health;
        uint64_t since_realtime, failures;
        char *reason;
};

/* The API server refuses us what we write: see health.c. key: of the object that is tried; NULL: it does
 * not.
 */
struct refusal {
        char *key, *uid;
        uint64_t since_boottime;
        struct watch_trouble trouble;
};

/* room.c: a watch that stood still for lack of memory. */
struct room {
        sd_event_source *timer; /* then it is begun anew */
        unsigned tries;         /* so far, without being in sync */
        bool begun;             /* its successor is such a try */
        bool anew;              /* it is one, and has not been in sync */
};

/* Which rows retry.c makes due. */
enum retry_scope {
        RETRY_NOTHING,
        RETRY_REFUSED, /* what waits for the server */
        RETRY_FAILED,
        RETRY_CHANGED, /* what a change of the handler concerns */
};

/* handler.c: the rows of a watch whose handler has changed are made due in two passes. */
enum handler_pass { HANDLER_PASS_NONE, HANDLER_PASS_OTHERS, HANDLER_PASS_QUARANTINED, HANDLER_PASS_COUNT };

#define HANDLER_RUNS_A_SECOND 200U

/* What is known of a watch's handler. */
struct handler_change {
        char hash[33];             /* ""; when it was last looked at */
        uint64_t changed_realtime; /* 0: not as far as is known */
        uint64_t reload;           /* runs that were given out before this reload had the former one */
        enum handler_pass pass;
        bool all;                   /* all objects, not only those that have failed */
        char *key, *uid;            /* where the next page begins */
        uint64_t due, quarantined;  /* in this round: rows that were made due */
        uint64_t changes, made_due; /* in this life */
        char unread[256];           /* files that cannot be read, and why; "" */
        uint64_t stamp;             /* of the files, when they were last looked at; 0: not known */
        uint64_t other;             /* of those that a run has used since and that are not these; 0: none */
        uint64_t judged;            /* runs that were given out before this reload had what was before it */
        bool is_read;               /* what is on record */
};

/* How far the search for its finalizers is. */
struct watch_uninstall {
        bool asked;         /* the watcher, for all of its objects and for those that it does not select */
        char *unseen;       /* why not all of those could be looked at; "" = they were; NULL: not yet */
        bool swept, walked; /* the store; and the ledger behind it, whose last row this was: */
        char *key, *uid;
};

/* A place for a watch. It is free when there is no configuration: a reload takes watches out and puts others
 * in (reload-apply.c), and no other one moves for that. */
struct watch {
        const struct config_watch *config;
        struct watch_uninstall uninstall;
        bool leaving;      /* nothing new of it runs; it goes when what runs is over */
        bool cancelled;    /* what runs has taken too long, and is ended */
        uint64_t leave_by; /* CLOCK_MONOTONIC: then it is cancelled */
        uint64_t started;  /* by the ledger's clock */
        struct child_slot *child;
        char *store_folder; /* in memory, where its objects are confidential */
        bool synced, checked;
        enum watch_health health;   /* of the two that follow, the first that is in trouble */
        struct watch_trouble heard; /* of its watcher */
        struct refusal refusal;
        struct room room;
        bool waits; /* for the server: some of its objects, as far as is known */
        uint64_t synced_realtime, degraded_realtime, objects, generation, failures, restores;
        char *resource_version, *degraded_reason, *missing_namespaces; /* may be NULL */
        uint64_t credit_given, credit_used;
        /* OWED pages: where the next one begins. */
        bool owed_streaming;
        bool owes_nothing;            /* the ledger knew none of its objects when its watcher began */
        sd_event_source *owed_source; /* the next page */
        char *owed_key, *owed_uid;
        struct handled *handled; /* to be told after the commit */
        size_t handled_count;
        uint64_t successes, failures_total;
        char limits_weakened[320]; /* of its handler, and how they hold; "" when as they are meant */
        struct watch_metrics metrics;
        uint64_t pace_usec; /* what its runs take, by the last ones */
        bool pace_known;
        uint64_t spread_usec; /* of the next resyncs, and for how many more */
        unsigned spread_left;
        struct related_cursor **related; /* related.c */
        size_t related_count, related_room, related_turn;
        uint64_t related_usec; /* CLOCK_MONOTONIC: of the last page */
        bool is_of_cluster;    /* its objects belong to no namespace, by the first row when that mattered */
        uint64_t retried;      /* in this round */
        enum retry_scope
                retrying; /* what has failed is made due, page by page; where the next one begins: */
        char *retry_key, *retry_uid;
        struct handler_change handler;
        uint64_t paused_realtime, paused_by; /* since when, by which user; 0 = it is not */
        char *pause_reason;
        struct finalizer_try *tries; /* finalizer.c */
        size_t try_count, try_room;
        uint64_t finalizers_written, finalizers_failed; /* by runs of their own */
        size_t doubt_count;                             /* objects that its watcher has died over */
        bool unsure; /* its rows may not say what was handled last (unsure.c) */
};
