/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From apiVersion + kind to a resource, by discovery (/api/v1, /apis/<group>/<version>). The plural is never
 * guessed.
 */
#include "kube/client.h"
#include "kube/path.h"

#define KUBE_DISCOVERY_BODY_MAX ((size_t)64 * 1024 * 1024) /* a group may have 100,000 resources */

struct kube_discovery;
/* on_done is called once: resource (owned by the callee from then on: kube_resource_done) or NULL with error
 * (a kind that is not served: HTTP failure 404 with a message that says so). */
typedef void (*kube_discovery_done_t)(struct kube_resource *resource, const struct kube_error *error,
                                      const struct kube_response *response, void *userdata);
int kube_discovery_start(struct kube_client *client, const char *api_version, const char *kind,
                         kube_discovery_done_t on_done, void *userdata, struct kube_discovery **ret);
void kube_discovery_cancel(struct kube_discovery *discovery); /* frees; after on_done it is freed already */
