/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/reaction.h"

static const enum reaction reaction[PHASE_COUNT][ANSWER_COUNT] = {
        [PHASE_LIST] =
                {
                        [ANSWER_GONE] =
                                REACT_LIST_LATER, /* the newest state cannot be gone: do not hammer */
                        [ANSWER_TOO_LARGE] = REACT_LIST_LATER,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_LIST,
                        [ANSWER_FORBIDDEN] = REACT_LIST_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_THROTTLED] = REACT_LIST_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_LATER,
                        [ANSWER_SERVER_ERROR] = REACT_LIST_LATER,
                        [ANSWER_UNREACHABLE] = REACT_LIST_LATER,
                        [ANSWER_INTERRUPTED] = REACT_LIST_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
        [PHASE_CONTINUE] =
                {
                        [ANSWER_GONE] = REACT_LIST_UNPAGED,
                        [ANSWER_TOO_LARGE] = REACT_LIST_LATER,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_LIST,
                        [ANSWER_FORBIDDEN] = REACT_LIST_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_THROTTLED] = REACT_LIST_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_LATER,
                        [ANSWER_SERVER_ERROR] = REACT_LIST_LATER,
                        [ANSWER_UNREACHABLE] = REACT_LIST_LATER,
                        [ANSWER_INTERRUPTED] = REACT_LIST_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
        [PHASE_WATCH] =
                {
                        [ANSWER_GONE] = REACT_LIST_NOW,
                        [ANSWER_TOO_LARGE] = REACT_LIST_NOW,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_WATCH,
                        [ANSWER_FORBIDDEN] = REACT_WATCH_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_THROTTLED] = REACT_WATCH_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_LATER,
                        [ANSWER_SERVER_ERROR] = REACT_WATCH_LATER,
                        [ANSWER_UNREACHABLE] = REACT_WATCH_LATER,
                        [ANSWER_INTERRUPTED] = REACT_WATCH_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
        [PHASE_STREAM] =
                {
                        [ANSWER_GONE] = REACT_LIST_NOW,
                        [ANSWER_TOO_LARGE] = REACT_LIST_NOW,
                        [ANSWER_UNAUTHORIZED] = REACT_REFRESH_WATCH,
                        [ANSWER_FORBIDDEN] = REACT_WATCH_LATER,
                        [ANSWER_NOT_FOUND] = REACT_REDISCOVER,
                        [ANSWER_THROTTLED] = REACT_WATCH_LATER,
                        [ANSWER_REFUSED] = REACT_LIST_LATER,
                        [ANSWER_SERVER_ERROR] = REACT_WATCH_LATER,
                        [ANSWER_UNREACHABLE] = REACT_WATCH_LATER,
                        [ANSWER_INTERRUPTED] = REACT_WATCH_LATER,
                        [ANSWER_UNINTELLIGIBLE] = REACT_LIST_LATER,
                },
};

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
                return ANSWER_THROTTLED;
        default:
                return error->http_status >= 400 && error->http_status < 500 ? ANSWER_REFUSED
                                                                             : ANSWER_SERVER_ERROR;
        }
}

enum answer answer_of(const struct kube_error *error)
{
        switch (error->failure) {
        case KUBE_FAILURE_HTTP:
                return answer_of_status(error);
        case KUBE_FAILURE_CONNECT:
        case KUBE_FAILURE_TLS:
        case KUBE_FAILURE_TIMEOUT:
                return ANSWER_UNREACHABLE;
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
