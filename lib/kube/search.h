/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a kind is still served by any version of its group. "No" is said only by a server that is ready,
 * whose list of groups is whole, and each of whose versions of this group has answered: a version that is
 * listed and cannot be asked (an aggregated API that is down, a server that has just started) leaves it
 * open.
 */
#include "kube/discovery.h"

/* As kube_ask_kind(): the resource, in whatever version, or an error; its http_status is 404 when the kind is gone for
 * certain, and never when nothing is known. */
_warn_unused_ int kube_ask_all_versions(struct kube_client *client, const char *api_version,
                                        const char *kind, struct kube_finding *ret) _suspends_;
