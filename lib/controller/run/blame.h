/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The object that was being worked on when the operator died is to blame, and waits. */
#include "controller/controller.h"

/* One more crash over this object; returns how long it waits, in quarantine or for its backoff. */
uint64_t blame_row(struct controller *controller, const struct config_watch *config, struct ledger_row *row);
/* That it is in quarantine. */
void blame_tell(struct controller *controller, const struct config_watch *config,
                const struct ledger_row *row);
/* The worker died first. guilty: the run whose code ran: it waits from now on. NULL: that is unknown, so each run that it had
 * runs alone the next time, and none is counted. */
void blame_worker(const struct worker *worker, const struct assignment *guilty, const char *cause);
/* One more crash over this object, written down, and said when it is in quarantine. -ENOENT: nothing is
 * known of it. */
int blame_object(struct controller *controller, const struct config_watch *config, const char *key,
                 const char *uid, uint64_t fingerprint, const char *cause);
