/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The mark beside a store that is not to be trusted: whoever saw one of its users die of SIGSEGV, SIGBUS or
 * SIGABRT, or read damage from it, puts it there, and the next writer to open the store builds it again. A
 * library of its own: the supervisor marks stores and links no LMDB.
 */

/* why: one line, which is reported when the store is rebuilt. 0, or a negative errno: then the store will be
 * opened as it is. */
int store_suspect_mark(const char *folder, const char *why);
/* The reason is owned by the caller. -ENOENT: there is no mark. */
int store_suspect_read(const char *folder, char **ret_why);
int store_suspect_clear(const char *folder);
