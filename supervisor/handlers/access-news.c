/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/handlers/access-news.h"

#include <errno.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "controller/due/push.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"

/* As long as runs can go on with it, a credential that cannot be renewed is no trouble of the watch. */
static void tell_failing(const struct access_state *state, bool was_failing)
{
        const struct log_field fields[] = {{"RECONCILED_WATCH", state->watch}, {NULL, NULL}};

        if (state->failing && !was_failing)
                log_write(
                        LOG_WARNING, MESSAGE_ID_ACCESS_FAILING, fields,
                        "the access of the handler of watch %s cannot be renewed; it stays in use while it "
                        "is valid, and renewal is retried: %s",
                        state->watch, state->trouble.reason);
        else if (!state->failing && was_failing)
                log_write(LOG_INFO, MESSAGE_ID_ACCESS_RENEWED, fields,
                          "the access of the handler of watch %s can be renewed again", state->watch);
}

static bool is_past_deadline(const struct watch *watch, const struct message_access *message)
{
        return !message->usable && message->since_boottime > 0 &&
               clock_boottime_usec() >= message->since_boottime + watch->config->deadline_usec;
}

static int end_for_access(const struct watch *watch, const struct message_access *message)
{
        int code = message->exit_code == EXIT_CODE_UNAVAILABLE ? EXIT_CODE_UNAVAILABLE
                                                               : EXIT_CODE_NO_PERMISSION;

        supervisor_fatal(
                supervisor_of(watch), code, NULL, NULL,
                "the handler of watch %s has had no access to the API server for longer than the watch's "
                "deadline: %s",
                watch->config->name, message->reason);
        return 0;
}

/* A file that is missing has no deadline, and so no time in the message. */
static uint64_t since_when(const struct access_state *state, const struct message_access *message)
{
        if (message->since_boottime > 0)
                return clock_realtime_usec() - (clock_boottime_usec() - message->since_boottime);
        if (message->usable || !message->reason[0])
                return 0;
        return state->trouble.since_realtime > 0 ? state->trouble.since_realtime : clock_realtime_usec();
}

int access_take(struct supervisor *supervisor, const struct message_access *message)
{
        struct access_state *state = access_find(supervisor, message->watch);
        struct watch *watch = watch_find(&supervisor->controller, message->watch);
        enum watch_health before = state ? state->trouble.health : WATCH_HEALTHY;
        bool was_failing = state && state->failing, isolated;

        if (!state && !(state = access_add(supervisor, message->watch)))
                return -ENOMEM;
        if (text_replace(&state->trouble.reason, message->reason) < 0)
                return -ENOMEM;
        state->usable = message->usable;
        state->failing = message->usable && message->reason[0];
        state->expires_realtime = message->expires_realtime;
        state->trouble.failures = message->failures;
        state->trouble.since_realtime = since_when(state, message);
        isolated = watch && watch->config->on_deadline == ON_DEADLINE_ISOLATE;
        if (watch && !isolated && is_past_deadline(watch, message))
                return end_for_access(watch, message);
        state->trouble.health = message->usable || !message->reason[0]         ? WATCH_HEALTHY
                                : isolated && is_past_deadline(watch, message) ? WATCH_FAILED
                                                                               : WATCH_DEGRADED;
        /* When the watch works again, that is reported. */
        if (was_failing && !message->usable)
                was_failing = false;
        tell_failing(state, was_failing);
        if (!watch)
                return 0;
        watch->awaits_token = access_awaited(watch);
        pause_apply(watch);
        turn_settle_soon(supervisor);
        return before != state->trouble.health ? health_review(watch) : 0;
}
