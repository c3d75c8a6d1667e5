/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include <stddef.h>

/* The whole of a regular file, NUL-terminated, owned by the caller. -EFBIG: more than `max` bytes; -EINVAL:
 * not a regular file; or what the system says. */
int file_read(const char *path, size_t max, char **ret, size_t *ret_size);
