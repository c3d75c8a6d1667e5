/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `children: {wait: ...}`: a run is over when its children are ready. What is not ready when everything is
 * written is looked at again later, by the same attempt, without a worker in between. One that has failed,
 * or takes too long, is a failure of the attempt like any other in its children.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "worker/confidential.h"
#include "worker/dependents/internal.h"
#include "worker/dependents/parked/readiness.h"
#include "worker/write/status.h"
#include "json/json.h"

DEFINE_CLEANUP(cJSON *, cJSON_Delete);

#define LOOK_AGAIN_USEC  USEC_PER_SEC
#define LOOK_SELDOM_USEC (15 * USEC_PER_SEC)
#define SLOW_USEC        USEC_PER_SEC /* an answer that took longer than that tells how it was before */
#define WHY_MAX          300

/* What the store shows later is judged only if it is no older than this. */
static void note_version(struct child_object *child, const char *json, size_t size)
{
        struct scan_object object;

        free(TAKE_PTR(child->shown));
        if (scan_object(json, size, &object) >= 0)
                (void)scan_string(object.resource_version, &child->shown);
}

void children_judge(struct children *children, struct child_object *child, const char *json, size_t size)
{
        char why[WHY_MAX];

        if (children->run->watch->config->wait_usec == 0)
                return;
        child->unready =
                readiness_of(child->api_version, child->kind, json, why, sizeof(why)) != READINESS_READY;
        if (child->unready)
                note_version(child, json, size);
        if (child->unready && children->waiting[0] == '\0')
                snprintf(children->waiting, sizeof(children->waiting), "%s %s: %s", child->kind, child->name,
                         why);
}

const char *children_waiting(const struct run *run)
{
        return run->children && !run->children->undo && run->children->waiting[0] ? run->children->waiting
                                                                                  : NULL;
}

/* The lists borrow from `list`; the caller frees the two arrays. */
static int choose(const struct child_list *list, bool rollback, struct settle_plan *plan)
{
        plan->wait.child = calloc(list->count + 1, sizeof(*list->child));
        plan->undo.child = calloc(list->count + 1, sizeof(*list->child));
        if (!plan->wait.child || !plan->undo.child)
                return -ENOMEM;
        for (size_t i = 0; i < list->count; i++) {
                if (list->child[i].unready && (!plan->again || !list->child[i].applied))
                        plan->wait.child[plan->wait.count++] = list->child[i];
                if (list->child[i].touched && rollback)
                        plan->undo.child[plan->undo.count++] = list->child[i];
        }
        return 0;
}

void children_begin_wait(struct run *run)
{
        struct children *children = run->children;
        const struct record_watch *config = run->watch->config;
        struct settle_plan plan = {
                .cause = (char[]){""},
                .message = (char *)(uintptr_t)(run->answer.message ? run->answer.message : ""),
                .requeue_after_usec = run->answer.requeue_after_usec,
                .deadline = children_now(run) + config->wait_usec,
                .answered = children_now(run),
                .fingerprint = run->own_fingerprint ? run->own_fingerprint : run->fingerprint,
                .essence = run->foreign_essence ? 0 : children_essence(run),
                .related = run->related_fingerprint,
        };
        const cJSON *ready = status_answered_ready(run);
        char text[WHY_MAX * 2];

        plan.ready = ready ? cJSON_PrintUnformatted(ready) : NULL;
        snprintf(text, sizeof(text), "waiting for %s", children->waiting);
        children_keep_former(children);
        if ((ready && !plan.ready) || choose(&children->wanted, config->rollback, &plan) < 0)
                run_finish(run, RESULT_RETRY, "no memory to wait for its children");
        else
                children_settle(run, &plan, LOOK_AGAIN_USEC, text);
        free(plan.wait.child);
        free(plan.undo.child);
        free(plan.ready);
}

/* ---- kinds that come with the answer */

static bool serves(const cJSON *definition, const struct child_object *child)
{
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(definition, "spec"), *version;
        const cJSON *names = cJSON_GetObjectItemCaseSensitive(spec, "names");
        const char *group = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(spec, "group"));
        const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(names, "kind"));
        const char *slash = strchr(child->api_version, '/');

        if (!group || !kind || !slash || strcmp(kind, child->kind) != 0 ||
            strlen(group) != (size_t)(slash - child->api_version) ||
            strncmp(group, child->api_version, strlen(group)) != 0)
                return false;
        cJSON_ArrayForEach(version, cJSON_GetObjectItemCaseSensitive(spec, "versions"))
        {
                const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(version, "name"));

                if (name && strcmp(name, slash + 1) == 0 &&
                    cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(version, "served")))
                        return true;
        }
        return false;
}

/* A server needs a moment for a definition. An attempt that failed for that, and took the definition back,
 * would do the same for ever. */
bool children_await_kind(struct children *children, struct child_object *child)
{
        const struct settle_plan *resumed = children->run->resumed;

        if (resumed && children_now(children->run) >= resumed->deadline)
                return false;
        for (size_t i = 0; i < children->wanted.count; i++) {
                const struct child_object *other = &children->wanted.child[i];
                _cleanup_(cJSON_Delete_pointer) cJSON *definition = NULL;

                if (!other->applied || strcmp(other->kind, "CustomResourceDefinition") != 0)
                        continue;
                definition = json_parse(other->text.start, other->text.size);
                if (!serves(definition, child))
                        continue;
                child->unready = true;
                children->awaited++;
                children->waiting[0] = '\0'; /* that one is not ready is of no interest before */
                children_note_unready(children, child, "the server does not serve its kind yet");
                return true;
        }
        return false;
}

void children_begin_await(struct children *children)
{
        struct run *run = children->run;
        const struct record_watch *config = run->watch->config;
        struct settle_plan plan = {
                .cause = (char[]){""},
                .again = true,
                .deadline = run->resumed ? run->resumed->deadline : children_now(run) + config->settle_usec,
                .answered = children_now(run),
                .fingerprint = run->own_fingerprint ? run->own_fingerprint : run->fingerprint,
                .essence = run->foreign_essence ? 0 : children_essence(run),
                .related = run->related_fingerprint,
        };
        char text[WHY_MAX * 2];

        snprintf(text, sizeof(text), "waiting for %s", children->waiting);
        children_keep_former(children);
        if (choose(&children->wanted, config->rollback, &plan) < 0)
                run_finish(run, RESULT_RETRY, "no memory to wait for its children");
        else
                children_settle(run, &plan, LOOK_AGAIN_USEC, text);
        free(plan.wait.child);
        free(plan.undo.child);
}

void children_forget_resumed(struct run *run)
{
        if (run->resumed)
                settle_plan_done(run->resumed);
        free(run->resumed);
        run->resumed = NULL;
}

void children_resume(struct children *children)
{
        struct settle_plan *resumed = children->run->resumed;

        for (size_t i = 0; resumed && i < resumed->undo.count; i++) {
                struct child_object *done = &resumed->undo.child[i];

                for (size_t j = 0; j < children->wanted.count; j++) {
                        struct child_object *child = &children->wanted.child[j];

                        if (child->looked || !child_is_same(child, done))
                                continue;
                        child->looked = child->touched = true;
                        child->uid = TAKE_PTR(done->uid);
                        child->previous = TAKE_PTR(done->previous);
                        child->kept = TAKE_PTR(done->kept);
                        child->lost = done->lost;
                }
        }
}

/* The kinds are served: the same attempt, from the beginning, because its answer is not kept. */
static void begin_again(struct children *children)
{
        struct run *run = children->run;

        run->resumed = malloc(sizeof(*run->resumed));
        if (!run->resumed) {
                run_finish(run, RESULT_RETRY, "no memory to go on with its children");
                return;
        }
        *run->resumed = children->plan;
        children->plan = (struct settle_plan){0};
        children_free(TAKE_PTR(run->children));
        run->fingerprint = run->object.fingerprint;
        run_attempt(run);
}

/* ---- the next look */

/* It stays what it was, also when the wait ends. */
int children_take_ready(struct run *run, const struct settle_plan *plan)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;

        if (!plan->ready[0])
                return 0;
        text_printf(&text, "{\"conditions\":[%s]}", plan->ready);
        run->answer.root = text.failed ? NULL : json_parse(text.data, text.size);
        run->answer.conditions = cJSON_GetObjectItemCaseSensitive(run->answer.root, "conditions");
        return run->answer.root ? 0 : -ENOMEM;
}

void children_note_unready(struct children *children, const struct child_object *child, const char *why)
{
        if (children->waiting[0] == '\0' || child->failed)
                snprintf(children->waiting, sizeof(children->waiting), "%s %s: %.300s", child->kind,
                         child->name, why);
}

/* Each change of a child that the watch owns brings the run back, unless attempts have failed before. */
static bool is_told_of_all(const struct children *children)
{
        bool all = children->run->order->attempt == 1;

        for (size_t i = 0; i < children->known.count && all; i++)
                all = children->known.child[i].settled || children->known.child[i].in_store;
        return all;
}

/* Its time does not run, and before a Retry-After is over nothing is sent. */
uint64_t children_silence_delay(const struct children *children)
{
        uint64_t held = children->run->held_until, now = clock_boottime_usec();
        uint64_t delay = (children_now(children->run) - children->plan.answered) / 4;

        if (delay < LOOK_AGAIN_USEC)
                delay = LOOK_AGAIN_USEC;
        if (delay > LOOK_SELDOM_USEC)
                delay = LOOK_SELDOM_USEC;
        return held > now + delay ? held - now : delay;
}

/* Often at first, then less and less: what has taken minutes may take some seconds more. */
static uint64_t look_again_after(const struct children *children, const struct settle_plan *plan)
{
        const struct record_watch *config = children->run->watch->config;
        uint64_t now = children_now(children->run),
                 wait = plan->again ? config->settle_usec : config->wait_usec;
        uint64_t begun = plan->deadline > wait ? plan->deadline - wait : 0;
        uint64_t after = now > begun ? (now - begun) / 10 : 0;

        if (plan->silent)
                return children_silence_delay(children);
        if (after < LOOK_AGAIN_USEC)
                after = LOOK_AGAIN_USEC;
        if (after > LOOK_SELDOM_USEC || is_told_of_all(children))
                after = LOOK_SELDOM_USEC;
        return now + after < plan->deadline ? after : plan->deadline > now ? plan->deadline - now : 0;
}

static void note_look(struct children *children, enum readiness readiness, const char *why)
{
        struct child_object *child = children_current_child(children);

        child->settled = readiness == READINESS_READY;
        child->failed = readiness == READINESS_FAILED;
        if (!child->settled)
                children_note_unready(children, child, why);
        children->failures += child->failed;
        children->position++;
}

void children_note_refused(struct children *children, const struct child_object *child,
                           const struct kube_error *error)
{
        char why[WHY_MAX];

        children->silent = children->silent || write_result_of(error) != RESULT_RETRY;
        snprintf(why, sizeof(why), "%.200s", error->message);
        children_note_unready(children, child, why);
}

static void on_looked(struct kube_transfer *transfer _unused_, const struct kube_response *response,
                      void *userdata)
{
        struct children *children = userdata;
        struct child_object *child = children_current_child(children);
        char why[WHY_MAX] = "it is gone";
        enum readiness readiness = READINESS_NOT_YET;

        uint64_t took = children_now(children->run) - children->asked;

        children->run->transfer = NULL;
        if (response->error.failure != KUBE_FAILURE_NONE && !kube_error_is_not_found(&response->error)) {
                write_note_failure(children->run, response);
                children_note_refused(children, child, &response->error);
                children->position++;
                if (children_is_about_server(children, &response->error))
                        children_finish_wait(children);
                else
                        children_advance(children);
                return;
        }
        if (took > SLOW_USEC)
                children->slow_usec += took;
        if (response->error.failure == KUBE_FAILURE_NONE)
                readiness = readiness_of(child->api_version, child->kind, response->body, why, sizeof(why));
        note_look(children, readiness, why);
        children_advance(children);
}

/* false: the server is to be asked. The store may still show what was there before our apply; and what would
 * fail the attempt is not believed to a store, whose server may have been silent for a while. */
static bool look_in_store(struct children *children, struct child_object *child)
{
        _cleanup_(store_object_done) struct store_object object = {0};
        enum readiness readiness;
        char why[WHY_MAX];

        if (!child->shown || !child->shown[0] || !children_in_store(children, child, &object) ||
            resource_version_less(object.resource_version, child->shown))
                return false;
        readiness = readiness_of(child->api_version, child->kind, object.json, why, sizeof(why));
        if (readiness == READINESS_FAILED ||
            (readiness != READINESS_READY && children_now(children->run) >= children->plan.deadline))
                return false;
        child->in_store = true;
        note_look(children, readiness, why);
        return true;
}

int children_look_next(struct children *children)
{
        struct child_object *child;
        int r;

        while ((child = children_current_child(children))) {
                if (look_in_store(children, child))
                        continue;
                children->asked = children_now(children->run);
                r = children_resolve(children, child);
                if (r != 0)
                        return r;
                if (!children->plan.again)
                        return children_request(children, child, "GET", NULL, on_looked);
                note_look(children, READINESS_READY, "");
        }
        return 0;
}

static void fail(struct children *children)
{
        const struct record_watch *config = children->run->watch->config;
        uint64_t allowed = children->plan.again ? config->settle_usec : config->wait_usec;
        struct settle_plan undo = {
                .deadline = children_now(children->run) + config->settle_usec,
                .answered = children_now(children->run),
                .fingerprint = children->plan.fingerprint,
                .essence = children->plan.essence,
                .undo = children->plan.undo,
        };
        char duration[64], cause[WHY_MAX * 3];

        if (children->failures > 0)
                snprintf(cause, sizeof(cause), "a child of it has failed: %s", children->waiting);
        else
                snprintf(cause, sizeof(cause), "a child of it was not ready within %s: %s",
                         duration_format(allowed, duration, sizeof(duration)), children->waiting);
        undo.cause = cause;
        if (undo.undo.count > 0)
                children_settle(children->run, &undo, 0, cause);
        else
                run_finish(children->run, RESULT_RETRY, "%s", cause);
}

/* The time in which the server did not answer is not the children's: who makes them ready had none either,
 * or we could not see it. Behind it they are looked at once more at least, but not for ever where each
 * answer is slow. */
void children_count_time(struct children *children)
{
        struct settle_plan *plan = &children->plan;
        uint64_t now = children_now(children->run), lost;

        if (plan->answered == 0 || plan->answered > now)
                plan->answered = now;
        plan->silent = plan->silent || children->silent;
        if (children->silent || children->asked == 0)
                return;
        lost = plan->silent ? now - plan->answered : children->slow_usec;
        plan->deadline += lost;
        if (lost > 0 && !plan->slow && plan->deadline < now + LOOK_AGAIN_USEC)
                plan->deadline = now + LOOK_AGAIN_USEC;
        plan->slow = children->slow_usec > 0;
        plan->silent = false;
        plan->answered = now;
}

void children_finish_wait(struct children *children)
{
        struct run *run = children->run;
        struct settle_plan plan;
        char text[WHY_MAX * 2];

        children_count_time(children);
        plan = children->plan;

        if (children->waiting[0] == '\0' && plan.again) {
                begin_again(children);
        } else if (children->waiting[0] == '\0') {
                children_drop_former(run, &plan.undo);
                /* What the answer has left to do: the condition Ready, and the next time. */
                run->answer.message = children->plan.message[0] ? children->plan.message : NULL;
                run->answer.requeue_after_usec = children->plan.requeue_after_usec;
                write_start(run);
        } else if (children->failures > 0 || (!plan.silent && children_now(run) >= plan.deadline)) {
                fail(children);
        } else {
                plan.wait = children->known;
                snprintf(text, sizeof(text), "waiting for %s", children->waiting);
                children_settle(run, &plan, look_again_after(children, &plan), text);
        }
}
