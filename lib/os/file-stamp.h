/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which version of its files a program was started from, without reading them: device, inode, size and the
 * time of the last change (ctime) of each argument that is a regular file, as one number. It is compared
 * with others that were taken on the same machine, and is no proof: other numbers may stand for the same
 * contents.
 */
#include <stdint.h>
#include <sys/stat.h>

#define FILE_STAMP_SEVERAL UINT64_MAX /* no one version: a file was replaced meanwhile */

/* A further file; begins with 0. info NULL: an argument that is no file. Never 0 nor FILE_STAMP_SEVERAL. */
uint64_t file_stamp_add(uint64_t stamp, const struct stat *info);
/* Looks at an argument of a handler; handlers are started in the root folder. */
uint64_t file_stamp_add_argument(uint64_t stamp, const char *argument);
