/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `reconciledctl run --tty`: the handler gets our terminal. What a worker starts has none, so the worker starts a few lines
 * of shell in the handler's place. They leave request and environment in the session's folder and wait; we start the
 * handler beside us, and they pass on what it has answered.
 */
#include <stdbool.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "config/config.h"
#include "ipc/message.h"

struct tty;

/* `command` runs in the handler's place, with all three streams on the terminal; NULL if there is none. It, the session's folder and the
 * watch are borrowed. 0 or a negative errno. */
int tty_open(sd_event *event, const char *folder, const struct config_watch *watch, char *const *command,
             struct tty **ret);
void tty_close(struct tty *tty); /* kills what runs. NULL is allowed, here and below */

int tty_replace_handler(const struct tty *tty, struct record_watch *watch); /* 0 or -ENOMEM */
bool tty_is_busy(const struct tty *tty);
bool tty_take_end(struct tty *tty, pid_t pid, int status); /* false if that is another process */
