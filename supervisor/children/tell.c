/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/tell.h"

#include <string.h>

#include "base/duration.h"
#include "controller/change/owed.h"
#include "controller/due/retry.h"
#include "controller/effects.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "supervisor/children/doubtful.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/supervisor.h"

static bool talks_to_server(const struct child_slot *child)
{
        return (child->process.role == ROLE_WATCHER || child->process.role == ROLE_WORKER) &&
               child->process.state == CHILD_RUNNING;
}

/* The lease process asks even if the server wants us to wait: a lead that is lost costs it more. */
static bool gets_credential(const struct child_slot *child)
{
        return talks_to_server(child) ||
               (child->process.role == ROLE_LEASE && child->process.state == CHILD_RUNNING);
}

static void send_credential(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;

        if (supervisor->credential && gets_credential(child))
                (void)channel_send(child->process.channel, MESSAGE_CREDENTIAL,
                                   &supervisor->credential->credential);
}

static void send_throttles(struct child_slot *child)
{
        const struct throttles *throttles = &child->supervisor->throttles;

        for (size_t i = 0; i < THROTTLES_MAX && talks_to_server(child); i++)
                if (throttles->entry[i].until > clock_boottime_usec())
                        (void)channel_send(
                                child->process.channel, MESSAGE_THROTTLE,
                                &(struct message_throttle){.resource = throttles->entry[i].resource,
                                                           .until_boottime = throttles->entry[i].until});
}

void tell_ready(struct child_slot *child)
{
        struct supervisor *supervisor = child->supervisor;
        struct watch *watch;
        int r = child->process.role == ROLE_WATCHER
                        ? doubtful_tell(&supervisor->controller.watch[child->index])
                        : 0;

        if (r >= 0 && child->process.role == ROLE_WATCHER)
                r = owed_begin(&supervisor->controller.watch[child->index]);
        if (r < 0) {
                ledger_failed(&supervisor->controller, r);
                return;
        }
        /* A Retry-After of the server also binds a child that a reload has started. Nothing is read before
         * it has its credential. */
        send_throttles(child);
        send_credential(child);
        if (child->process.role == ROLE_WATCHER) {
                watch = &supervisor->controller.watch[child->index];
                watch->credit_given = CREDIT_LIMIT;
                (void)channel_send(
                        child->process.channel, MESSAGE_CREDIT,
                        &(struct message_credit){.watch = watch->config->name, .amount = CREDIT_LIMIT});
        }
        if (child->process.role == ROLE_GATEWAY)
                gateway_tell(supervisor);
        if (child->process.role == ROLE_WORKER)
                lead_tell(child);
        turn_settle_soon(supervisor);
}

int tell_credential(struct supervisor *supervisor, struct message **message)
{
        bool renewed = supervisor->credential;

        message_free(supervisor->credential);
        supervisor->credential = TAKE_PTR(*message);
        supervisor->controller.has_credential = true;
        FOREACH_WATCH(watch, &supervisor->controller)
                if (renewed)
                        recover(watch);
        turn_settle_soon(supervisor);
        for (size_t i = 0; i < supervisor->child_count; i++)
                send_credential(&supervisor->child[i]);
        return 0;
}

#define STILL_USEC USEC_PER_MINUTE /* wishes that follow one another that closely are one state */

/* Reports each state once, however many requests and objects wait for it. */
static void tell_held_back(const struct throttles *throttles, const struct message_throttle *throttle)
{
        uint64_t now = clock_boottime_usec();
        const char *resource = throttle->resource;
        char text[64];

        for (size_t i = 0; i < THROTTLES_MAX; i++)
                if (throttles->entry[i].until + STILL_USEC > now && throttles->entry[i].until > 0 &&
                    strcmp(throttles->entry[i].resource, throttle->resource) == 0)
                        return;
        if (throttle->until_boottime <= now + STILL_USEC / 20)
                return; /* an overload for a moment */
        duration_format((throttle->until_boottime - now + USEC_PER_SEC - 1) / USEC_PER_SEC * USEC_PER_SEC,
                        text, sizeof(text));
        log_write(LOG_WARNING, MESSAGE_ID_HELD_BACK, NULL,
                  "the API server asks us to wait for %s with %s%s (Retry-After): %s%s", text,
                  resource[0] ? "requests for " : "all requests", resource + (resource[0] == '/'),
                  throttle->reason,
                  resource[0] ? "; their watches wait, and runs that need such requests" : "");
}

void tell_throttle(struct child_slot *from, const struct message_throttle *throttle)
{
        struct supervisor *supervisor = from->supervisor;

        tell_held_back(&supervisor->throttles, throttle);
        if (!throttle_note(&supervisor->throttles, throttle->resource, throttle->until_boottime))
                return;
        FOREACH_ARRAY(child, supervisor->child, supervisor->child_count)
                if (child != from && talks_to_server(child))
                        (void)channel_send(child->process.channel, MESSAGE_THROTTLE, throttle);
}

void tell_refresh(struct supervisor *supervisor, const struct message_refresh *refresh)
{
        struct child_slot *credential = &supervisor->child[0];

        if (credential->process.state == CHILD_RUNNING)
                (void)channel_send(credential->process.channel, MESSAGE_REFRESH, refresh);
}
