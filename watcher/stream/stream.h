/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A stream: LIST+WATCH of one namespace, or of all. This file holds what all parts of it share; how its
 * state changes is decided in list/transitions.c.
 */
#include "kube/client.h"
#include "object/scan.h"
#include "watcher/stream/frame.h"
#include "watcher/stream/reaction.h"
#include "watcher/watcher.h"

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
        char *watched_version;  /* that the watch was asked from: an event that is not newer is a replay */
        struct kube_transfer *transfer; /* the watch */
        struct fiber *lister;           /* list/list.c; NULL: no list is in flight */
        sd_event_source *timer;         /* backoff, or the stall of a watch */
        struct failures failures;
        struct recent server_error, interruption;
        struct kube_error stream_error; /* an ERROR event, or a list that cannot be read */
        bool synced;           /* a list was complete in this life, or the last life's is believed */
        bool resumed;          /* goes on where the last life ended */
        bool position_changed; /* since it was last saved */
        bool refreshed;        /* a fresh credential was tried at once */
        bool refusal_told;     /* stream/refused-namespaces.c */
        bool connection_lost;

        /* The list, however it comes. */
        uint64_t mark;          /* of the running or last one */
        uint64_t complete_mark; /* of the last complete one: a lower mark means that the object is gone */
        bool list_incomplete;   /* an item could not be read: a missing object may be that one */
        bool list_replaces;     /* the database went back in time: nothing stored is newer than this list */
        struct {
                bool listing;
                uint64_t shown, shown_in_pages; /* objects; of them, those in whole pages */
                int64_t left; /* number of objects still to come; -1 if the server does not say */
        } progress;

        /* LIST */
        char *continue_token;
        bool list_unpaged; /* after an expired continue token */

        /* WATCH */
        struct frame frame;
        uint64_t watch_accepted, watch_events, watch_timeout_sec;
        bool bookmarked, bad_line, settled;

        struct {
                struct fiber *fiber;  /* asks; NULL if none does */
                uint64_t waited_usec; /* for questions that were given up unanswered */
                struct failures failures;
                bool due;
        } probe; /* probe.c: the question beside the watch */
};

/* The server refuses this namespace (403), and not all of the watch: the others go on without it. */
bool stream_is_refused(const struct stream *stream);
/* No stream has still to list its objects. */
bool streams_are_synced(const struct watcher *watcher);
/* Describes these streams for people: how many, and the names of the first ones. The caller owns the text; NULL
 * if there is none, or no memory. */
size_t streams_count(const struct watcher *watcher, bool (*is_meant)(const struct stream *stream));
char *streams_names(const struct watcher *watcher, bool (*is_meant)(const struct stream *stream));
/* Makes watcher->stream. 0, -ENOMEM; what was made belongs to the watcher also after a failure. */
int streams_new(struct watcher *watcher);
void streams_free(struct watcher *watcher);
/* Gives up for good what they have asked for. */
void streams_stop(struct watcher *watcher);
bool stream_has_key(const struct stream *stream, const char *key); /* by its namespace */

/* The stream that lists this key; NULL if none does. */
struct stream *stream_of_key(struct watcher *watcher, const char *key);
int stream_set_resource_version(struct stream *stream, const char *version); /* 0, -ENOMEM */

/* Sets the stream's timer, by CLOCK_BOOTTIME: time that the machine sleeps counts. A timer that there is keeps the handler that
 * it was made with: it is moved, not made again, as this happens with each event. Without memory the watcher ends. */
void stream_timer_arm(struct stream *stream, uint64_t usec, sd_event_time_handler_t handler);
/* Gives up whatever it has asked for, and waits for nothing. */
void stream_give_up(struct stream *stream);
/* The stream has shown that it works. */
void stream_succeeded(struct stream *stream);
