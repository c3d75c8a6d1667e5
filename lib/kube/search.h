/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a kind is still served by any version of its group. "No" is said only by a server that is ready,
 * whose list of groups is whole, and each of whose versions of this group has answered: a version that is
 * listed and cannot be asked (an aggregated API that is down, a server that has just started) leaves it
 * open.
 */
#include "kube/discovery.h"

struct kube_search;
/* on_done as of a discovery: the resource, in whatever version, or an error; its http_status is 404 when the
 * kind is gone for certain, and never when nothing is known. */
int kube_search_start(struct kube_client *client, const char *api_version, const char *kind,
                      kube_discovery_done_t on_done, void *userdata, struct kube_search **ret);
void kube_search_cancel(struct kube_search *search); /* frees; after on_done it is freed already */
