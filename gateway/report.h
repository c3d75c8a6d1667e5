/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the supervisor has said of the operator (METRICS), and what a client may believe of it now. */
#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "ipc/message.h"

struct report {
        uint64_t deadline_usec; /* what was told longer ago is old */
        bool live, ready;
        char reason[512];
        struct text document, coming; /* whole; and in the making, page by page */
        uint64_t told_monotonic;      /* 0: nothing yet */
};

/* Takes one page. 1: the document is whole, and another one; 0: there is more to come; -EPROTO: it is larger
 * than any. */
int report_take(struct report *report, const struct message_metrics *metrics);
/* Live and ready as a client may believe it now: what is old says that the supervisor is silent. *ret_reason
 * is borrowed until the next report_take(). */
bool report_is_live(const struct report *report, const char **ret_reason);
bool report_is_ready(const struct report *report, const char **ret_reason);
void report_done(struct report *report);
