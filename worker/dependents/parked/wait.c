/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/parked/wait.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "store/record.h"
#include "worker/confidential.h"
#include "worker/dependents/parked/park.h"
#include "worker/dependents/parked/readiness.h"
#include "worker/dependents/prune.h"
#include "worker/write/object.h"
#include "worker/write/refusal.h"
#include "json/json.h"

#define LOOK_AGAIN_USEC  USEC_PER_SEC
#define LOOK_SELDOM_USEC (15 * USEC_PER_SEC)
/* an answer that took longer than this may be stale */
#define SLOW_USEC        USEC_PER_SEC
#define WHY_MAX          300

/* Notes the version: what the store shows later is judged only if it is no older. */
static void note_version(struct dependent *dependent, const char *json, size_t size)
{
        struct scan_object object;

        free(TAKE_PTR(dependent->shown));
        if (scan_object(json, size, &object) >= 0)
                (void)scan_string(object.resource_version, &dependent->shown);
}

/* The words of its conditions may quote what is confidential. */
static enum readiness judge_readiness(const struct dependents *dependents, const struct dependent *dependent,
                                      const char *json, char why[WHY_MAX])
{
        enum readiness readiness = readiness_of(dependent->api_version, dependent->kind, json, why, WHY_MAX);

        if (readiness != READINESS_READY &&
            is_confidential(dependents->run->worker, dependent->api_version, dependent->kind))
                snprintf(why, WHY_MAX, "it %s (why is not shown: it is confidential)",
                         readiness == READINESS_FAILED ? "has failed" : "is not ready");
        return readiness;
}

void wait_judge(struct dependents *dependents, struct dependent *dependent, const char *json, size_t size)
{
        char why[WHY_MAX];

        if (dependents->run->watch->config->wait_usec == 0)
                return;
        dependent->unready = judge_readiness(dependents, dependent, json, why) != READINESS_READY;
        if (dependent->unready)
                note_version(dependent, json, size);
        if (dependent->unready && dependents->waiting[0] == '\0')
                snprintf(dependents->waiting, sizeof(dependents->waiting), "%s %s: %s", dependent->kind,
                         dependent->name, why);
}

/* The plan's lists borrow; choice_done() frees their arrays. */
static int choose(const struct dependents *dependents, struct park_plan *plan)
{
        const struct dependent_list *list = &dependents->wanted, *known = &dependents->known;
        bool rollback = dependents->run->watch->config->rollback;

        plan->wait.item = calloc(list->count + 1, sizeof(*list->item));
        plan->undo.item = calloc(list->count + 1, sizeof(*list->item));
        plan->drop.item = calloc(known->count + 1, sizeof(*known->item));
        if (!plan->wait.item || !plan->undo.item || !plan->drop.item)
                return -ENOMEM;
        for (size_t i = 0; i < known->count; i++)
                if (prune_is_due(dependents, &known->item[i]))
                        plan->drop.item[plan->drop.count++] = known->item[i];
        for (size_t i = 0; i < list->count; i++) {
                if (list->item[i].unready && (!plan->again || !list->item[i].applied))
                        plan->wait.item[plan->wait.count++] = list->item[i];
                if (list->item[i].touched && rollback)
                        plan->undo.item[plan->undo.count++] = list->item[i];
        }
        return 0;
}

static void choice_done(struct park_plan *plan)
{
        free(plan->wait.item);
        free(plan->undo.item);
        free(plan->drop.item);
}

/* The rest of the plan is the same whatever is waited for. */
static int park_waiting(struct dependents *dependents, struct park_plan *plan)
{
        struct run *run = dependents->run;
        char text[WHY_MAX * 2];
        int r;

        plan->cause = (char[]){""};
        plan->answered = park_now(run);
        plan->fingerprint = run->own.fingerprint ? run->own.fingerprint : run->fingerprint;
        plan->essence = run->now.foreign_essence ? 0 : object_essence(run);
        plan->related = run->related.fingerprint;
        snprintf(text, sizeof(text), "waiting for %s", dependents->waiting);
        former_keep(dependents);
        r = choose(dependents, plan) < 0
                    ? run_finish(run, RESULT_RETRY, "no memory to wait for its children")
                    : park_run(run, plan, LOOK_AGAIN_USEC, text);
        choice_done(plan);
        return r;
}

int wait_begin(struct run *run)
{
        const struct record_watch *config = run->watch->config;
        const cJSON *ready = answer_condition(&run->answer, config->ready_condition);
        _cleanup_free_ char *printed = ready ? cJSON_PrintUnformatted(ready) : NULL;
        struct park_plan plan = {
                .message = (char *)(uintptr_t)(run->answer.message ? run->answer.message : ""),
                .requeue_after_usec = run->answer.requeue_after_usec,
                .requeue_at_usec = run->answer.requeue_at_usec,
                .deadline = park_now(run) + config->wait_usec,
                .ready = printed,
        };

        if (ready && !printed)
                return run_finish(run, RESULT_RETRY, "no memory to wait for its children");
        return park_waiting(run->dependents, &plan);
}

/* ---- waiting for the end of children that others hold */

#define CLEANED                                                                                             \
        "cleaned:" /* what the ledger keeps for the run: since when it waits, and a text for people */

bool wait_is_for_cleanup(const struct run *run)
{
        return run->action == ACTION_FINALIZE && run->dependents && run->dependents->prune.left > 0;
}

bool wait_was_for_cleanup(const struct run *run)
{
        return strncmp(run->order->settling, CLEANED, strlen(CLEANED)) == 0;
}

int wait_for_cleanup(struct run *run)
{
        const struct message_run *order = run->order;
        uint64_t now = park_now(run), after,
                 since = wait_was_for_cleanup(run) ? strtoull(order->settling + strlen(CLEANED), NULL, 10)
                                                   : now;
        char text[WHY_MAX * 2];

        snprintf(text, sizeof(text), "waiting for %s", run->dependents->waiting);
        if (!wait_was_for_cleanup(run))
                log_write(LOG_NOTICE, MESSAGE_ID_CLEANUP_WAITS,
                          LOG_FIELDS({"RECONCILED_WATCH", order->watch}, {"RECONCILED_KEY", order->key},
                                     {"RECONCILED_UID", order->uid}),
                          "watch %s, %s is cleaned up and is released when its children are gone: %s",
                          order->watch, order->key, text);
        after = since < now ? (now - since) / 4 : 0;
        after = after < LOOK_AGAIN_USEC    ? LOOK_AGAIN_USEC
                : after > LOOK_SELDOM_USEC ? LOOK_SELDOM_USEC
                                           : after;
        if (asprintf(&run->parked.plan, CLEANED "%" PRIu64 " %s", since < now ? since : now, text) < 0)
                run->parked.plan = NULL;
        run->parked.after_usec = after;
        if (run->parked.plan)
                return run_finish(run, RESULT_SETTLING, "%s", text);
        return run_finish(run, RESULT_RETRY, "no memory to wait for the end of its children");
}

/* ---- kinds that come with the answer */

static bool serves(const cJSON *definition, const struct dependent *dependent)
{
        const cJSON *spec = json_member(definition, "spec"), *version;
        const cJSON *names = json_member(spec, "names");
        const char *group = json_text_of(spec, "group");
        const char *kind = json_text_of(names, "kind");
        const char *slash = strchr(dependent->api_version, '/');

        if (!group || !kind || !slash || strcmp(kind, dependent->kind) != 0 ||
            strlen(group) != (size_t)(slash - dependent->api_version) ||
            strncmp(group, dependent->api_version, strlen(group)) != 0)
                return false;
        cJSON_ArrayForEach(version, json_member(spec, "versions"))
        {
                const char *name = json_text_of(version, "name");

                if (name && strcmp(name, slash + 1) == 0 && cJSON_IsTrue(json_member(version, "served")))
                        return true;
        }
        return false;
}

/* A server needs a moment for a definition. If an attempt failed for that, and took the definition back,
 * every attempt would. */
bool wait_for_kind(struct dependents *dependents, struct dependent *dependent)
{
        const struct park_plan *resumed = dependents->run->parked.resumed;

        if (resumed && park_now(dependents->run) >= resumed->deadline)
                return false;
        FOREACH_ARRAY(other, dependents->wanted.item, dependents->wanted.count) {
                _cleanup_json_ cJSON *definition = NULL;

                if (!other->applied || strcmp(other->kind, "CustomResourceDefinition") != 0)
                        continue;
                definition = json_parse_bounded(other->text.start, other->text.size);
                if (!serves(definition, dependent))
                        continue;
                dependent->unready = true;
                dependents->awaited++;
                dependents->waiting[0] = '\0'; /* others that are not ready do not matter before that */
                dependents_note_unready(dependents, dependent, "the server does not serve its kind yet");
                return true;
        }
        return false;
}

int wait_begin_for_kinds(struct dependents *dependents)
{
        struct run *run = dependents->run;
        struct park_plan plan = {
                .again = true,
                .deadline = run->parked.resumed ? run->parked.resumed->deadline
                                                : park_now(run) + run->watch->config->settle_usec,
        };

        return park_waiting(dependents, &plan);
}

void wait_take_over(struct dependents *dependents)
{
        struct park_plan *resumed = dependents->run->parked.resumed;

        for (size_t i = 0; resumed && i < resumed->undo.count; i++) {
                struct dependent *done = &resumed->undo.item[i];

                FOREACH_ARRAY(dependent, dependents->wanted.item, dependents->wanted.count) {
                        if (dependent->looked || !dependent_is_same(dependent, done))
                                continue;
                        dependent->looked = dependent->touched = true;
                        dependent->uid = TAKE_PTR(done->uid);
                        dependent->previous = TAKE_PTR(done->previous);
                        dependent->kept = TAKE_PTR(done->kept);
                        dependent->lost = done->lost;
                }
        }
}

/* All are ready: what the answer has left out goes now, and the rest of the answer is written then. */
static int begin_to_drop(struct dependents *dependents)
{
        dependent_list_done(&dependents->known);
        dependents->known = dependents->plan.drop;
        dependents->plan.drop = (struct dependent_list){0};
        dependents->wait = dependents->undo = false;
        dependents->drop = true;
        return RUN_WRITES;
}

/* The kinds are served: the same attempt starts from the beginning, because its answer is not kept. */
static int begin_again(struct dependents *dependents)
{
        struct run *run = dependents->run;

        run->parked.resumed = malloc(sizeof(*run->parked.resumed));
        if (!run->parked.resumed)
                return run_finish(run, RESULT_RETRY, "no memory to go on with its children");
        *run->parked.resumed = dependents->plan;
        dependents->plan = (struct park_plan){0};
        dependents_free(TAKE_PTR(run->dependents));
        run->fingerprint = run->object.fingerprint;
        return RUN_ATTEMPTS;
}

/* ---- the next look */

/* The condition stays what it was, also when the wait ends. */
int wait_take_ready(struct run *run, const struct park_plan *plan)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;

        if (!plan->ready[0])
                return 0;
        text_printf(&text, "{\"conditions\":[%s]}", plan->ready);
        run->answer.root = text.failed ? NULL : json_parse(text.data, text.size);
        run->answer.conditions = json_member(run->answer.root, "conditions");
        return run->answer.root ? 0 : -ENOMEM;
}

/* Each change of a dependent that the watch owns brings the attempt back, unless attempts have failed
 * before. */
static bool is_told_of_all(const struct dependents *dependents)
{
        bool all = dependents->run->order->attempt == 1;

        for (size_t i = 0; i < dependents->known.count && all; i++)
                all = dependents->known.item[i].settled || dependents->known.item[i].in_store;
        return all;
}

/* Looks often at first, then less and less: what has taken minutes may take some seconds more. */
static uint64_t look_again_after(const struct dependents *dependents, const struct park_plan *plan)
{
        const struct record_watch *config = dependents->run->watch->config;
        uint64_t now = park_now(dependents->run),
                 wait = plan->again ? config->settle_usec : config->wait_usec;
        uint64_t begun = plan->deadline > wait ? plan->deadline - wait : 0;
        uint64_t after = now > begun ? (now - begun) / 10 : 0;

        if (plan->silent)
                return park_silence_delay(dependents);
        if (after < LOOK_AGAIN_USEC)
                after = LOOK_AGAIN_USEC;
        if (after > LOOK_SELDOM_USEC || is_told_of_all(dependents))
                after = LOOK_SELDOM_USEC;
        return now + after < plan->deadline ? after : plan->deadline > now ? plan->deadline - now : 0;
}

static void note_look(struct dependents *dependents, struct dependent *dependent, enum readiness readiness,
                      const char *why)
{
        dependent->settled = readiness == READINESS_READY;
        dependent->failed = readiness == READINESS_FAILED;
        if (!dependent->settled)
                dependents_note_unready(dependents, dependent, why);
        dependents->failed.count += dependent->failed;
}

/* Returns false where the server must be asked. The store may still show what was there before our apply.
 * And a store is not believed when it would fail the attempt: its server may have been silent for a
 * while. */
static bool look_for_readiness(struct dependents *dependents, struct dependent *dependent)
{
        _cleanup_(store_object_done) struct store_object object = {0};
        enum readiness readiness;
        char why[WHY_MAX];

        if (!dependent->shown || !dependent->shown[0] ||
            !dependents_in_store(dependents, dependent, dependents_find_owned(dependents, dependent),
                                 &object) ||
            resource_version_less(object.resource_version, dependent->shown))
                return false;
        readiness = judge_readiness(dependents, dependent, object.json, why);
        if (readiness == READINESS_FAILED ||
            (readiness != READINESS_READY && park_now(dependents->run) >= dependents->plan.deadline))
                return false;
        dependent->in_store = true;
        note_look(dependents, dependent, readiness, why);
        return true;
}

static int ask_how_it_is(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        _cleanup_kube_answer_ struct kube_answer answer = KUBE_ANSWER_EMPTY;
        const struct kube_error *error = &answer.response.error;
        enum readiness readiness = READINESS_NOT_YET;
        char why[WHY_MAX] = "it is gone";
        uint64_t took;
        int r = dependents_ask(dependents, dependent, DEPENDENTS_GET, NULL, &answer);

        if (r < 0)
                return r;
        if (error->failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(error)) {
                refusal_note(dependents->run, &answer.response);
                dependents_note_refused(dependents, dependent, error);
                return dependents_is_about_server(dependents, error) ? -EHOSTDOWN : 0;
        }
        took = park_now(dependents->run) - dependents->server.asked;
        if (took > SLOW_USEC)
                dependents->server.slow_usec += took;
        if (error->failure == KUBE_FAILURE_NONE)
                readiness = judge_readiness(dependents, dependent, answer.response.body, why);
        note_look(dependents, dependent, readiness, why);
        return 0;
}

static int wait_for_one(struct dependents *dependents, struct dependent *dependent) _suspends_
{
        int r;

        if (look_for_readiness(dependents, dependent))
                return 0;
        dependents->server.asked = park_now(dependents->run);
        r = dependents_resolve(dependents, dependent);
        if (r == -ENXIO)
                dependents_note_unready(dependents, dependent, dependents->no_kind);
        if (r <= 0)
                return r == -ENXIO ? 0 : r;
        if (!dependents->plan.again)
                return ask_how_it_is(dependents, dependent);
        note_look(dependents, dependent, READINESS_READY, "");
        return 0;
}

int wait_look(struct dependents *dependents)
{
        dependents->looking = true;
        return dependents_each(dependents, &dependents->known, false, wait_for_one);
}

static int fail(struct dependents *dependents)
{
        const struct record_watch *config = dependents->run->watch->config;
        uint64_t allowed = dependents->plan.again ? config->settle_usec : config->wait_usec;
        struct park_plan undo = {
                .deadline = park_now(dependents->run) + config->settle_usec,
                .answered = park_now(dependents->run),
                .fingerprint = dependents->plan.fingerprint,
                .essence = dependents->plan.essence,
                .undo = dependents->plan.undo,
        };
        char duration[64], cause[WHY_MAX * 3];

        if (dependents->failed.count > 0)
                snprintf(cause, sizeof(cause), "one of its children has failed: %s", dependents->waiting);
        else
                snprintf(cause, sizeof(cause), "one of its children was not ready within %s: %s",
                         duration_format(allowed, duration, sizeof(duration)), dependents->waiting);
        undo.cause = cause;
        if (undo.undo.count > 0)
                return park_run(dependents->run, &undo, 0, cause);
        return run_finish(dependents->run, RESULT_RETRY, "%s", cause);
}

int wait_succeed(struct dependents *dependents)
{
        struct run *run = dependents->run;

        former_drop(run, &dependents->plan.undo);
        /* The answer still has the condition Ready to be written, and its requeueAfter. */
        run->answer.message = dependents->plan.message[0] ? dependents->plan.message : NULL;
        run->answer.requeue_after_usec = dependents->plan.requeue_after_usec;
        run->answer.requeue_at_usec = dependents->plan.requeue_at_usec;
        return RUN_WRITES;
}

int wait_finish(struct dependents *dependents)
{
        struct run *run = dependents->run;
        struct park_plan plan;
        char text[WHY_MAX * 2];

        park_count_time(dependents);
        plan = dependents->plan;

        if (dependents->waiting[0] == '\0' && plan.again)
                return begin_again(dependents);
        if (dependents->waiting[0] == '\0')
                return plan.drop.count > 0 ? begin_to_drop(dependents) : wait_succeed(dependents);
        if (dependents->failed.count > 0 || (!plan.silent && park_now(run) >= plan.deadline))
                return fail(dependents);
        plan.wait = dependents->known;
        snprintf(text, sizeof(text), "waiting for %s", dependents->waiting);
        return park_run(run, &plan, look_again_after(dependents, &plan), text);
}
