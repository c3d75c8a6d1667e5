/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Sends the ledger's rows to a watcher that is in sync for the first time: the watcher reports which objects
 * are gone. */
#include "controller/controller.h"

int owed_begin(struct watch *watch); /* its watcher is up, and has announced nothing yet */
void owed_start(struct watch *watch);
void owed_continue(struct watch *watch); /* asks for the next page, if there is one */
void owed_page(struct watch *watch);
/* How long the first run of an object waits for the deletion of a former object of its name that the watcher
 * has not announced yet. */
uint64_t owed_delay(struct watch *watch, const char *key);
