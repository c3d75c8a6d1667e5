/* SPDX-License-Identifier: Apache-2.0 */
#include "metric/metric-rule.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
#define DIGITS  "0123456789"

/* Families of the operator itself, and of what scrapes it. */
static const char *const reserved[] = {"reconciled_", "workqueue_", "controller_runtime_", "rest_client_",
                                       "process_",    "scrape_",    "target_info"};

static bool is_metric_word(const char *name, size_t length)
{
        return length > 0 && strspn(name, LETTERS DIGITS) >= length && !strchr(DIGITS, name[0]);
}

const char *metric_name_problem(const char *name, enum metric_action action)
{
        size_t length = strlen(name);

        if (!is_metric_word(name, length) || strspn(name, LETTERS DIGITS) != length ||
            length > METRIC_NAME_MAX)
                return "must be a name of letters, digits and _ (at most 100)";
        for (size_t i = 0; i < ELEMENTS(reserved); i++)
                if (strncmp(name, reserved[i], strlen(reserved[i])) == 0)
                        return "begins as the operator's own metrics do; choose another name";
        if (ends_with(name, "_created") || ends_with(name, "_created_total") || ends_with(name, "_info") ||
            ends_with(name, "_bucket"))
                return "may not end in _created, _info or _bucket, which have a meaning of their own";
        if (strcmp(name, "_total") == 0 ||
            (ends_with(name, "_total") && action != METRIC_ADD && action != METRIC_REMOVE))
                return "ends in _total, which is for `add`";
        return NULL;
}

static const char *label_name_problem(const char *name, size_t length)
{
        static const char *const taken[] = {"le", "quantile", "watch"};

        if (!is_metric_word(name, length) || length > METRIC_NAME_MAX || strncmp(name, "__", 2) == 0)
                return "must be a name of letters, digits and _ (at most 100, not beginning with __)";
        for (size_t i = 0; i < ELEMENTS(taken); i++)
                if (strlen(taken[i]) == length && strncmp(name, taken[i], length) == 0)
                        return "is set by reconciled; choose another name";
        return NULL;
}

const char *metric_label_problem(const char *name)
{
        size_t length = strlen(name);

        return strspn(name, LETTERS DIGITS) == length ? label_name_problem(name, length)
                                                      : label_name_problem("", 0);
}

void metric_label_write(struct text *out, const char *name, const char *value)
{
        text_printf(out, "%s%s=\"", out->size > 0 ? "," : "", name);
        for (; *value; value++)
                if (*value == '\n')
                        text_append_string(out, "\\n");
                else if (*value == '"' || *value == '\\')
                        text_printf(out, "\\%c", *value);
                else
                        text_append(out, value, 1);
        text_append_string(out, "\"");
}

/* Returns the place after the value's last quote; NULL if there is no value. */
static const char *skip_value(const char *p)
{
        if (*p++ != '"')
                return NULL;
        for (; *p && *p != '"'; p++) {
                if (*p == '\n' || (*p == '\\' && !strchr("n\"\\", p[1])) || (*p == '\\' && !p[1]))
                        return NULL;
                p += *p == '\\';
        }
        return *p == '"' ? p + 1 : NULL;
}

bool metric_labels_are_right(const char *labels)
{
        const char *p = labels;
        size_t count = 0;

        if (strlen(labels) > METRIC_LABELS_SIZE)
                return false;
        while (*p) {
                size_t length = strspn(p, LETTERS DIGITS);

                if (++count > METRIC_LABELS_MAX || label_name_problem(p, length) || p[length] != '=')
                        return false;
                p = skip_value(p + length + 1);
                if (!p || (*p && (*p != ',' || !p[1])))
                        return false;
                p += *p == ',';
        }
        return true;
}

void metric_number_write(struct text *out, double value)
{
        char buffer[40];

        snprintf(buffer, sizeof(buffer), "%.15g", value);
        if (strtod(buffer, NULL) < value || strtod(buffer, NULL) > value)
                snprintf(buffer, sizeof(buffer), "%.17g", value);
        text_append_string(out, buffer);
}

size_t metric_buckets_read(const char *buckets, double *ret, size_t max)
{
        size_t count = 0;

        while (*buckets) {
                char *end;
                double bound = strtod(buckets, &end);

                if (end == buckets || count == max || !isfinite(bound) || bound < 0 ||
                    (count > 0 && bound <= ret[count - 1]) || (*end && *end != ' '))
                        return 0;
                ret[count++] = bound;
                buckets = end + (*end == ' ');
        }
        return count;
}
