/* SPDX-License-Identifier: Apache-2.0 */
#include "object/confined.h"

#include <string.h>

#include "object/identity.h"

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

/* The last '*' takes as many bytes as it must; an earlier one never needs to be asked again. */
static bool match_pattern(const char *pattern, const char *name, const char *end)
{
        const char *star = NULL, *tried = NULL;

        while (name < end) {
                if (*pattern == '*') {
                        star = ++pattern;
                        tried = name;
                } else if (*pattern && (*pattern == '?' || *pattern == *name)) {
                        pattern++;
                        name++;
                } else if (star) {
                        pattern = star;
                        name = ++tried;
                } else {
                        return false;
                }
        }
        while (*pattern == '*')
                pattern++;
        return *pattern == '\0';
}

bool namespaces_are_patterns(const struct record_string *pattern, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (pattern[i].value[0] == '!' || strpbrk(pattern[i].value, "*?"))
                        return true;
        return false;
}

bool namespace_match(const struct record_string *pattern, size_t count, const char *name, size_t length)
{
        bool included = false, any_inclusion = false;

        for (size_t i = 0; i < count; i++) {
                bool exclusion = pattern[i].value[0] == '!';
                bool matches = match_pattern(pattern[i].value + exclusion, name, name + length);

                if (exclusion && matches)
                        return false;
                if (!exclusion) {
                        any_inclusion = true;
                        included = included || matches;
                }
        }
        return included || !any_inclusion;
}
