/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/write/answer-metrics.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ipc/child.h"
#include "metric/metric-rule.h"
#include "worker/run/answer-list.h"
#include "json/json.h"

static int check_metric_member(const cJSON *member, int index, struct error *error);

static const struct answer_list metrics = {"metrics", check_metric_member, {"name", "action", NULL}};

static int wrong_metric(struct error *error, int index, const char *key, const char *text)
{
        return answer_list_wrong(&metrics, index, key, text, error);
}

static enum metric_action metric_action_of(const cJSON *item)
{
        const char *text = json_text(item, "action");
        enum metric_action action = 0;

        while (action < METRIC_ACTION_COUNT && strcmp(text, metric_action_name(action)) != 0)
                action++;
        return action;
}

static cJSON_bool is_number(const cJSON *item)
{
        return json_is_number(item);
}

static int check_metric_member(const cJSON *member, int index, struct error *error)
{
        static const struct {
                const char *key, *must;
                cJSON_bool (*is)(const cJSON *);
        } known[] = {
                {"name", "must be a text", cJSON_IsString},
                {"action", "must be a text", cJSON_IsString},
                {"value", "must be a number", is_number},
                {"labels", "must be an object", cJSON_IsObject},
                {"buckets", "must be a list", cJSON_IsArray},
        };

        for (size_t i = 0; i < ELEMENTS(known); i++)
                if (strcmp(member->string, known[i].key) == 0)
                        return cJSON_IsNull(member) || known[i].is(member)
                                       ? 0
                                       : wrong_metric(error, index, known[i].key, known[i].must);
        return wrong_metric(error, index, member->string,
                            "is unknown; known are name, action, value, labels and buckets");
}

static int by_name(const void *a, const void *b)
{
        const cJSON *const *one = a, *const *other = b;

        return strcmp((*one)->string, (*other)->string);
}

/* In the order of their names: the same labels are the same series, however the handler orders them. */
static int write_labels(const cJSON *labels, int index, struct text *out, struct error *error)
{
        const cJSON *sorted[METRIC_LABELS_MAX], *label;
        size_t count = 0;

        cJSON_ArrayForEach(label, labels)
        {
                const char *problem = metric_label_problem(label->string);
                char key[160];

                snprintf(key, sizeof(key), "labels.%.120s", label->string);
                if (problem || !cJSON_IsString(label))
                        return wrong_metric(error, index, key, problem ? problem : "must be a text");
                if (count == METRIC_LABELS_MAX)
                        return wrong_metric(error, index, "labels", "at most 8 are accepted");
                sorted[count++] = label;
        }
        qsort(sorted, count, sizeof(sorted[0]), by_name);
        for (size_t i = 0; i < count; i++)
                metric_label_write(out, sorted[i]->string, sorted[i]->valuestring);
        if (out->failed)
                return error_set(error, -ENOMEM, "no memory for the handler's answer");
        return out->size > METRIC_LABELS_SIZE
                       ? wrong_metric(error, index, "labels", "together they are longer than 512 bytes")
                       : 0;
}

static int write_buckets(const cJSON *buckets, int index, struct text *out, struct error *error)
{
        double bound[METRIC_BUCKETS_MAX];
        const cJSON *item;
        int count = 0;

        cJSON_ArrayForEach(item, buckets)
        {
                if (!json_is_number(item))
                        return wrong_metric(error, index, "buckets", "must be a list of numbers");
                if (count++ > METRIC_BUCKETS_MAX)
                        break;
                text_append_string(out, out->size > 0 ? " " : "");
                metric_number_write(out, json_number(item, NAN));
        }
        if (out->failed)
                return error_set(error, -ENOMEM, "no memory for the handler's answer");
        if (buckets && metric_buckets_read(out->data ? out->data : "", bound, METRIC_BUCKETS_MAX) == 0)
                return wrong_metric(
                        error, index, "buckets",
                        "must be at most 30 numbers, not negative, each larger than the one before");
        return 0;
}

static const cJSON *given(const cJSON *item, const char *key)
{
        const cJSON *member = json_member(item, key);

        return cJSON_IsNull(member) ? NULL : member;
}

static int check_value(const cJSON *item, int index, enum metric_action action, struct error *error)
{
        const cJSON *value = given(item, "value");

        if (action == METRIC_ACTION_COUNT)
                return wrong_metric(error, index, "action",
                                    "must be \"set\", \"add\", \"observe\" or \"remove\"");
        if (!value && action != METRIC_REMOVE)
                return wrong_metric(error, index, "value", "is missing");
        if (value && !isfinite(json_number(value, NAN)))
                return wrong_metric(error, index, "value", "is larger than any number");
        if (value && action == METRIC_ADD && json_number(value, 0) < 0)
                return wrong_metric(error, index, "value",
                                    "is negative, and a counter only grows; use `set`");
        if (value && action == METRIC_OBSERVE && json_number(value, 0) < 0)
                return wrong_metric(error, index, "value",
                                    "is negative, and the sum of a histogram only grows; use `set`");
        if (given(item, "buckets") && action != METRIC_OBSERVE)
                return wrong_metric(error, index, "buckets", "are for `observe`");
        return 0;
}

static int check_item(const cJSON *item, int index, struct error *error)
{
        _cleanup_text_ struct text labels = TEXT_EMPTY, buckets = TEXT_EMPTY;
        enum metric_action action;
        const char *problem;
        int r;

        if (index == METRIC_ITEMS_MAX)
                return wrong_metric(error, index, "", "at most 100 are accepted");
        r = answer_list_check_item(&metrics, item, index, error);
        if (r < 0)
                return r;
        action = metric_action_of(item);
        r = check_value(item, index, action, error);
        if (r < 0)
                return r;
        problem = metric_name_problem(json_text(item, "name"), action);
        if (problem)
                return wrong_metric(error, index, "name", problem);
        r = write_labels(given(item, "labels"), index, &labels, error);
        return r < 0 ? r : write_buckets(given(item, "buckets"), index, &buckets, error);
}

int metrics_check(const cJSON *list, struct error *error)
{
        const cJSON *item;
        int index = 0, r = 0;

        if (!cJSON_IsArray(list))
                return error_set(error, -EINVAL, "the handler's answer: metrics: must be a list");
        cJSON_ArrayForEach(item, list)
        {
                if (r >= 0)
                        r = check_item(item, index++, error);
        }
        return r;
}

int measured_read(const cJSON *item, struct record_metric *ret, struct text *labels, struct text *buckets)
{
        const cJSON *value = given(item, "value");
        double number = json_number(value, 0);
        int r = write_labels(given(item, "labels"), 0, labels, NULL);

        if (r >= 0)
                r = write_buckets(given(item, "buckets"), 0, buckets, NULL);
        *ret = (struct record_metric){
                .action = metric_action_of(item),
                .name = json_text(item, "name"),
                .labels = labels->data ? labels->data : "",
                .buckets = buckets->data ? buckets->data : "",
        };
        memcpy(&ret->value, &number, sizeof(number));
        return r;
}

int measured_tell(const struct run *run)
{
        struct record_metric metric[METRIC_ITEMS_MAX];
        struct text labels[METRIC_ITEMS_MAX], buckets[METRIC_ITEMS_MAX];
        size_t count = 0;
        const cJSON *item;
        int r = 0;

        if (!run->answer.metrics || !run->answer.metrics->child)
                return 0;
        cJSON_ArrayForEach(item, run->answer.metrics)
        {
                labels[count] = buckets[count] = TEXT_EMPTY;
                if (r >= 0)
                        r = measured_read(item, &metric[count], &labels[count], &buckets[count]);
                count++;
        }
        /* Without memory for them they are lost, as a line of a log would be. */
        if (r >= 0)
                r = child_send(run->worker->child, MESSAGE_MEASURED,
                               &(struct message_measured){
                                       .watch = run->order->watch, .metric = metric, .metric_count = count});
        else
                r = 0;
        for (size_t i = 0; i < count; i++) {
                text_done(&labels[i]);
                text_done(&buckets[i]);
        }
        return r;
}
