/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether the API server takes what a watch writes. */
#include "controller/controller.h"

/* *delay: may be made shorter. 1: the watch is past its deadline, and that is fatal: refusal_fatal(). */
int watch_refused(struct watch *watch, const struct message_done *done, uint64_t *delay);
void refusal_fatal(struct watch *watch);
void refusal_written(struct watch *watch,
                     const char *key); /* to the object of this key, or to what belongs to it */
/* Takes the refusal for over, if this object is the one that was refused. */
void refusal_forget(struct watch *watch, const char *key, const char *uid);
void refusal_free(struct watch *watch);
