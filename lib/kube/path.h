/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Resources, paths of requests, and keys of objects ("namespace/name"). */
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* A resource of the API: what apiVersion and kind stand for on this server. */
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

/* "/apis/example.com/v1/namespaces/default/widgets/a/status": namespace, name, subresource may be NULL or
 * "". Each segment is percent-escaped. The caller owns the result; NULL on lack of memory. */
char *kube_path(const struct kube_resource *resource, const char *namespace_name, const char *name,
                const char *subresource);
/* What a Retry-After holds for: a resource ("example.com/widgets", "/pods"), the list of those of a version
 * ("example.com/v1", "/v1"), or "": any other path, and so the whole server. */
void kube_path_resource(const char *path, char *buffer, size_t size);
/* Appends "?key=value" or "&key=value", escaped. */
int kube_path_add(struct text *path, const char *key, const char *value);

/* "namespace/name" -> its parts (namespace "" when there is no slash); both owned by the caller. */
int kube_key_split(const char *key, char **ret_namespace, char **ret_name);
