/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Walks over rows, which make some of them due. */
#include "controller/controller.h"

/* Makes all rows due that have failed, of a watch or of all (NULL), by hand. *ret_count: how many there
 * are. */
int retry_all_failed(struct controller *controller, struct watch *watch, uint64_t *ret_count);
/* Makes all objects of the watch due, by hand, also after a restart. *ret_count: how many there are. */
int retry_all(struct watch *watch, uint64_t *ret_count);
bool retry_is_pending(struct controller *controller);
void retry_take(struct controller *controller); /* pages, for as long as the turn has time */
/* The server works again for this watch: runs that wait for it are due soon, at a pace. */
void recover(struct watch *watch);
void retry_forget(struct watch *watch);
