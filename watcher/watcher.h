/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The watcher process: follows one resource of the API server and keeps its store. One LIST+WATCH stream a
 * namespace (one for all namespaces when none is named, or when patterns are). It never stops reading: what
 * the supervisor gives no credit for waits in the store's dirty index.
 *
 * Order of life: CONFIG -> store opened -> CREDENTIAL -> discovery -> version -> cluster identity ->
 * streams: each goes on where the store says (WATCH), or begins with a list (WatchList or LIST, then WATCH).
 *
 * list/   asking the server, and reading what it says
 * apply/  what that changes in the store, and telling the supervisor
 *
 * setup.c begins it all; list/transitions.c decides what comes next in a stream. What waits for the server is a function on a
 * fiber (asking.h), but for the watch itself.
 */
#include "fiber/fiber.h"
#include "ipc/child.h"
#include "jq/program.h"
#include "kube/client.h"
#include "kube/path.h"
#include "os/slot.h"
#include "store/meta.h"
#include "store/store.h"
#include "store/sweep.h"
#include "watcher/failures.h"

struct stream;
struct verification;

/* Parameters that a server may refuse, and that we can do without. */
enum optional { OPTIONAL_LIMIT = 1, OPTIONAL_BOOKMARKS = 2, OPTIONAL_TIMEOUT = 4 };

struct watcher {
        struct child *child;
        struct message *config_message; /* owns what `config` points to */
        const struct message_config_watcher *config;
        struct kube_client *client;
        struct fibers *fibers;                               /* asking.h */
        char *scope, *basis;                                 /* apply/scope.c */
        bool patterns;                                       /* namespaces are given as patterns */
        struct jq_program *trigger_program, *filter_program; /* NULL if there is none */

        struct {
                struct fiber *fiber;  /* asks; NULL: all is known, or there is no credential yet */
                struct fiber *asleep; /* the same, until the next attempt */
                bool refreshed;       /* a fresh credential was tried at once */
        } setup;                      /* setup.c */
        struct fiber *own; /* makes the object of the operator's own; NULL: the watch has none, or not yet */
        struct fiber *own_asleep; /* the same, while the object is there */
        bool own_gone;            /* it may be, since it was last looked for */
        bool discovered, versioned, identified;
        struct kube_resource resource;
        unsigned server_minor; /* of version 1; 0: unknown */
        char *cluster;
        char *server;         /* identity of the server: its URL and CA, of the newest credential */
        char *cluster_server; /* the same, when the cluster was identified */

        struct store *store;
        struct store_meta meta;
        struct stream *stream;
        size_t stream_count;
        uint64_t first_mark; /* of the first LIST of this life; 0: there was none */
        bool first_synced;
        bool deletions_suspended; /* this is not the cluster of the ledger: absence proves nothing */
        unsigned left_out;        /* set of enum optional */
        uint64_t left_out_until, no_watch_list_until; /* CLOCK_BOOTTIME */

        struct failures failures; /* of discovery and identity */
        enum watch_health health; /* as the supervisor was told */
        bool told_refused;        /* ... for a namespace that is refused */
        uint64_t refresh_serial;  /* the credential that a REFRESH was sent for */
        uint64_t throttle_until;  /* CLOCK_BOOTTIME: no request leaves before */
        bool full;                /* store-failure.c */
        sd_event_source *full_source;

        struct {
                uint64_t credit;     /* number of changes that may be announced */
                size_t sweep_passed; /* changes that were announced since something was swept */
                struct sweep sweep;  /* over the stored objects that are to be announced */
                bool swept, swept_again, swept_in_part;
                sd_event_source *source;  /* commits and announces when the loop has nothing else to do */
                uint64_t asked_monotonic; /* since when that is to be done */
                sd_event_source *commit_timer; /* of what announces nothing */
                uint64_t committed_monotonic;
        } announce;     /* apply/announce.c, apply/synced.c */
        uint64_t epoch; /* of the versions in the store; stream/resume.c */
        struct {
                uint64_t boottime; /* when the database was seen to have gone back in time; 0: never */
                uint64_t count;    /* how often, in this life */
        } restored;                /* stream/resume.c */
        struct fiber *namespaces;  /* stream/missing-namespaces.c; NULL: nothing is asked */
        struct verification *verification; /* apply/verify.c */
        struct {
                bool is_due; /* some objects were not looked at */
                enum change_kind as;
                struct fiber *fiber; /* looks at them; NULL: not yet */
                char unseen[400];    /* why not all could be looked at; "": nothing is known against it */
        } search;                    /* apply/finalizer-search.c */
        bool owed_complete, checked; /* apply/ledger-check.c: all pages are here; CHECKED was sent */
        struct message *doubtful;    /* apply/scope.c; NULL: nothing is */
        struct slot *slot;           /* shows the supervisor what is being read; NULL: it does not look */

        struct {
                uint64_t events, lists, relists, watch_lists, resumed, reconnects, bookmarks, undecodable,
                        program_failures, replays, owners_ignored, refused, contents_dropped;
                uint64_t word_boottime; /* when the server last said something about objects */
        } count;
};

extern const struct child_operations watcher_operations;
void watcher_done(struct watcher *watcher);
