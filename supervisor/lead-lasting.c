/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/lead-lasting.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "config/config-watch.h"
#include "controller/due/doubt.h"
#include "controller/order/by-hand.h"
#include "controller/order/uninstall.h"
#include "controller/run/last-life.h"
#include "election/lasting.h"
#include "ipc/log.h"
#include "queue/look.h"
#include "supervisor/folders/ledger-clock.h"
#include "supervisor/supervisor.h"

#define PAUSE_USEC      (50 * USEC_PER_MSEC)   /* between two writes */
#define NAMES_MORE_USEC (50 * USEC_PER_MINUTE) /* at most, where always something is to be done */
#define KEPT_MAX        (6 * 1024)             /* bytes of lines that are not ours */
#define LISTED_MAX      400 /* objects of a watch that are looked at; more do not fit anyway */
#define DOUBT_MAX_USEC  (24 * USEC_PER_HOUR)
#define REASON_MAX      200 /* bytes of a reason */
#define SHOWN_MAX       120 /* bytes of a damaged line */

/* ---- the beginning of a lead */

static uint64_t left_until(uint64_t realtime)
{
        uint64_t now = clock_realtime_usec();

        return realtime > now ? realtime - now : 0;
}

static int take_doubt(struct supervisor *supervisor, const struct config_watch *config,
                      const struct lasting *line)
{
        uint64_t now = ledger_now(supervisor), left = left_until(line->until);
        const struct ledger_doubt doubt = {
                .watch = config->name,
                .key = line->key,
                .uid = line->uid,
                .unread = line->flag > 0,
                .crashes = line->crashes,
                .crashed_realtime = now,
                .until_realtime = now + (left < DOUBT_MAX_USEC ? left : DOUBT_MAX_USEC),
                .error = "a watcher died over it while another replica led",
        };

        return ledger_doubt_put(supervisor->controller.ledger, &doubt);
}

static int take_lasting_line(struct supervisor *supervisor, const struct config_watch *config,
                             const struct lasting *line)
{
        struct controller *controller = &supervisor->controller;
        struct watch *watch = config ? watch_find(controller, config->name) : NULL;
        const struct ledger_pause pause = {line->since, line->user, line->reason};
        const struct former_crash crash = {line->key, line->uid, line->crashes, left_until(line->until)};
        const struct noted_run run = {config ? config->name : NULL, line->key, line->uid, 0, false};

        /* Owned and related objects have no runs and take no orders: their owners do. */
        if (config && config->owner && line->kind != LASTING_DOUBT)
                return 0;
        switch (line->kind) {
        case LASTING_UNINSTALL:
                return uninstall(controller, line->user);
        case LASTING_PAUSE:
                return watch ? pause_take(watch, &pause) : 0;
        case LASTING_RUN:
                return last_life_take_run(controller, config, &run, line->flag > 0);
        case LASTING_CRASH:
                return last_life_take_crash(controller, config, &crash);
        case LASTING_DOUBT:
                return take_doubt(supervisor, config, line);
        case LASTING_OTHER:
        case LASTING_DAMAGED:
                break;
        }
        return 0;
}

/* A line of a watch that is not configured here is not for us: it stays in the record, for replicas that have the watch. */
static bool is_for_us(const struct supervisor *supervisor, const struct lasting *line,
                      const struct config_watch **ret)
{
        *ret = line->watch ? config_watch_find(supervisor->config, line->watch) : NULL;
        return line->kind == LASTING_UNINSTALL || *ret;
}

static int keep_line(struct text *kept, const struct lasting *line)
{
        if (kept->size + line->line_size >= KEPT_MAX)
                return 0;
        text_append(kept, line->line, line->line_size);
        return text_append_string(kept, "\n");
}

static int sort_line(struct supervisor *supervisor, struct lasting *line, bool is_news, struct text *kept)
{
        const struct config_watch *config;

        if (line->kind == LASTING_DAMAGED) {
                log_warning("a line of the leader record is damaged and is dropped: %.*s",
                            (int)(line->line_size < SHOWN_MAX ? line->line_size : SHOWN_MAX), line->line);
                return 0;
        }
        if (!is_for_us(supervisor, line, &config))
                return keep_line(kept, line);
        if (line->reason)
                utf8_clean(line->reason);
        return is_news ? take_lasting_line(supervisor, config, line) : 0;
}

/* Two passes, runs in the second one: what a run means depends on the crashes of its object. */
static int take_lines(struct supervisor *supervisor, const char *lines, bool runs, bool is_news,
                      struct text *kept)
{
        struct lasting line;
        int r = 0;

        while (r >= 0 && lasting_next(&lines, &line)) {
                if ((line.kind == LASTING_RUN) == runs)
                        r = sort_line(supervisor, &line, is_news, kept);
                lasting_done(&line);
        }
        return r < 0 || errno != ENOMEM ? r : -ENOMEM;
}

int lasting_take(struct supervisor *supervisor, const char *lines, bool is_news)
{
        struct supervisor_lasting *lasting = &supervisor->lead.lasting;
        _cleanup_text_ struct text kept = TEXT_EMPTY;
        int r = take_lines(supervisor, lines, false, is_news, &kept);

        if (r >= 0)
                r = take_lines(supervisor, lines, true, is_news, &kept);
        if (r >= 0)
                r = ledger_commit(supervisor->controller.ledger);
        if (r < 0)
                return r;
        lasting->kept = text_take(&kept);
        /* Where the record has nothing, and we have nothing, nothing is written. */
        lasting->sent = lines[0] ? NULL : strdup("");
        lasting->is_due = true;
        return lasting->kept && (lines[0] || lasting->sent) ? 0 : -ENOMEM;
}

/* ---- the lines of now */

struct writer {
        struct supervisor *supervisor;
        struct text text;
        const char *watch;
        enum lasting_left_out left_out;
};

/* false: there is no place for it. */
static bool write_lasting_line(struct writer *writer, const struct lasting *line)
{
        size_t before = writer->text.size;

        lasting_write(&writer->text, line);
        if (writer->text.size <= LASTING_MAX || writer->text.failed)
                return true;
        writer->text.size = before;
        writer->text.data[before] = '\0';
        if (line->kind == LASTING_UNINSTALL || line->kind == LASTING_PAUSE)
                writer->left_out = LEFT_OUT_ORDERS;
        else if (writer->left_out == LEFT_OUT_NOTHING)
                writer->left_out = LEFT_OUT_OTHERS;
        return false;
}

/* Bytes of each reason: of many pauses, the reasons are shortened before any of the lines is left out. */
static size_t reason_size(const struct controller *controller)
{
        size_t paused = 1, size;

        FOREACH_WATCH(watch, controller)
                paused += watch->paused_realtime > 0;
        size = LASTING_MAX / 2 / 3 / paused; /* a byte becomes three, as it is escaped */
        return size < REASON_MAX ? size : REASON_MAX;
}

static void write_orders(struct writer *writer)
{
        const struct controller *controller = &writer->supervisor->controller;
        size_t size = reason_size(controller);

        if (controller->uninstall.active)
                write_lasting_line(writer, &(struct lasting){.kind = LASTING_UNINSTALL,
                                                             .since = controller->uninstall.realtime,
                                                             .user = controller->uninstall.by});
        FOREACH_WATCH(watch, controller) {
                char reason[REASON_MAX + 1];

                if (watch->paused_realtime == 0)
                        continue;
                snprintf(reason, size + 1, "%s", watch->pause_reason ? watch->pause_reason : "");
                utf8_clean(reason);
                write_lasting_line(writer, &(struct lasting){.kind = LASTING_PAUSE,
                                                             .watch = watch->config->name,
                                                             .since = watch->paused_realtime,
                                                             .user = watch->paused_by,
                                                             .reason = reason});
        }
}

static bool write_run(struct writer *writer, const struct assignment *given)
{
        const struct controller *controller = &writer->supervisor->controller;

        return write_lasting_line(
                writer, &(struct lasting){.kind = LASTING_RUN,
                                          .watch = controller->watch[given->run.watch].config->name,
                                          .key = (char *)(uintptr_t)given->run.key,
                                          .uid = (char *)(uintptr_t)given->run.uid,
                                          .flag = queue_is_alone(controller->queue, given->run.id)});
}

/* Those that have left come first. One that finds no place is named, and leaves, once others have ended. */
static void write_runs(struct writer *writer, bool has_left)
{
        struct controller *controller = &writer->supervisor->controller;

        FOREACH_ARRAY(worker, controller->worker, controller->worker_count)
                FOREACH_ARRAY(given, worker->given, worker->given_count)
                        if (given->named > 0 && given->to_send != has_left && !write_run(writer, given) &&
                            !has_left)
                                given->named = 0;
}

static int write_crash(const char *watch _unused_, const struct ledger_row *row, void *userdata)
{
        struct writer *writer = userdata;
        uint64_t until = row->quarantined_until;

        write_lasting_line(
                writer,
                &(struct lasting){.kind = LASTING_CRASH,
                                  .watch = (char *)(uintptr_t)writer->watch,
                                  .key = row->key,
                                  .uid = row->uid,
                                  .crashes = row->crashes,
                                  .until = until > 0 ? ledger_to_realtime(writer->supervisor, until) : 0});
        return 0;
}

static int write_doubt(const struct ledger_doubt *doubt, void *userdata)
{
        struct writer *writer = userdata;

        write_lasting_line(writer, &(struct lasting){.kind = LASTING_DOUBT,
                                                     .watch = (char *)(uintptr_t)doubt->watch,
                                                     .key = (char *)(uintptr_t)doubt->key,
                                                     .uid = (char *)(uintptr_t)doubt->uid,
                                                     .crashes = doubt->crashes,
                                                     .until = ledger_to_realtime(writer->supervisor,
                                                                                 doubt->until_realtime),
                                                     .flag = doubt->unread});
        return 0;
}

static int write_crashes(struct writer *writer)
{
        struct ledger *ledger = writer->supervisor->controller.ledger;
        int r = 0;

        FOREACH_WATCH(watch, &writer->supervisor->controller) {
                const struct ledger_place place = {.watch = watch->config->name, .key = "", .uid = ""};

                writer->watch = watch->config->name;
                if (r >= 0 && ledger_count_crashed(ledger, watch->config->name) > 0)
                        r = ledger_list_crashed(ledger, &place, LISTED_MAX, write_crash, writer);
                if (r >= 0)
                        r = ledger_visit_doubts(ledger, watch->config->name, ledger_now(writer->supervisor),
                                                LISTED_MAX, write_doubt, writer);
        }
        return r;
}

/* ---- to the lease process */

static void tell_left_out(struct supervisor_lasting *lasting, enum lasting_left_out left_out)
{
        if (left_out != LEFT_OUT_NOTHING && lasting->left_out == LEFT_OUT_NOTHING)
                log_warning(
                        "the leader record is full: not all pauses, or objects over which the operator has crashed, are in it. "
                        "Another replica that leads does not know of the others");
        lasting->left_out = left_out;
}

/* is_over: nothing runs any more, and what a run has done to us is known. */
static int send_lasting(struct supervisor *supervisor, bool always, bool is_over)
{
        struct supervisor_lasting *lasting = &supervisor->lead.lasting;
        struct writer writer = {.supervisor = supervisor};
        _cleanup_free_ char *lines = NULL;
        int r;

        write_orders(&writer);
        if (!is_over) {
                write_runs(&writer, true);
                write_runs(&writer, false);
        }
        r = write_crashes(&writer);
        text_append_string(&writer.text, lasting->kept);
        lines = text_take(&writer.text);
        text_done(&writer.text);
        if (r < 0 || !lines)
                return r < 0 ? r : -ENOMEM;
        tell_left_out(lasting, writer.left_out);
        lasting->is_due = lasting->is_ordered = false;
        if (!always && lasting->sent && strcmp(lines, lasting->sent) == 0)
                return 0;
        free(lasting->sent);
        lasting->sent = TAKE_PTR(lines);
        lasting->serial++;
        lasting->sent_boottime = clock_boottime_usec();
        return channel_send(supervisor->lead.child->process.channel, MESSAGE_LASTING,
                            &(struct message_lasting){.serial = lasting->serial, .lines = lasting->sent});
}

static void send_or_fail(struct supervisor *supervisor, bool always, bool is_over)
{
        int r = send_lasting(supervisor, always, is_over);

        if (r < 0 && supervisor->phase < PHASE_TEARDOWN)
                supervisor_fatal(supervisor, r == -EIO || r == -ENOSPC ? EXIT_CODE_IO : EXIT_CODE_SOFTWARE,
                                 NULL, NULL, "what must outlive this leader cannot be told: %s",
                                 strerror(-r));
}

static bool is_leader(const struct supervisor *supervisor)
{
        const struct supervisor_lead *lead = &supervisor->lead;

        return lead->child && lead->state == LEAD_LEADING && lead->lasting.kept && !lead->is_releasing &&
               lead->child->process.state == CHILD_RUNNING;
}

static int on_lasting_time(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        turn_settle_soon(userdata);
        return 0;
}

static void send_later(struct supervisor *supervisor, uint64_t at)
{
        struct supervisor_lasting *lasting = &supervisor->lead.lasting;

        lasting->timer = sd_event_source_disable_unref(lasting->timer);
        if (sd_event_add_time(supervisor->event, &lasting->timer, CLOCK_BOOTTIME, at, USEC_PER_MSEC,
                              on_lasting_time, supervisor) < 0)
                send_or_fail(supervisor, lasting->is_ordered, false);
}

/* A run that kills all need not be its object's first one in a lead, so they are named for some time besides. */
static bool is_unsuspicious(const struct supervisor *supervisor)
{
        struct queue_counts counts = queue_count_all(supervisor->controller.queue);

        uint64_t now = clock_boottime_usec(), until = supervisor->lead.lasting.names_until;

        if (now < until || now > until + NAMES_MORE_USEC)
                return now > until;
        FOREACH_WATCH(watch, &supervisor->controller)
                if (!watch->synced || !watch->swept)
                        return false;
        return counts.queued + counts.running == 0;
}

void lasting_review(struct supervisor *supervisor)
{
        struct supervisor_lasting *lasting = &supervisor->lead.lasting;
        uint64_t now;

        if (!is_leader(supervisor) || supervisor->phase > PHASE_STOPPING_WORKERS)
                return;
        if (lasting->names_until > 0 && is_unsuspicious(supervisor))
                lasting->names_until = 0;
        lasting->is_due = lasting->is_due || supervisor->controller.hearsay_dropped;
        supervisor->controller.hearsay_dropped = false;
        if (!lasting->is_due)
                return;
        now = clock_boottime_usec();
        if (lasting->sent && now < lasting->sent_boottime + PAUSE_USEC)
                send_later(supervisor, lasting->sent_boottime + PAUSE_USEC);
        else
                send_or_fail(supervisor, lasting->is_ordered, false);
}

void lasting_end(struct supervisor *supervisor)
{
        if (is_leader(supervisor))
                send_or_fail(supervisor, false, true);
}
