/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Our finalizer where it is not as the watch wants it, on objects that need no other run. */
#include "controller/controller.h"

int finalizer_review(struct watch *watch, const struct record_change *change);
int finalizer_ended(struct controller *controller, const struct assignment *given,
                    const struct message_done *done);
