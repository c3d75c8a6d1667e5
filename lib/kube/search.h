/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether a kind is still served by any version of its group. "No" is said only by a server that is ready,
 * whose list of groups is whole, and each of whose versions of this group has answered: a version that is
 * listed and cannot be asked (an aggregated API that is down, a server that has just started) leaves it
 * open.
 */
#include "fiber/fiber.h"
#include "kube/client.h"
#include "kube/path.h"

/*
 * From apiVersion + kind to a resource, by discovery (/api/v1, /apis/<group>/<version>). The plural is never
 * guessed.
 */
#define KUBE_DISCOVERY_BODY_MAX ((size_t)64 * 1024 * 1024) /* a group may have 100,000 resources */

struct kube_answer;

struct kube_finding {
        struct kube_resource resource; /* owned by the caller; plural NULL if it was not found */
        struct kube_error
                error; /* why not; a kind that is not served: HTTP 404 with a message that says so */
        struct kube_response response; /* the last one, without its body */
};

#define KUBE_FINDING_EMPTY                                                                                  \
        {                                                                                                   \
                .error = KUBE_ERROR_NONE, .response = {.error = KUBE_ERROR_NONE, .body = "" }               \
        }
#define _cleanup_kube_finding_ _cleanup_(kube_finding_done)
void kube_finding_done(struct kube_finding *finding);

/* Asks for the group's resource list. 0, or an error as of kube_ask(). */
_warn_unused_ int kube_ask_kind(struct kube_client *client, const char *api_version, const char *kind,
                                struct kube_finding *ret) _suspends_;

/* As kube_ask_kind(): the resource, in whatever version, or an error; its http_status is 404 when the kind is gone for
 * certain, and never when nothing is known. */
_warn_unused_ int kube_ask_all_versions(struct kube_client *client, const char *api_version,
                                        const char *kind, struct kube_finding *ret) _suspends_;
