/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How a stream reacts to an answer: one table over phase and answer. Source: client-go's reflector, and
 * where we differ from it (docs/watch.md). Every cell is defined; there is no default branch.
 */
#include "kube/kube-error.h"

enum stream_state {
        STREAM_STOPPED, /* discovery or identity first */
        STREAM_LISTING, /* page by page */
        STREAM_INITIAL, /* the list comes as the first events of a watch (WatchList) */
        STREAM_WATCHING,
        STREAM_WAITING_TO_LIST,
        STREAM_WAITING_FOR_PAGE, /* the same page of a LIST again */
        STREAM_WAITING_TO_WATCH,
        STREAM_STATE_COUNT
};

enum phase {
        PHASE_LIST,     /* the first page, or a LIST without pages */
        PHASE_CONTINUE, /* a later page */
        PHASE_INITIAL,  /* a WatchList before the bookmark that ends its list */
        PHASE_WATCH,    /* the answer to the watch request */
        PHASE_STREAM,   /* an ERROR event inside the stream, or a stream that cannot be read */
        PHASE_COUNT
};

enum answer {
        ANSWER_GONE,           /* 410, whatever its reason */
        ANSWER_TOO_LARGE,      /* 504 ResourceVersionTooLarge, or only its message */
        ANSWER_UNAUTHORIZED,   /* 401 */
        ANSWER_FORBIDDEN,      /* 403 */
        ANSWER_NOT_FOUND,      /* 404: the kind is not served */
        ANSWER_BUSY,           /* 429; 5xx with Retry-After */
        ANSWER_REFUSED,        /* 400 405 406 415 422 and other 4xx: the server will not have this request */
        ANSWER_SERVER_ERROR,   /* 5xx */
        ANSWER_SERVER_ERRORS,  /* the third within a minute */
        ANSWER_UNREACHABLE,    /* no connection, TLS */
        ANSWER_INTERRUPTED,    /* the connection broke in the middle; one line could not be read */
        ANSWER_SILENT,         /* nothing came for too long */
        ANSWER_UNINTELLIGIBLE, /* bytes that are no answer */
        ANSWER_COUNT
};

enum reaction {
        REACT_FATAL,    /* cannot happen: a bug of ours */
        REACT_LIST_NOW, /* LIST at once, from the newest state; a second time in a row after the backoff */
        REACT_LIST_UNPAGED, /* at once, without pages: the continue token has expired */
        REACT_LIST_INSTEAD, /* LIST at once, and no WatchList for an hour */
        REACT_LIST_REDUCED, /* at once with an optional parameter less; none left: after the longest backoff
                             */
        REACT_LIST_LATER,   /* LIST after the backoff */
        REACT_PAGE_LATER,   /* the same page after the backoff */
        REACT_WATCH_NOW,    /* watch again at once, same resourceVersion */
        REACT_WATCH_REDUCED,
        REACT_WATCH_LATER,  /* after the backoff, same resourceVersion */
        REACT_REFRESH_LIST, /* ask for a fresh credential; LIST after the backoff, or once when it comes */
        REACT_REFRESH_PAGE,
        REACT_REFRESH_WATCH,
        REACT_REDISCOVER, /* after the backoff, ask again which resource the kind has */
        REACTION_COUNT
};

enum answer answer_of(const struct kube_error *error);
enum reaction reaction_to(enum phase phase, enum answer answer);

/* Times of the last failures of one sort; zeroed, it has seen none. */
struct recent {
        uint64_t boottime[2];
};

#define RECENT_USEC UINT64_C(60000000)

/* Notes a failure. True for the third within RECENT_USEC, which starts the count again. */
bool recent_note(struct recent *recent, uint64_t now);
