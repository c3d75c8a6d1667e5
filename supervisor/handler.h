/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Handlers that have changed; supervisor.h includes it behind its structs. */
#include "supervisor/supervisor.h"

/* handler.c: whether handlers have changed is found out after each start and each reload. */
void handlers_review(struct supervisor *supervisor);
int handlers_continue(struct supervisor *supervisor);                    /* at the end of a turn */
void handler_write_status(const struct watch *watch, struct text *json); /* a member, with a comma */
/* Of its files as they are now: a run that has died is not there to tell. 0: not known. */
uint64_t handler_stamp_now(const struct config_handler *handler);
