/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/life.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "json/json.h"

void life_step(struct life *life, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        text_vprintf(&life->attempt->steps, format, arguments);
        va_end(arguments);
        text_append_string(&life->attempt->steps, "\n");
}

int life_fail(struct life *life, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        text_vprintf(&life->attempt->failure, format, arguments);
        va_end(arguments);
        text_append_string(&life->attempt->failure, "\n");
        life->attempt->result = CASE_FAILED;
        return -ECANCELED;
}

/* A rig that does not do what it should has failed with it. */
int life_check(struct life *life, int r)
{
        if (r >= 0)
                return r;
        life_fail(life, "%s", error_message(&life->error));
        return -ECANCELED;
}

int life_ask(struct life *life, const char *method, const char *path, cJSON *body, cJSON **ret)
{
        int r = life_check(life, rig_request(&life->rig, method, path, body, ret));

        cJSON_Delete(body);
        return r;
}

/* ---- objects of the watch */

static const char *subject_name(const cJSON *subject)
{
        return json_text(json_member(subject, "metadata"), "name");
}

/* With the namespace that it gets where it names none. */
static char *subject_path(const struct torture *torture, const cJSON *subject, bool whole)
{
        const char *namespace_name = json_text(json_member(subject, "metadata"), "namespace");

        return format_string("%s%s%s/%s%s%s", torture->collection, torture->namespaced ? "/namespaces/" : "",
                             !torture->namespaced ? ""
                             : namespace_name[0]  ? namespace_name
                                                  : "default",
                             torture->plural, whole ? "/" : "", whole ? subject_name(subject) : "");
}

char *life_key(const struct torture *torture, const cJSON *subject)
{
        const char *namespace_name = json_text(json_member(subject, "metadata"), "namespace");

        return torture->namespaced ? format_string("%s/%s", namespace_name[0] ? namespace_name : "default",
                                                   subject_name(subject))
                                   : strdup(subject_name(subject));
}

int life_find_resource(struct life *life)
{
        struct torture *torture = life->torture;
        const struct config_watch *watch = torture->trial->watch;
        _cleanup_json_ cJSON *answer = NULL;
        const cJSON *each;

        if (torture->plural)
                return 0;
        torture->collection = format_string("/%s/%s", strchr(watch->api_version, '/') ? "apis" : "api",
                                            watch->api_version);
        if (!torture->collection || life_ask(life, "GET", torture->collection, NULL, &answer) < 0)
                return -ECANCELED;
        cJSON_ArrayForEach(each, json_member(answer, "resources")) if (!torture->plural &&
                                                                       strcmp(json_text(each, "kind"),
                                                                              watch->kind) == 0)
        {
                torture->plural = strdup(json_text(each, "name"));
                torture->namespaced = cJSON_IsTrue(json_member(each, "namespaced"));
        }
        return torture->plural
                       ? 0
                       : life_fail(
                                 life,
                                 "the API server in memory knows no %s of %s: give its definition with --object",
                                 watch->kind, watch->api_version);
}

int life_create(struct life *life)
{
        const cJSON *subject;

        cJSON_ArrayForEach(subject, life->torture->trial->subject)
        {
                _cleanup_free_ char *path = subject_path(life->torture, subject, false);
                _cleanup_json_ cJSON *answer = NULL;
                int r = path ? life_ask(life, "POST", path, cJSON_Duplicate(subject, true), &answer)
                             : -ENOMEM;

                if (r >= 0 && r / 100 != 2)
                        return life_fail(life, "%s cannot be created: %s", subject_name(subject),
                                         json_text(answer, "message"));
                if (r < 0)
                        return r;
                life_step(life, "%s %s is created", life->torture->trial->watch->kind,
                          subject_name(subject));
        }
        return 0;
}

int life_delete(struct life *life)
{
        const cJSON *subject;

        cJSON_ArrayForEach(subject, life->torture->trial->subject)
        {
                _cleanup_free_ char *path = subject_path(life->torture, subject, true);
                int r = path ? life_ask(life, "DELETE", path, NULL, NULL) : -ENOMEM;

                if (r < 0)
                        return r;
                life_step(life, "%s %s is deleted", life->torture->trial->watch->kind,
                          subject_name(subject));
        }
        return 0;
}

/* The spec of the first one. false: the server refuses it. NULL: as it was. */
int life_set_spec(struct life *life, const cJSON *value, bool *ret_accepted)
{
        const struct trial *trial = life->torture->trial;
        const cJSON *subject = trial->subject->child;
        _cleanup_free_ char *path = subject_path(life->torture, subject, true),
                            *place = format_string("/%s", trial_spec_name(trial));
        const cJSON *spec =
                value ? json_member(value, "spec") : json_member(subject, trial_spec_name(trial));
        cJSON *list = cJSON_CreateArray(), *patch = cJSON_CreateObject();
        int r;

        cJSON_AddItemToArray(list, patch);
        cJSON_AddStringToObject(patch, "op", spec ? "add" : "remove");
        cJSON_AddStringToObject(patch, "path", place ? place : "");
        if (spec)
                cJSON_AddItemToObject(patch, "value", cJSON_Duplicate(spec, true));
        r = path ? life_ask(life, "PATCH", path, list, NULL) : -ENOMEM;
        *ret_accepted = r / 100 == 2;
        if (r >= 0 && *ret_accepted)
                life_step(life, "%s %s: %s", trial->watch->kind, subject_name(subject),
                          value ? json_text(value, "words") : "all is as it was");
        return r < 0 ? r : 0;
}
