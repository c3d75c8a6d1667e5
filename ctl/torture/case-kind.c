/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/case-kind.h"

static bool has_dependents(const struct trial *trial)
{
        return trial->watch->owns_count > 0 || trial->watch->related_count > 0;
}

static bool has_command(const struct trial *trial)
{
        return trial->watch->handler.kind != HANDLER_PLUGIN;
}

const struct case_kind case_kind[KIND_COUNT] = {
        [KIND_REPEATED] = {.name = "repeated", .what = "the handler runs once more, without a change"},
        [KIND_LEFT] = {.name = "left", .what = "the object is deleted: what is left of it"},
        [KIND_RESTARTED] = {.name = "restarted", .what = "the operator is killed and starts again"},
        [KIND_RELISTED] = {.name = "relisted",
                           .what = "the server has forgotten its history, and all is listed again"},
        [KIND_REUSED] = {.name = "reused", .what = "the object is deleted, and another one takes its name"},
        [KIND_REVERTED] = {.name = "reverted",
                           .what = "the object changes and changes back while the operator is away"},
        [KIND_FORGOTTEN] =
                {.name = "forgotten",
                 .what = "a value changes back while the operator is away and loses its state folder"},
        [KIND_STALE] = {.name = "stale",
                        .what = "the handler is shown children and related objects as they were before",
                        .applies = has_dependents},
        [KIND_HANDLER_KILLED] = {.name = "handler-killed",
                                 .what = "the handler is killed",
                                 .applies = has_command},
        [KIND_KILLED_BEFORE] = {.name = "killed-before",
                                .what = "the operator is killed before a write",
                                .scope = SCOPE_WRITE,
                                .fault = "{\"hang\":true}",
                                .meet = MEET_KILL},
        [KIND_KILLED_AFTER] = {.name = "killed-after",
                               .what = "the operator is killed after a write",
                               .scope = SCOPE_WRITE,
                               .fault = "{\"hang\":true,\"carriedOut\":true}",
                               .meet = MEET_KILL},
        [KIND_ANSWER_LOST] = {.name = "answer-lost",
                              .what = "a write is carried out, and its answer lost",
                              .scope = SCOPE_WRITE,
                              .fault = "{\"reset\":true,\"carriedOut\":true}"},
        [KIND_CONFLICT] = {.name = "conflict",
                           .what = "a write is refused with 409",
                           .scope = SCOPE_WRITE,
                           .fault = "{\"status\":409}"},
        [KIND_THROTTLED] = {.name = "throttled",
                            .what = "a write is refused with 429",
                            .scope = SCOPE_WRITE,
                            .fault = "{\"status\":429,\"retryAfter\":1}"},
        [KIND_FAILED] = {.name = "failed",
                         .what = "a write is answered with 500",
                         .scope = SCOPE_WRITE,
                         .fault = "{\"status\":500}"},
        [KIND_DELETED] = {.name = "deleted",
                          .what = "the object is deleted during a write",
                          .scope = SCOPE_WRITE,
                          .fault = "{\"latency\":\"300ms\"}",
                          .meet = MEET_DELETE},
        [KIND_VALUE] = {.name = "value",
                        .what = "a value of the spec changes, and changes back",
                        .scope = SCOPE_VALUE},
        [KIND_MISSED] = {.name = "missed",
                         .what = "a value has changed before the operator saw the object",
                         .scope = SCOPE_VALUE},
};
