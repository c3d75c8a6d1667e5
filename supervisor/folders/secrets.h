/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The folder for confidential objects: Secrets, and those that the configuration calls so. Nothing of their
 * content may reach a disk. Their stores, and what rollback must know of them, lie in the runtime directory
 * where that is memory, else in a folder of ours below /dev/shm that belongs to the state folder. If neither
 * is memory, the operator refuses to start, unless the configuration allows a disk. Both may be lost at any time (a reboot, `systemctl stop`): then there is a LIST, and the ledger knows which objects
 * there were.
 */
#include "base/error.h"
#include "config/config.h"

struct supervisor;

/* The folder, before all stores. -EOPNOTSUPP: as secrets_check(). */
int secrets_begin(struct supervisor *supervisor, struct error *error);
/* Whether this configuration can be served. -EOPNOTSUPP: it has Secrets, the machine has no memory for them,
 * and it does not allow a disk (secrets.allowDisk). */
int secrets_check(const struct supervisor *supervisor, const struct config *config, struct error *error);
void secrets_warn(const struct supervisor *supervisor); /* says where they lie if that is unusual */
/* The folder for the store of a watch with this configuration; owned by the caller; NULL: no memory. */
char *secrets_store_folder(const struct supervisor *supervisor, const struct config_watch *config);
char *secrets_kept_folder(const struct supervisor *supervisor); /* for rollback; likewise */
/* Removes the store of another configuration from the place where it does not belong. */
void secrets_move(const struct supervisor *supervisor, const struct config_watch *config);
/* Removes what former lives have left in memory and no watch or row refers to. Negative: the ledger has
 * failed. */
int secrets_clean(struct supervisor *supervisor);
void secrets_end(struct supervisor *supervisor);
