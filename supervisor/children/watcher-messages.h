/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages of watchers: changes, how far they are, and their trouble. */
#include "ipc/message.h"

struct watch;

/* -EPROTO: it may not say that; -ENOMEM. */
int watcher_message(struct watch *watch, const struct message *message);
