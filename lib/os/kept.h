/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Texts that must not lie on a disk, in files of a folder in memory. A reference to a text is its id. Its
 * user must be able to do without the text: a reboot takes them all.
 */
#include <stddef.h>

#define KEPT_ID_SIZE 33 /* 32 digits */

int kept_write(const char *folder, const char *text, size_t size, char id[KEPT_ID_SIZE]);
/* -ENOENT: the text is lost, or `id` is invalid. Owned by the caller. */
int kept_read(const char *folder, const char *id, char **ret);
void kept_drop(const char *folder, const char *id);
