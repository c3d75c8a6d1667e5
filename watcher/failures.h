/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A series of failures: backoff (first, x2, capped, uniform in [d, 2d): client-go's), the watch's deadline, and
 * reports to the supervisor. A success ends the series: a watch that works is not in trouble. The pace of
 * attempts is forgotten more slowly: it starts again only after an event of a watch that has lasted, or after two
 * minutes without a failure; else a LIST that succeeds between failing watches would keep it at full speed.
 *
 * The deadline is held by a timer, not by the next failure: a request that a server's Retry-After holds back
 * for an hour is subject to it as well. It does not cut off an answer that is coming in.
 *
 * A namespace that the server refuses (403) ends nothing as long as another one of the watch is not past its
 * deadline for the same reason: it keeps what is known of it, and is tried again at the slowest pace.
 */
#include "ipc/child.h"
#include "kube/kube-error.h"

struct watcher;

/* All zero: there was no failure. */
struct failures {
        struct watcher *watcher; /* set while there is a deadline */
        unsigned count;          /* in a row */
        unsigned wishes;         /* how often Retry-After was honoured in this series */
        enum watch_health health;
        struct kube_error last;
        uint64_t since_boottime, since_realtime;
        uint64_t progress_boottime; /* when an answer was last seen to come in */
        uint64_t delay_usec;        /* base of the next delay, before jitter */
        uint64_t retry_boottime;    /* when the last delay was over */
        sd_event_source *deadline;
        bool relisted; /* a LIST at once was granted */
        bool refused;  /* the server said 403 since the last success */
};

/* Notes a failure and tells the supervisor where it is news. serial: of the credential that was used; 0:
 * it is unknown. Returns the delay before the next attempt, in microseconds; negative: past the
 * deadline, and the process ends. */
int64_t failures_note(struct watcher *watcher, struct failures *failures, const struct kube_error *error,
                      uint64_t serial);
/* A request is about to start: one that Retry-After holds back is subject to the deadline, too. */
void failures_held(struct watcher *watcher, struct failures *failures);
/* Notes that an answer is coming in. */
void failures_progress(struct failures *failures);
/* Notes a success that proves little: the series is over, its pace stays. */
void failures_clear(struct watcher *watcher, struct failures *failures);
/* Notes a success that proves much. */
void failures_forget(struct watcher *watcher, struct failures *failures);
void failures_done(struct failures *failures);
/* The watch stands still, and only this is why: degraded, and past its deadline as with any failure. */
void failures_stand(struct watcher *watcher, const char *why);

/* The pace alone, in microseconds: the next delay, with jitter. */
uint64_t failures_delay(const struct watcher *watcher, struct failures *failures);
/* The next delay is the longest. */
void failures_slow(const struct watcher *watcher, struct failures *failures);
/* The delay of what is no failure but must not be repeated at full speed: 0 the first time. */
uint64_t failures_pace(const struct watcher *watcher, struct failures *failures);

/* Passes on what others must know: a credential that is refused, a server that asks us to wait. */
void failures_tell(struct watcher *watcher, const struct kube_error *error, uint64_t serial);
/* Retry-After was heard, of this resource; "": of the whole server. */
void failures_wish(struct watcher *watcher, const char *resource, uint64_t until_boottime);
