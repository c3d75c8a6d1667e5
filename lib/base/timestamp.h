/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Times of day as text: RFC 3339, with a zone. */
#include <stdint.h>

/* Reads "2026-12-01T03:00:00Z" or "2026-12-01T03:00:00.5+01:00" as microseconds of CLOCK_REALTIME; a time
 * before 1970 is 0. A fraction is cut at microseconds. -EINVAL: the text is no time, has no zone, or names a
 * day that does not exist. */
int timestamp_parse(const char *text, uint64_t *ret_usec);
