/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "ctl/ctl-answer.h"

/* Shows the last runs of a key, or of all keys of the watch (""). Returns the exit code. */
int ctl_history(const char *runtime_directory, const char *watch, const char *key, enum form form);
/* What a run did to children, for people: a line for each, with `indent` spaces before it. */
void ctl_print_writes(const cJSON *run, int indent);
