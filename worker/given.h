/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `previous: true`: the object as the handler was given it at the last success. A run that has succeeded keeps it
 * (store/previous.h) before its DONE, and DONE says under which version; the next RUN names the one that the ledger knows of.
 * So a run that is repeated, since its end was not recorded, is given the same `previous` once more. What belongs to objects that
 * are gone is dropped little by little, with each object that is kept.
 */
#include "worker/run-state.h"

/* Adds the member, if the object is known. 0, -ENOMEM. */
int given_write(struct run *run, struct text *out);
/* Called at a success, or when an attempt parks: keeps what the handler was given. Returns the version by
 * which it is found (borrowed); "": it is not kept. */
const char *given_keep(struct run *run);
