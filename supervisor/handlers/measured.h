/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Metrics of handlers: a worker passes them on, and the gateway shows them. */
#include "ipc/message.h"
#include "supervisor/supervisor.h"

/* 0; -EPROTO: a worker that kept to the rules would not have sent that; -ENOMEM. */
int measured_take(struct supervisor *supervisor, const struct message_measured *measured);
