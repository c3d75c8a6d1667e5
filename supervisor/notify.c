/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <systemd/sd-daemon.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "controller/run/assign.h"
#include "ipc/log.h"
#include "os/syscall.h"
#include "supervisor/control/configured.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/health.h"

/* A stop takes as long as running handlers may take (stop.grace), whatever the unit's TimeoutStopSec says.
 * Each promise covers the next two; the stop itself has bounds, so this ends. */
#define EXTEND_USEC       (15 * USEC_PER_SEC)
#define EXTEND_AGAIN_USEC (5 * USEC_PER_SEC)

#define STATUS_PAUSE_USEC (100 * USEC_PER_MSEC)

/* A line is an assignment to systemd: what a server or a handler said must not begin one. */
static void one_line(char *text)
{
        for (; *text; text++)
                if ((unsigned char)*text < ' ')
                        *text = ' ';
}

/* The watch with the worst health. */
static const struct watch *worst_watch(const struct supervisor *supervisor)
{
        const struct watch *found = NULL;

        FOREACH_WATCH(watch, &supervisor->controller)
                if (watch_is_in_trouble(watch) && (!found || watch->health > found->health))
                        found = watch;
        return found;
}

static void describe_following(const struct supervisor_lead *lead, char *buffer, size_t size)
{
        int used = snprintf(buffer, size, "follows%s%s", lead->leader[0] ? " " : "; nobody leads yet",
                            lead->leader);

        if (lead->trouble[0] && used > 0 && (size_t)used < size)
                snprintf(buffer + used, size - (size_t)used, "; %s", lead->trouble);
        one_line(buffer);
}

static void describe_state(const struct supervisor *supervisor, char *buffer, size_t size)
{
        struct queue_counts counts = assign_count(&supervisor->controller, NULL);
        const struct watch *trouble = worst_watch(supervisor);
        size_t synced = 0, paused = 0, watches = supervisor->controller.watch_count, used;
        uint64_t quarantined = configured_count_quarantined(supervisor);

        if (supervisor->phase == PHASE_FOLLOWING) {
                describe_following(&supervisor->lead, buffer, size);
                return;
        }
        FOREACH_WATCH(watch, &supervisor->controller) {
                synced += watch_is_in_sync(watch);
                paused += watch->paused_realtime > 0;
        }
        if (synced == watches)
                used = (size_t)snprintf(buffer, size, "%zu %s in sync", synced,
                                        counted(synced, "watch", "watches"));
        else
                used = (size_t)snprintf(buffer, size, "%zu of %zu %s in sync", synced, watches,
                                        counted(watches, "watch", "watches"));
        if (used < size)
                used += (size_t)snprintf(buffer + used, size - used,
                                         ", %zu running, %zu queued, %zu waiting", counts.running,
                                         counts.queued, counts.delayed);
        if (quarantined > 0 && used < size)
                used += (size_t)snprintf(buffer + used, size - used, ", %" PRIu64 " quarantined",
                                         quarantined);
        if (paused > 0 && used < size)
                used += (size_t)snprintf(buffer + used, size - used, ", %zu paused", paused);
        if (trouble && used < size)
                used += (size_t)snprintf(buffer + used, size - used, "; watch %s %s: %.400s",
                                         trouble->config->name, watch_health_name(trouble->health),
                                         watch_place_of(trouble)->degraded_reason);
        if (supervisor->reload.refused[0] && used < size)
                snprintf(buffer + used, size - used, "; not reloaded, the old configuration is in force: %s",
                         supervisor->reload.refused);
        one_line(buffer);
}

static int on_status_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        supervisor->notify.timer = sd_event_source_disable_unref(supervisor->notify.timer);
        notify_status(supervisor);
        return 0;
}

/* Numbers that change with every turn are for people, who do not read them as fast. */
static bool status_is_too_soon(struct supervisor *supervisor)
{
        uint64_t now = clock_monotonic_usec();

        if (supervisor->notify.timer)
                return true;
        if (now >= supervisor->notify.monotonic + STATUS_PAUSE_USEC) {
                supervisor->notify.monotonic = now;
                return false;
        }
        return sd_event_add_time(supervisor->event, &supervisor->notify.timer, CLOCK_MONOTONIC,
                                 supervisor->notify.monotonic + STATUS_PAUSE_USEC, 0, on_status_time,
                                 supervisor) >= 0;
}

void notify_status(struct supervisor *supervisor)
{
        char text[sizeof(supervisor->notify.text)];

        if (supervisor->phase > PHASE_RUNNING || status_is_too_soon(supervisor))
                return;
        describe_state(supervisor, text, sizeof(text));
        if (strcmp(text, supervisor->notify.text) == 0)
                return;
        memcpy(supervisor->notify.text, text, sizeof(text));
        sd_notifyf(0, "STATUS=%s", text);
}

void notify_ready(struct supervisor *supervisor)
{
        char text[sizeof(supervisor->notify.text)];
        int r;

        describe_state(supervisor, text, sizeof(text));
        memcpy(supervisor->notify.text, text, sizeof(text));
        r = sd_notifyf(0, "READY=1\nSTATUS=%s", text);
        if (r == -EMFILE || r == -ENFILE)
                /* systemd would end a working operator for lack of READY: better now, with this reason. */
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                                 "cannot report to systemd that the operator is ready: %s", strerror(-r));
        else
                log_debug("all children are ready");
}

static int on_extend(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;
        struct queue_counts counts = assign_count(&supervisor->controller, NULL);
        int r;

        sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRIu64, EXTEND_USEC);
        if (supervisor->phase != PHASE_TEARDOWN)
                sd_notifyf(0, "STATUS=%s: %zu running",
                           supervisor->reload.restarting ? "reloading" : "stopping", counts.running);
        r = sd_event_source_set_time_relative(source, EXTEND_AGAIN_USEC);
        return r < 0 ? r : sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void notify_stopping(struct supervisor *supervisor)
{
        struct queue_counts counts = assign_count(&supervisor->controller, NULL);

        sd_notifyf(0, "%sEXTEND_TIMEOUT_USEC=%" PRIu64 "\nSTATUS=%s: %zu running",
                   supervisor->reload.restarting ? "" : "STOPPING=1\n", EXTEND_USEC,
                   supervisor->reload.restarting ? "reloading" : "stopping", counts.running);
        if (supervisor->notify.extend_timer)
                return;
        /* Without it the unit's own time is what there is. */
        (void)sd_event_add_time_relative(supervisor->event, &supervisor->notify.extend_timer,
                                         CLOCK_MONOTONIC, EXTEND_AGAIN_USEC, 0, on_extend, supervisor);
}

/* systemd holds MONOTONIC_USEC against the time at which it asked for the reload. */
void notify_reloading(const struct supervisor *supervisor)
{
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRIu64 "\nEXTEND_TIMEOUT_USEC=%" PRIu64,
                   clock_monotonic_usec(), supervisor->config->stop_grace_usec + EXTEND_USEC);
}

void notify_note_refused(struct supervisor *supervisor, const char *why)
{
        snprintf(supervisor->reload.refused, sizeof(supervisor->reload.refused), "%s", why);
        one_line(supervisor->reload.refused);
        utf8_clean(supervisor->reload.refused);
}

void notify_not_reloaded(struct supervisor *supervisor, const char *why)
{
        notify_note_refused(supervisor, why);
        notify_ready(supervisor);
}

static int errno_of(int exit_code)
{
        switch (exit_code) {
        case EXIT_CODE_USAGE:
        case EXIT_CODE_CONFIGURATION:
                return EINVAL;
        case EXIT_CODE_UNAVAILABLE:
                return EHOSTUNREACH;
        case EXIT_CODE_IO:
                return EIO;
        case EXIT_CODE_NO_PERMISSION:
                return EACCES;
        default:
                return ECHILD;
        }
}

/* Written for the kubelet, which shows the content of this file as the reason why the container ended. */
static void write_termination_message(const char *text)
{
        _cleanup_close_ int fd =
                open(TERMINATION_LOG, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

        if (fd >= 0 && sys_write(fd, text, strlen(text)) < 0)
                log_debug("the termination message could not be written");
}

void notify_failed(int exit_code, const char *cause)
{
        char text[512];

        snprintf(text, sizeof(text), "%s", cause);
        one_line(text);
        write_termination_message(text);
        sd_notifyf(0, "STOPPING=1\nSTATUS=%s\nERRNO=%d\nEXIT_STATUS=%d", text, errno_of(exit_code),
                   exit_code);
}

void notify_fault(const char *text, int error)
{
        sd_notifyf(0, "STATUS=%s\nERRNO=%d\nWATCHDOG=trigger", text, -error);
}
