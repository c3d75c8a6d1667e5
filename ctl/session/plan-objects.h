/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Objects for a plan without a cluster: manifests, as `kubectl get -o yaml` writes them, and records (`record` of an operator),
 * of which the newest request of each object tells what that, its children and what is related were.
 */
#include "base/error.h"

struct plan_objects {
        char **file; /* of manifests; NULL-terminated, owned */
        size_t count;
        size_t left_out; /* objects of records whose content is confidential, and is not in them */
};

/* path: a file, or a folder of files. What comes from records is written below `folder`. -ENOENT: there is nothing; or what
 * cannot be read, with a text. plan_objects_done() in any case. */
int plan_objects_find(const char *path, const char *folder, struct plan_objects *ret, struct error *error);
void plan_objects_done(struct plan_objects *objects);
