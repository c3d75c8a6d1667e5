/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `related`: what the object depends on without owning it, as the stores of those kinds show it: all of its
 * namespace, or what a jq program over the object names. A fingerprint tells whether any of it has changed
 * since the last success: when one changes, all objects that might depend on it get a run.
 */
#include "worker/run-state.h"

/* Fills run->related: what they are shows in the request alone, which has them once, as they are when it is built. 0;
 * -EBADMSG: the program that names the objects fails, or gives more than DEPENDENTS_MAX different names (`error` has the
 * words), until the object changes; -E2BIG: the request would be too large, until they or the configuration change (`error`
 * says so); -ECANCELED: the worker ends (run_store_damaged); -ENOMEM, or the errno of a store. */
int related_collect(struct run *run, struct error *error);
/* Appends the member `related` of a request, if there is one. 0; -E2BIG: run->excess says why; otherwise as related_collect().
 * What has changed since then will bring another run. */
int related_write(struct run *run, struct text *out);
