/* SPDX-License-Identifier: Apache-2.0 */
/* See shown.h. */
#include "worker/run/shown.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "object/fingerprint.h"

static int essence_of(const struct record_watch *config, const char *json, size_t size, uint64_t *ret)
{
        return (config->metadata_only ? fingerprint_metadata : fingerprint_object)(TRIGGER_ESSENCE, NULL,
                                                                                   json, size, ret);
}

/* ---- by kind and key: anybody may make many objects that name this one as their owner */

static int compare_children(const void *a, const void *b)
{
        const struct shown_child *first = a, *second = b;

        if (first->config != second->config)
                return (uintptr_t)first->config < (uintptr_t)second->config ? -1 : 1;
        return strcmp(first->key, second->key);
}

static const struct shown_child *find_shown_child(const struct shown *shown,
                                                  const struct record_watch *config, const char *key)
{
        const struct shown_child wanted = {.config = config, .key = (char *)(uintptr_t)key};
        void *const *found = tfind(&wanted, &shown->index, compare_children);

        return found ? *found : NULL;
}

static void child_free(struct shown_child *child)
{
        free(child->key);
        free(child->json);
        free(child);
}

/* Takes the child; of two of one key the first one counts. */
static int add_child(struct shown *shown, struct shown_child *child)
{
        struct shown_child **grown = shown->item;

        if (shown->count == shown->allocated) {
                grown = reallocarray(shown->item, 2 * shown->allocated + 8, sizeof(*grown));
                shown->item = grown ? grown : shown->item;
                shown->allocated = grown ? 2 * shown->allocated + 8 : shown->allocated;
        }
        if (!grown || !tsearch(child, &shown->index, compare_children)) {
                child_free(child);
                return -ENOMEM;
        }
        shown->item[shown->count++] = child;
        shown->bytes += child->json ? strlen(child->json) : 0;
        return 0;
}

static int new_child(const struct record_watch *config, const char *key, const char *json, size_t size,
                     struct shown_child **ret)
{
        struct shown_child *child = calloc(1, sizeof(*child));

        if (!child)
                return -ENOMEM;
        child->config = config;
        child->key = strdup(key);
        child->json = json ? strndup(json, size) : NULL;
        *ret = child;
        if (child->key && (child->json || !json))
                return 0;
        child_free(child);
        return -ENOMEM;
}

int shown_add(struct shown *shown, const struct record_watch *config, const char *json, size_t size,
              bool is_kept)
{
        struct shown_child *child;
        struct identity identity;
        uint64_t essence;
        int r = identity_read(json, size, false, &identity);

        if (r >= 0)
                r = essence_of(config, json, size, &essence);
        if (r >= 0)
                r = new_child(config, identity.key, is_kept ? json : NULL, size, &child);
        if (r < 0)
                return r;
        child->essence = essence;
        memcpy(child->uid, identity.uid, sizeof(child->uid));
        memcpy(child->version, identity.resource_version, sizeof(child->version));
        return add_child(shown, child);
}

int shown_add_gone(struct shown *shown, const struct record_watch *config, const char *key)
{
        struct shown_child *child;
        int r = new_child(config, key, "", 0, &child);

        return r < 0 ? r : add_child(shown, child);
}

/* An entry of the index goes only with the child that it points to. */
static void forget_child(struct shown *shown, struct shown_child *child)
{
        if (find_shown_child(shown, child->config, child->key) == child)
                tdelete(child, &shown->index, compare_children);
        child_free(child);
}

void shown_forget_stored(struct shown *shown)
{
        size_t kept = 0;

        for (size_t i = 0; i < shown->count; i++) {
                if (shown->item[i]->json)
                        shown->item[kept++] = shown->item[i];
                else
                        forget_child(shown, shown->item[i]);
        }
        shown->count = kept;
}

void shown_done(struct shown *shown)
{
        for (size_t i = 0; i < shown->count; i++)
                forget_child(shown, shown->item[i]);
        free(shown->item);
        *shown = (struct shown){0};
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
