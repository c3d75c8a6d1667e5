/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/orders.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "controller/due/push.h"
#include "controller/due/retry.h"
#include "controller/effects.h"
#include "controller/order/by-hand.h"
#include "controller/order/uninstall.h"
#include "controller/run/assign.h"
#include "controller/run/outcome.h"
#include "supervisor/children/doubtful.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/supervisor.h"

#define ORDER_PATIENCE_USEC (5 * USEC_PER_SEC) /* reconciledctl waits longer than that for an answer */

/* ---- confirmation */

static int try_order(struct control_peer *peer, enum answer_try when)
{
        const struct supervisor_lead *lead = &peer->supervisor->lead;
        struct text answer = {.data = peer->pending.order, .size = strlen(peer->pending.order)};
        _cleanup_text_ struct text why = TEXT_EMPTY;

        if (peer->pending.serial <= lead->lasting.recorded)
                return lead->lasting.left_out == LEFT_OUT_ORDERS
                               ? peer_refuse(
                                         peer,
                                         "the order is carried out, but the leader record has no place for all orders: another "
                                         "replica that leads may not know of it")
                               : peer_send(peer, &answer);
        if (when != TRY_AT_DEADLINE)
                return 0;
        text_printf(
                &why,
                "the order is carried out, but the leader record could not be written so far%s%s: until it is (this replica "
                "goes on trying), another replica that leads does not know of the order",
                lead->trouble[0] ? ": " : "", lead->trouble);
        return why.failed ? -ENOMEM : peer_refuse(peer, why.data);
}

/* Takes what the text has. */
static int confirm(struct control_peer *peer, struct text *answer)
{
        uint64_t serial = lasting_order(peer->supervisor);

        if (serial == 0)
                return peer_send(peer, answer);
        peer->pending.order = text_take(answer);
        if (!peer->pending.order)
                return -ENOMEM;
        peer->pending.serial = serial;
        return peer_await(peer, try_order, ORDER_PATIENCE_USEC);
}

static int confirm_done(struct control_peer *peer)
{
        _cleanup_text_ struct text json = TEXT_EMPTY;

        text_append_string(&json, "{}");
        return confirm(peer, &json);
}

/* ---- orders */

/* A name alone is the key of what belongs to no namespace: mostly, it was forgotten. */
static int refuse_key(struct control_peer *peer, const struct watch *watch, const char *key,
                      const char *what)
{
        _cleanup_text_ struct text error = TEXT_EMPTY;

        text_printf(&error, "no object %s of watch %s %s%s", key, watch->config->name, what,
                    strchr(key, '/') ? "" : "; a key is NAMESPACE/NAME (or give -n NAMESPACE)");
        return error.failed ? -ENOMEM : peer_refuse(peer, error.data);
}

int order_by_hand(struct control_peer *peer, const struct message_query *query, struct watch *watch)
{
        bool release = strcmp(query->command, "release") == 0;
        int r;

        if (!release && owned_awaited(watch))
                return peer_refuse(
                        peer,
                        "the watch does not know all objects of its owned and related kinds yet; its runs "
                        "wait for that");
        if (!release && startup_awaited(watch))
                return peer_refuse(
                        peer, "the handler of `startup` has not succeeded yet; all other runs wait for it");
        if (!release && access_awaited(watch))
                return peer_refuse(
                        peer,
                        "the watch's handler does not have all its credentials yet (handler.credentials, "
                        "handler.kubernetes); the watch's runs wait for them");
        r = run_now(watch, query->argument[1].value, release);
        if (release && (r >= 0 || r == -ENOENT)) {
                int doubt = doubtful_release(watch, query->argument[1].value);

                r = doubt == -ENOENT ? r : doubt;
        }
        if (r == -ENOENT)
                return refuse_key(peer, watch, query->argument[1].value,
                                  release ? "is in quarantine or doubtful" : "has ever run");
        if (r < 0) {
                ledger_failed(&peer->supervisor->controller, r);
                return peer_refuse(peer, "the ledger cannot be written");
        }
        return release ? confirm_done(peer) : peer_send_done(peer);
}

/* Makes objects due: those that have failed, of one watch or of all; or all of one watch. */
int order_retry_many(struct control_peer *peer, const struct message_query *query, struct watch *watch)
{
        _cleanup_text_ struct text json = TEXT_EMPTY;
        uint64_t count = 0;
        int r;

        if (watch && watch->paused_realtime > 0)
                return peer_refuse(peer, "the watch is paused; resume it first");
        r = strcmp(query->command, "retry-all") == 0
                    ? retry_all(watch, &count)
                    : retry_all_failed(&peer->supervisor->controller, watch, &count);
        if (r < 0)
                return r == -ENOMEM ? r : peer_refuse(peer, "the ledger cannot be read");
        text_append_string(&json, "{");
        json_uint64(&json, "objects", count);
        json_close(&json, "}");
        return peer_send(peer, &json);
}

/* Tells whether that is new. */
static int answer_changed(struct control_peer *peer, const struct watch *watch, int changed)
{
        struct supervisor *supervisor = peer->supervisor;
        _cleanup_text_ struct text json = TEXT_EMPTY;

        if (changed == -ENOMEM)
                return changed;
        if (changed < 0) {
                ledger_failed(&supervisor->controller, changed);
                return peer_refuse(peer, "the ledger cannot be written");
        }
        text_append_string(&json, "{");
        json_bool(&json, "changed", changed > 0);
        json_uint64(&json, "running", assign_count(&supervisor->controller, watch).running);
        json_close(&json, "}");
        return changed > 0 ? confirm(peer, &json) : peer_send(peer, &json);
}

int order_pause(struct control_peer *peer, const struct message_query *query, struct watch *watch)
{
        int changed = pause_watch(watch, query->argument[1].value, peer->uid);
        int r = changed > 0 ? outcome_return_unsent(watch->controller) : 0;

        return answer_changed(peer, watch, r < 0 ? r : changed);
}

int order_resume(struct control_peer *peer, const struct message_query *query _unused_, struct watch *watch)
{
        return answer_changed(peer, watch, pause_resume(watch, peer->uid));
}

int order_release_finalizer(struct control_peer *peer, const struct message_query *query,
                            struct watch *watch)
{
        int r;

        r = release_finalizer(watch, query->argument[1].value, query->argument[2].value, peer->uid);
        if (r == -ENOENT)
                return refuse_key(peer, watch, query->argument[1].value, "is known");
        if (r < 0)
                return peer_refuse(peer, "the ledger cannot be read");
        return peer_send_done(peer);
}

int order_uninstall(struct control_peer *peer, const struct message_query *query _unused_,
                    struct watch *watch _unused_)
{
        if (uninstall(&peer->supervisor->controller, peer->uid) < 0 ||
            outcome_return_unsent(&peer->supervisor->controller) < 0)
                return peer_refuse(peer, "the ledger cannot be written");
        return confirm_done(peer);
}

int order_uninstall_cancel(struct control_peer *peer, const struct message_query *query _unused_,
                           struct watch *watch _unused_)
{
        char why[512];

        if (!peer->supervisor->controller.uninstall.active)
                return peer_refuse(peer, "the operator is not being uninstalled");
        if (peer->supervisor->phase > PHASE_RUNNING)
                return peer_refuse(peer, "the operator is stopping");
        /* The operator begins again with the file as it is now. */
        if (!reload_can_restart(peer->supervisor, why, sizeof(why)))
                return peer_refuse(peer, why);
        if (uninstall_cancel(&peer->supervisor->controller, peer->uid) < 0)
                return peer_refuse(peer, "the ledger cannot be written");
        reload_by_restart(peer->supervisor, "its uninstallation was cancelled");
        /* No run begins any more, and what outlives this lead does not have it. */
        peer->supervisor->controller.uninstall.active = false;
        return confirm_done(peer);
}
