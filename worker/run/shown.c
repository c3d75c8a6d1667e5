/* SPDX-License-Identifier: Apache-2.0 */
/* See shown.h. */
#include "worker/run/shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "object/fingerprint.h"

static int essence_of(const struct record_watch *config, const char *json, size_t size, uint64_t *ret)
{
        return (config->metadata_only ? fingerprint_metadata : fingerprint_object)(TRIGGER_ESSENCE, NULL,
                                                                                   json, size, ret);
}

int shown_add(struct shown *shown, const struct record_watch *config, const char *json, size_t size,
              bool is_kept)
{
        struct shown_child child = {.config = config}, *grown;
        struct identity identity;
        int r = identity_read(json, size, false, &identity);

        if (r >= 0)
                r = essence_of(config, json, size, &child.essence);
        if (r < 0)
                return r;
        grown = reallocarray(shown->item, shown->count + 1, sizeof(*grown));
        if (!grown)
                return -ENOMEM;
        shown->item = grown;
        memcpy(child.uid, identity.uid, sizeof(child.uid));
        memcpy(child.version, identity.resource_version, sizeof(child.version));
        child.key = strdup(identity.key);
        child.json = is_kept ? strndup(json, size) : NULL;
        shown->item[shown->count++] = child;
        return child.key && (child.json || !is_kept) ? 0 : -ENOMEM;
}

int shown_add_gone(struct shown *shown, const struct record_watch *config, const char *key)
{
        struct shown_child child = {.config = config, .key = strdup(key), .json = strdup("")},
                           *grown = reallocarray(shown->item, shown->count + 1, sizeof(*grown));

        if (!grown || !child.key || !child.json) {
                shown->item = grown ? grown : shown->item;
                free(child.key);
                free(child.json);
                return -ENOMEM;
        }
        shown->item = grown;
        shown->item[shown->count++] = child;
        return 0;
}

static void child_done(struct shown_child *child)
{
        free(child->key);
        free(child->json);
}

void shown_forget_stored(struct shown *shown)
{
        size_t kept = 0;

        for (size_t i = 0; i < shown->count; i++) {
                if (shown->item[i].json)
                        shown->item[kept++] = shown->item[i];
                else
                        child_done(&shown->item[i]);
        }
        shown->count = kept;
}

void shown_done(struct shown *shown)
{
        for (size_t i = 0; i < shown->count; i++)
                child_done(&shown->item[i]);
        free(shown->item);
        *shown = (struct shown){0};
}

static const struct shown_child *find_shown_child(const struct shown *shown,
                                                  const struct record_watch *config, const char *key)
{
        for (size_t i = 0; i < shown->count; i++)
                if (shown->item[i].config == config && strcmp(shown->item[i].key, key) == 0)
                        return &shown->item[i];
        return NULL;
}

const struct shown_child *shown_find(const struct shown *shown, const struct record_watch *config,
                                     const char *key)
{
        const struct shown_child *child = find_shown_child(shown, config, key);

        return child && child->json && !child->json[0] ? NULL : child;
}

bool shown_is_known(const struct shown *shown, const struct record_watch *config, const char *key)
{
        const struct shown_child *child = find_shown_child(shown, config, key);

        return child && child->json;
}

bool shown_is_same(const struct shown_child *child, const char *json, size_t size)
{
        struct identity identity;
        uint64_t essence;

        return identity_read(json, size, false, &identity) >= 0 && strcmp(identity.uid, child->uid) == 0 &&
               essence_of(child->config, json, size, &essence) >= 0 && essence == child->essence;
}
