/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether an object is ready: by the rules of its kind if there are any, else by its conditions, as
 * kstatus has it (sigs.k8s.io/cli-utils). An object without a status is ready when it exists. Pure data.
 */
#include <stddef.h>

enum readiness { READINESS_READY, READINESS_NOT_YET, READINESS_FAILED };

/* The caller gives the kind: items of a LIST of built-in kinds lack theirs, and would be judged by the
 * general rules. why: for people, what is missing or has failed; "" when it is ready. */
enum readiness readiness_of(const char *api_version, const char *kind, const char *json, char *why,
                            size_t size);
