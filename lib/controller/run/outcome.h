/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a run that has ended changes its object's row, and the queue. */
#include "controller/controller.h"

/* given: as assign_take() has returned it. -EPROTO: the worker lies; -ENOMEM. */
int outcome_done(struct controller *controller, struct assignment *given, const struct message_done *done);
/* A watch is paused, or all of them, or runs are cancelled: those that have not left yet are as they were before. -ENOMEM. */
int outcome_return_unsent(struct controller *controller);
