/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/parked/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "json/json.h"

static void write_dependent(const struct dependent *dependent, bool with_previous, struct text *out)
{
        text_append_string(out, "{");
        json_string(out, "apiVersion", dependent->api_version);
        json_string(out, "kind", dependent->kind);
        json_string(out, "namespace", dependent->namespace_name);
        json_string(out, "name", dependent->name);
        if (dependent->kept)
                json_string(out, "kept", dependent->kept);
        else if (dependent->previous && with_previous)
                text_printf(out, "\"restore\":%s,", dependent->previous);
        if (dependent->shown && dependent->shown[0])
                json_string(out, "shown", dependent->shown);
        json_string(out, "uid", dependent->uid);
        json_close(out, "},");
}

static int write_plan(const struct park_plan *plan, bool with_previous, struct text *out)
{
        text_append_string(out, "{");
        json_string(out, "cause", plan->cause);
        text_printf(out,
                    "\"deadline\":\"%" PRIu64 "\",\"fingerprint\":\"%" PRIu64 "\",\"essence\":\"%" PRIu64
                    "\",\"undo\":[",
                    plan->deadline, plan->fingerprint, plan->essence);
        for (size_t i = 0; i < plan->undo.count; i++)
                if (!plan->undo.item[i].previous || plan->undo.item[i].kept || with_previous)
                        write_dependent(&plan->undo.item[i], with_previous, out);
        json_close(out, "],\"wait\":[");
        for (size_t i = 0; i < plan->wait.count; i++)
                write_dependent(&plan->wait.item[i], false, out);
        json_close(out, "],\"drop\":[");
        for (size_t i = 0; i < plan->drop.count && with_previous; i++)
                write_dependent(&plan->drop.item[i], false, out);
        json_close(out, "],");
        text_printf(out,
                    "\"result\":\"%" PRIu64 "\",\"related\":\"%" PRIu64 "\",\"requeueAfter\":\"%" PRIu64
                    "\",\"requeueAt\":\"%" PRIu64 "\",\"answered\":\"%" PRIu64 "\",",
                    plan->result, plan->related, plan->requeue_after_usec, plan->requeue_at_usec,
                    plan->answered);
        json_string(out, "message", plan->message);
        json_string(out, "ready", plan->ready);
        json_string(out, "given", plan->given ? plan->given : "");
        if (plan->again)
                json_bool(out, "again", true);
        if (plan->silent)
                json_bool(out, "silent", true);
        if (plan->slow)
                json_bool(out, "slow", true);
        json_close(out, "}");
        return out->failed ? -ENOMEM : out->size > PARK_PLAN_MAX ? -E2BIG : 0;
}

int park_plan_write(const struct park_plan *plan, struct text *out)
{
        int r = write_plan(plan, true, out);

        if (r != -E2BIG)
                return r;
        text_done(out);
        r = write_plan(plan, false, out);
        return r < 0 && r != -E2BIG ? r : -E2BIG;
}

static char *copy_member(const cJSON *object, const char *key)
{
        return strdup(json_text(object, key));
}

static uint64_t read_number(const cJSON *object, const char *key)
{
        return strtoull(json_text(object, key), NULL, 10);
}

static int read_dependent(const cJSON *item, struct dependent_list *list)
{
        const cJSON *restore = json_member(item, "restore");
        bool is_kept = cJSON_HasObjectItem(item, "kept");
        struct dependent dependent = {
                .api_version = copy_member(item, "apiVersion"),
                .kind = copy_member(item, "kind"),
                .namespace_name = copy_member(item, "namespace"),
                .name = copy_member(item, "name"),
                .uid = copy_member(item, "uid"),
                .shown = copy_member(item, "shown"),
                .previous = restore ? cJSON_PrintUnformatted(restore) : NULL,
                .kept = is_kept ? copy_member(item, "kept") : NULL,
                .index = list->count,
        };

        /* Without its former content it would pass for made by the attempt, and be deleted. */
        if (is_kept && !dependent.kept)
                dependent.lost = true;
        return dependent_list_add(list, &dependent);
}

int park_plan_read(const char *text, struct park_plan *ret)
{
        _cleanup_json_ cJSON *root = json_parse(text, strlen(text));
        const cJSON *list = json_member(root, "undo");
        const cJSON *wait = json_member(root, "wait");
        const cJSON *drop = json_member(root, "drop"), *item;
        struct park_plan plan = {
                .cause = copy_member(root, "cause"),
                .deadline = read_number(root, "deadline"),
                .fingerprint = read_number(root, "fingerprint"),
                .essence = read_number(root, "essence"),
                .message = copy_member(root, "message"),
                .ready = copy_member(root, "ready"),
                .given = copy_member(root, "given"),
                .answered = read_number(root, "answered"),
                .silent = cJSON_IsTrue(json_member(root, "silent")),
                .slow = cJSON_IsTrue(json_member(root, "slow")),
                .again = cJSON_IsTrue(json_member(root, "again")),
                .result = read_number(root, "result"),
                .related = read_number(root, "related"),
                .requeue_after_usec = read_number(root, "requeueAfter"),
                .requeue_at_usec = read_number(root, "requeueAt"),
        };
        int r = !plan.cause || !plan.message || !plan.ready || !plan.given ? -ENOMEM
                : cJSON_IsArray(list)                                      ? 0
                                                                           : -EBADMSG;

        cJSON_ArrayForEach(item, list)
        {
                if (r >= 0)
                        r = read_dependent(item, &plan.undo);
        }
        cJSON_ArrayForEach(item, wait)
        {
                if (r >= 0)
                        r = read_dependent(item, &plan.wait);
        }
        cJSON_ArrayForEach(item, drop)
        {
                if (r >= 0)
                        r = read_dependent(item, &plan.drop);
        }
        if (r < 0) {
                park_plan_done(&plan);
                return r;
        }
        *ret = plan;
        return 0;
}

void park_plan_done(struct park_plan *plan)
{
        free(plan->cause);
        free(plan->message);
        free(plan->ready);
        free(plan->given);
        dependent_list_done(&plan->wait);
        dependent_list_done(&plan->drop);
        dependent_list_done(&plan->undo);
        *plan = (struct park_plan){0};
}
