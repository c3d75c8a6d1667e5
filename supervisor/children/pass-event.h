/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The way of an Event from the worker that wants it to the one that counts all Events of its object. The
 * object alone decides which one that is, as long as the workers stay.
 */
#include "ipc/message.h"

struct worker;

/* Back to the sender where it is the one that counts. */
void event_pass_on(struct worker *from, const struct message_report *report);
