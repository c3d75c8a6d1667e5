/* SPDX-License-Identifier: Apache-2.0 */
/* The places of watches. A place has one number for its life, here, in the queue and for the caller. */
#include "controller/controller-watch.h"

#include <assert.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/cleanup.h"
#include "controller/controller.h"
#include "controller/effects.h"
#include "queue/queue-watch.h"
#include "queue/rate.h"

unsigned watch_number(const struct watch *watch)
{
        const struct controller *controller = watch->controller;

        assert(watch >= controller->watch && watch < controller->watch + controller->watch_room);
        return (unsigned)(watch - controller->watch);
}

struct watch *watch_next(const struct controller *controller, const struct watch *watch)
{
        size_t next = watch ? (size_t)(watch - controller->watch) + 1 : 0;

        return next < controller->watch_count ? &controller->watch[next] : NULL;
}

struct watch *watch_find(const struct controller *controller, const char *name)
{
        FOREACH_WATCH(watch, controller)
                if (strcmp(watch->config->name, name) == 0)
                        return watch;
        return NULL;
}

unsigned watch_limit(const struct controller *controller, const struct config_watch *config)
{
        return config->serial                                                     ? 1
               : config->concurrency < config_at_once(controller->config, config) ? config->concurrency
                                                                                  : 0;
}

/* A hash of the group and the kind, in whichever version; 0: owned objects are nobody's but this watch's. */
static uint64_t kind_of(const struct config_watch *config)
{
        const char *slash = config->owner ? NULL : strchr(config->api_version, '/');
        size_t size = slash ? (size_t)(slash - config->api_version) : 0;
        uint64_t hash = XXH3_64bits_withSeed(config->kind, strlen(config->kind),
                                             XXH3_64bits(config->api_version, size));

        return config->owner ? 0 : hash;
}

/* The time between two runs of the watch's handler; 0: no limit. */
static uint64_t rate_interval_nsec(const struct config_watch *config)
{
        return config->handler.rate_milli > 0 ? UINT64_C(1000000000000) / config->handler.rate_milli : 0;
}

void watch_fill(struct watch *watch, const struct config_watch *config)
{
        struct controller *controller = watch->controller;

        queue_set_kind(controller->queue, watch_number(watch), kind_of(config));
        queue_set_rate(controller->queue, watch_number(watch), rate_interval_nsec(config),
                       config->handler.rate_burst);
        *watch = (struct watch){
                .controller = controller,
                .userdata = watch->userdata,
                .config = config,
                .started = ledger_time(controller),
                .waits = true, /* of a former life, maybe */
        };
}

int watch_take(struct controller *controller, const struct config_watch *config, struct watch **ret)
{
        int r;

        assert(controller->watch_count < controller->watch_room);
        r = queue_add_watch(controller->queue, watch_limit(controller, config));
        if (r < 0)
                return r;
        *ret = &controller->watch[controller->watch_count++];
        assert((unsigned)r == watch_number(*ret));
        watch_fill(*ret, config);
        return 0;
}

void metrics_ended(struct watch_metrics *metrics, const struct message_done *done, uint64_t duration_usec)
{
        metrics->result[done->result]++;
        if (done->result == RESULT_RETRY)
                metrics->retries++;
        if (done->result == RESULT_SUCCESS && done->requeue_after_usec > 0)
                metrics->requeues++;
        metrics->handler_cpu_usec += done->handler_cpu_usec;
        if (done->handler_memory_peak > metrics->handler_memory_peak)
                metrics->handler_memory_peak = done->handler_memory_peak;
        metrics->handler_memory_kills += done->handler_out_of_memory;
        histogram_add(&metrics->work, duration_usec);
}

static struct mark mark_of_object(const char *key, const char *uid)
{
        return (struct mark){XXH3_64bits_withSeed(uid, strlen(uid), XXH3_64bits(key, strlen(key))), 0, 0};
}

static int compare_marks(const void *a, const void *b)
{
        const struct mark *mark = a, *other = b;

        return (mark->hash > other->hash) - (mark->hash < other->hash);
}

struct mark *mark_find(void *const *marks, const char *key, const char *uid)
{
        const struct mark sought = mark_of_object(key, uid);
        struct mark **found = *marks ? tfind(&sought, marks, compare_marks) : NULL;

        return found ? *found : NULL;
}

struct mark *mark_add(void **marks, const char *key, const char *uid)
{
        _cleanup_free_ struct mark *added = NULL;
        struct mark *found = mark_find(marks, key, uid);

        if (found)
                return found;
        added = malloc(sizeof(*added));
        if (!added)
                return NULL;
        *added = mark_of_object(key, uid);
        return tsearch(added, marks, compare_marks) ? TAKE_PTR(added) : NULL;
}

void mark_drop(void **marks, const char *key, const char *uid)
{
        struct mark *mark = mark_find(marks, key, uid);

        if (!mark)
                return;
        (void)tdelete(mark, marks, compare_marks);
        free(mark);
}

void marks_forget(void **marks)
{
        tdestroy(*marks, free);
        *marks = NULL;
}
