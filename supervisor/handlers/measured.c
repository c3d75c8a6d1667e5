/* SPDX-License-Identifier: Apache-2.0 */
/* A metric without room is dropped: the run has done its work, and must not fail for that. Each reason is
 * logged once. */
#include "supervisor/handlers/measured.h"

#include <errno.h>

#include "ipc/log.h"
#include "ipc/message-id.h"
#include "metric/metric-rule.h"

static void tell_dropped_metric(const struct watch *watch, size_t watches,
                                const struct record_metric *metric, enum metric_drop drop)
{
        const struct registry_share share = registry_share(watches);
        char too_many[120];
        const char *const why[] = {
                [METRIC_CLASH] =
                        "another action, other buckets, or a sample of another metric has that name already",
                [METRIC_TOO_MANY] = too_many,
                [METRIC_OVERFLOW] = "its sum would be larger than any number",
        };
        const struct log_field fields[] = {{"RECONCILED_WATCH", watch->config->name}, {NULL, NULL}};

        snprintf(too_many, sizeof(too_many),
                 "the watch has as many names or samples as it may (%zu names, %zu samples)", share.families,
                 share.samples);
        log_write(
                LOG_WARNING, MESSAGE_ID_METRIC_DROPPED, fields,
                "the metric %s%s%s%s of the handler of watch %s is dropped (%s): %s; others for that reason are only "
                "counted, in reconciled_handler_metrics_dropped_total",
                metric->name, metric->labels[0] ? "{" : "", metric->labels, metric->labels[0] ? "}" : "",
                watch->config->name, metric_action_name(metric->action), why[drop]);
}

/* Owned and related kinds have no handler of their own. */
static size_t count_handled(const struct controller *controller)
{
        size_t count = 0;

        FOREACH_WATCH(watch, controller)
                count += !watch->config->owner;
        return count;
}

int measured_take(struct supervisor *supervisor, const struct message_measured *measured)
{
        struct watch *watch = watch_find(&supervisor->controller, measured->watch);
        size_t watches = count_handled(&supervisor->controller);

        if (!watch || watches == 0 || measured->metric_count > METRIC_ITEMS_MAX)
                return -EPROTO;
        for (size_t i = 0; i < measured->metric_count; i++) {
                int r = registry_take(supervisor->measured, measured->watch, watches, &measured->metric[i]);

                if (r < 0)
                        return r == -EINVAL ? -EPROTO : r;
                if (r != METRIC_TAKEN && watch_place_of(watch)->metrics_dropped[r]++ == 0)
                        tell_dropped_metric(watch, watches, &measured->metric[i], (enum metric_drop)r);
        }
        return 0;
}
