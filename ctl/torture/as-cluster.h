/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a cluster's controllers would make of deployments, jobs, pods and their like: ready. */
#include <cjson/cJSON.h>

/* A merge patch of the object's status. Owned by the caller; NULL: it is ready, or of a kind that needs nothing. */
cJSON *as_cluster_would(const cJSON *object);
