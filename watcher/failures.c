/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/failures.h"

#include <errno.h>

#include "base/backoff.h"
#include "base/duration.h"
#include "base/exit-code.h"
#include "kube/notice.h"
#include "watcher/stream/stream.h"

#define QUIET_USEC   (120 * USEC_PER_SEC)
#define PATIENCE_MAX (5 * USEC_PER_SEC) /* for a request that is in flight when the deadline comes */
#define WISH_MAX     10                 /* a server that says Retry-After forever counts as failing */
#define HELD_USEC    USEC_PER_SEC       /* being held back for longer is reported */

/* ---- reports to the supervisor */

/* A refused namespace may stay refused for days: other trouble of the watch is reported first. */
static bool is_worse(const struct failures *failures, const struct failures *found)
{
        if (failures->health != found->health)
                return failures->health > found->health;
        return failures->health != WATCH_HEALTHY && found->refused && !failures->refused;
}

static const struct failures *worst_failures(const struct watcher *watcher)
{
        const struct failures *found = &watcher->failures;

        FOREACH_ARRAY(stream, watcher->stream, watcher->stream_count) {
                if (is_worse(&stream->failures, found))
                        found = &stream->failures;
                if (is_worse(&stream->probe.failures, found))
                        found = &stream->probe.failures;
        }
        return found;
}

static int failure_exit_code(const struct watcher *watcher, const struct kube_error *error)
{
        if (watcher->full)
                return EXIT_CODE_IO;
        return error->http_status == 401 || error->http_status == 403 ? EXIT_CODE_NO_PERMISSION
                                                                      : EXIT_CODE_UNAVAILABLE;
}

/* The namespace that a failure is about, where the watch names several; "": the failure concerns all. */
static const char *namespace_of(const struct watcher *watcher, const struct failures *failures)
{
        for (size_t i = 0; i < watcher->stream_count && watcher->stream_count > 1; i++)
                if (&watcher->stream[i].failures == failures)
                        return watcher->stream[i].namespace_name;
        return "";
}

static void tell_health(struct watcher *watcher)
{
        const struct failures *failures = worst_failures(watcher);
        struct message_recovered recovered = {.watch = watcher->config->watch};
        struct message_degraded degraded = {
                .watch = watcher->config->watch,
                .health = failures->health,
                .exit_code = failures->health == WATCH_FAILED || watcher->full
                                     ? (uint64_t)failure_exit_code(watcher, &failures->last)
                                     : 0,
                .reason = failures->last.message ? failures->last.message : "unknown",
                .namespace_name = failures->refused ? namespace_of(watcher, failures) : "",
                .since_realtime = failures->since_realtime,
                .failures = failures->count,
        };

        if (failures->health == watcher->health && failures->refused == watcher->told_refused)
                return;
        watcher->health = failures->health;
        watcher->told_refused = failures->refused;
        if (failures->health == WATCH_HEALTHY)
                (void)child_send(watcher->child, MESSAGE_RECOVERED, &recovered);
        else
                (void)child_send(watcher->child, MESSAGE_DEGRADED, &degraded);
}

/* A single broken connection is normal, and so is an expired token; a refusal by the server is reported at
 * once. If the resource may be missing, discovery judges its 404. */
static bool failure_is_news(const struct watcher *watcher, const struct failures *failures,
                            const struct kube_error *error)
{
        if (failures->count >= 2)
                return true;
        return error->failure == KUBE_FAILURE_HTTP && error->http_status != 401 &&
               (error->http_status != 404 || watcher->config->required);
}

static void set_health(struct watcher *watcher, struct failures *failures, enum watch_health health)
{
        if (failures->health != WATCH_FAILED || health == WATCH_HEALTHY)
                failures->health = health;
        tell_health(watcher);
}

/* ---- the deadline */

/* Whether another namespace is left when this one is refused: one that is not refused past its own deadline. */
static bool other_failures_are_left(const struct watcher *watcher, const struct failures *failures)
{
        uint64_t now = clock_boottime_usec();
        bool is_stream = false, left = false;

        for (size_t i = 0; i < watcher->stream_count; i++) {
                const struct failures *other = &watcher->stream[i].failures;

                is_stream = is_stream || other == failures;
                left = left ||
                       (other != failures &&
                        (!other->refused || now < other->since_boottime + watcher->config->deadline_usec));
        }
        return is_stream && left;
}

/* Returns 0 where the watch goes on: it is isolated, or other namespaces are left. Objects that find no room in memory
 * end no operator: a user who may create Secrets could end the operator, and again at each start. */
static int past_deadline(struct watcher *watcher, struct failures *failures)
{
        char text[64];

        if (failures->refused && other_failures_are_left(watcher, failures)) {
                set_health(watcher, failures, WATCH_DEGRADED);
                return 0;
        }
        if (watcher->config->isolate || watcher->full) {
                set_health(watcher, failures, WATCH_FAILED);
                return 0;
        }
        duration_format((clock_boottime_usec() - failures->since_boottime) / USEC_PER_SEC * USEC_PER_SEC,
                        text, sizeof(text));
        return child_fatal(watcher->child, failure_exit_code(watcher, &failures->last),
                           "watching %s %s has failed for %s (%u %s), past its deadline: %s",
                           watcher->config->api_version, watcher->config->kind, text, failures->count,
                           counted(failures->count, "attempt", "attempts"),
                           failures->last.message ? failures->last.message : "unknown");
}

static uint64_t failures_patience(const struct watcher *watcher)
{
        uint64_t quarter = watcher->config->deadline_usec / 4;

        return quarter < PATIENCE_MAX ? quarter : PATIENCE_MAX;
}

static int on_deadline(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct failures *failures = userdata;
        struct watcher *watcher = failures->watcher;
        uint64_t due = failures->progress_boottime + failures_patience(watcher);

        if (watcher->child->stopping)
                return 0;
        if (due <= clock_boottime_usec() || sd_event_source_set_time(source, due) < 0 ||
            sd_event_source_set_enabled(source, SD_EVENT_ONESHOT) < 0)
                (void)past_deadline(watcher, failures); /* this ends the loop, or isolates the watch */
        return 0;
}

static void disarm(struct failures *failures)
{
        failures->deadline = sd_event_source_disable_unref(failures->deadline);
}

static void arm_deadline(struct watcher *watcher, struct failures *failures)
{
        uint64_t due =
                failures->since_boottime + watcher->config->deadline_usec + failures_patience(watcher);

        disarm(failures);
        failures->watcher = watcher;
        if (sd_event_add_time(watcher->child->event, &failures->deadline, CLOCK_BOOTTIME, due, 1,
                              on_deadline, failures) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no memory for a timer");
}

static void failures_begin(struct watcher *watcher, struct failures *failures, uint64_t now)
{
        failures->since_boottime = now;
        failures->since_realtime = clock_realtime_usec();
        failures->wishes = 0;
        arm_deadline(watcher, failures);
}

/* ---- the pace */

static bool was_quiet(const struct failures *failures, uint64_t now)
{
        return now > failures->retry_boottime + QUIET_USEC;
}

uint64_t failures_delay(const struct watcher *watcher, struct failures *failures)
{
        uint64_t now = clock_boottime_usec(), delay;

        if (failures->delay_usec == 0 || was_quiet(failures, now))
                failures->delay_usec = watcher->config->reconnect_first_usec;
        delay = failures->delay_usec + random_below(failures->delay_usec);
        failures->delay_usec = backoff_next(failures->delay_usec, watcher->config->reconnect_max_usec);
        failures->retry_boottime = now + delay;
        return delay;
}

void failures_slow(const struct watcher *watcher, struct failures *failures)
{
        failures->delay_usec = watcher->config->reconnect_max_usec;
        failures->retry_boottime = clock_boottime_usec();
}

uint64_t failures_pace(const struct watcher *watcher, struct failures *failures)
{
        uint64_t now = clock_boottime_usec();

        if (failures->relisted && !was_quiet(failures, now))
                return failures_delay(watcher, failures);
        failures->relisted = true;
        failures->retry_boottime = now;
        return 0;
}

/* ---- telling the others */

/* A certificate that is not trusted may be the new one of a rotated authority, whose file is read again each
 * time. */
static void ask_refresh(struct watcher *watcher, const struct kube_error *error, uint64_t serial)
{
        struct message_refresh refresh = {.serial = serial};

        notice_refused_credential(watcher->child, error, serial, &watcher->refresh_serial);
        if (error->failure == KUBE_FAILURE_TLS && serial != 0) {
                watcher->refresh_serial = serial;
                (void)child_send(watcher->child, MESSAGE_REFRESH, &refresh);
        }
}

/* Whether this is the resource that is watched; before discovery, the list that has it. */
static bool is_own_resource(const struct watcher *watcher, const char *resource)
{
        const struct kube_resource *own = &watcher->resource;
        const char *listed = watcher->config->api_version;
        size_t length = own->group ? strlen(own->group) : 0;

        if (!watcher->discovered)
                return strcmp(resource + (resource[0] == '/'), listed) == 0;
        return own->plural && strncmp(resource, own->group ? own->group : "", length) == 0 &&
               resource[length] == '/' && strcmp(resource + length + 1, own->plural) == 0;
}

static void note_wish(struct watcher *watcher, const char *resource, uint64_t until_boottime)
{
        if ((!resource[0] || is_own_resource(watcher, resource)) && until_boottime > watcher->throttle_until)
                watcher->throttle_until = until_boottime;
}

void failures_wish(struct watcher *watcher, const char *resource, uint64_t until_boottime)
{
        kube_client_throttle(watcher->client, resource, until_boottime);
        note_wish(watcher, resource, until_boottime);
}

static void pass_throttle(struct watcher *watcher, const struct kube_error *error)
{
        note_wish(watcher, error->resource ? error->resource : "",
                  notice_throttle(watcher->child, watcher->client, error));
}

void failures_tell(struct watcher *watcher, const struct kube_error *error, uint64_t serial)
{
        ask_refresh(watcher, error, serial);
        pass_throttle(watcher, error);
}

/* ---- failures */

static void remember_failure(const struct watcher *watcher, struct failures *failures,
                             const struct kube_error *error)
{
        const char *advice = kube_error_rights_advice(error);
        const char *namespace_name = namespace_of(watcher, failures);
        struct kube_error copy;
        char *message;

        if (kube_error_copy(error, &copy) < 0)
                return; /* the older error will do */
        if ((advice[0] || namespace_name[0]) && copy.message &&
            asprintf(&message, "%s%s%s%s%s", namespace_name[0] ? "namespace " : "", namespace_name,
                     namespace_name[0] ? ": " : "", copy.message, advice) >= 0) {
                free(copy.message);
                copy.message = message;
        }
        kube_error_done(&failures->last);
        failures->last = copy;
}

/* Discovery does not know the resource, and the resource is not required. */
static bool is_absence(const struct watcher *watcher, const struct failures *failures,
                       const struct kube_error *error)
{
        return failures == &watcher->failures && !watcher->discovered && !watcher->config->required &&
               error->failure == KUBE_FAILURE_HTTP && error->http_status == 404;
}

static void forget_quietly(struct failures *failures)
{
        disarm(failures);
        failures->count = 0;
        failures->refused = false;
        failures->health = WATCH_HEALTHY;
}

/* The absence explains the failures of the streams. */
static void note_absence(struct watcher *watcher)
{
        for (size_t i = 0; i < watcher->stream_count; i++) {
                forget_quietly(&watcher->stream[i].failures);
                forget_quietly(&watcher->stream[i].probe.failures);
        }
        disarm(&watcher->failures);
        set_health(watcher, &watcher->failures, WATCH_ABSENT);
}

/* The server's Retry-After sets the delay, but not forever. */
static uint64_t delay_after(struct watcher *watcher, struct failures *failures,
                            const struct kube_error *error, uint64_t serial)
{
        uint64_t wish = kube_error_wish_usec(error);

        if (wish == 0 || failures->wishes >= WISH_MAX) {
                ask_refresh(watcher, error, serial);
                return failures_delay(watcher, failures);
        }
        failures->wishes++;
        pass_throttle(watcher, error);
        failures->retry_boottime = clock_boottime_usec() + wish;
        return wish;
}

int64_t failures_note(struct watcher *watcher, struct failures *failures, const struct kube_error *error,
                      uint64_t serial)
{
        uint64_t now = clock_boottime_usec(), delay, deadline;

        /* A watch without events that lived for long was a success in between; one that was silent to the
         * end may not have been. */
        if ((error->failure != KUBE_FAILURE_TIMEOUT && was_quiet(failures, now)) ||
            failures->health == WATCH_ABSENT)
                failures->count = 0;
        if (failures->count++ == 0)
                failures_begin(watcher, failures, now);
        failures->refused =
                failures->refused || (error->failure == KUBE_FAILURE_HTTP && error->http_status == 403);
        remember_failure(watcher, failures, error);
        if (is_absence(watcher, failures, error)) {
                note_absence(watcher);
                return (int64_t)delay_after(watcher, failures, error, serial);
        }
        deadline = failures->since_boottime + watcher->config->deadline_usec;
        if (now >= deadline) {
                if (past_deadline(watcher, failures) < 0)
                        return -ECANCELED;
                return (int64_t)delay_after(watcher, failures, error, serial);
        }
        if (failures->health == WATCH_ABSENT || failure_is_news(watcher, failures, error))
                set_health(watcher, failures, WATCH_DEGRADED);
        delay = delay_after(watcher, failures, error, serial);
        if (now + delay > deadline)
                delay = deadline - now;
        return (int64_t)delay;
}

void failures_held(struct watcher *watcher, struct failures *failures)
{
        uint64_t now = clock_boottime_usec();
        struct kube_error error = KUBE_ERROR_NONE;
        char text[64];

        if (watcher->throttle_until <= now)
                return;
        if (failures->retry_boottime < watcher->throttle_until)
                failures->retry_boottime = watcher->throttle_until;
        if (failures->count > 0 || watcher->throttle_until - now < HELD_USEC)
                return;
        failures->count = 1;
        failures_begin(watcher, failures, now);
        duration_format((watcher->throttle_until - now) / USEC_PER_SEC * USEC_PER_SEC, text, sizeof(text));
        kube_error_set(&error, KUBE_FAILURE_TIMEOUT, "the API server asks us to wait for %s (Retry-After)",
                       text);
        remember_failure(watcher, failures, &error);
        kube_error_done(&error);
        set_health(watcher, failures, WATCH_DEGRADED);
}

void failures_stand(struct watcher *watcher, const char *why)
{
        struct failures *failures = &watcher->failures;
        struct kube_error error = KUBE_ERROR_NONE;

        for (size_t i = 0; i < watcher->stream_count; i++) {
                disarm(&watcher->stream[i].failures);
                watcher->stream[i].failures.health = WATCH_HEALTHY;
        }
        failures->count = 1;
        failures_begin(watcher, failures, clock_boottime_usec());
        kube_error_set(&error, KUBE_FAILURE_PROTOCOL, "%s", why);
        remember_failure(watcher, failures, &error);
        kube_error_done(&error);
        watcher->health = WATCH_HEALTHY; /* so that the supervisor is always told */
        set_health(watcher, failures, WATCH_DEGRADED);
}

void failures_progress(struct failures *failures)
{
        failures->progress_boottime = clock_boottime_usec();
}

void failures_clear(struct watcher *watcher, struct failures *failures)
{
        if (failures->count == 0)
                return;
        failures->count = 0;
        failures->refused = false;
        disarm(failures);
        set_health(watcher, failures, WATCH_HEALTHY);
}

void failures_forget(struct watcher *watcher, struct failures *failures)
{
        failures->delay_usec = 0;
        failures->relisted = false;
        failures_clear(watcher, failures);
}

void failures_done(struct failures *failures)
{
        disarm(failures);
        kube_error_done(&failures->last);
}
