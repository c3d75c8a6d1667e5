/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A resource of the API: what apiVersion and kind stand for on this server. */
#include <stdbool.h>
#include <stddef.h>

struct kube_resource {
        char *group;   /* "" for the core group */
        char *version; /* "v1" */
        char *kind;
        char *plural;
        bool namespaced;
        bool status_subresource; /* <plural>/status is served */
};

void kube_resource_done(struct kube_resource *resource);

/* Splits "example.com/v1" or "v1". 0 or -EINVAL, -ENOMEM. */
int kube_api_version_split(const char *api_version, char **ret_group, char **ret_version);

/* Finds `kind` in an APIResourceList document. 0, -ENOENT when the group has no such kind, -EBADMSG. */
int kube_resource_from_list(const char *api_version, const char *kind, const char *document, size_t size,
                            struct kube_resource *ret);
