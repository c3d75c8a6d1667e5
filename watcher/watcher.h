/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The watcher: follows one resource of the API server and keeps its store. One LIST+WATCH stream a namespace
 * (one for all namespaces when none is named, or when patterns are). It never stops reading: what the
 * supervisor gives no credit for waits in the store's dirty index.
 *
 * Order of life: CONFIG -> store opened -> CREDENTIAL -> discovery -> version -> cluster identity ->
 * streams: each goes on where the store says (WATCH), or begins with a list (WatchList or LIST, then WATCH).
 */
#include "ipc/child.h"
#include "jq/program.h"
#include "kube/resource.h"
#include "object/fingerprint.h"
#include "object/identity.h"
#include "object/namespace.h"
#include "os/slot.h"
#include "store/store.h"
#include "watcher/list/frame.h"
#include "watcher/list/reaction.h"

struct watcher;

/* A series of failures without a success between them, and the pace of attempts, which outlives a success
 * that proves little (trouble_clear) and ends with one that proves much (trouble_forget) or with quiet. */
struct trouble {
        struct watcher *watcher; /* set while there is a deadline */
        unsigned failures;
        unsigned wishes; /* how often Retry-After was honoured in this series */
        enum watch_health health;
        struct kube_error last;
        uint64_t since_boottime, since_realtime;
        uint64_t progress_boottime; /* when an answer was last seen to come in */
        uint64_t delay_usec;        /* base of the next delay, before jitter */
        uint64_t retry_boottime;    /* when the last delay was over */
        sd_event_source *deadline;
        bool relisted; /* a LIST at once was granted */
};

/* Whether the namespace of a stream exists. */
enum namespace_presence {
        NAMESPACE_UNKNOWN,
        NAMESPACE_FOUND,
        NAMESPACE_MISSING,
        NAMESPACE_HIDDEN /* 403 */
};

struct stream {
        struct watcher *watcher;
        const char *namespace_name; /* "" = all */
        enum namespace_presence presence;
        enum stream_state state;
        char *resource_version; /* up to which everything is in the store; "" = nothing is complete */
        char *watched_version;  /* from which the running watch was asked for: what is not newer is a replay
                                 */
        struct kube_transfer *transfer;
        sd_event_source *timer; /* backoff, or the stall of a watch */
        struct trouble trouble;
        struct recent server_error, interruption;
        bool synced, resumed, position_changed;
        bool refreshed; /* a fresh credential was tried at once */

        /* The list, however it comes. */
        uint64_t mark;          /* of the running or last one */
        uint64_t complete_mark; /* of the last complete one: what is marked lower is not there any more */
        bool list_incomplete;   /* an item could not be read: what is missing may be that one */
        bool listing;           /* it is under way, and has shown so many objects, in whole pages so many; */
        uint64_t shown, shown_in_pages;
        int64_t left;       /* so many are still to come; -1: the server does not say */
        bool list_replaces; /* the database went back in time: nothing stored is newer than this list */

        /* LIST */
        struct scan_list *list;
        char *continue_token;
        bool list_unpaged; /* after an expired continue token */

        /* WATCH */
        struct frame frame;
        struct kube_error stream_error; /* an ERROR event */
        uint64_t watch_accepted, watch_events, watch_timeout_sec;
        bool bookmarked, bad_line, settled;

        /* The question beside the watch: probe.c. */
        struct kube_transfer *probe;
        sd_event_source *probe_timer;
        uint64_t probe_asked,
                probe_waited_usec; /* CLOCK_BOOTTIME; by questions that were given up unanswered */
        struct trouble probe_trouble;
        bool probe_due, connection_lost;
};

/* What a server may refuse to understand, and we can do without. */
enum optional { OPTIONAL_LIMIT = 1, OPTIONAL_BOOKMARKS = 2, OPTIONAL_TIMEOUT = 4 };

struct verification; /* objects whose absence a GET must explain: verify.c */
struct search;       /* for our finalizer on what is not selected: search.c */

struct watcher {
        struct child *child;
        struct message *config_message;
        const struct message_config_watcher *config;
        struct kube_client *client;
        struct kube_discovery *discovery;
        struct kube_transfer *identity, *version, *namespace_question;
        sd_event_source *namespace_timer;
        size_t namespace_asked; /* index of the stream whose namespace the question is about */
        struct kube_resource resource;
        struct store *store;
        struct store_meta meta;
        uint64_t went_back_boottime; /* when that was seen of the database; 0: never */
        uint64_t restores;           /* how often, in this life */
        char *scope, *basis, *cluster;
        char *server;         /* identity of the server: its URL and CA, of the newest credential */
        char *cluster_server; /* the same, when the cluster was identified */
        struct stream *stream;
        size_t stream_count;
        struct trouble trouble; /* of discovery and identity */
        sd_event_source *setup_timer;
        sd_event_source *commit_timer; /* of what announces nothing */
        uint64_t committed_monotonic;
        sd_event_source *settle_source; /* commit and announce when the loop has nothing else to do */
        uint64_t settle_monotonic;      /* since when that is to be done */
        struct verification *verification;
        struct search *search; /* NULL: none is asked for */
        uint64_t credit, first_mark;
        uint64_t refresh_serial;  /* a REFRESH was sent for this credential */
        uint64_t throttle_until;  /* no request leaves before */
        enum watch_health health; /* as the supervisor was told */
        unsigned server_minor;    /* of version 1; 0: unknown */
        unsigned left_out;        /* set of enum optional */
        uint64_t left_out_until, no_watch_list_until;
        struct message *doubtful; /* NULL: nothing is */
        struct slot *slot;        /* NULL: nobody looks */
        char *sweep_after;        /* stored objects up to this key are announced; NULL: no sweep */
        bool patterns;
        struct jq_program *trigger_program, *filter_program; /* NULL: none */
        bool discovered, versioned, identified, first_synced, swept, swept_again, deletions_suspended,
                owed_complete, checked;
        bool refreshed;
        bool full; /* see full.c */
        sd_event_source *full_source;
        struct {
                uint64_t events, lists, relists, watch_lists, resumed, reconnects, bookmarks, undecodable,
                        program_failures, replays, owners_ignored, refused;
                uint64_t word_boottime; /* when the server last said something about objects */
        } count;
};

extern const struct child_operations watcher_operations;
void watcher_done(struct watcher *watcher);

/* setup.c: discovery, version and identity; ends in streams_start. */
void setup_continue(struct watcher *watcher);
void setup_rediscover(struct watcher *watcher); /* the resource is not served (any more) */
void setup_identify(struct watcher *watcher);   /* is this still the same cluster? */
int setup_credential(struct watcher *watcher, const struct message_credential *credential);

/* scope.c: what the watch selects, and what absence from it proves. */
char *scope_new(const struct message_config_watcher *config);
char *basis_new(const struct message_config_watcher *config, const char *scope);
bool scope_is_other_resource(const char *known, const char *scope);
bool absence_is_deletion(const struct watcher *watcher);
int meta_save(struct watcher *watcher, bool explained); /* no missing object is unexplained */

/* resume.c: where the last life ended. */
bool resume_is_allowed(const struct watcher *watcher);
bool resume_position_fits(const struct watcher *watcher, const struct store_position *position);
int resume_streams(struct watcher *watcher);
int positions_save(struct watcher *watcher);
int positions_forget(struct watcher *watcher);

/* stream.c: transitions. */
int streams_new(struct watcher *watcher);
void streams_start(struct watcher *watcher);  /* those that stand still */
void streams_resume(struct watcher *watcher); /* those that wait, too: a fresh credential is there */
struct stream *stream_of_key(struct watcher *watcher, const char *key); /* NULL: no stream lists it */
void streams_stop(struct watcher *watcher); /* for good: what they have asked for is given up */
void streams_free(struct watcher *watcher);
void stream_failed(struct stream *stream, enum phase phase, const struct kube_error *error, uint64_t serial);
void stream_react(struct stream *stream, enum reaction reaction, uint64_t delay_usec);
void stream_succeeded(struct stream *stream);
void stream_listed(struct stream *stream, const char *version); /* the list is complete */
void stream_replace(struct stream *stream); /* LIST, and believe nothing that is stored */
int stream_set_resource_version(struct stream *stream, const char *version);
/* Its timer anew; one that runs keeps the handler that it was made with. Without memory the watcher ends. */
void stream_timer_arm(struct stream *stream, uint64_t usec, sd_event_time_handler_t handler);

/* request.c */
enum request { REQUEST_LIST, REQUEST_INITIAL, REQUEST_WATCH, REQUEST_PROBE };
#define REQUEST_ACCEPT_LIST_METADATA "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
char *request_path(const struct stream *stream, enum request request);
const char *request_accept(const struct watcher *watcher, enum request request);
bool request_reduce(struct watcher *watcher, enum phase phase); /* false: nothing is left to leave out */
bool request_is_left_out(const struct watcher *watcher, enum optional optional);
bool request_may_stream_list(const struct stream *stream);

/* search.c */
int search_begin(struct watcher *watcher);
/* Goes on with it, if there is one; also true while the server refuses it (search_unseen()). */
bool search_is_through(struct watcher *watcher);
const char *search_unseen(const struct watcher *watcher); /* why not all could be looked at; "" */
void search_free(struct watcher *watcher);

/* missing.c: namespaces that do not exist. */
#define NAMESPACES_TOLD 8
void namespaces_look(struct watcher *watcher); /* asks for those that were not found yet */
void namespace_found(struct stream *stream);
/* Their names, the first ones; owned by the caller. NULL: there is none, or no memory. */
char *namespaces_missing(const struct watcher *watcher);

/* list.c, watch.c, event.c, probe.c */
void list_start(struct stream *stream); /* as WatchList where that works */
void list_page(struct stream *stream);  /* the page that is due */
void watch_start(struct stream *stream);
void watch_initial(struct stream *stream);
int event_take(const char *line, size_t size, void *stream);
void probe_start(struct stream *stream);
void probe_cancel(struct stream *stream);
void probe_answered(struct stream *stream);                       /* or a LIST answers it */
void probe_found_older(struct stream *stream, const char *found); /* the database went back in time */

/* trouble.c. Returns the delay before the next attempt; ends the process past the deadline (then negative).
 */
int64_t trouble_note(struct watcher *watcher, struct trouble *trouble, const struct kube_error *error,
                     uint64_t serial);
/* A request is about to start: one that is held back by a server's wish is subject to the deadline, too. */
/* Retry-After, of this resource; "": of the whole server. */
void trouble_wish(struct watcher *watcher, const char *resource, uint64_t until_boottime);
void trouble_held(struct watcher *watcher, struct trouble *trouble);
void trouble_progress(struct trouble *trouble);
void trouble_slow(const struct watcher *watcher,
                  struct trouble *trouble); /* the next delay is the longest */
void trouble_clear(struct watcher *watcher, struct trouble *trouble);
void trouble_forget(struct watcher *watcher, struct trouble *trouble);
void trouble_done(struct trouble *trouble);
/* The watch stands still, and only this is why: degraded, and past its deadline as with other trouble. */
void trouble_stand(struct watcher *watcher, const char *why);
uint64_t trouble_delay(const struct watcher *watcher, struct trouble *trouble);
/* What is no failure but must not be repeated at full speed: 0 the first time. */
uint64_t trouble_pace(const struct watcher *watcher, struct trouble *trouble);
/* Others must know: a credential that is refused, a server that wants to be left alone. */
void trouble_tell(struct watcher *watcher, const struct kube_error *error, uint64_t serial);

/* apply.c: what came from the server goes to the store. Negative: the store failed (fatal was said). */
int apply_object(struct stream *stream, const char *json, size_t size, bool listed);
int apply_skipped(struct stream *stream); /* a listed object that is too large */
int apply_deleted(struct stream *stream, const char *json, size_t size);
int apply_absent(struct stream *stream); /* a complete list did not have these */
int apply_gone(struct watcher *watcher, const char *key, const char *uid); /* certain: deleted */
/* It exists. other_kind: it is a row of what the watch was about before. */
bool apply_is_chosen(const struct watcher *watcher, const char *key); /* its namespace is */
int apply_unselected(struct watcher *watcher, const char *key, const char *uid, bool other_kind);
int apply_out_of_scope(struct watcher *watcher);
/* restored.c: negative errno of the store. */
bool restored_lately(const struct watcher *watcher);
int restored_note(struct watcher *watcher);
int restored_load(struct watcher *watcher);

/* finalizer.c: fills in what the object says of our finalizer, before it replaces what the store holds. */
int finalizer_note(struct watcher *watcher, struct store_object *object, bool listed);
int finalizer_note_end(struct watcher *watcher, struct store_object *last);
/* Before anything is announced; negative errno of the store. on_progress: for as long as it takes. */
int finalizer_unhold(struct watcher *watcher, void (*on_progress)(void *userdata), void *userdata);
/* The stored object must have its JSON. */
enum finalizer_state finalizer_of_stored(const struct watcher *watcher, const struct store_object *object);
/* doubt.c */
enum doubt {
        DOUBT_NONE,
        DOUBT_PROGRAM, /* no jq program is run on it */
        DOUBT_UNREAD,  /* its content is not looked at */
};
int doubts_set(struct watcher *watcher, struct message **message);
enum doubt doubt_of(const struct watcher *watcher, const char *key, const char *uid);
/* owned.c: of a watch of owned objects. */
static inline bool is_owned(const struct watcher *watcher)
{
        return watcher->config->owner_kind[0] != '\0';
}
int owned_before_put(struct watcher *watcher, const struct store_object *object);
/* The object is stored already, by any release: a list completes what the store knows of owners. */
int owned_again(struct watcher *watcher, const struct store_object *object);
int owned_changed(struct watcher *watcher, const struct store_object *object);
int owned_gone(struct watcher *watcher, const char *key);
int store_failed(struct watcher *watcher, int status);
/* full.c: what is confidential does not fit into the memory that it may have. Returns -ECANCELED. */
int watcher_is_full(struct watcher *watcher);
static inline bool watcher_is_over(const struct watcher *watcher)
{
        return watcher->child->stopping || watcher->full;
}

/* announce.c */
void announce_soon(struct watcher *watcher);
int announce_in_time(struct watcher *watcher); /* the same, or at once: not from a visitor of the store */
/* All that exists, from the beginning, and SWEPT behind it. */
int announce_restored(struct watcher *watcher);
int announce_again(struct watcher *watcher);
int announce_now(struct watcher *watcher);
int announce_due(struct watcher *watcher);        /* while events pour in: when a batch is full */
int announce_tombstones(struct watcher *watcher); /* once, before the streams begin */
void announce_synced(struct watcher *watcher);

/* verify.c */
int verification_new(struct watcher *watcher, struct verification **ret);
void verification_free(struct verification *verification);
int verification_add(struct watcher *watcher, const char *key, const char *uid, bool owed);
bool verification_idle(const struct watcher *watcher);
void verification_continue(struct watcher *watcher);

/* owed.c */
int owed_take(struct watcher *watcher, const struct message_owed *owed);
void owed_finish_maybe(struct watcher *watcher);
