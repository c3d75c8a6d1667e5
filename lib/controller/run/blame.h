/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The object that was being worked on when the operator died is to blame, and waits. */
#include "controller/controller.h"

/* Counts a crash over this object; returns how long the object waits, in quarantine or for its backoff. */
uint64_t blame_row(struct controller *controller, const struct config_watch *config, struct ledger_row *row);
/* Reports that the object is in quarantine. */
void blame_tell(struct controller *controller, const struct config_watch *config,
                const struct ledger_row *row);
/* The worker died first. guilty: the run whose code was running, which waits from now on. NULL if that is
 * unknown: then each run that the worker had runs alone the next time, and none is counted as crashed. */
void blame_worker(const struct worker *worker, const struct assignment *guilty, const char *cause);
/* Counts a crash over this object in the ledger, and reports a quarantine. -ENOENT if the object is unknown. */
int blame_object(struct controller *controller, const struct config_watch *config, const char *key,
                 const char *uid, uint64_t fingerprint, const char *cause);
