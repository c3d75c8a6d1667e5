/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The one error object that crosses boundaries: a negative errno for the program, a sentence for the person
 * who must act. Inside a module functions return negative errno alone; library code never logs.
 */
#include "base/cleanup.h"

struct error {
        int status;    /* negative errno, or 0 when no error is held */
        char *message; /* owned; NULL when none */
};

#define ERROR_NONE ((struct error){0, NULL})

/* Fills `error` (which may be NULL: then only the status travels) unless it holds one already: the first
 * cause stays. Returns `status`, so that `return error_set(...)` reads well. `status` is negative, or 0
 * where the text reports no failure. */
int error_set(struct error *error, int status, const char *format, ...) _printf_(3, 4);

/* Puts "prefix: " in front of the message that is held. Returns the status that is held. */
int error_prefix(struct error *error, const char *format, ...) _printf_(2, 3);

/* The message, or the errno's text when there is none; never NULL. */
const char *error_message(const struct error *error);

void error_done(struct error *error);

#define _cleanup_error_ _cleanup_(error_done)
