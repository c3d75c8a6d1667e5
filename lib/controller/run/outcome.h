/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* How a run that has ended changes its object's row, and the queue. */
#include "controller/controller.h"

/* given: as assign_take() has returned it. -EPROTO: the worker lies; -ENOMEM. */
int outcome_done(struct controller *controller, const struct assignment *given,
                 const struct message_done *done);

#define BEHIND_USEC         (20 * UINT64_C(1000)) /* the watch usually needs less to show our own write */
/* Up to this a delay waits in the queue; above, only in the ledger, where it costs no memory. */
#define DELAY_IN_QUEUE_USEC (60 * UINT64_C(1000000))
