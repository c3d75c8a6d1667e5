/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record of a watch's handler is a row of the scopes, under a name that no watch has: "KEY HASH TIME
 * STAMP OTHER", and beside that how far the rows of the last change were made due: "PASS MODE", how many were
 * in each pass, and in lines of their own key and uid of the last one; "" when all were. Both are written in
 * one transaction with the rows that they speak of, so whatever dies between goes on behind the last page. No
 * row means that nothing is known of a former handler, as after an upgrade: then nothing has changed. Another
 * key means the same.
 *
 * A file that is replaced while the operator runs is used at once. So STAMP says which version of the files
 * the hash was made of (lib/os/file-stamp.h), and OTHER that an object has failed under another version. If
 * the next look finds neither, the handler was another one meanwhile and has changed since, even where the
 * hash is the same: a bad release was taken back. A stamp alone is never a change: after a restart of a
 * container all are new.
 */
#include "controller/run/handler-change.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "controller/effects.h"
#include "ipc/message-id.h"
#include "os/file-stamp.h"

#define RECORD_ROW        "%s/handler" /* no watch has a slash in its name */
#define HANDLER_TEXT_SIZE 33

/* ---- what is on record */

struct handler_record {
        char key[HANDLER_TEXT_SIZE], hash[HANDLER_TEXT_SIZE];
        uint64_t changed_realtime, stamp, other;
};

#define NO_HASH "-" /* nobody has looked at it yet */

static int record_name(const struct watch *watch, char **ret)
{
        if (asprintf(ret, RECORD_ROW, watch->config->name) >= 0)
                return 0;
        *ret = NULL;
        return -ENOMEM;
}

static char *take_line(char **rest)
{
        return *rest ? strsep(rest, "\n") : (char *)(uintptr_t) "";
}

/* How far the last life came. */
static int read_progress(struct watch *watch, char *progress)
{
        struct handler_change *change = &watch->handler;
        char *first = take_line(&progress);
        unsigned pass, all;

        if (sscanf(first, "%u %u %" SCNu64 " %" SCNu64, &pass, &all, &change->due, &change->quarantined) !=
                    4 ||
            pass >= HANDLER_PASS_COUNT)
                return 0;
        change->pass = (enum handler_pass)pass;
        change->all = all != 0;
        if (text_replace(&change->key, take_line(&progress)) < 0)
                return -ENOMEM;
        return text_replace(&change->uid, take_line(&progress));
}

static int read_record(struct watch *watch, struct handler_record *ret)
{
        _cleanup_free_ char *name = NULL, *what = NULL, *progress = NULL;
        int r = record_name(watch, &name);

        *ret = (struct handler_record){0};
        watch->handler.is_read = true;
        if (r >= 0)
                r = ledger_scope_get(watch->controller->ledger, name, &what, &progress);
        if (r < 0)
                return r;
        if (sscanf(what, "%32s %32s %" SCNu64 " %" SCNx64 " %" SCNx64, ret->key, ret->hash,
                   &ret->changed_realtime, &ret->stamp, &ret->other) < 3) {
                *ret = (struct handler_record){0};
                return 0;
        }
        if (strcmp(ret->hash, NO_HASH) == 0)
                ret->hash[0] = '\0';
        watch->handler.stamp = ret->stamp;
        watch->handler.other = ret->other;
        memcpy(watch->handler.hash, ret->hash, sizeof(ret->hash));
        watch->handler.changed_realtime = ret->changed_realtime;
        return watch->handler.pass == HANDLER_PASS_NONE ? read_progress(watch, progress) : 0;
}

int handler_note(const struct watch *watch)
{
        const struct handler_change *change = &watch->handler;
        struct controller *controller = watch->controller;
        _cleanup_free_ char *name = NULL;
        _cleanup_text_ struct text what = TEXT_EMPTY, progress = TEXT_EMPTY;
        int r = record_name(watch, &name);

        text_printf(&what, "%s %s %" PRIu64 " %" PRIx64 " %" PRIx64, controller->handler_key_name,
                    change->hash[0] ? change->hash : NO_HASH, change->changed_realtime, change->stamp,
                    change->other);
        if (change->pass != HANDLER_PASS_NONE)
                text_printf(&progress, "%u %u %" PRIu64 " %" PRIu64 "\n%s\n%s", (unsigned)change->pass,
                            (unsigned)change->all, change->due, change->quarantined, change->key,
                            change->uid);
        if (r < 0 || what.failed || progress.failed)
                return -ENOMEM;
        return ledger_scope_set(controller->ledger, name, what.data, progress.data ? progress.data : "");
}

/* ---- what follows from a change */

int handler_begin_pass(struct watch *watch, enum handler_pass pass)
{
        if (text_replace(&watch->handler.key, "") < 0 || text_replace(&watch->handler.uid, "") < 0)
                return -ENOMEM;
        watch->handler.pass = pass;
        return 0;
}

static const char *const mode_text[] = {
        [ON_HANDLER_CHANGE_FAILED] = "what failed under the former one runs again",
        [ON_HANDLER_CHANGE_ALL] = "all its objects run again",
        [ON_HANDLER_CHANGE_NONE] = "nothing runs for that (onHandlerChange: none)",
};

static void tell_changed(const struct watch *watch, uint64_t failing, bool is_back)
{
        const struct config_watch *config = watch->config;
        char what[240];

        if (watch->handler.pass == HANDLER_PASS_NONE)
                snprintf(what, sizeof(what), "%s",
                         config->on_handler_change == ON_HANDLER_CHANGE_NONE
                                 ? mode_text[ON_HANDLER_CHANGE_NONE]
                                 : "no object has failed under the former one, so nothing runs for that");
        else
                snprintf(what, sizeof(what),
                         "%s, at most %u a second (%" PRIu64 " %s failed; of those, what is in "
                         "quarantine runs alone, after all others)",
                         mode_text[config->on_handler_change], HANDLER_RUNS_A_SECOND, failing,
                         counted(failing, "object has", "objects have"));
        controller_log(
                watch->controller, LOG_NOTICE, MESSAGE_ID_HANDLER_CHANGED,
                LOG_FIELDS({"RECONCILED_WATCH", config->name}),
                is_back ? "the handler of watch %s was another one since the last start or reload, and is "
                          "the former one again: %s"
                        : "the handler of watch %s has changed: %s",
                config->name, what);
}

static int changed(struct watch *watch, bool is_back)
{
        struct controller *controller = watch->controller;
        enum on_handler_change mode = watch->config->on_handler_change;
        struct handler_change *change = &watch->handler;
        struct ledger_failing failing = {0};
        bool any;
        int r = ledger_count_failing(controller->ledger, watch->config->name, &failing);

        if (r < 0)
                return r;
        any = mode == ON_HANDLER_CHANGE_ALL || (mode == ON_HANDLER_CHANGE_FAILED && failing.failing > 0);
        change->changes++;
        change->reload = controller->reloads;
        change->changed_realtime = controller->now.realtime;
        change->all = mode == ON_HANDLER_CHANGE_ALL;
        change->due = change->quarantined = 0;
        r = handler_begin_pass(watch, any ? HANDLER_PASS_OTHERS : HANDLER_PASS_NONE);
        if (r >= 0)
                tell_changed(watch, failing.failing, is_back);
        return r;
}

/* 1: the record is to be written. */
static int compare(struct watch *watch, const struct handler_record *record, const char *hash,
                   uint64_t stamp)
{
        struct controller *controller = watch->controller;
        struct handler_change *change = &watch->handler;
        bool is_known = strcmp(record->key, controller->handler_key_name) == 0;
        bool was_other = is_known && record->other != 0 && record->other != stamp;
        bool is_same = is_known && strcmp(record->hash, hash) == 0;
        int r = 0;

        change->judged = controller->reloads;
        change->stamp = stamp;
        change->other = 0;
        if (is_same && !was_other)
                return record->stamp != stamp || record->other != 0;
        memcpy(change->hash, hash, HANDLER_TEXT_SIZE);
        if (was_other || (is_known && record->hash[0]))
                r = changed(watch, is_same);
        else
                change->pass = HANDLER_PASS_NONE;
        return r < 0 ? r : 1;
}

int handler_judge(struct watch *watch, const char *hash, uint64_t stamp)
{
        struct handler_change *change = &watch->handler;
        struct handler_record record;
        bool is_over = false;
        int r = read_record(watch, &record);

        if (r < 0)
                return r;
        if (watch->config->on_handler_change == ON_HANDLER_CHANGE_NONE) {
                is_over = change->pass != HANDLER_PASS_NONE;
                change->pass = HANDLER_PASS_NONE;
        }
        if (hash)
                r = compare(watch, &record, hash, stamp);
        return r > 0 || (r == 0 && is_over) ? handler_note(watch) : r;
}

void handler_forget(struct watch *watch)
{
        free(watch->handler.key);
        free(watch->handler.uid);
}

/* ---- what a row is to the new one */

void handler_forgive(struct ledger_row *row)
{
        row->permanent = false;
        row->throttled = 0;
        if (row->attempts > 0)
                row->attempts = row->refused = 1;
}

bool handler_was_replaced(const struct watch *watch, const struct assignment *given, uint64_t stamp)
{
        const struct handler_change *change = &watch->handler;
        bool was_other = stamp != 0 && stamp != change->stamp && given->reloads < change->judged;

        return (was_other || given->reloads < change->reload) &&
               watch->config->on_handler_change != ON_HANDLER_CHANGE_NONE;
}

/* ---- what has run */

/* It runs before anybody has looked at it in this life. What was hashed with another key is not known. */
static int read_first(struct watch *watch)
{
        struct handler_change *change = &watch->handler;
        struct handler_record record;
        int r = read_record(watch, &record);

        if (r < 0 || strcmp(record.key, watch->controller->handler_key_name) == 0)
                return r;
        change->hash[0] = '\0';
        change->stamp = change->other = 0;
        return 0;
}

int handler_used(struct watch *watch, uint64_t stamp)
{
        struct handler_change *change = &watch->handler;
        int r = 0;

        if (stamp == 0 || !watch->controller->handler_key_name[0])
                return 0;
        if (!change->is_read)
                r = read_first(watch);
        if (r < 0 || stamp == change->stamp || stamp == change->other || change->other == FILE_STAMP_SEVERAL)
                return r;
        change->other = change->other ? FILE_STAMP_SEVERAL : stamp;
        return handler_note(watch);
}
