/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "ctl/ctl-answer.h"

/* The text for a watch with `handlerStale`. */
#define CTL_STALE_HANDLER                                                                                    \
        "the file of its handler has changed since the operator started it, and a process from before runs " \
        "on with the old code; `reconciledctl reload` starts another one"

/* How many, and "wait" or "waits". */
#define CTL_RATE_WAITS "%s for the rate of its handler (handler.rate)"

/* Writes the status for people. */
void ctl_print_status(const cJSON *status, bool wide);
/* Columns of the names: those of owned kinds are long (WATCH.owns.KIND.NUMBER). */
int ctl_name_width(const cJSON *watches);
void ctl_print_doubtful(const cJSON *list); /* with an empty line before them */

/* Failures of an object since its last success, also those that count as no attempt (an outage); and in words:
 * "attempt 3", "attempt 3, and 2 failures that count as none". Returns `buffer`; 96 bytes are enough. */
uint64_t ctl_failures(const cJSON *row);
const char *ctl_attempts(const cJSON *row, char *buffer, size_t size);

/* Prints whether the operator is healthy, or ready, and if not, why; returns the exit code. */
int ctl_health(const char *runtime_directory, bool ready, bool json);

struct get_options {
        const char *state;             /* "failing", "waiting", "quarantined" */
        const char *watch, *namespace; /* "": all */
        enum form form;
};

/* Lists objects in trouble; returns the exit code. */
int ctl_get(const char *runtime_directory, const struct get_options *options);
