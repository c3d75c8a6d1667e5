/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Uninstalls the operator: its finalizers are taken off everything, and nothing else runs. */
#include "controller/controller.h"

int uninstall_load(struct controller *controller); /* before the first watcher is up */
int uninstall(struct controller *controller, uint64_t user);
int uninstall_cancel(struct controller *controller, uint64_t user); /* the caller then begins again */
/* Takes an object that a watcher announces; nothing else follows from the announcement. */
int uninstall_take(struct watch *watch, const struct record_change *change);
int uninstall_swept(struct watch *watch,
                    const struct message_swept *swept); /* all were announced; -ENOMEM */
bool uninstall_is_pending(struct controller *controller);
void uninstall_walk(struct controller *controller);   /* a page of the ledger */
void uninstall_review(struct controller *controller); /* reports once that it is done */
bool uninstall_is_done(const struct controller *controller);
bool uninstall_concerns(const struct watch *watch);    /* it has finalizers to be taken off */
bool uninstall_is_searched(const struct watch *watch); /* all of its objects were looked at */
void uninstall_watch_done(struct watch *watch);
