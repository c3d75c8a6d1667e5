/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/reaction.h"

#define ROW(answer, list, page, initial, watch, stream)                                                     \
        [ANSWER_##answer] = {[PHASE_LIST] = REACT_##list,                                                   \
                             [PHASE_CONTINUE] = REACT_##page,                                               \
                             [PHASE_INITIAL] = REACT_##initial,                                             \
                             [PHASE_WATCH] = REACT_##watch,                                                 \
                             [PHASE_STREAM] = REACT_##stream}

static const enum reaction reaction[ANSWER_COUNT][PHASE_COUNT] = {
        /* To: LIST, a later page, a WatchList, the watch, in a stream */
        ROW(GONE, LIST_NOW, LIST_UNPAGED, LIST_INSTEAD, LIST_NOW, LIST_NOW),
        ROW(TOO_LARGE, LIST_NOW, LIST_NOW, LIST_INSTEAD, LIST_NOW, LIST_NOW),
        ROW(UNAUTHORIZED, REFRESH_LIST, REFRESH_PAGE, REFRESH_LIST, REFRESH_WATCH, REFRESH_WATCH),
        ROW(FORBIDDEN, LIST_LATER, PAGE_LATER, LIST_LATER, WATCH_LATER, WATCH_LATER),
        ROW(NOT_FOUND, REDISCOVER, REDISCOVER, REDISCOVER, REDISCOVER, REDISCOVER),
        ROW(BUSY, LIST_LATER, PAGE_LATER, LIST_LATER, WATCH_LATER, WATCH_LATER),
        ROW(REFUSED, LIST_REDUCED, LIST_UNPAGED, LIST_INSTEAD, WATCH_REDUCED, LIST_LATER),
        ROW(SERVER_ERROR, LIST_LATER, PAGE_LATER, LIST_INSTEAD, WATCH_LATER, WATCH_LATER),
        ROW(SERVER_ERRORS, LIST_LATER, LIST_LATER, LIST_INSTEAD, LIST_LATER, LIST_LATER),
        ROW(UNREACHABLE, LIST_LATER, PAGE_LATER, LIST_LATER, WATCH_LATER, WATCH_LATER),
        ROW(INTERRUPTED, LIST_LATER, PAGE_LATER, LIST_LATER, WATCH_LATER, WATCH_LATER),
        ROW(SILENT, LIST_LATER, PAGE_LATER, LIST_INSTEAD, WATCH_LATER, WATCH_LATER),
        ROW(UNINTELLIGIBLE, LIST_LATER, LIST_LATER, LIST_INSTEAD, LIST_LATER, LIST_LATER),
};

/* Retry-After outranks the meaning of the status: the server is there, and says when to come back. */
static enum answer answer_of_status(const struct kube_error *error)
{
        if (error->resource_version_too_large)
                return ANSWER_TOO_LARGE;
        switch (error->http_status) {
        case 401:
                return ANSWER_UNAUTHORIZED;
        case 403:
                return ANSWER_FORBIDDEN;
        case 404:
                return ANSWER_NOT_FOUND;
        case 410:
                return ANSWER_GONE;
        case 429:
                return ANSWER_BUSY;
        default:
                break;
        }
        if (error->http_status >= 400 && error->http_status < 500)
                return ANSWER_REFUSED;
        return kube_error_wish_usec(error) > 0 ? ANSWER_BUSY : ANSWER_SERVER_ERROR;
}

enum answer answer_of(const struct kube_error *error)
{
        switch (error->failure) {
        case KUBE_FAILURE_HTTP:
                return answer_of_status(error);
        case KUBE_FAILURE_CONNECT:
        case KUBE_FAILURE_TLS:
                return ANSWER_UNREACHABLE;
        case KUBE_FAILURE_TIMEOUT:
                return ANSWER_SILENT;
        case KUBE_FAILURE_HELD:
                return ANSWER_BUSY;
        case KUBE_FAILURE_INTERRUPTED:
        case KUBE_FAILURE_CANCELLED:
                return ANSWER_INTERRUPTED;
        case KUBE_FAILURE_NONE:
        case KUBE_FAILURE_PROTOCOL:
        case KUBE_FAILURE_COUNT:
                break;
        }
        return ANSWER_UNINTELLIGIBLE;
}

enum reaction reaction_to(enum phase phase, enum answer answer)
{
        if ((unsigned)phase >= PHASE_COUNT || (unsigned)answer >= ANSWER_COUNT)
                return REACT_FATAL;
        return reaction[answer][phase];
}

bool recent_note(struct recent *recent, uint64_t now)
{
        bool third = recent->boottime[0] != 0 && now - recent->boottime[0] < RECENT_USEC;

        recent->boottime[0] = third ? 0 : recent->boottime[1];
        recent->boottime[1] = third ? 0 : now;
        return third;
}
