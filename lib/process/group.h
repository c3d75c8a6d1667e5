/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The control group of one program and everything it starts: a folder, and what the kernel says in it. */
#include "process/process.h"

/* With the limits that hold in it; *ret NULL when no folder is given. */
int group_new(const struct process_options *options, char **ret);
/* Those of the limits whose controllers there are. */
int group_limit(const char *group, const struct process_limits *limits, unsigned controllers);
int group_open(const char *group); /* its cgroup.procs, for spawn_program(); or negative errno */
void group_kill(const char *group);
/* Replaces what the group knows better: everything that ever was in it. */
void group_usage(const char *group, struct process_usage *usage);
enum process_memory_end group_memory_end(const char *group);
/* Removes it, as far as nobody is in it; NULL is allowed. */
void group_free(char *group);
