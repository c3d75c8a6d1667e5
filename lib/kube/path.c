/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* RFC 3986: unreserved characters stay. */
static bool is_unreserved(unsigned char c)
{
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
               c == '.' || c == '_' || c == '~';
}

static int append_escaped(struct text *text, const char *string)
{
        for (; *string; string++) {
                unsigned char c = (unsigned char)*string;

                if (is_unreserved(c))
                        text_append(text, string, 1);
                else
                        text_printf(text, "%%%02X", c);
        }
        return text->failed ? -ENOMEM : 0;
}

static void append_segment(struct text *text, const char *segment)
{
        text_append(text, "/", 1);
        append_escaped(text, segment);
}

char *kube_path(const struct kube_resource *resource, const char *namespace_name, const char *name,
                const char *subresource)
{
        _cleanup_text_ struct text path = TEXT_EMPTY;

        text_append_string(&path, resource->group[0] ? "/apis" : "/api");
        if (resource->group[0])
                append_segment(&path, resource->group);
        append_segment(&path, resource->version);
        if (namespace_name && namespace_name[0]) {
                text_append_string(&path, "/namespaces");
                append_segment(&path, namespace_name);
        }
        append_segment(&path, resource->plural);
        if (name && name[0])
                append_segment(&path, name);
        if (subresource && subresource[0])
                append_segment(&path, subresource);
        return text_take(&path);
}

int kube_path_add(struct text *path, const char *key, const char *value)
{
        bool first = !path->data || !strchr(path->data, '?');

        text_append(path, first ? "?" : "&", 1);
        append_escaped(path, key);
        text_append(path, "=", 1);
        return append_escaped(path, value);
}

int kube_key_split(const char *key, char **ret_namespace, char **ret_name)
{
        const char *slash = strchr(key, '/');
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;

        namespace_name = slash ? strndup(key, (size_t)(slash - key)) : strdup("");
        name = strdup(slash ? slash + 1 : key);
        if (!namespace_name || !name)
                return -ENOMEM;
        *ret_namespace = TAKE_PTR(namespace_name);
        *ret_name = TAKE_PTR(name);
        return 0;
}

void kube_path_resource(const char *path, char *buffer, size_t size)
{
        bool core = strncmp(path, "/api/", 5) == 0, grouped = strncmp(path, "/apis/", 6) == 0;
        const char *group = core ? "" : path + 6, *rest;
        size_t group_size = grouped ? strcspn(group, "/?") : 0, length;

        buffer[0] = '\0';
        if (!core && !grouped)
                return;
        rest = core ? path + 4 : group + group_size;
        rest += strspn(rest, "/");
        rest += strcspn(rest, "/?"); /* the version */
        if (strncmp(rest, "/namespaces/", 12) == 0) {
                const char *behind = rest + 12 + strcspn(rest + 12, "/?");

                if (behind[0] == '/')
                        rest = behind;
        }
        length = rest[0] == '/' ? strcspn(rest + 1, "/?") : 0;
        if (length > 0)
                snprintf(buffer, size, "%.*s/%.*s", (int)group_size, group, (int)length, rest + 1);
}
