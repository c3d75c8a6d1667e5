/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config-watch.h"

#include <string.h>

const struct config_watch *config_watch_find(const struct config *config, const char *name)
{
        for (size_t i = 0; i < config->watch_count; i++)
                if (strcmp(config->watch[i].name, name) == 0)
                        return &config->watch[i];
        return NULL;
}

/* The length of the group in "group/version"; 0 for "version", the core group. */
static size_t group_size(const char *api_version)
{
        const char *slash = strchr(api_version, '/');

        return slash ? (size_t)(slash - api_version) : 0;
}

bool config_is_of_kind(const struct config_watch *a, const struct config_watch *b)
{
        size_t size = group_size(a->api_version);

        return strcmp(a->kind, b->kind) == 0 && size == group_size(b->api_version) &&
               memcmp(a->api_version, b->api_version, size) == 0;
}

bool config_releases(const struct config_watch *watch)
{
        return !watch->finalizer && !watch->owner;
}
