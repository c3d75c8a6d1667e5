/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * From apiVersion + kind to a resource, by discovery (/api/v1, /apis/<group>/<version>). The plural is never
 * guessed.
 */
#include "fiber/fiber.h"
#include "kube/client.h"
#include "kube/path.h"

#define KUBE_DISCOVERY_BODY_MAX ((size_t)64 * 1024 * 1024) /* a group may have 100,000 resources */

struct kube_answer;

struct kube_finding {
        struct kube_resource resource; /* the caller's; plural NULL: it was not found */
        struct kube_error
                error; /* why not; a kind that is not served: HTTP 404 with a message that says so */
        struct kube_response response; /* the last one, without its body */
};

/* Asks for the group's resource list. 0, or an error as of kube_ask(). */
_warn_unused_ int kube_ask_kind(struct kube_client *client, const char *api_version, const char *kind,
                                struct kube_finding *ret) _suspends_;
/* Moves the response, without its body, from the answer into the finding. */
void kube_finding_take_response(struct kube_finding *finding, struct kube_answer *answer);
void kube_finding_done(struct kube_finding *finding);
#define KUBE_FINDING_EMPTY                                                                                  \
        {                                                                                                   \
                .error = KUBE_ERROR_NONE, .response = {.error = KUBE_ERROR_NONE, .body = "" }               \
        }
#define _cleanup_kube_finding_ _cleanup_(kube_finding_done)
