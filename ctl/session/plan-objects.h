/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects for a plan without a cluster: manifests, as `kubectl get -o yaml` writes them, and records (`record` of an operator),
 * of which the newest request of each object tells what that, its children and what is related were.
 */
#include "base/cleanup.h"
#include "base/error.h"

struct plan_objects;

/* path: a file, or a folder of files; several objects of one name: the last one counts. -ENOENT: there is nothing; or what cannot
 * be read, with a text. What is left out of records is reported on standard error. */
int plan_objects_read(const char *path, struct plan_objects **ret, struct error *error);
/* Definitions first, then namespaces. */
int plan_objects_write(struct plan_objects *objects, const char *path);
void plan_objects_free(struct plan_objects *objects); /* NULL is ignored */
DEFINE_CLEANUP(struct plan_objects *, plan_objects_free);
