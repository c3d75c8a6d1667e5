/* SPDX-License-Identifier: Apache-2.0 */
/* One JSON line a request (--request-log). */
#include "devserver/request-log.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "devserver/fault/fault.h"
#include "devserver/http/http-request.h"

static enum MHD_Result add_query(void *userdata, enum MHD_ValueKind kind _unused_, const char *key,
                                 const char *value)
{
        struct text *query = userdata;

        text_printf(query, "%s%s%s%s", query->size > 0 ? "&" : "", key, value ? "=" : "",
                    value ? value : "");
        return MHD_YES;
}

static void log_text(struct text *line, const char *name, const char *value)
{
        if (!value || !value[0])
                return;
        text_printf(line, ",\"%s\":", name);
        text_json_string(line, value);
}

/* Headers that say who the client wants to be, and in which form it wants its answer; of a secret only that
 * there is one. */
static enum MHD_Result log_header(void *userdata, enum MHD_ValueKind kind _unused_, const char *key,
                                  const char *value)
{
        struct text *line = userdata;
        const char *space;

        if (strcasecmp(key, "Authorization") == 0) {
                space = value ? strchr(value, ' ') : NULL;
                text_append_string(line, ",\"authorization\":");
                text_json_bytes(line, value, space ? (size_t)(space - value) : 0);
        } else if (strncasecmp(key, "Impersonate-", 12) == 0) {
                text_append_string(line, ",");
                text_json_string(line, key);
                text_append_string(line, ":");
                text_json_string(line, value);
        } else if (strcasecmp(key, "Accept") == 0) {
                log_text(line, "accept", value);
        } else if (strcasecmp(key, "User-Agent") == 0) {
                log_text(line, "user_agent", value);
        }
        return MHD_YES;
}

static void log_faults(const struct request *request, struct text *line)
{
        for (size_t i = 0; i < request->fault_count; i++)
                text_printf(line, "%s%llu", i == 0 ? ",\"faults\":[" : ",",
                            (unsigned long long)request->fault[i]->id);
        if (request->fault_count > 0)
                text_append_string(line, "]");
}

void request_log(struct request *request)
{
        _cleanup_text_ struct text query = TEXT_EMPTY, line = TEXT_EMPTY;
        FILE *log = request->server->request_log;

        if (!log || request->logged || strncmp(request->url, "/devserver/", 11) == 0)
                return;
        request->logged = true;
        MHD_get_connection_values(request->connection, MHD_GET_ARGUMENT_KIND, add_query, &query);
        text_printf(&line, "{\"time\":%.6f,\"method\":", (double)clock_realtime_usec() / 1e6);
        text_json_string(&line, request->method);
        text_append_string(&line, ",\"path\":");
        text_json_string(&line, request->url);
        text_append_string(&line, ",\"query\":");
        text_json_string(&line, query.data ? query.data : "");
        log_text(&line, "verb", request->verb);
        log_text(&line, "resource", request->plural);
        log_text(&line, "subresource", request->subresource);
        log_text(&line, "namespace", request->namespace_name);
        log_text(&line, "name", request->name);
        MHD_get_connection_values(request->connection, MHD_HEADER_KIND, log_header, &line);
        log_faults(request, &line);
        if (request->wrote > 0)
                text_printf(&line, ",\"wrote\":\"%llu\"", (unsigned long long)request->wrote);
        /* 0: a fault left it without an answer. */
        text_printf(&line, ",\"status\":%d}\n", request->hang || request->drop ? 0 : request->status);
        if (!line.failed)
                fwrite(line.data, 1, line.size, log);
        fflush(log);
}
