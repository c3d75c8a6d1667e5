/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kernel's figures of a process that lives. 0: none. */
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "process/process.h"

/* The resources that a process used, as known once it was reaped. */
struct process_usage usage_of(const struct rusage *usage);

uint64_t usage_memory(pid_t pid); /* bytes, now */
uint64_t usage_cpu(pid_t pid);    /* usec, with the children that it has waited for */
uint64_t usage_peak(pid_t pid);   /* bytes, the most it ever had */
/* How often it has ended something of all that we are part of for lack of memory, as known for no longer
 * than that: at the end of one run it was asked, and the next one begins at once. Negative: not known. */
int64_t usage_memory_kills(uint64_t usec);
