/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/stream/reaction.h"

static const enum reaction reaction[PHASE_COUNT][ANSWER_COUNT] = {
        [PHASE_LIST] =
                {
                        [ANSWER_GONE] = REACT_LIST_NOW,
                        [ANSWER_TOO_LARGE] = REACT_LIST_NOW,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_LIST,
                        [ANSWER_FORBIDDEN] = REACT_LIST_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_BUSY] = REACT_LIST_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_REDUCED,
                        [ANSWER_SERVER_ERROR] = REACT_LIST_LATER,
                        [ANSWER_SERVER_ERRORS] = REACT_LIST_LATER,
                        [ANSWER_UNREACHABLE] = REACT_LIST_LATER,
                        [ANSWER_INTERRUPTED] = REACT_LIST_LATER,
                        [ANSWER_SILENT] = REACT_LIST_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
        [PHASE_CONTINUE] =
                {
                        [ANSWER_GONE] = REACT_LIST_UNPAGED,
                        [ANSWER_TOO_LARGE] = REACT_LIST_NOW,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_PAGE,
                        [ANSWER_FORBIDDEN] = REACT_PAGE_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_BUSY] = REACT_PAGE_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_UNPAGED,
                        [ANSWER_SERVER_ERROR] = REACT_PAGE_LATER,
                        [ANSWER_SERVER_ERRORS] = REACT_LIST_LATER,
                        [ANSWER_UNREACHABLE] = REACT_PAGE_LATER,
                        [ANSWER_INTERRUPTED] = REACT_PAGE_LATER,
                        [ANSWER_SILENT] = REACT_PAGE_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
        [PHASE_INITIAL] =
                {
                        [ANSWER_GONE] = REACT_LIST_INSTEAD,
                        [ANSWER_TOO_LARGE] = REACT_LIST_INSTEAD,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_LIST,
                        [ANSWER_FORBIDDEN] = REACT_LIST_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_BUSY] = REACT_LIST_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_INSTEAD,
                        [ANSWER_SERVER_ERROR] = REACT_LIST_INSTEAD,
                        [ANSWER_SERVER_ERRORS] = REACT_LIST_INSTEAD,
                        [ANSWER_UNREACHABLE] = REACT_LIST_LATER,
                        [ANSWER_INTERRUPTED] = REACT_LIST_LATER,
                        [ANSWER_SILENT] = REACT_LIST_INSTEAD,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_INSTEAD,
                },
        [PHASE_WATCH] =
                {
                        [ANSWER_GONE] = REACT_LIST_NOW,
                        [ANSWER_TOO_LARGE] = REACT_LIST_NOW,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_WATCH,
                        [ANSWER_FORBIDDEN] = REACT_WATCH_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_BUSY] = REACT_WATCH_LATER,
                        [ANSWER_REFUSED] = REACT_WATCH_REDUCED,
                        [ANSWER_SERVER_ERROR] = REACT_WATCH_LATER,
                        [ANSWER_SERVER_ERRORS] = REACT_LIST_LATER,
                        [ANSWER_UNREACHABLE] = REACT_WATCH_LATER,
                        [ANSWER_INTERRUPTED] = REACT_WATCH_LATER,
                        [ANSWER_SILENT] = REACT_WATCH_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
        [PHASE_STREAM] =
                {
                        [ANSWER_GONE] = REACT_LIST_NOW,
                        [ANSWER_TOO_LARGE] = REACT_LIST_NOW,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_WATCH,
                        [ANSWER_FORBIDDEN] = REACT_WATCH_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_BUSY] = REACT_WATCH_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_LATER,
                        [ANSWER_SERVER_ERROR] = REACT_WATCH_LATER,
                        [ANSWER_SERVER_ERRORS] = REACT_LIST_LATER,
                        [ANSWER_UNREACHABLE] = REACT_WATCH_LATER,
                        [ANSWER_INTERRUPTED] = REACT_WATCH_LATER,
                        [ANSWER_SILENT] = REACT_WATCH_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
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
        return reaction[phase][answer];
}

bool recent_note(struct recent *recent, uint64_t now)
{
        bool third = recent->boottime[0] != 0 && now - recent->boottime[0] < RECENT_USEC;

        recent->boottime[0] = third ? 0 : recent->boottime[1];
        recent->boottime[1] = third ? 0 : now;
        return third;
}
