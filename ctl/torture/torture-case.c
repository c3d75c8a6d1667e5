/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/torture-case.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctl/ctl-answer.h"
#include "ctl/torture/life.h"
#include "ctl/torture/quiet.h"
#include "ctl/torture/writes.h"
#include "ipc/message.h"
#include "json/json.h"

#define STEPS_MAX 20

static bool is_case_of(const struct torture_case *which, size_t kind)
{
        return which && which->kind == &case_kind[kind];
}

/* ---- the operator */

/* Runs the objects whose handler wants to run again later; one of them may be gone meanwhile. Returns their number. */
static int run_wished(const struct life *life)
{
        _cleanup_json_ cJSON *answer = NULL;
        const cJSON *each;
        int count = 0;

        (void)rig_list_waiting(&life->rig,
                               &answer); /* one that does not answer has ended: the next wait finds out */
        cJSON_ArrayForEach(each, json_member(answer, "objects"))
        {
                const char *const argument[] = {json_text(each, "watch"), json_text(each, "key"), NULL};

                count += strcmp(json_text(each, "nextReason"), run_reason_name(RUN_REQUEUE_AFTER)) == 0 &&
                         rig_order(&life->rig, "retry", argument, NULL) >= 0;
        }
        return count;
}

/* A handler that works in steps, with requeueAfter, has come to its end when a further step writes nothing. STEPS_MAX is for one that
 * writes each time. */
static int wait_quiet(struct life *life)
{
        long position = 0;
        int r = life_check(life, rig_wait(&life->rig, 0));

        for (unsigned step = 0; r >= 0 && step < STEPS_MAX; step++) {
                _cleanup_text_ struct text before = TEXT_EMPTY, written = TEXT_EMPTY;

                r = writes_tell(life->rig.request_log, &position, &before);
                if (r >= 0)
                        r = run_wished(life);
                if (r == 0)
                        break;
                if (r > 0)
                        r = life_check(life, rig_wait(&life->rig, 0));
                if (r >= 0)
                        r = writes_tell(life->rig.request_log, &position, &written);
                if (r >= 0 && written.size == 0)
                        break;
        }
        return r < 0 ? r : 0;
}

static int start_operator(struct life *life)
{
        return life_check(life, rig_start(&life->rig));
}

static void kill_operator(struct life *life)
{
        rig_kill(&life->rig);
        life_step(life, "the operator is killed");
}

static int restart_operator(struct life *life)
{
        life_step(life, "the operator starts again");
        return start_operator(life);
}

/* Failing objects are given up by now. A handler may refuse a value for good; all attempts in vain are a failure. */
static int check_given_up(struct life *life)
{
        const cJSON *value = life->which && life->which->kind->scope == SCOPE_VALUE ? life->which->of : NULL,
                    *each;

        cJSON_ArrayForEach(each, quiet_failing(life->rig.status))
        {
                if (value && ctl_is(each, "permanent") && ctl_number(each, "attempts") < TRIAL_ATTEMPTS) {
                        if (!json_member(life->torture->refused, json_text(value, "words")))
                                cJSON_AddTrueToObject(life->torture->refused, json_text(value, "words"));
                        continue;
                }
                return life_fail(life, "%s is given up: %s", json_text(each, "key"),
                                 json_text(each, "lastError"));
        }
        return 0;
}

static int compare_with(struct life *life, const cJSON *expected)
{
        const struct trial *trial = life->torture->trial;
        _cleanup_json_ cJSON *is = end_state_take(life->rig.objects, trial->config->operator_name);

        if (!is)
                return -ENOMEM;
        if (end_state_compare(&life->torture->mask, expected, is, &life->attempt->failure) == 0)
                return 0;
        life->attempt->result = CASE_FAILED;
        return -ECANCELED;
}

static int wait_and_compare(struct life *life, const cJSON *expected)
{
        int r = wait_quiet(life);

        if (r >= 0)
                r = check_given_up(life);
        return r < 0 ? r : compare_with(life, expected);
}

/* No write since the last look at the log may have changed anything. */
static int check_unwritten(struct life *life, const char *why)
{
        _cleanup_text_ struct text written = TEXT_EMPTY;
        int r = writes_tell(life->rig.request_log, &life->noted, &written);

        if (r < 0)
                return r;
        return written.size == 0 || !life->torture->is_idempotent
                       ? 0
                       : life_fail(life, "%s, but it writes:\n%s", why, written.data);
}

static int skip_log(struct life *life)
{
        _cleanup_text_ struct text unused = TEXT_EMPTY;

        return writes_tell(life->rig.request_log, &life->noted, &unused);
}

static int repeat_runs(struct life *life)
{
        const cJSON *subject;
        int r = skip_log(life);

        cJSON_ArrayForEach(subject, life->torture->trial->subject)
        {
                _cleanup_free_ char *key = life_key(life->torture, subject);
                const char *const argument[] = {life->torture->trial->watch->name, key, NULL};

                if (r >= 0)
                        r = key ? life_check(life, rig_order(&life->rig, "retry", argument, &life->error))
                                : -ENOMEM;
        }
        if (r >= 0)
                life_step(life, "the handler runs once more");
        return r < 0 ? r : wait_quiet(life);
}

enum {
        DELETED_ALREADY = 1,
        CREATED_OTHERWISE, /* what is expected of the creation does not count */
};

/* ---- faults */

static int arm(struct life *life, enum phase phase)
{
        const cJSON *of = life->which ? life->which->of : NULL;
        _cleanup_json_ cJSON *answer = NULL;
        cJSON *fault;

        life->fault = 0;
        if (!of || life->which->kind->scope != SCOPE_WRITE || ctl_number(of, "phase") != phase)
                return 0;
        fault = json_parse(life->which->kind->fault, strlen(life->which->kind->fault));
        cJSON_AddItemToObject(fault, "match", cJSON_Duplicate(json_member(of, "match"), true));
        cJSON_AddNumberToObject(fault, "after", (double)ctl_number(of, "nth") - 1);
        if (life_ask(life, "POST", "/devserver/faults", fault, &answer) < 0)
                return -ECANCELED;
        life->fault = ctl_number(answer ? answer->child : NULL, "id");
        life_step(life, "%s: %s", life->which->kind->what, json_text(of, "words"));
        return life->fault > 0 ? 0
                               : life_fail(life, "the fault is refused: %s", json_text(answer, "message"));
}

/* What follows as soon as the fault has hit. Returns also DELETED_ALREADY. */
static int meet(struct life *life)
{
        int r;

        if (life->fault == 0 || life->which->kind->meet == MEET_NOTHING)
                return 0;
        r = life_check(life, rig_wait(&life->rig, life->fault));
        if (r <= 0)
                return r; /* this time it did not come to that write */
        if (life->which->kind->meet == MEET_DELETE) {
                r = life_delete(life);
                return r < 0 ? r : DELETED_ALREADY;
        }
        rig_kill(&life->rig);
        r = life_ask(life, "DELETE", "/devserver/faults", NULL, NULL);
        return r < 0 ? r : restart_operator(life);
}

static int hold_dependents(struct life *life, bool hold)
{
        _cleanup_free_ char *all =
                format_string("{\"hold\":%s,\"match\":{\"verb\":\"watch\"}}", hold ? "true" : "false");
        _cleanup_free_ char *own =
                format_string("{\"hold\":false,\"match\":{\"verb\":\"watch\",\"resource\":\"%s\"}}",
                              life->torture->plural);
        int r = all ? life_ask(life, "POST", "/devserver/connections", json_parse(all, strlen(all)), NULL)
                    : -ENOMEM;

        if (r >= 0)
                r = own ? life_ask(life, "POST", "/devserver/connections", json_parse(own, strlen(own)),
                                   NULL)
                        : -ENOMEM;
        if (r >= 0)
                life_step(life,
                          hold ? "the operator learns nothing of children and related objects"
                               : "the operator learns what has become of children and related objects");
        return r;
}

/* ---- what happens between the object's creation and its deletion */

static int live_restarted(struct life *life)
{
        int r = skip_log(life);

        kill_operator(life);
        if (r >= 0)
                r = restart_operator(life);
        if (r >= 0)
                r = wait_and_compare(life, life->torture->expected[PHASE_CREATE]);
        return r < 0 ? r : check_unwritten(life, "nothing has changed");
}

static int live_relisted(struct life *life)
{
        static const char cut[] = "{\"close\":\"cut\",\"match\":{\"verb\":\"watch\"}}";
        int r = skip_log(life);

        if (r >= 0)
                r = life_ask(life, "POST", "/devserver/compact", cJSON_CreateObject(), NULL);
        if (r >= 0)
                r = life_ask(life, "POST", "/devserver/connections", json_parse(cut, strlen(cut)), NULL);
        life_step(life, "the connections break, and the server has forgotten what was before");
        if (r >= 0)
                r = wait_and_compare(life, life->torture->expected[PHASE_CREATE]);
        return r < 0 ? r : check_unwritten(life, "nothing has changed");
}

static int live_reused(struct life *life)
{
        bool is_held = life->torture->trial->watch->finalizer;
        int r;

        if (!is_held)
                kill_operator(life);
        r = life_delete(life);
        if (r >= 0 && is_held)
                r = wait_quiet(life);
        if (r >= 0)
                r = life_create(life);
        if (r >= 0 && !is_held)
                r = restart_operator(life);
        return r < 0 ? r : wait_and_compare(life, life->torture->expected[PHASE_CREATE]);
}

/* The first value that the server accepts. */
static int set_any_value(struct life *life, bool *ret_accepted)
{
        const cJSON *value;
        int r = 0;

        *ret_accepted = false;
        cJSON_ArrayForEach(value, life->torture->value) if (r >= 0 && !*ret_accepted) r =
                life_set_spec(life, value, ret_accepted);
        return r;
}

static int live_reverted(struct life *life)
{
        bool accepted;
        int r;

        kill_operator(life);
        r = set_any_value(life, &accepted);
        if (r >= 0 && !accepted)
                life->attempt->result = CASE_SKIPPED;
        if (r >= 0 && accepted)
                r = life_set_spec(life, NULL, &accepted);
        if (r >= 0)
                r = restart_operator(life);
        return r < 0 ? r : wait_and_compare(life, life->torture->expected[PHASE_CREATE]);
}

/* What was done for a value must be taken back without the operator's memory. */
static int live_forgotten(struct life *life)
{
        bool accepted;
        int r = set_any_value(life, &accepted);

        if (r >= 0 && accepted)
                r = wait_quiet(life);
        kill_operator(life);
        life_step(life, "its state folder is lost");
        if (r >= 0)
                r = life_check(life, rig_forget(&life->rig));
        if (r >= 0 && accepted)
                r = life_set_spec(life, NULL, &accepted);
        if (r >= 0)
                r = restart_operator(life);
        return r < 0 ? r : wait_and_compare(life, life->torture->expected[PHASE_CREATE]);
}

static int live_stale(struct life *life)
{
        int r = repeat_runs(life);

        if (r >= 0)
                r = hold_dependents(life, false);
        return r < 0 ? r : wait_and_compare(life, life->torture->expected[PHASE_CREATE]);
}

static int live_value(struct life *life)
{
        struct torture *torture = life->torture;
        const char *words = json_text(life->which->of, "words");
        bool accepted;
        int r = life_set_spec(life, life->which->of, &accepted);

        if (r >= 0 && !accepted) {
                life->attempt->result = CASE_SKIPPED;
                return -ECANCELED;
        }
        if (r >= 0)
                r = wait_quiet(life);
        if (r >= 0)
                r = check_given_up(life);
        if (r < 0)
                return r;
        cJSON_DeleteItemFromObjectCaseSensitive(torture->of_value, words);
        cJSON_AddItemToObject(torture->of_value, words,
                              end_state_take(life->rig.objects, torture->trial->config->operator_name));
        r = life_set_spec(life, NULL, &accepted);
        return r < 0 ? r : wait_and_compare(life, torture->expected[PHASE_CREATE]);
}

static int run_middle(struct life *life)
{
        static int (*const middle[KIND_COUNT])(struct life * life) = {
                [KIND_RESTARTED] = live_restarted, [KIND_RELISTED] = live_relisted,
                [KIND_REUSED] = live_reused,       [KIND_REVERTED] = live_reverted,
                [KIND_FORGOTTEN] = live_forgotten, [KIND_STALE] = live_stale,
                [KIND_VALUE] = live_value,
        };

        for (size_t i = 0; i < KIND_COUNT; i++)
                if (middle[i] && is_case_of(life->which, i))
                        return middle[i](life);
        return 0;
}

/* ---- the phases */

/* The operator sees the object only after its value has changed. */
static int create_unseen(struct life *life)
{
        const cJSON *expected = json_member(life->torture->of_value, json_text(life->which->of, "words"));
        bool accepted;
        int r;

        /* A refusal leaves all as it was before, so what there is then depends on the way. */
        if (!expected || json_member(life->torture->refused, json_text(life->which->of, "words"))) {
                life->attempt->result = CASE_SKIPPED;
                return -ECANCELED;
        }
        kill_operator(life);
        r = life_create(life);
        if (r >= 0)
                r = life_set_spec(life, life->which->of, &accepted);
        if (r >= 0)
                r = restart_operator(life);
        if (r >= 0)
                r = wait_and_compare(life, expected);
        return r < 0 ? r : CREATED_OTHERWISE;
}

/* Returns also one of these. */
static int begin_creation(struct life *life)
{
        int r = arm(life, PHASE_CREATE);

        if (r >= 0 && is_case_of(life->which, KIND_STALE))
                r = hold_dependents(life, true);
        if (r >= 0 && is_case_of(life->which, KIND_HANDLER_KILLED)) {
                r = mkdir(life->rig.gate, 0777) < 0 ? -errno : 0;
                life_step(life, "the handler will be killed when it gets its next request");
        }
        if (r >= 0 && is_case_of(life->which, KIND_MISSED))
                return create_unseen(life);
        if (r >= 0)
                r = life_create(life);
        return r < 0 ? r : meet(life);
}

static int learn_phase(struct life *life, enum phase phase)
{
        struct torture *torture = life->torture;
        cJSON *outcome = end_state_take(life->rig.objects, torture->trial->config->operator_name);

        if (!outcome)
                return -ENOMEM;
        if (torture->expected[phase]) {
                mask_learn(&torture->mask, torture->expected[phase], outcome);
                cJSON_Delete(outcome);
                return 0;
        }
        torture->expected[phase] = outcome;
        return writes_note(life->rig.request_log, &life->noted, phase, &torture->write[phase]);
}

static int end_phase(struct life *life, enum phase phase)
{
        int r = wait_quiet(life);

        if (r >= 0)
                r = check_given_up(life);
        if (r < 0)
                return r;
        return life->which ? compare_with(life, life->torture->expected[phase]) : learn_phase(life, phase);
}

/* A handler that runs as another user cannot get to the gate, and was not killed. */
static int check_gate(struct life *life)
{
        if (!is_case_of(life->which, KIND_HANDLER_KILLED) || access(life->rig.gate, F_OK) < 0)
                return 0;
        life->attempt->result = CASE_SKIPPED;
        return -ECANCELED;
}

static int check_selected(struct life *life)
{
        const cJSON *watch;

        cJSON_ArrayForEach(watch, json_member(life->rig.status, "watches")) if (
                strcmp(json_text(watch, "name"), life->torture->trial->watch->name) == 0 &&
                ctl_number(watch, "objects") ==
                        0) return life_fail(life,
                                            "the watch selects none of these objects: namespaces, selectors and filter decide that");
        return 0;
}

/* `stale` compares once its stale view is over. */
static int end_creation(struct life *life)
{
        int r = is_case_of(life->which, KIND_STALE) ? wait_quiet(life) : end_phase(life, PHASE_CREATE);

        if (r >= 0)
                r = check_gate(life);
        if (r >= 0)
                r = run_middle(life);
        if (r >= 0 && !life->which)
                r = check_selected(life);
        if (r < 0 || !life->which)
                return r;
        if (!is_case_of(life->which, KIND_REPEATED) && !life->torture->is_idempotent)
                return 0;
        r = repeat_runs(life);
        /* No run was due for what was taken back, so the conditions' observedGeneration is behind until now. */
        if (r >= 0 && !is_case_of(life->which, KIND_REVERTED))
                r = check_unwritten(life, "a further run has nothing to do");
        return r < 0 ? r : compare_with(life, life->torture->expected[PHASE_CREATE]);
}

static int end_life(struct life *life)
{
        int r = skip_log(life);

        if (r >= 0)
                r = arm(life, PHASE_DELETE);
        if (r >= 0 && is_case_of(life->which, KIND_HANDLER_KILLED))
                r = mkdir(life->rig.gate, 0777) < 0 && errno != EEXIST ? -errno : 0;
        if (r >= 0)
                r = life_delete(life);
        if (r >= 0)
                r = meet(life);
        return r < 0 ? r : end_phase(life, PHASE_DELETE);
}

/* Each run without faults begins at another resourceVersion, so that a handler's notes of it are masked. */
static int bump_versions(struct life *life)
{
        static const char body[] =
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"torture\"}}";
        static const char place[] = "/api/v1/namespaces/default/configmaps";
        int r = 0;

        for (unsigned i = 0; i < life->torture->bumps && r >= 0; i++) {
                r = life_ask(life, "POST", place, json_parse(body, strlen(body)), NULL);
                if (r >= 0)
                        r = life_ask(life, "DELETE", "/api/v1/namespaces/default/configmaps/torture", NULL,
                                     NULL);
        }
        return r;
}

static int begin_rig(struct life *life, const char *record)
{
        struct torture *torture = life->torture;
        bool gated = is_case_of(life->which, KIND_HANDLER_KILLED);
        int r = life_check(life, rig_open(&life->rig, torture->trial, record, gated, &life->error));

        if (r >= 0)
                r = life_find_resource(life);
        if (r >= 0)
                r = bump_versions(life);
        if (r >= 0)
                r = start_operator(life);
        if (r >= 0)
                r = wait_quiet(life);
        if (r >= 0)
                r = skip_log(life);
        if (r >= 0 && !torture->before)
                torture->before = end_state_take(life->rig.objects, torture->trial->config->operator_name);
        return r;
}

static void run_life(struct life *life, const char *record)
{
        int r = begin_rig(life, record);

        if (r >= 0)
                r = begin_creation(life);
        if (r == DELETED_ALREADY) {
                r = end_phase(life, PHASE_DELETE);
        } else if (r >= 0) {
                r = r == CREATED_OTHERWISE ? 0 : end_creation(life);
                if (r >= 0)
                        r = end_life(life);
        }
        if (r < 0 && r != -ECANCELED)
                (void)life_fail(life, "%s", strerror(-r));
        rig_close(&life->rig);
        error_done(&life->error);
}

/* ---- from outside */

void attempt_done(struct attempt *attempt)
{
        text_done(&attempt->steps);
        text_done(&attempt->failure);
        *attempt = (struct attempt){0};
}

static void compare_left(struct torture *torture, struct attempt *attempt)
{
        if (end_state_compare(&torture->mask, torture->before, torture->expected[PHASE_DELETE],
                              &attempt->failure) > 0)
                attempt->result = CASE_FAILED;
}

void case_run(struct torture *torture, const struct torture_case *which, const char *record,
              struct attempt *attempt)
{
        struct life life = {.torture = torture, .which = which, .attempt = attempt};

        assert(torture->expected[PHASE_DELETE]);
        run_life(&life, record);
        if (is_case_of(which, KIND_LEFT) && attempt->result == CASE_PASSED)
                compare_left(torture, attempt);
        /* One failure is enough: no other case looks at further runs then. */
        if (is_case_of(which, KIND_REPEATED) && attempt->result == CASE_FAILED)
                torture->is_idempotent = false;
}

void case_learn(struct torture *torture, struct attempt *attempt)
{
        struct life life = {.torture = torture, .attempt = attempt};

        run_life(&life, NULL);
        torture->bumps++;
}
