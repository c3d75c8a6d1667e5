/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Messages that go to several children: credentials, and a server's request to wait. */
#include "ipc/message.h"

struct child_slot;
struct supervisor;

void tell_ready(struct child_slot *child); /* all that a child needs to begin */
/* Takes the message over. -ENOMEM. */
int tell_credential(struct supervisor *supervisor, struct message **message);
void tell_throttle(struct child_slot *from, const struct message_throttle *throttle); /* all others */
void tell_refresh(struct supervisor *supervisor, const struct message_refresh *refresh);
