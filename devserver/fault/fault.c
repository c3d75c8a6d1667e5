/* SPDX-License-Identifier: Apache-2.0 */
/* Which faults act on a request, and those that act in the place of the answer. */
#include "devserver/fault/fault.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/server.h"
#include "http/http-loop.h"

void fault_match_done(struct fault_match *match)
{
        free(match->verb);
        free(match->resource);
        free(match->namespace_name);
        free(match->name);
        free(match->path);
        free(match->user_agent);
}

/* ---- members with rules of their own */

void fault_unref(struct fault *fault)
{
        if (!fault || --fault->references > 0)
                return;
        fault_match_done(&fault->match);
        free(fault->reason);
        free(fault->message);
        free(fault->body);
        free(fault->warning);
        free(fault->content_type);
        text_done(&fault->payload);
        cJSON_Delete(fault->json);
        free(fault);
}

bool faults_remove(struct server *server, uint64_t id)
{
        struct fault **place = &server->fault;
        bool found = false;

        while (*place) {
                struct fault *fault = *place;

                if (id > 0 && fault->id != id) {
                        place = &fault->next;
                        continue;
                }
                *place = fault->next;
                fault_unref(fault);
                found = true;
        }
        return found;
}

void faults_write(const struct server *server, uint64_t first, struct text *json)
{
        bool any = false;

        text_append_string(json, "[");
        for (const struct fault *fault = server->fault; fault; fault = fault->next) {
                _cleanup_free_ char *given = cJSON_PrintUnformatted(fault->json);

                if (fault->id < first || !given)
                        continue;
                text_printf(json, "%s{\"id\":%llu,\"seen\":%llu,\"hit\":%llu,\"fault\":%s}", any ? "," : "",
                            (unsigned long long)fault->id, (unsigned long long)fault->seen,
                            (unsigned long long)fault->hit, given);
                any = true;
        }
        text_append_string(json, "]\n");
}

/* ---- matching */

static bool same(const char *wanted, const char *is)
{
        return !wanted || strcmp(wanted, is ? is : "") == 0;
}

static bool resource_matches(const char *wanted, const struct request *request)
{
        const char *slash = wanted ? strchr(wanted, '/') : NULL,
                   *plural = request->plural ? request->plural : "";
        size_t length = slash ? (size_t)(slash - wanted) : strlen(wanted ? wanted : "");

        if (!wanted)
                return true;
        return strlen(plural) == length && strncmp(plural, wanted, length) == 0 &&
               strcmp(slash ? slash + 1 : "", request->subresource ? request->subresource : "") == 0;
}

bool fault_matches(const struct fault_match *match, const struct request *request)
{
        const char *token = request_argument(request, "continue");
        const char *agent = http_header(request->connection, "User-Agent");
        int continued = token && token[0] ? 1 : 0;

        return same(match->verb, request->verb) && resource_matches(match->resource, request) &&
               same(match->namespace_name, request->namespace_name) && same(match->name, request->name) &&
               (!match->path || fnmatch(match->path, request->url, 0) == 0) &&
               (!match->user_agent || fnmatch(match->user_agent, agent ? agent : "", 0) == 0) &&
               (match->continued < 0 || match->continued == continued);
}

void faults_choose(struct request *request)
{
        for (struct fault *fault = request->server->fault; fault; fault = fault->next) {
                if (!fault_matches(&fault->match, request))
                        continue;
                fault->seen++;
                if (fault->seen <= fault->after || (fault->times > 0 && fault->hit >= fault->times) ||
                    request->fault_count == FAULTS_PER_REQUEST)
                        continue;
                fault->hit++;
                fault->references++;
                request->fault[request->fault_count++] = fault;
        }
}

/* ---- in the place of the answer */

static void answer_fault_status(struct request *request, const struct fault *fault)
{
        static const struct {
                int status;
                const char *reason;
        } usual[] = {
                {400, "BadRequest"},    {401, "Unauthorized"},
                {403, "Forbidden"},     {404, "NotFound"},
                {409, "Conflict"},      {410, "Expired"},
                {422, "Invalid"},       {429, "TooManyRequests"},
                {500, "InternalError"}, {503, "ServiceUnavailable"},
                {504, "Timeout"},
        };
        const char *reason = fault->reason ? fault->reason : "";

        request->retry_after = fault->retry_after;
        for (size_t i = 0; !fault->reason && i < ELEMENTS(usual); i++)
                if (usual[i].status == fault->status)
                        reason = usual[i].reason;
        if (fault->body) {
                request->status = fault->status;
                text_clear(&request->answer);
                text_append_string(&request->answer, fault->body);
        } else {
                answer_status_causes(request, fault->status, reason,
                                     fault->causes ? cJSON_Duplicate(fault->causes, true) : NULL,
                                     fault->message ? fault->message : "a fault that was asked for");
        }
        request->content_type = fault->content_type ? fault->content_type
                                : fault->body       ? "text/plain"
                                                    : NULL;
}

/* With a RST, so that the client cannot mistake it for an end in order. */
static void prepare_reset(struct request *request)
{
        int fd = http_connection_fd(request->connection);
        struct linger linger = {.l_onoff = 1, .l_linger = 0};

        if (fd >= 0)
                setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
        request->drop = true;
}

static const struct fault *find_answer(const struct request *request)
{
        for (size_t i = 0; i < request->fault_count; i++) {
                const struct fault *fault = request->fault[i];

                if (fault->status > 0 || fault->hang || fault->reset)
                        return fault;
        }
        return NULL;
}

bool faults_let_through(const struct request *request)
{
        const struct fault *fault = find_answer(request);

        return !fault || fault->carried_out;
}

void faults_answer(struct request *request)
{
        const struct fault *fault = find_answer(request);

        if (!fault || request->watch)
                return;
        if (fault->status > 0)
                answer_fault_status(request, fault);
        else if (fault->hang)
                request->hang = true;
        else
                prepare_reset(request);
}

/* ---- before the answer */

uint64_t faults_latency(const struct request *request)
{
        uint64_t longest = 0;

        for (size_t i = 0; i < request->fault_count; i++)
                if (request->fault[i]->latency_usec > longest)
                        longest = request->fault[i]->latency_usec;
        return longest;
}

/* ---- on the body */

bool faults_forbid_bookmarks(const struct request *request)
{
        for (size_t i = 0; i < request->fault_count; i++)
                if (request->fault[i]->no_bookmarks)
                        return true;
        return false;
}

bool faults_forbid_initial_end(const struct request *request)
{
        for (size_t i = 0; i < request->fault_count; i++)
                if (request->fault[i]->no_initial_events_end)
                        return true;
        return false;
}

bool faults_need_flow(const struct request *request)
{
        for (size_t i = 0; i < request->fault_count; i++) {
                const struct fault *fault = request->fault[i];

                if (fault->payload.size > 0 || fault->close != CLOSE_NOT || fault->bytes_per_second > 0 ||
                    fault->pieces > 0)
                        return true;
        }
        return false;
}
