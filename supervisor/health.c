/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a watch is: by what its watcher says, and by whether we may write what its runs come to. That the
 * server refuses us (401, 403) is no failure of an object: the watch is degraded, its deadline runs, and one
 * object is the witness, which is tried often enough to know in time. Any write of the watch that succeeds
 * ends it. Past the deadline the operator ends with 77, or the watch is isolated.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

#define WITNESS_TRIES 4 /* within a deadline, at least */

/* One line for each change; what to do about it is in the catalog. */
static void tell_trouble(const struct watch *watch, const struct log_field *fields)
{
        static const struct {
                int level;
                const char *message_id, *text;
        } trouble[WATCH_HEALTH_COUNT] = {
                [WATCH_DEGRADED] = {LOG_WARNING, MESSAGE_ID_WATCH_DEGRADED,
                                    "does not work for now and is retried"},
                [WATCH_ABSENT] = {LOG_NOTICE, MESSAGE_ID_WATCH_ABSENT,
                                  "waits for its resource, which is not required and not served"},
                [WATCH_FAILED] = {LOG_ERR, MESSAGE_ID_WATCH_FAILED,
                                  "has failed: it is past its deadline, alone, and goes on trying"},
        };

        log_write(trouble[watch->health].level, trouble[watch->health].message_id, fields, "watch %s %s: %s",
                  watch->config->name, trouble[watch->health].text, watch->degraded_reason);
}

bool watch_is_in_sync(const struct watch *watch)
{
        return watch->health == WATCH_ABSENT || (watch->synced && watch->health == WATCH_HEALTHY);
}

bool watch_is_in_trouble(const struct watch *watch)
{
        return watch->health == WATCH_DEGRADED || watch->health == WATCH_FAILED;
}

/* The watcher's trouble comes first: where it cannot read, nothing is written either; and where the handler
 * cannot run, nothing is. */
static const struct watch_trouble *first_trouble(const struct watch *watch)
{
        const struct access_state *access = access_of(watch);

        if (watch->heard.health != WATCH_HEALTHY)
                return &watch->heard;
        return access && access->trouble.health != WATCH_HEALTHY ? &access->trouble
                                                                 : &watch->refusal.trouble;
}

int health_review(struct watch *watch)
{
        const struct watch_trouble *trouble = first_trouble(watch);
        const struct log_field fields[] = {{"RECONCILED_WATCH", watch->config->name}, {NULL, NULL}};
        bool was_well = watch->health == WATCH_HEALTHY;

        watch->health = trouble->health;
        if (trouble->health == WATCH_HEALTHY) {
                if (!was_well)
                        log_write(LOG_INFO, MESSAGE_ID_WATCH_RECOVERED, fields, "watch %s works again",
                                  watch->config->name);
                return 0;
        }
        if (text_replace(&watch->degraded_reason, trouble->reason) < 0)
                return -ENOMEM;
        watch->degraded_realtime = trouble->since_realtime;
        watch->failures = trouble->failures;
        tell_trouble(watch, fields);
        return 0;
}

int dispatch_health(struct watch *watch, const struct message *message)
{
        int r;

        if (message->type == MESSAGE_DEGRADED) {
                if (message->degraded.health == WATCH_HEALTHY ||
                    message->degraded.health >= WATCH_HEALTH_COUNT)
                        return -EPROTO;
                if (text_replace(&watch->heard.reason, message->degraded.reason) < 0)
                        return -ENOMEM;
                if (room_is_awaited(watch, &message->degraded))
                        return text_replace(&watch->degraded_reason, message->degraded.reason);
                watch->heard.health = (enum watch_health)message->degraded.health;
                watch->heard.since_realtime = message->degraded.since_realtime;
                watch->heard.failures = message->degraded.failures;
        } else {
                if (watch->room.anew)
                        return 0;
                watch->heard.health = WATCH_HEALTHY;
                recover(watch);
        }
        r = health_review(watch);
        owned_known(watch); /* what is not served is awaited no longer */
        turn_settle_soon(watch->child->supervisor);
        return r;
}

/* ---- refusals */

static bool is_witness(const struct watch *watch, const char *key, const char *uid)
{
        return watch->refusal.key && strcmp(watch->refusal.key, key) == 0 &&
               strcmp(watch->refusal.uid, uid) == 0;
}

void refusal_free(struct watch *watch)
{
        free(watch->refusal.key);
        free(watch->refusal.uid);
        free(watch->refusal.trouble.reason);
        watch->refusal = (struct refusal){0};
}

void refusal_over(struct watch *watch)
{
        bool was_told = watch->refusal.trouble.health != WATCH_HEALTHY;

        if (!watch->refusal.key)
                return;
        refusal_free(watch);
        if (was_told && watch->heard.health == WATCH_HEALTHY)
                (void)health_review(watch); /* a healthy one needs no memory */
}

void refusal_forget(struct watch *watch, const char *key, const char *uid)
{
        if (is_witness(watch, key, uid))
                refusal_over(watch);
}

static int begin(struct watch *watch, const struct message_done *done)
{
        struct refusal *refusal = &watch->refusal;

        refusal->key = strdup(done->key);
        refusal->uid = strdup(done->uid);
        if (!refusal->key || !refusal->uid) {
                refusal_free(watch);
                return -ENOMEM;
        }
        refusal->since_boottime = clock_boottime_usec();
        refusal->trouble.since_realtime = clock_realtime_usec();
        return 0;
}

/* A credential that has expired is everyday life: it is being renewed. */
static bool is_news(const struct refusal *refusal, const struct message_done *done)
{
        return done->http_status != 401 || refusal->trouble.failures > 1;
}

static int degrade(struct watch *watch, enum watch_health health, const char *reason)
{
        struct watch_trouble *trouble = &watch->refusal.trouble;
        bool is_new = trouble->health != health;

        if (text_replace(&trouble->reason, reason) < 0)
                return -ENOMEM;
        trouble->health = health;
        return is_new && watch->heard.health == WATCH_HEALTHY ? health_review(watch) : 0;
}

int refusal_note(struct watch *watch, const struct message_done *done, uint64_t *delay)
{
        uint64_t now = clock_boottime_usec(), limit = watch->config->deadline_usec / WITNESS_TRIES, deadline;
        struct refusal *refusal = &watch->refusal;
        int r = refusal->key ? 0 : begin(watch, done);

        if (r < 0 || !is_witness(watch, done->key, done->uid))
                return r;
        refusal->trouble.failures++;
        deadline = refusal->since_boottime + watch->config->deadline_usec;
        if (now >= deadline)
                return watch->config->on_deadline == ON_DEADLINE_ISOLATE
                               ? degrade(watch, WATCH_FAILED, done->message)
                               : 1;
        if (*delay > limit)
                *delay = limit;
        if (now + *delay > deadline)
                *delay = deadline - now;
        return is_news(refusal, done) ? degrade(watch, WATCH_DEGRADED, done->message) : 0;
}

void refusal_fatal(struct watch *watch)
{
        const struct refusal *refusal = &watch->refusal;
        char text[64];

        duration_format((clock_boottime_usec() - refusal->since_boottime) / USEC_PER_SEC * USEC_PER_SEC,
                        text, sizeof(text));
        supervisor_fatal(watch->child->supervisor, EXIT_CODE_NO_PERMISSION, NULL, NULL,
                         "the API server has refused every write of watch %s for %s, past its deadline; the "
                         "last of them, of %s: %s",
                         watch->config->name, text, refusal->key,
                         refusal->trouble.reason ? refusal->trouble.reason : "unknown");
}
