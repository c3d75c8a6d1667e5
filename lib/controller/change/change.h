/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a watcher announces. A change is compared with the ledger's row of its object: content that was
 * handled stays at rest, content that failed waits for its backoff, all else is queued. RUN leaves only after
 * the ledger knows that the object was handed out, HANDLED only after it knows that the deletion is done
 * (controller.c).
 */
#include "controller/controller.h"

/* Inputs. -EPROTO: the watcher lies; -ENOMEM. */
int change_keys(struct watch *watch, const struct message_keys *keys);
/* All objects of the watch are known, or known again. */
int change_synced(struct watch *watch, const struct message_synced *synced);
/* All rows of the ledger were compared with its store. */
int change_checked(struct watch *watch, const struct message_checked *checked);
/* All that its store has was announced. */
int change_swept(struct watch *watch, const struct message_swept *swept);
