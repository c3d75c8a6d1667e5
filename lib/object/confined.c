/* SPDX-License-Identifier: Apache-2.0 */
/* See confined.h. */
#include "object/confined.h"

#include <string.h>

#include "object/identity.h"
#include "object/namespace.h"

static bool is_own(const struct record_watch *watch, const char *key, const char *namespace_name)
{
        const char *slash = strchr(key, '/');
        bool is_namespace = strcmp(watch->kind, "Namespace") == 0 && strcmp(watch->api_version, "v1") == 0;
        size_t size = slash ? (size_t)(slash - key) : is_namespace ? strlen(key) : 0;

        return size > 0 && strlen(namespace_name) == size && memcmp(key, namespace_name, size) == 0;
}

static bool names_namespace(const struct record_kind *entry, const char *namespace_name)
{
        return entry->namespace_count > 0 && namespace_match(entry->namespace, entry->namespace_count,
                                                             namespace_name, strlen(namespace_name));
}

unsigned confined_judge(const struct record_watch *watch, bool is_patch, const char *key,
                        const char *api_version, const char *kind, const char *namespace_name)
{
        const struct record_kind *list = is_patch ? watch->patched_kinds : watch->child_kinds;
        size_t count = is_patch ? watch->patched_kinds_count : watch->child_kinds_count;
        bool is_elsewhere = namespace_name[0] && !is_own(watch, key, namespace_name);
        unsigned wrong = CONFINED_KIND | (is_elsewhere ? CONFINED_NAMESPACE : 0);

        for (size_t i = 0; i < count; i++) {
                if (strcmp(list[i].kind, kind) != 0 || !is_same_api_group(list[i].api_version, api_version))
                        continue;
                wrong &= ~(unsigned)CONFINED_KIND;
                if (names_namespace(&list[i], namespace_name))
                        wrong = 0;
        }
        return wrong;
}
