/* SPDX-License-Identifier: Apache-2.0 */
#include "gateway/report.h"

#include <errno.h>
#include <stdio.h>

#include "base/duration.h"

#define DOCUMENT_MAX ((size_t)64 * 1024 * 1024)

static bool is_fresh(const struct report *report, const char **ret_reason)
{
        *ret_reason = "the supervisor has said nothing yet";
        if (report->told_monotonic == 0)
                return false;
        *ret_reason = "the supervisor is silent";
        return clock_monotonic_usec() - report->told_monotonic <= report->deadline_usec;
}

bool report_is_live(const struct report *report, const char **ret_reason)
{
        if (!is_fresh(report, ret_reason))
                return false;
        *ret_reason = report->reason;
        return report->live;
}

bool report_is_ready(const struct report *report, const char **ret_reason)
{
        return report_is_live(report, ret_reason) && report->ready;
}

int report_take(struct report *report, const struct message_metrics *metrics)
{
        int renewed = 0;

        if (report->coming.size + metrics->body_size > DOCUMENT_MAX)
                return -EPROTO;
        text_append(&report->coming, metrics->body, metrics->body_size);
        if (!metrics->last)
                return 0;
        report->live = metrics->live;
        report->ready = metrics->ready;
        snprintf(report->reason, sizeof(report->reason), "%s", metrics->reason);
        report->told_monotonic = clock_monotonic_usec();
        if (!report->coming.failed) {
                text_done(&report->document);
                report->document = report->coming;
                report->coming = TEXT_EMPTY;
                renewed = 1;
        }
        text_done(&report->coming);
        report->coming = TEXT_EMPTY;
        return renewed;
}

void report_done(struct report *report)
{
        text_done(&report->document);
        text_done(&report->coming);
}
