/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The control group of one program and everything it starts: a folder, and the kernel's figures in it; and
 * the kernel's figures of a single process. */
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "process/process.h"

/* Makes a group with the limits that hold in it; *ret NULL when no folder is given. */
int group_new(const struct process_options *options, char **ret);
/* Sets the limits whose controllers are available. */
int group_limit(const char *group, const struct process_limits *limits, unsigned controllers);
void group_kill(const char *group);
/* Replaces figures by those of the group, which count everything that ever was in it. */
void group_usage(const char *group, struct process_usage *usage);
enum process_memory_end group_memory_end(const char *group);
/* Removes the group, if it has no process; NULL is allowed. */
void group_free(char *group);

struct process_usage usage_of(const struct rusage *usage); /* of a process that was reaped */
/* The kernel's figures of a process that lives. 0 if there is none. */
uint64_t usage_memory(pid_t pid); /* bytes, now */
uint64_t usage_cpu(pid_t pid);    /* usec, with the children that it has waited for */
uint64_t usage_peak(pid_t pid);   /* bytes, the most it ever had */
/* How many processes the kernel has ended for lack of memory in the group that this process is in; negative
 * if it does not report that. The number may be `usec` old, so that the end of one run and the begin of the
 * next ask the kernel once. */
int64_t usage_memory_kills(uint64_t usec);
