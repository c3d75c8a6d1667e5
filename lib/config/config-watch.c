/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config-watch.h"

#include <string.h>

#include "object/identity.h"

const struct config_watch *config_watch_find(const struct config *config, const char *name)
{
        for (size_t i = 0; i < config->watch_count; i++)
                if (strcmp(config->watch[i].name, name) == 0)
                        return &config->watch[i];
        return NULL;
}

bool config_is_of_kind(const struct config_watch *a, const struct config_watch *b)
{
        return strcmp(a->kind, b->kind) == 0 && is_same_api_group(a->api_version, b->api_version);
}

bool config_releases(const struct config_watch *watch)
{
        return !watch->finalizer && !watch->owner;
}
