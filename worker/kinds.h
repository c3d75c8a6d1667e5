/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The kinds of dependents that were looked up, kept for the worker's life; bounded. */
#include "kube/path.h"
#include "worker/worker.h"

/* *ret: a copy, owned by the caller. 0; -ENOENT: the kind was not looked up; -ENOMEM. */
int kinds_get(struct worker *worker, const char *api_version, const char *name, struct kube_resource *ret);
/* The resource is taken over, also on -ENOMEM. */
int kinds_keep(struct worker *worker, const char *api_version, struct kube_resource *resource);
/* The server does not serve the kind; that is remembered for a minute, for all runs. */
void kinds_keep_absent(struct worker *worker, const char *api_version, const char *name);
bool kinds_are_absent(struct worker *worker, const char *api_version, const char *name);
/* The kind may have moved: it will be looked up again. */
void kinds_forget(struct worker *worker, const char *api_version, const char *name);
int kinds_copy(const struct kube_resource *from, struct kube_resource *ret);
void kinds_free(struct worker *worker);
