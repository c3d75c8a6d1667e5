/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A refusal by the server (401, 403) is no failure of an object: the watch is degraded, its deadline runs,
 * and one object is the witness, which is tried often enough to know in time. Any write of the watch that
 * succeeds ends it. Past the deadline the operator ends with 77, or the watch is isolated.
 *
 * Where a watch names several namespaces, rights differ from one to the other. There only a write in the witness's own
 * namespace ends it, and a 403 is fatal past the deadline only if all of them were refused meanwhile.
 */
#include "controller/due/watch-refusal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/effects.h"

#define WITNESS_TRIES 4 /* within a deadline, at least */

static bool is_witness(const struct watch *watch, const char *key, const char *uid)
{
        return watch->refusal.key && strcmp(watch->refusal.key, key) == 0 &&
               strcmp(watch->refusal.uid, uid) == 0;
}

void refusal_free(struct watch *watch)
{
        free(watch->refusal.key);
        free(watch->refusal.uid);
        free(watch->refusal.in);
        free(watch->refusal.trouble.reason);
        watch->refusal = (struct refusal){0};
}

static bool names_several(const struct config_watch *config)
{
        for (size_t i = 0; i < config->namespace_count; i++)
                if (config->namespace[i][0] == '!' || strpbrk(config->namespace[i], "*?"))
                        return false;
        return config->namespace_count > 1;
}

/* The index of the key's namespace among those that the watch names; their number if it is not one of them. */
static size_t place_of_namespace(const struct config_watch *config, const char *key)
{
        size_t i = 0;

        for (; i < config->namespace_count; i++) {
                size_t length = strlen(config->namespace[i]);

                if (strncmp(config->namespace[i], key, length) == 0 && key[length] == '/')
                        break;
        }
        return i;
}

static void note_namespace(struct watch *watch, const char *key, bool refused)
{
        size_t place = place_of_namespace(watch->config, key);

        if (watch->refusal.in && place < watch->config->namespace_count)
                watch->refusal.in[place] = refused;
}

static bool other_refusals_are_left(const struct watch *watch, const struct message_done *done)
{
        for (size_t i = 0; i < watch->config->namespace_count; i++)
                if (watch->refusal.in && !watch->refusal.in[i])
                        return done->http_status == 403;
        return false;
}

static void refusal_over(struct watch *watch)
{
        struct controller *controller = watch->controller;
        bool was_told = watch->refusal.trouble.health != WATCH_HEALTHY;

        if (!watch->refusal.key)
                return;
        refusal_free(watch);
        if (was_told)
                (void)controller->effects->health(controller->userdata, watch); /* needs no memory */
}

void refusal_written(struct watch *watch, const char *key)
{
        const struct refusal *refusal = &watch->refusal;

        note_namespace(watch, key, false);
        if (refusal->key && (!refusal->in || place_of_namespace(watch->config, key) ==
                                                     place_of_namespace(watch->config, refusal->key)))
                refusal_over(watch);
}

void refusal_forget(struct watch *watch, const char *key, const char *uid)
{
        if (is_witness(watch, key, uid))
                refusal_over(watch);
}

static int refusal_begin(struct watch *watch, const struct message_done *done)
{
        struct refusal *refusal = &watch->refusal;

        refusal->key = strdup(done->key);
        refusal->uid = strdup(done->uid);
        if (names_several(watch->config))
                refusal->in = calloc(watch->config->namespace_count, sizeof(*refusal->in));
        if (!refusal->key || !refusal->uid || (names_several(watch->config) && !refusal->in)) {
                refusal_free(watch);
                return -ENOMEM;
        }
        refusal->since_boottime = watch->controller->now.boottime;
        refusal->trouble.since_realtime = watch->controller->now.realtime;
        return 0;
}

/* A credential that has expired is everyday life: it is being renewed. */
static bool refusal_is_news(const struct refusal *refusal, const struct message_done *done)
{
        return done->http_status != 401 || refusal->trouble.failures > 1;
}

static int degrade(struct watch *watch, enum watch_health health, const struct message_done *done)
{
        struct watch_trouble *trouble = &watch->refusal.trouble;
        _cleanup_free_ char *reason = format_string("%s: %s", done->key, done->message);
        bool is_new = trouble->health != health;

        if (!reason)
                return -ENOMEM;
        free(trouble->reason);
        trouble->reason = TAKE_PTR(reason);
        trouble->health = health;
        return is_new ? watch->controller->effects->health(watch->controller->userdata, watch) : 0;
}

int watch_refused(struct watch *watch, const struct message_done *done, uint64_t *delay)
{
        uint64_t now = watch->controller->now.boottime, limit = watch->config->deadline_usec / WITNESS_TRIES,
                 deadline;
        struct refusal *refusal = &watch->refusal;
        int r = refusal->key ? 0 : refusal_begin(watch, done);

        if (r >= 0 && done->http_status == 403)
                note_namespace(watch, done->key, true);
        if (r < 0 || !is_witness(watch, done->key, done->uid))
                return r;
        refusal->trouble.failures++;
        deadline = refusal->since_boottime + watch->config->deadline_usec;
        if (now >= deadline && !other_refusals_are_left(watch, done))
                return watch->config->on_deadline == ON_DEADLINE_ISOLATE ? degrade(watch, WATCH_FAILED, done)
                                                                         : 1;
        if (*delay > limit)
                *delay = limit;
        if (now < deadline && now + *delay > deadline)
                *delay = deadline - now;
        return refusal_is_news(refusal, done) ? degrade(watch, WATCH_DEGRADED, done) : 0;
}

void refusal_fatal(struct watch *watch)
{
        struct controller *controller = watch->controller;
        const struct refusal *refusal = &watch->refusal;
        char text[64];

        duration_format((controller->now.boottime - refusal->since_boottime) / USEC_PER_SEC * USEC_PER_SEC,
                        text, sizeof(text));
        controller_fatal(controller, EXIT_CODE_NO_PERMISSION, NULL,
                         "the API server has refused every write of watch %s for %s, past its deadline; the "
                         "last of them: %s",
                         watch->config->name, text,
                         refusal->trouble.reason ? refusal->trouble.reason : refusal->key);
}
