/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The control socket: reconciledctl asks, the supervisor answers. Only root and the operator's own user are
 * heard; a peer that misbehaves loses its connection, never the operator.
 */
#include "base/error.h"
#include "ipc/message.h"

struct supervisor;
struct watch;

int control_start(struct supervisor *supervisor, struct error *error); /* negative errno */
void control_done(struct supervisor *supervisor);
void control_continue(struct supervisor *supervisor); /* at the end of a turn */
/* Takes from a watcher how far it is. -ENOMEM. */
int control_take_position(struct watch *watch, const struct message_position *position);
