/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of watches. A place has one number for its life: in the queue, for its watcher's child slot and
 * for the slot that the watcher writes. A watch that is taken out leaves it free for another one; what is in
 * force is never moved.
 */
#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

#define ROOM_SPARE 16 /* for what reloads add; when it is used up, one restarts in place */

unsigned watch_number(const struct watch *watch)
{
        return (unsigned)(watch - watch->child->supervisor->watch);
}

struct watch *watch_next(const struct supervisor *supervisor, const struct watch *watch)
{
        size_t next = watch ? (size_t)(watch - supervisor->watch) + 1 : 0;

        while (next < supervisor->watch_count && !supervisor->watch[next].config)
                next++;
        return next < supervisor->watch_count ? &supervisor->watch[next] : NULL;
}

struct watch *watch_find(const struct supervisor *supervisor, const char *name)
{
        FOREACH_WATCH(watch, supervisor)
                if (!watch->leaving && strcmp(watch->config->name, name) == 0)
                        return watch;
        return NULL;
}

size_t watches_in_force(const struct supervisor *supervisor)
{
        size_t count = 0;

        FOREACH_WATCH(watch, supervisor)
                count += !watch->leaving;
        return count;
}

int watches_new(struct supervisor *supervisor)
{
        size_t room = supervisor->config->watch_count + ROOM_SPARE;

        supervisor->watch = calloc(room, sizeof(struct watch));
        if (!supervisor->watch)
                return -ENOMEM;
        supervisor->watch_room = room;
        return 0;
}

/* The first free one; the queue knows as many as have been in use. */
static int find_place(struct supervisor *supervisor, struct watch **ret)
{
        size_t place = 0;

        while (place < supervisor->watch_count && supervisor->watch[place].config)
                place++;
        if (place == supervisor->watch_room)
                return -ENOSPC;
        if (place == supervisor->watch_count) {
                if (queue_add_watch(supervisor->queue, 0) < 0)
                        return -ENOMEM;
                supervisor->watch_count++;
        }
        *ret = &supervisor->watch[place];
        return 0;
}

unsigned watch_limit(const struct supervisor *supervisor, const struct config_watch *config)
{
        return config->concurrency < supervisor->config->workers ? config->concurrency : 0;
}

/* Of the group and the kind, in whichever version; 0: owned objects are nobody's but this watch's. */
static uint64_t kind_of(const struct config_watch *config)
{
        const char *slash = config->owner ? NULL : strchr(config->api_version, '/');
        size_t size = slash ? (size_t)(slash - config->api_version) : 0;
        uint64_t hash = XXH3_64bits_withSeed(config->kind, strlen(config->kind),
                                             XXH3_64bits(config->api_version, size));

        return config->owner ? 0 : hash;
}

int watch_take(struct supervisor *supervisor, const struct config_watch *config, struct watch **ret)
{
        struct watch *watch;
        char *folder;
        int r = find_place(supervisor, &watch);

        if (r < 0)
                return r;
        folder = secrets_store_folder(supervisor, config);
        if (!folder)
                return -ENOMEM;
        secrets_move(supervisor, config);
        r = queue_clear(supervisor->queue, (unsigned)(watch - supervisor->watch),
                        watch_limit(supervisor, config));
        if (r < 0) {
                free(folder);
                return r;
        }
        queue_set_kind(supervisor->queue, (unsigned)(watch - supervisor->watch), kind_of(config));
        *watch = (struct watch){
                .config = config,
                .child = watch->child,
                .store_folder = folder,
                .started = ledger_now(supervisor),
                .waits = true, /* of a former life, maybe */
        };
        *ret = watch;
        return 0;
}

static void handled_free(struct watch *watch)
{
        for (size_t i = 0; i < watch->handled_count; i++) {
                free(watch->handled[i].key);
                free(watch->handled[i].uid);
        }
        free(watch->handled);
}

void watch_empty(struct watch *watch)
{
        handled_free(watch);
        free(watch->store_folder);
        free(watch->resource_version);
        free(watch->missing_namespaces);
        free(watch->degraded_reason);
        free(watch->heard.reason);
        refusal_free(watch);
        sd_event_source_disable_unref(watch->room.timer);
        sd_event_source_disable_unref(watch->owed_source);
        free(watch->owed_key);
        free(watch->owed_uid);
        free(watch->retry_key);
        free(watch->retry_uid);
        free(watch->pause_reason);
        handler_forget(watch);
        finalizer_forget(watch);
        uninstall_watch_done(watch);
        related_forget(watch);
        *watch = (struct watch){.child = watch->child};
}

int watch_release(struct watch *watch)
{
        struct supervisor *supervisor = watch->child->supervisor;
        unsigned number = watch_number(watch);
        struct slot_view view;
        int r = queue_clear(supervisor->queue, number, 0);

        if (r < 0)
                return r;
        /* What one that was killed has left behind is not the next one's. */
        if (slots_look(supervisor->slots, number, &view) >= 0)
                (void)slots_clear(supervisor->slots, number);
        slowest_forget_watch(&supervisor->slowest, number);
        watch_empty(watch);
        channel_free(watch->child->channel);
        watch->child->channel = NULL;
        return 0;
}
