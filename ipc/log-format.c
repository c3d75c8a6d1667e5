/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/log-format.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/duration.h"
#include "ipc/message.h"

#define FIELD_PREFIX  "RECONCILED_"
#define NAMESPACE_MAX 64 /* a DNS label, and its end */

static const char *level_name(int priority)
{
        static const char *const name[] = {"emergency", "alert",  "critical", "error",
                                           "warning",   "notice", "info",     "debug"};

        return name[priority & 7];
}

/* Whose record it is: namespace/name, or a name alone, also part by part, so that one can be asked for
 * without the other. */
struct object_name {
        char namespace_name[NAMESPACE_MAX];
        const char *name; /* NULL: it is about no object */
};

static void split_key(const struct log_record *record, struct object_name *ret)
{
        *ret = (struct object_name){0};
        for (const struct log_field *field = record->field; field && field->name; field++) {
                const char *slash;

                if (!field->value || !field->value[0] || strcmp(field->name, FIELD_PREFIX "KEY") != 0)
                        continue;
                slash = strchr(field->value, '/');
                ret->name = slash ? slash + 1 : field->value;
                snprintf(ret->namespace_name, sizeof(ret->namespace_name), "%.*s",
                         slash ? (int)(slash - field->value) : 0, field->value);
        }
}

/* ---- the journal's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL): NAME=value, or, when the value
 * holds a newline, NAME, its size as 64 bits little endian, and the value. */

static void journal_field(struct text *out, const char *name, const char *value)
{
        if (!value || !value[0])
                return;
        text_append_string(out, name);
        if (strchr(value, '\n')) {
                uint64_t size = strlen(value);
                unsigned char bytes[8];

                for (size_t i = 0; i < sizeof(bytes); i++)
                        bytes[i] = (unsigned char)(size >> (8 * i));
                text_append(out, "\n", 1);
                text_append(out, bytes, sizeof(bytes));
        } else {
                text_append(out, "=", 1);
        }
        text_append_string(out, value);
        text_append(out, "\n", 1);
}

void log_format_journal(struct text *out, const struct log_record *record)
{
        char priority[2] = {(char)('0' + (record->priority & 7)), '\0'};
        struct object_name object;

        split_key(record, &object);
        journal_field(out, "MESSAGE", record->message);
        journal_field(out, "PRIORITY", priority);
        journal_field(out, "SYSLOG_IDENTIFIER", "reconciled");
        journal_field(out, "MESSAGE_ID", record->message_id);
        journal_field(out, "RECONCILED_ROLE", record->role);
        for (const struct log_field *field = record->field; field && field->name; field++)
                journal_field(out, field->name, field->value);
        journal_field(out, FIELD_PREFIX "NAMESPACE", object.namespace_name);
        journal_field(out, FIELD_PREFIX "NAME", object.name);
}

/* ---- stderr */

static void append_time(struct text *out, uint64_t realtime, bool with_date)
{
        time_t seconds = (time_t)(realtime / USEC_PER_SEC);
        struct tm tm;
        char buffer[40];

        gmtime_r(&seconds, &tm);
        if (with_date)
                strftime(buffer, sizeof(buffer), "%Y-%m-%dT%H:%M:%S", &tm);
        else
                strftime(buffer, sizeof(buffer), "%H:%M:%S", &tm);
        text_printf(out, "%s.%03u", buffer, (unsigned)(realtime / USEC_PER_MSEC % 1000));
}

/* RECONCILED_WATCH -> watch */
static void short_name(const char *name, char *ret, size_t size)
{
        size_t i = 0;

        if (strncmp(name, FIELD_PREFIX, strlen(FIELD_PREFIX)) == 0)
                name += strlen(FIELD_PREFIX);
        for (; name[i] && i + 1 < size; i++)
                ret[i] = (char)tolower((unsigned char)name[i]);
        ret[i] = '\0';
}

static void json_member(struct text *out, const char *name, const char *value)
{
        if (!value || !value[0])
                return;
        text_append(out, ",", 1);
        text_json_string(out, name);
        text_append(out, ":", 1);
        text_json_string(out, value);
}

void log_format_json(struct text *out, const struct log_record *record)
{
        struct object_name object;

        split_key(record, &object);
        text_append_string(out, "{\"time\":\"");
        append_time(out, record->realtime, true);
        text_append_string(out, "Z\"");
        json_member(out, "level", level_name(record->priority));
        json_member(out, "role", record->role);
        json_member(out, "message_id", record->message_id);
        json_member(out, "message", record->message);
        for (const struct log_field *field = record->field; field && field->name; field++) {
                char name[64];

                short_name(field->name, name, sizeof(name));
                json_member(out, name, field->value);
        }
        json_member(out, "namespace", object.namespace_name);
        json_member(out, "name", object.name);
        text_append_string(out, "}\n");
}

void log_format_text(struct text *out, const struct log_record *record)
{
        const char *separator = " (";
        size_t start;

        append_time(out, record->realtime, false);
        text_printf(out, " %s %s: ", record->role, level_name(record->priority));
        start = out->size;
        text_append_string(out, record->message);
        for (const struct log_field *field = record->field; field && field->name; field++) {
                char name[64];

                if (!field->value || !field->value[0])
                        continue;
                short_name(field->name, name, sizeof(name));
                text_printf(out, "%s%s=%s", separator, name, field->value);
                separator = " ";
        }
        if (separator[1] == '\0')
                text_append(out, ")", 1);
        if (out->data)
                utf8_clean(out->data + start);
        text_append(out, "\n", 1);
}
