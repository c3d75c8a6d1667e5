/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Structured logs of a process: to the journal when stderr is the journal (JOURNAL_STREAM matches fd 2),
 * else JSON lines or text on stderr. Only processes log; libraries return errors.
 *
 * Nothing here blocks: a line goes to a queue (1 MiB) that is written without waiting; when it is full lines
 * are dropped and counted, and the count is logged when there is room again. The queue is drained by
 * the loop (log_attach) and, for a bounded time, at log_done(), which also waits until journald has taken the
 * lines: it cannot name the unit of a process that has ended.
 *
 * Never pass a secret. Text from outside (handler output, server messages) is cleaned: control characters
 * are escaped, a line is at most 8 KiB.
 */
#include <stdbool.h>
#include <syslog.h>
#include <systemd/sd-event.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/text.h"

enum log_target { LOG_TARGET_AUTO, LOG_TARGET_JOURNAL, LOG_TARGET_JSON, LOG_TARGET_TEXT };

struct log_field {
        const char *name;  /* RECONCILED_WATCH, RECONCILED_KEY ...; NULL ends the array */
        const char *value; /* NULL or "": the field is left out */
};

int log_target_parse(const char *name, enum log_target *ret); /* "auto", "journal", "json", "text" */
const char *log_target_name(enum log_target target);          /* as resolved; for passing it to children */
int log_init(enum log_target target, const char *role);
int log_attach(sd_event *event);                 /* drains from this loop */
void log_set_level(int level);                   /* LOG_INFO by default */
int log_level_parse(const char *name, int *ret); /* "error", "warning", "notice", "info", "debug" */
const char *log_level_name(void);                /* the level of this process, to pass to children */
uint64_t log_dropped(void);
void log_done(void); /* drains, and waits until the lines are taken, for at most 500 ms */

/* message_id: 32 hex digits from ipc/message-id.h, or NULL. fields: array that ends with {NULL}, or NULL. */
void log_write(int priority, const char *message_id, const struct log_field *field, const char *format, ...)
        _printf_(4, 5);

#define LOG_FIELDS(...) ((const struct log_field[]){__VA_ARGS__, {NULL, NULL}})

#define log_error(...)   log_write(LOG_ERR, NULL, NULL, __VA_ARGS__)
#define log_warning(...) log_write(LOG_WARNING, NULL, NULL, __VA_ARGS__)
#define log_info(...)    log_write(LOG_INFO, NULL, NULL, __VA_ARGS__)
#define log_debug(...)   log_write(LOG_DEBUG, NULL, NULL, __VA_ARGS__)
