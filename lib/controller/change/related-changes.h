/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Changes of related objects: those in their namespace that may depend on them are asked, page by page. */
#include "controller/controller.h"

/* Takes an object of a watch whose objects others depend on. -ENOMEM; -EPROTO: those are of no watch. */
int related_changed(struct watch *watch, const struct record_change *change);
int related_recheck(struct watch *watch); /* when it is in sync for the first time; -ENOMEM */
bool related_is_pending(struct controller *controller);
void related_take(struct controller *controller);  /* pages, for as long as the turn has time */
void related_hurry(struct controller *controller); /* the same, where a page has waited for too long */
void related_forget(struct watch *watch);
