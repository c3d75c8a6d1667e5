/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the files of the controller ask of its caller (struct controller_effects). */
#include "controller/controller.h"

bool controller_has_time(const struct controller *controller);             /* this turn goes on */
uint64_t controller_random(struct controller *controller, uint64_t below); /* less than that; 0 for 0 */

/* Calls controller_settle() later, after the messages that have arrived. */
void controller_settle_soon(struct controller *controller);
/* The same a moment later, if the ledger cannot be written now. */
void controller_settle_later(struct controller *controller);
/* field: ends with a NULL name, or is NULL; message_id may be NULL. */
void controller_log(struct controller *controller, int priority, const char *message_id,
                    const struct log_field *field, const char *format, ...) _printf_(5, 6);
/* Ends the operator; the first call counts. key: of the object that is the reason, or NULL. */
void controller_fatal(struct controller *controller, int exit_code, const char *key, const char *format, ...)
        _printf_(4, 5);
/* The ledger has failed; the operator ends for it. status: a negative errno. */
void ledger_failed(struct controller *controller, int status);

/* The time that the caller has told, and the ledger's clock, which nobody sets. All times in microseconds.
 * controller_tell_time() comes before each input. */
void controller_tell_time(struct controller *controller, const struct controller_now *now);
uint64_t ledger_time(const struct controller *controller); /* the ledger's clock now */

/* 0: before this boot. */
uint64_t ledger_time_to_boottime(const struct controller *controller, uint64_t time);
