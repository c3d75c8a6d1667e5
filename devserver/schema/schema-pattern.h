/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Patterns of schemas: RE2's syntax, as far as PCRE2 has it too. PCRE2 goes back where RE2 does not, so the steps of
 * a match are limited.
 */
#include <stdbool.h>
#include <stddef.h>

/* NULL: it can be used. Otherwise what is wrong with it, of which the words are written to `text`. */
const char *pattern_mistake(const char *pattern, char *text, size_t size);
/* Whether it is found somewhere in `text`; what has a mistake, or takes too many steps, is not. */
bool pattern_matches(const char *pattern, const char *text);
/* The same for a format: date, date-time, duration, byte, uuid, ipv4, ipv6, hostname, uri and email. All others take
 * any text. */
bool format_matches(const char *format, const char *text);
void patterns_done(void); /* what was compiled is kept until then */
