/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Whether anything of a watch may run. */
#include "controller/controller.h"

/* Tells the queue: nothing of it runs while it is paused, waits for owned objects or for a credential, or
 * while the operator is uninstalled. To be called when one of these has changed. */
void pause_apply(struct watch *watch);
/* The first watch of an owned or related kind whose objects are not all known yet, and that is served; NULL:
 * none. Till then nothing of `parent` runs: a handler would take those that are missing for gone. */
const char *owned_awaited(const struct watch *parent);
void owned_known(struct watch *watch); /* its owner may have waited for that */
