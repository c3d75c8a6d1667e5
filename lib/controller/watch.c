/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The places of watches. A place has one number for its life, here, in the queue and for the caller. A watch
 * that is taken out leaves it free for another one; a watch in force is never moved.
 */
#include "controller/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "controller/clock.h"
#include "controller/controller.h"
#include "queue/watch.h"

unsigned watch_number(const struct watch *watch)
{
        return (unsigned)(watch - watch->controller->watch);
}

struct watch *watch_next(const struct controller *controller, const struct watch *watch)
{
        size_t next = watch ? (size_t)(watch - controller->watch) + 1 : 0;

        while (next < controller->watch_count && !controller->watch[next].config)
                next++;
        return next < controller->watch_count ? &controller->watch[next] : NULL;
}

struct watch *watch_find(const struct controller *controller, const char *name)
{
        FOREACH_WATCH(watch, controller)
                if (!watch->leaving && strcmp(watch->config->name, name) == 0)
                        return watch;
        return NULL;
}

/* The first free one; the queue knows as many as have been in use. */
static int find_place(struct controller *controller, struct watch **ret)
{
        size_t place = 0;

        while (place < controller->watch_count && controller->watch[place].config)
                place++;
        if (place == controller->watch_room)
                return -ENOSPC;
        if (place == controller->watch_count) {
                if (queue_add_watch(controller->queue, 0) < 0)
                        return -ENOMEM;
                controller->watch_count++;
        }
        *ret = &controller->watch[place];
        return 0;
}

unsigned watch_limit(const struct controller *controller, const struct config_watch *config)
{
        return config->concurrency < controller->config->workers ? config->concurrency : 0;
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

int watch_take(struct controller *controller, const struct config_watch *config, struct watch **ret)
{
        struct watch *watch;
        int r = find_place(controller, &watch);

        if (r >= 0)
                r = queue_clear(controller->queue, watch_number(watch), watch_limit(controller, config));
        if (r < 0)
                return r;
        queue_set_kind(controller->queue, watch_number(watch), kind_of(config));
        *watch = (struct watch){
                .controller = controller,
                .userdata = watch->userdata,
                .config = config,
                .started = ledger_time(controller),
                .waits = true, /* of a former life, maybe */
        };
        *ret = watch;
        return 0;
}
