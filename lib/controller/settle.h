/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
#include "controller/controller.h"

/* HANDLED leaves for this deletion once the ledger knows that it is done. -ENOMEM. */
int handled_add(struct watch *watch, const char *key, const char *uid, uint64_t sequence);
