/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stdint.h>

/* The status, drawn again each `interval_usec` until q is typed; returns the exit code. */
int ctl_top(const char *runtime_directory, uint64_t interval_usec);
