/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * fork + exec of a child, its channel on descriptor 3 and nothing else open but /dev/null and the two
 * outputs. Between fork and exec only async-signal-safe calls: the caller may have threads.
 */
#include <sys/types.h>

/* log_target: for `--log`. *ret_fd: our end of the channel. 0 or a negative errno. */
int spawn_with_channel(const char *path, const char *log_target, pid_t *ret_pid, int *ret_fd);
