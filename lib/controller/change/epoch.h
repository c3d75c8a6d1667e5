/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The epoch of a watch: within one, a change with a higher resourceVersion came later. Another one begins when
 * the server's database was restored, and with a store that begins with a list: then it is unknown whether
 * the database was restored before.
 */
#include "controller/controller.h"

/* The epoch in which its rows were written last, and since when that is. 0 or the errno of the ledger. */
int epoch_load(struct watch *watch);
/* Takes the epoch of KEYS, before the changes of that message. If it is new, versions of our own writes until
 * now prove nothing, also after a restart. 0 or the errno of the ledger. */
int epoch_take(struct watch *watch, uint64_t epoch);
