/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failing for a while: backoff (first, x2, capped, uniform in [d, 2d): client-go's), the watch's deadline,
 * and what the supervisor is told. A success ends the series: a watch that lives is not in trouble. The pace
 * of attempts is slower to forget: it starts anew only after an event of a watch that has lasted, or after
 * two minutes without a failure; else a LIST that succeeds between failing watches would keep it at full
 * speed.
 */
#include <errno.h>
#include <sys/random.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/watcher.h"

#define QUIET_USEC (120 * USEC_PER_SEC)

static uint64_t jitter(uint64_t delay)
{
        uint64_t random = 0;

        if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != (ssize_t)sizeof(random))
                random = clock_boottime_usec();
        return delay + (delay > 0 ? random % delay : 0);
}

static bool is_refusal(const struct kube_error *error)
{
        return error->http_status == 401 || error->http_status == 403;
}

static int past_deadline(struct watcher *watcher, const struct trouble *trouble,
                         const struct kube_error *error)
{
        char text[64];

        duration_format((clock_boottime_usec() - trouble->since_boottime) / USEC_PER_SEC * USEC_PER_SEC,
                        text, sizeof(text));
        return child_fatal(watcher->child,
                           is_refusal(error) ? EXIT_CODE_NO_PERMISSION : EXIT_CODE_UNAVAILABLE,
                           watcher->config->watch, NULL,
                           "watching %s %s has failed for %s (%u attempts), past its deadline: %s",
                           watcher->config->api_version, watcher->config->kind, text, trouble->failures,
                           error->message);
}

static void tell_degraded(struct watcher *watcher, const struct trouble *trouble,
                          const struct kube_error *error)
{
        struct message_degraded degraded = {
                .watch = watcher->config->watch,
                .health = WATCH_DEGRADED,
                .reason = error->message ? error->message : "unknown",
                .since_realtime = trouble->since_realtime,
                .failures = trouble->failures,
        };

        /* One broken connection is everyday life; what the server refuses is news at once. */
        if (trouble->failures < 2 && error->failure != KUBE_FAILURE_HTTP)
                return;
        if (!watcher->degraded)
                (void)child_send(watcher->child, MESSAGE_DEGRADED, &degraded);
        watcher->degraded = true;
}

static bool was_quiet(const struct trouble *trouble, uint64_t now)
{
        return now > trouble->retry_boottime + QUIET_USEC;
}

uint64_t trouble_delay(const struct watcher *watcher, struct trouble *trouble)
{
        uint64_t now = clock_boottime_usec(), delay;

        if (trouble->delay_usec == 0 || was_quiet(trouble, now))
                trouble->delay_usec = watcher->config->reconnect_first_usec;
        delay = jitter(trouble->delay_usec);
        trouble->delay_usec *= 2;
        if (trouble->delay_usec > watcher->config->reconnect_max_usec)
                trouble->delay_usec = watcher->config->reconnect_max_usec;
        trouble->retry_boottime = now + delay;
        return delay;
}

uint64_t trouble_pace(const struct watcher *watcher, struct trouble *trouble)
{
        uint64_t now = clock_boottime_usec();

        if (trouble->relisted && !was_quiet(trouble, now))
                return trouble_delay(watcher, trouble);
        trouble->relisted = true;
        trouble->retry_boottime = now;
        return 0;
}

static void ask_refresh(struct watcher *watcher, const struct kube_error *error, uint64_t serial)
{
        struct message_refresh refresh = {.serial = serial};

        if (error->http_status != 401 || watcher->refresh_serial == serial)
                return;
        watcher->refresh_serial = serial;
        (void)child_send(watcher->child, MESSAGE_REFRESH, &refresh);
}

/* A server that is overloaded says so to one; it means all. */
static void pass_throttle(struct watcher *watcher, const struct kube_error *error)
{
        struct message_throttle throttle = {.reason = error->message};

        if (error->retry_after_sec <= 0 || (error->http_status != 429 && error->http_status < 500))
                return;
        throttle.until_boottime = clock_boottime_usec() + (uint64_t)error->retry_after_sec * USEC_PER_SEC;
        kube_client_throttle(watcher->client, throttle.until_boottime);
        (void)child_send(watcher->child, MESSAGE_THROTTLE, &throttle);
}

void trouble_tell(struct watcher *watcher, const struct kube_error *error, uint64_t serial)
{
        ask_refresh(watcher, error, serial);
        pass_throttle(watcher, error);
}

int64_t trouble_note(struct watcher *watcher, struct trouble *trouble, const struct kube_error *error,
                     uint64_t serial)
{
        uint64_t now = clock_boottime_usec(), delay, deadline;

        /* A watch without events that lived for long was no failure in between; one that was silent to the
         * end may have been. */
        if (error->failure != KUBE_FAILURE_TIMEOUT && was_quiet(trouble, now))
                trouble->failures = 0;
        if (trouble->failures++ == 0) {
                trouble->since_boottime = now;
                trouble->since_realtime = clock_realtime_usec();
        }
        deadline = trouble->since_boottime + watcher->config->deadline_usec;
        if (now >= deadline)
                return past_deadline(watcher, trouble, error);
        tell_degraded(watcher, trouble, error);
        trouble_tell(watcher, error, serial);
        delay = trouble_delay(watcher, trouble);
        if (now + delay > deadline)
                delay = deadline - now;
        return (int64_t)delay;
}

void trouble_clear(struct watcher *watcher, struct trouble *trouble)
{
        struct message_recovered recovered = {.watch = watcher->config->watch};

        if (trouble->failures == 0)
                return;
        trouble->failures = 0;
        if (!watcher->degraded || watcher->trouble.failures > 0)
                return;
        for (size_t i = 0; i < watcher->stream_count; i++)
                if (watcher->stream[i].trouble.failures > 0)
                        return;
        watcher->degraded = false;
        (void)child_send(watcher->child, MESSAGE_RECOVERED, &recovered);
}

void trouble_forget(struct watcher *watcher, struct trouble *trouble)
{
        trouble->delay_usec = 0;
        trouble->relisted = false;
        trouble_clear(watcher, trouble);
}
