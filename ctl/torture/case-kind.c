/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/case-kind.h"

#include "base/cleanup.h"

static bool has_dependents(const struct trial *trial)
{
        return trial->watch->owns_count > 0 || trial->watch->related_count > 0;
}

static bool has_command(const struct trial *trial)
{
        return trial->watch->handler.kind != HANDLER_PLUGIN;
}

const struct case_kind case_kind[] = {
        {.name = "repeated", .what = "the handler runs once more, without a change"},
        {.name = "left", .what = "the object is deleted: what is left of it"},
        {.name = "restarted", .what = "the operator is killed and starts again"},
        {.name = "relisted", .what = "the server has forgotten its history, and all is listed again"},
        {.name = "reused", .what = "the object is deleted, and another one takes its name"},
        {.name = "reverted", .what = "the object changes and changes back while the operator is away"},
        {.name = "stale",
         .what = "the handler is shown children and related objects as they were before",
         .applies = has_dependents},
        {.name = "handler-killed", .what = "the handler is killed", .applies = has_command},
        {.name = "killed-before",
         .what = "the operator is killed before a write",
         .scope = SCOPE_WRITE,
         .fault = "{\"hang\":true}",
         .meet = MEET_KILL},
        {.name = "killed-after",
         .what = "the operator is killed after a write",
         .scope = SCOPE_WRITE,
         .fault = "{\"hang\":true,\"carriedOut\":true}",
         .meet = MEET_KILL},
        {.name = "answer-lost",
         .what = "a write is carried out, and its answer lost",
         .scope = SCOPE_WRITE,
         .fault = "{\"reset\":true,\"carriedOut\":true}"},
        {.name = "conflict",
         .what = "a write is refused with 409",
         .scope = SCOPE_WRITE,
         .fault = "{\"status\":409}"},
        {.name = "throttled",
         .what = "a write is refused with 429",
         .scope = SCOPE_WRITE,
         .fault = "{\"status\":429,\"retryAfter\":1}"},
        {.name = "failed",
         .what = "a write is answered with 500",
         .scope = SCOPE_WRITE,
         .fault = "{\"status\":500}"},
        {.name = "deleted",
         .what = "the object is deleted during a write",
         .scope = SCOPE_WRITE,
         .fault = "{\"latency\":\"300ms\"}",
         .meet = MEET_DELETE},
        {.name = "value", .what = "a value of the spec changes, and changes back", .scope = SCOPE_VALUE},
        {.name = "missed",
         .what = "a value has changed before the operator saw the object",
         .scope = SCOPE_VALUE},
};

const size_t case_kind_count = ELEMENTS(case_kind);
