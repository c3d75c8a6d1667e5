/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The folder for confidential objects: Secrets, and those that the configuration calls so. Nothing of their
 * content may reach a disk. Their stores, and what rollback must know of them, lie in the runtime directory
 * where that is memory, else in a folder of ours below /dev/shm that belongs to the state folder. Both may
 * be lost at any time (a reboot, `systemctl stop`): then there is a LIST, and the ledger knows which objects
 * there were.
 */
#include "base/error.h"
#include "config/config.h"

struct supervisor;

int secrets_begin(struct supervisor *supervisor, struct error *error); /* the folder, before all stores */
void secrets_warn(const struct supervisor *supervisor); /* where it is a disk, and something needs it */
/* The folder for the store of a watch with this configuration; owned by the caller; NULL: no memory. */
char *secrets_store_folder(const struct supervisor *supervisor, const struct config_watch *config);
char *secrets_kept_folder(const struct supervisor *supervisor); /* for rollback; likewise */
/* Removes the store of another configuration from the place where it does not belong. */
void secrets_move(const struct supervisor *supervisor, const struct config_watch *config);
/* Removes what former lives have left in memory and no watch or row refers to. Negative: the ledger has
 * failed. */
int secrets_clean(struct supervisor *supervisor);
void secrets_end(struct supervisor *supervisor);
