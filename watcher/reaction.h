/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a stream does about an answer: one table over phase and answer. Source: kube-api.md section 1
 * (client-go's reflector, and where we differ from it). Every cell is defined; there is no default branch.
 */
#include "kube/error.h"

enum stream_state {
        STREAM_STOPPED, /* discovery or identity first */
        STREAM_LISTING,
        STREAM_WATCHING,
        STREAM_WAITING_TO_LIST,
        STREAM_WAITING_TO_WATCH,
        STREAM_STATE_COUNT
};

enum phase {
        PHASE_LIST,     /* the first page, or a LIST without pages */
        PHASE_CONTINUE, /* a later page */
        PHASE_WATCH,    /* the answer to the watch request */
        PHASE_STREAM,   /* an ERROR event inside the stream */
        PHASE_COUNT
};

enum answer {
        ANSWER_GONE,           /* 410, whatever its reason */
        ANSWER_TOO_LARGE,      /* 504 ResourceVersionTooLarge */
        ANSWER_UNAUTHORIZED,   /* 401 */
        ANSWER_FORBIDDEN,      /* 403 */
        ANSWER_NOT_FOUND,      /* 404: the kind is not served */
        ANSWER_THROTTLED,      /* 429 */
        ANSWER_REFUSED,        /* other 4xx: the server will not have this request */
        ANSWER_SERVER_ERROR,   /* 5xx */
        ANSWER_UNREACHABLE,    /* no connection, TLS, timeout */
        ANSWER_INTERRUPTED,    /* the connection broke in the middle */
        ANSWER_UNINTELLIGIBLE, /* bytes that are no answer */
        ANSWER_COUNT
};

enum reaction {
        REACT_FATAL,        /* cannot happen: a bug of ours */
        REACT_LIST_NOW,     /* LIST at once, from the newest state */
        REACT_LIST_UNPAGED, /* at once, without pages: the continue token has expired */
        REACT_LIST_LATER,   /* LIST after the backoff */
        REACT_WATCH_NOW,    /* watch again at once, same resourceVersion */
        REACT_WATCH_LATER,  /* after the backoff, same resourceVersion */
        REACT_REFRESH_LIST, /* ask for a fresh credential; LIST after the backoff, or when it comes */
        REACT_REFRESH_WATCH,
        REACT_REDISCOVER, /* after the backoff, ask again which resource the kind has */
        REACTION_COUNT
};

enum answer answer_of(const struct kube_error *error);
enum reaction reaction_to(enum phase phase, enum answer answer);
