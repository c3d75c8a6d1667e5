/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Paths of requests, and keys of objects ("namespace/name"). */
#include "base/text.h"
#include "kube/resource.h"

/* "/apis/example.com/v1/namespaces/default/widgets/a/status": namespace, name, subresource may be NULL or
 * "". Each segment is percent-escaped. The caller owns the result; NULL on lack of memory. */
char *kube_path(const struct kube_resource *resource, const char *namespace_name, const char *name,
                const char *subresource);
/* The resource that a Retry-After holds for: "example.com/widgets" or "/pods", "" for any other path. */
void kube_path_resource(const char *path, char *buffer, size_t size);
/* Appends "?key=value" or "&key=value", escaped. */
int kube_path_add(struct text *path, const char *key, const char *value);

/* "namespace/name" -> its parts (namespace "" when there is no slash); both owned by the caller. */
int kube_key_split(const char *key, char **ret_namespace, char **ret_name);
