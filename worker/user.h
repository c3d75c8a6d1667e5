/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The user that a watch's handler runs as, with all groups of that user. */
#include "ipc/message.h"
#include "process/process.h"

/* *ret: for user_free(); left alone where the handler runs as the worker's own user. 0, -ENOMEM. */
int user_new(const struct record_watch *config, struct process_user **ret);
void user_free(struct process_user *user);
