/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a failed assert() does. The program ends with EXIT_CODE_SOFTWARE, at once and without cleaning up, and
 * the assertion's text is the cause. Where nobody has asked to tell it (tests, tools) the text goes to stderr,
 * and the program aborts.
 */

/* tell: reports one line, by means that need no sound state; it may return. */
typedef void (*assertion_tell_t)(const char *text, void *userdata);
void assertion_on_failure(assertion_tell_t tell, void *userdata);
/* Replaces the C library's own (assert.h), which would end us by SIGABRT without telling anybody. */
void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
        __attribute__((noreturn));
