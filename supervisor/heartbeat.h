/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Heartbeats: every child must be heard within the deadline; only then is systemd's watchdog fed. The check
 * runs after all messages that are there (priority), so that a supervisor that was itself stopped for a
 * while does not take its children for dead.
 */
#include <stdbool.h>

#include "ipc/message.h"

struct child_slot;
struct config;
struct supervisor;

int heartbeat_start(struct supervisor *supervisor); /* negative errno */
/* Shortens the interval to the need of systemd's watchdog; true: it was changed. */
bool heartbeat_limit(struct config *config);
void heartbeat_note(struct child_slot *child, const struct message_heartbeat *heartbeat);
