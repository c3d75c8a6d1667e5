/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether an object is what it is meant to be by now: by the rules of its kind where it has some, else by
 * its conditions, as kstatus has it (sigs.k8s.io/cli-utils); what tells nothing of itself is ready when it
 * is there. Pure data.
 */
#include <stddef.h>

enum readiness { READINESS_READY, READINESS_NOT_YET, READINESS_FAILED };

/* The kind is the caller's: items of a LIST of built-in kinds do not say theirs, and such an object would be
 * judged by the rules for others. `why`: what is missing or has failed, for people; "" when it is ready. */
enum readiness readiness_of(const char *api_version, const char *kind, const char *json, char *why,
                            size_t size);
