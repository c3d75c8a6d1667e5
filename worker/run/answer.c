/* SPDX-License-Identifier: Apache-2.0 */
/* See answer.h. */
#include "worker/run/answer.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "base/timestamp.h"
#include "worker/run/answer-list.h"
#include "worker/write/answer-metrics.h"
#include "worker/write/condition.h"
#include "json/json.h"

static const char *const known[] = {
        "status", "patch",  "requeueAfter", "message",    "error",   "permanent", "done",   "id", "children",
        "fatal",  "events", "conditions",   "retryAfter", "patches", "requeueAt", "metrics"};

/* Members that a patch may not touch, and why. */
static const struct {
        const char *parent, *name, *why;
} untouchable[] = {
        {"", "apiVersion", "an object cannot change its kind"},
        {"", "kind", "an object cannot change its kind"},
        {"", "status", "use the answer's own key `status`"},
        {"metadata", "name", "an object cannot change its name"},
        {"metadata", "namespace", "an object cannot change its namespace"},
        {"metadata", "uid", "it belongs to the API server"},
        {"metadata", "resourceVersion",
         "it is set by reconciled, so that no change of others is overwritten"},
        {"metadata", "managedFields", "it belongs to the API server"},
        {"metadata", "creationTimestamp", "it belongs to the API server"},
        {"metadata", "generation", "it belongs to the API server"},
};

static int wrong_answer(struct error *error, const char *key, const char *text)
{
        return error_set(error, -EINVAL, "the handler's answer: %s: %s", key, text);
}

static int check_members(const cJSON *object, const char *parent, struct error *error)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, object)
        {
                for (size_t i = 0; i < ELEMENTS(untouchable); i++) {
                        char key[64];

                        if (strcmp(untouchable[i].name, member->string) != 0 ||
                            strcmp(untouchable[i].parent, parent) != 0)
                                continue;
                        snprintf(key, sizeof(key), "patch.%s%s%s", parent, parent[0] ? "." : "",
                                 untouchable[i].name);
                        return wrong_answer(error, key, untouchable[i].why);
                }
        }
        return 0;
}

static int check_patch(const cJSON *patch, struct error *error)
{
        const cJSON *member, *metadata = NULL;
        int r = check_members(patch, "", error);

        if (r < 0)
                return r;
        cJSON_ArrayForEach(member, patch)
        {
                if (strcmp(member->string, "metadata") != 0)
                        continue;
                if (!cJSON_IsObject(member))
                        return wrong_answer(error, "patch.metadata", "must be an object");
                metadata = member;
        }
        return check_members(metadata, "metadata", error);
}

static int take_duration(uint64_t *place, const cJSON *value, struct error *error)
{
        const char *text = cJSON_GetStringValue(value);

        if (!text || duration_parse(text, place) < 0)
                return wrong_answer(error, value->string,
                                    "must be a duration as text, like \"30s\" or \"1h30m\"");
        return 0;
}

static int take_time(uint64_t *place, const cJSON *value, struct error *error)
{
        const char *text = cJSON_GetStringValue(value);

        if (!text || timestamp_parse(text, place) < 0)
                return wrong_answer(error, value->string,
                                    "must be a time with its zone as text (RFC 3339), like "
                                    "\"2026-12-01T03:00:00Z\"");
        if (*place == 0)
                *place = 1; /* long ago; 0 stands for no time at all */
        return 0;
}

/* Keys that an answer with an error may not have, because nothing more is done for the object in this run. */
static int check_failing(const struct answer *answer, struct error *error)
{
        if (answer->dependents_text.start)
                return wrong_answer(error, "children",
                                    "are not applied by an answer with `error`; leave one of them out");
        if (answer->patches_text.start)
                return wrong_answer(error, "patches",
                                    "are not written by an answer with `error`; leave one of them out");
        if (answer->patch_text.start)
                return wrong_answer(error, "patch",
                                    "is not written by an answer with `error`; leave one of them out");
        if (answer->requeue_after_usec > 0)
                return wrong_answer(error, "requeueAfter",
                                    "is for a success; beside `error`, say `retryAfter`");
        if (answer->requeue_at_usec > 0)
                return wrong_answer(error, "requeueAt",
                                    "is for a success; beside `error`, say `retryAfter`");
        if (answer->retry_after_usec > 0 && (answer->permanent || answer->fatal))
                return wrong_answer(error, "retryAfter", "cannot be, since the error is permanent or fatal");
        return 0;
}

static int check_answer_object(const cJSON *value, const char *key, struct error *error)
{
        return cJSON_IsObject(value) ? 0 : wrong_answer(error, key, "must be an object");
}

static bool is_known(const char *key)
{
        for (size_t i = 0; i < ELEMENTS(known); i++)
                if (strcmp(known[i], key) == 0)
                        return true;
        return false;
}

static int unknown_key(const char *key, struct error *error)
{
        return wrong_answer(
                error, key,
                "is unknown; known are status, conditions, events, patch, requeueAfter, requeueAt, message, error, "
                "retryAfter, permanent, fatal, done, metrics, children and patches");
}

static int take_answer_member(struct answer *answer, const cJSON *value, struct error *error)
{
        const char *key = value->string;

        if (!is_known(key))
                return unknown_key(key, error);
        if (cJSON_IsNull(value))
                return 0;
        if (strcmp(key, "status") == 0) {
                answer->status_has_conditions = cJSON_GetObjectItemCaseSensitive(value, "conditions");
                return check_answer_object(value, key, error);
        }
        if (strcmp(key, "patch") == 0) {
                int r = check_answer_object(value, key, error);

                return r < 0 ? r : check_patch(value, error);
        }
        if (strcmp(key, "conditions") == 0) {
                answer->conditions = value;
                return conditions_check(value, error);
        }
        if (strcmp(key, "events") == 0) {
                answer->events = value;
                return events_check(value, error);
        }
        if (strcmp(key, "metrics") == 0) {
                answer->metrics = value;
                return metrics_check(value, error);
        }
        if (strcmp(key, "requeueAfter") == 0)
                return take_duration(&answer->requeue_after_usec, value, error);
        if (strcmp(key, "requeueAt") == 0)
                return take_time(&answer->requeue_at_usec, value, error);
        if (strcmp(key, "retryAfter") == 0)
                return take_duration(&answer->retry_after_usec, value, error);
        if (strcmp(key, "id") == 0)
                return 0; /* a serving handler's; the run was found by it */
        if (strcmp(key, "children") == 0 || strcmp(key, "patches") == 0)
                return objects_check(key, value, error);
        if (strcmp(key, "done") == 0) {
                answer->not_done = cJSON_IsFalse(value);
                return cJSON_IsBool(value) ? 0 : wrong_answer(error, key, "must be true or false");
        }
        if (strcmp(key, "fatal") == 0) {
                answer->fatal = cJSON_IsTrue(value);
                return cJSON_IsBool(value) ? 0 : wrong_answer(error, key, "must be true or false");
        }
        if (strcmp(key, "permanent") == 0) {
                answer->permanent = cJSON_IsTrue(value);
                return cJSON_IsBool(value) ? 0 : wrong_answer(error, key, "must be true or false");
        }
        if (!cJSON_IsString(value))
                return wrong_answer(error, key, "must be a text");
        if (strcmp(key, "error") == 0)
                answer->error = cJSON_GetStringValue(value);
        else
                answer->message = cJSON_GetStringValue(value);
        return 0;
}

static bool is_space(char c)
{
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The place of a control character, which JSON strings must escape: the mistake deserves a message of its
 * own. -1: there is none. */
static ssize_t find_control(const char *output, size_t size)
{
        bool in_string = false;

        for (size_t i = 0; i < size; i++) {
                if (in_string && output[i] == '\\')
                        i++;
                else if (output[i] == '"')
                        in_string = !in_string;
                if (i < size && (unsigned char)output[i] < 0x20 && (in_string || !is_space(output[i])))
                        return (ssize_t)i;
        }
        return -1;
}

/* The API server would refuse such a number, and that could end the operator (onUnrecoverable). */
static int check_numbers(const cJSON *root, struct error *error)
{
        const cJSON *number = json_find_overflow(root);

        if (!number)
                return 0;
        return error_set(
                error, -EINVAL,
                "the handler's answer: %s%s%.40s is larger than any number that an API server accepts (1.8e308)",
                number->string ? number->string : "", number->string ? ": " : "", number->valuestring);
}

/* With two values for one key, nobody can know which one the author meant. */
static int check_duplicates(const cJSON *root, struct error *error)
{
        _cleanup_text_ struct text path = TEXT_EMPTY;
        const cJSON *duplicate;

        if (json_find_duplicate(root, &duplicate) < 0)
                return error_set(error, -ENOMEM, "no memory for the handler's answer");
        if (!duplicate)
                return 0;
        json_append_path(root, duplicate, &path);
        return error_set(error, -EINVAL, "the handler's answer: %.300s stands there twice; keep one of them",
                         path.data ? path.data : duplicate->string);
}

/* Describes the mistake at which json_read() stopped. */
static const char *describe_mistake(const char *text, size_t size, size_t where)
{
        struct span first;

        if (where < size && utf8_sequence(text + where, size - where) == 0)
                return "a byte that is not UTF-8";
        return scan_value(text, size, &first) >= 0 && first.size == where ? "more follows behind the object"
                                                                          : "a syntax error";
}

static int parse_tree(const char *output, size_t start, size_t size, cJSON **ret, struct error *error)
{
        ssize_t control = find_control(output + start, size);
        size_t where;
        int r;

        if (control >= 0)
                return error_set(
                        error, -EINVAL,
                        "the handler's answer is not valid JSON: a control character, which a string "
                        "must escape (at byte %zu of stdout)",
                        start + (size_t)control);
        r = json_read_bounded(output + start, size, ret, &where);
        if (r == -ENOMEM)
                return error_set(error, -ENOMEM, "no memory for the handler's answer");
        if (r == -E2BIG)
                return error_set(error, -EINVAL,
                                 "the handler's answer has more than %d values (objects, lists, texts, "
                                 "numbers): too many from byte %zu of %zu on",
                                 JSON_BOUNDED_MAX, start + where, start + size);
        if (r < 0)
                return error_set(error, -EINVAL,
                                 "the handler's answer is not valid JSON: %s (at byte %zu of stdout)",
                                 describe_mistake(output + start, size, where), start + where);
        r = check_duplicates(*ret, error);
        return r < 0 ? r : check_numbers(*ret, error);
}

static int take_members(struct answer *answer, struct error *error)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, answer->root)
        {
                int r = take_answer_member(answer, member, error);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int take_text(struct span key, struct span value, void *userdata)
{
        struct answer *answer = userdata;

        if (scan_string_equals(key, "status") && value.start[0] == '{')
                answer->status_text = value;
        else if (scan_string_equals(key, "patch") && value.start[0] == '{')
                answer->patch_text = value;
        else if (scan_string_equals(key, "children") && value.start[0] == '[')
                answer->dependents_text = value;
        else if (scan_string_equals(key, "patches") && value.start[0] == '[')
                answer->patches_text = value;
        return 0;
}

static int take_texts(struct answer *answer, const char *output, size_t size, struct error *error)
{
        struct span whole = {output, size};

        if (scan_members(whole, take_text, answer) < 0)
                return wrong_answer(error, "status or patch", "is nested too deeply");
        return 0;
}

static void drop_trees(struct answer *answer)
{
        static const char *const large[] = {"status", "patch", "children", "patches"};

        for (size_t i = 0; i < ELEMENTS(large); i++)
                cJSON_DeleteItemFromObjectCaseSensitive(answer->root, large[i]);
}

int answer_parse(const char *output, size_t size, struct answer *ret, struct error *error)
{
        struct answer answer = {0};
        size_t start = 0;
        int r;

        while (start < size && is_space(output[start]))
                start++;
        while (size > start && is_space(output[size - 1]))
                size--;
        if (size == start) {
                *ret = answer;
                return 0;
        }
        if (output[start] != '{')
                return 1;
        r = parse_tree(output, start, size - start, &answer.root, error);
        if (r >= 0)
                r = take_members(&answer, error);
        if (r >= 0)
                r = take_texts(&answer, output + start, size - start, error);
        if (r >= 0 && answer.error)
                r = check_failing(&answer, error);
        if (r >= 0 && !answer.error && answer.retry_after_usec > 0)
                r = wrong_answer(error, "retryAfter",
                                 "is for an error, but there is no `error`; say `requeueAfter`");
        if (r >= 0 && !answer.error && (answer.permanent || answer.fatal))
                r = wrong_answer(error, answer.fatal ? "fatal" : "permanent",
                                 "says how bad an error is, but there is no `error`");
        if (r < 0) {
                answer_done(&answer);
                return r;
        }
        drop_trees(&answer);
        *ret = answer;
        return 0;
}

void answer_done(struct answer *answer)
{
        cJSON_Delete(answer->root);
        *answer = (struct answer){0};
}

uint64_t answer_requeue_after(const struct answer *answer, uint64_t realtime)
{
        uint64_t after = answer->requeue_after_usec, until;

        if (answer->requeue_at_usec == 0)
                return after;
        until = answer->requeue_at_usec > realtime + REQUEUE_SOONEST_USEC
                        ? answer->requeue_at_usec - realtime
                        : REQUEUE_SOONEST_USEC;
        return after > 0 && after < until ? after : until;
}

const cJSON *answer_condition(const struct answer *answer, const char *type)
{
        return conditions_find(answer->conditions, type);
}
