/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Escapes in the texts of JSON, for those who read it with a tree (json/) and those who read it without
 * (store/). */
#include <stddef.h>

/* *at: behind a backslash; moved behind the escape, of a surrogate pair behind both. A lone surrogate is
 * U+FFFD, as in Go. *ret: the code point, which may be 0. -EBADMSG: it is no escape. */
int json_escape_decode(const char **at, const char *end, unsigned *ret);
/* As UTF-8: no more than 4 bytes, and never more than its escape has. Returns how many. */
size_t utf8_encode(unsigned code, char *out);
