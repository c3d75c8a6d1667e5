/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What /proc says of a process that lives. 0: nothing. */
#include <stdint.h>
#include <sys/types.h>

uint64_t usage_memory(pid_t pid); /* bytes, now */
uint64_t usage_cpu(pid_t pid);    /* usec, with the children that it has waited for */
uint64_t usage_peak(pid_t pid);   /* bytes, the most it ever had */
