/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a log line looks in each target. Private to ipc/. */
#include "base/text.h"
#include "ipc/log.h"

#define LOG_LINE_MAX      ((size_t)8192)
/* Lines of several processes meet in one pipe; up to PIPE_BUF bytes they never mix. */
#define LOG_PIPE_LINE_MAX ((size_t)4096)

struct log_record {
        uint64_t realtime;
        int priority;
        const char *role, *message_id, *message;
        const struct log_field *field;
};

void log_format_journal(struct text *out, const struct log_record *record);
void log_format_json(struct text *out, const struct log_record *record);
void log_format_text(struct text *out, const struct log_record *record);
