/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A handler that has changed is a change: what failed under the former one runs again (retry.c makes the
 * rows due, page by page). All handlers are looked at after each start and each reload, by their hash
 * (handler-hash.c), beside all else that the loop does.
 *
 * What a watch's handler was when it was last looked at is a row of the scopes, under a name that no watch
 * has: "KEY HASH TIME STAMP OTHER", and beside that how far the rows of the last change were made due: "PASS
 * MODE", how many were in each pass, and in lines of their own key and uid of the last one; "" when all
 * were. Both are written in one transaction with the rows that they speak of, so whatever dies between goes
 * on behind the last page. No row means that nothing is known of a former handler, as after an upgrade: then
 * nothing has changed. Another key means the same.
 *
 * A file that is replaced while the operator runs is used at once. So STAMP says which version of the files
 * the hash was made of (lib/os/file-stamp.h), and OTHER that an object has failed under another version. If
 * that is not what the next look finds, the handler was another one meanwhile and has changed since, even
 * where the hash is the same: a bad release was taken back. A stamp alone is never a change: after a restart
 * of a container all are new.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "os/file-stamp.h"
#include "supervisor/handler-hash.h"
#include "supervisor/json.h"
#include "supervisor/supervisor.h"

#define RECORD_ROW "%s/handler" /* no watch has a slash in its name */

const char handler_reason[] = "handlerChanged";

/* ---- the key */

static int read_key(const char *path, uint8_t ret[HANDLER_KEY_SIZE])
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        if (fd < 0)
                return -errno;
        return read(fd, ret, HANDLER_KEY_SIZE) == HANDLER_KEY_SIZE ? 0 : -ENOENT;
}

static int make_key(const char *path, uint8_t ret[HANDLER_KEY_SIZE])
{
        _cleanup_free_ char *new = NULL;
        _cleanup_close_ int fd = -1;

        if (asprintf(&new, "%s.new", path) < 0) {
                new = NULL;
                return -ENOMEM;
        }
        if (getrandom(ret, HANDLER_KEY_SIZE, 0) != HANDLER_KEY_SIZE)
                return -EIO;
        fd = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        errno = EIO;
        if (write(fd, ret, HANDLER_KEY_SIZE) != HANDLER_KEY_SIZE || fsync(fd) < 0 || rename(new, path) < 0)
                return -errno;
        return 0;
}

/* In a file of its own: who comes by a copy of the ledger cannot try values that arguments or environment
 * might have. */
static int load_key(const struct supervisor *supervisor, uint8_t ret[HANDLER_KEY_SIZE])
{
        _cleanup_free_ char *path = NULL;
        int r;

        if (asprintf(&path, "%s/handler-key", supervisor->options->state_directory) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = read_key(path, ret);
        return r == -ENOENT ? make_key(path, ret) : r;
}

/* ---- what is on record */

struct record {
        char key[HANDLER_HASH_SIZE], hash[HANDLER_HASH_SIZE];
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

static int read_record(struct watch *watch, struct record *ret)
{
        _cleanup_free_ char *name = NULL, *what = NULL, *progress = NULL;
        int r = record_name(watch, &name);

        *ret = (struct record){0};
        watch->handler.is_read = true;
        if (r >= 0)
                r = ledger_scope_get(watch->child->supervisor->ledger, name, &what, &progress);
        if (r < 0)
                return r;
        if (sscanf(what, "%32s %32s %" SCNu64 " %" SCNx64 " %" SCNx64, ret->key, ret->hash,
                   &ret->changed_realtime, &ret->stamp, &ret->other) < 3) {
                *ret = (struct record){0};
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
        const struct supervisor *supervisor = watch->child->supervisor;
        _cleanup_free_ char *name = NULL;
        _cleanup_text_ struct text what = TEXT_EMPTY, progress = TEXT_EMPTY;
        int r = record_name(watch, &name);

        text_printf(&what, "%s %s %" PRIu64 " %" PRIx64 " %" PRIx64, supervisor->handler_key_name,
                    change->hash[0] ? change->hash : NO_HASH, change->changed_realtime, change->stamp,
                    change->other);
        if (change->pass != HANDLER_PASS_NONE)
                text_printf(&progress, "%u %u %" PRIu64 " %" PRIu64 "\n%s\n%s", (unsigned)change->pass,
                            (unsigned)change->all, change->due, change->quarantined, change->key,
                            change->uid);
        if (r < 0 || what.failed || progress.failed)
                return -ENOMEM;
        return ledger_scope_set(supervisor->ledger, name, what.data, progress.data ? progress.data : "");
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
        log_write(LOG_NOTICE, MESSAGE_ID_HANDLER_CHANGED, LOG_FIELDS({"RECONCILED_WATCH", config->name}),
                  is_back ? "the handler of watch %s was another one since the last start or reload, and is "
                            "the former one again: %s"
                          : "the handler of watch %s has changed: %s",
                  config->name, what);
}

static int changed(struct watch *watch, bool is_back)
{
        struct supervisor *supervisor = watch->child->supervisor;
        enum on_handler_change mode = watch->config->on_handler_change;
        struct handler_change *change = &watch->handler;
        struct ledger_failing failing = {0};
        bool any;
        int r = ledger_count_failing(supervisor->ledger, watch->config->name, &failing);

        if (r < 0)
                return r;
        any = mode == ON_HANDLER_CHANGE_ALL || (mode == ON_HANDLER_CHANGE_FAILED && failing.failing > 0);
        change->changes++;
        change->reload = supervisor->reloads;
        change->changed_realtime = clock_realtime_usec();
        change->all = mode == ON_HANDLER_CHANGE_ALL;
        change->due = change->quarantined = 0;
        r = handler_begin_pass(watch, any ? HANDLER_PASS_OTHERS : HANDLER_PASS_NONE);
        if (r >= 0)
                tell_changed(watch, failing.failing, is_back);
        return r;
}

/* ---- looking at it */

static void tell_unread(struct watch *watch, char *text, bool is_known)
{
        struct handler_change *change = &watch->handler;
        const char *unread = text ? text : "";

        if (text)
                utf8_clean(text);
        if (strncmp(change->unread, unread, sizeof(change->unread) - 1) == 0)
                return;
        snprintf(change->unread, sizeof(change->unread), "%s", unread);
        if (unread[0])
                log_write(LOG_WARNING, MESSAGE_ID_HANDLER_UNREAD,
                          LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                          "whether the handler of watch %s has changed %s: %s; it runs all the same. Make "
                          "the file "
                          "readable for the operator, or say its version in handler.version",
                          watch->config->name,
                          is_known ? "is judged without a file that the operator has no right to read"
                                   : "is not known before the next reload or start",
                          change->unread);
}

/* 1: the record is to be written. */
static int compare(struct watch *watch, const struct record *record, const char *hash, uint64_t stamp)
{
        const struct supervisor *supervisor = watch->child->supervisor;
        struct handler_change *change = &watch->handler;
        bool is_known = strcmp(record->key, supervisor->handler_key_name) == 0;
        bool was_other = is_known && record->other != 0 && record->other != stamp;
        bool is_same = is_known && strcmp(record->hash, hash) == 0;
        int r = 0;

        change->judged = supervisor->reloads;
        change->stamp = stamp;
        change->other = 0;
        if (is_same && !was_other)
                return record->stamp != stamp || record->other != 0;
        memcpy(change->hash, hash, HANDLER_HASH_SIZE);
        if (was_other || (is_known && record->hash[0]))
                r = changed(watch, is_same);
        else
                change->pass = HANDLER_PASS_NONE;
        return r < 0 ? r : 1;
}

static int judge(struct watch *watch)
{
        struct handler_change *change = &watch->handler;
        _cleanup_text_ struct text unread = TEXT_EMPTY;
        char hash[HANDLER_HASH_SIZE];
        struct record record;
        bool is_over = false;
        int known, r;

        known = handler_hash_get(watch->child->supervisor->handler_hash, &watch->config->handler, hash,
                                 &unread);
        if (known == -ENOENT) /* it is newer than what was read, and is looked at next */
                return 0;
        r = known == -ENOMEM ? known : read_record(watch, &record);
        if (r < 0)
                return r;
        if (watch->config->on_handler_change == ON_HANDLER_CHANGE_NONE) {
                is_over = change->pass != HANDLER_PASS_NONE;
                change->pass = HANDLER_PASS_NONE;
        }
        tell_unread(watch, unread.data, known >= 0);
        if (known >= 0)
                r = compare(
                        watch, &record, hash,
                        handler_hash_stamp(watch->child->supervisor->handler_hash, &watch->config->handler));
        return r > 0 || (r == 0 && is_over) ? handler_note(watch) : r;
}

/* A watch a turn; when all are judged, what was read is forgotten. */
static int judge_next(struct supervisor *supervisor)
{
        struct watch *watch = NULL;

        while (!watch && supervisor->handler_place < supervisor->watch_count) {
                watch = &supervisor->watch[supervisor->handler_place++];
                if (!watch->config || watch->config->owner || watch->leaving)
                        watch = NULL;
        }
        if (watch)
                return judge(watch);
        handler_hash_free(TAKE_PTR(supervisor->handler_hash));
        return 0;
}

/* Reads for a while, and judges one watch in each turn after that; the end of the turn writes what has come
 * of it and asks for the next one. */
static int on_idle(sd_event_source *source, void *userdata)
{
        struct supervisor *supervisor = userdata;
        int r;

        turn_is(supervisor, "handlers are looked at");
        if (!supervisor->handler_hash || supervisor->phase > PHASE_RUNNING || supervisor->uninstalling)
                return 0;
        while (handler_hash_step(supervisor->handler_hash) > 0)
                if (turn_is_spent(supervisor))
                        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        r = ledger_try_hold(supervisor->ledger);
        if (r == -EBUSY && (r = turn_settle_later(supervisor)) >= 0)
                return 0;
        if (r >= 0)
                r = judge_next(supervisor);
        turn_settle_soon(supervisor);
        if (r < 0)
                ledger_failed(supervisor, r);
        return 0;
}

int handlers_continue(struct supervisor *supervisor)
{
        return supervisor->handler_hash
                       ? supervisor_when_idle(supervisor, &supervisor->handler_source, on_idle)
                       : 0;
}

static int begin(struct supervisor *supervisor)
{
        uint8_t key[HANDLER_KEY_SIZE];
        int r = load_key(supervisor, key);

        if (r >= 0) {
                handler_key_name(key, supervisor->handler_key_name);
                r = handler_hash_new(key, &supervisor->handler_hash);
        }
        explicit_bzero(key, sizeof(key));
        for (size_t i = 0; i < supervisor->config->watch_count && r >= 0; i++)
                if (!supervisor->config->watch[i].owner)
                        r = handler_hash_add(supervisor->handler_hash,
                                             &supervisor->config->watch[i].handler);
        return r < 0 ? r : handlers_continue(supervisor);
}

/* Without a key no handler can be compared: said for each watch, as where its own files cannot be read. */
static void tell_no_key(struct supervisor *supervisor, int error)
{
        char unread[256];

        snprintf(unread, sizeof(unread), "%.180s/handler-key: %s", supervisor->options->state_directory,
                 strerror(-error));
        FOREACH_WATCH(watch, supervisor)
                if (!watch->config->owner && !watch->leaving)
                        tell_unread(watch, unread, false);
}

void handlers_review(struct supervisor *supervisor)
{
        int r;

        handler_hash_free(TAKE_PTR(supervisor->handler_hash));
        supervisor->handler_place = 0;
        if (supervisor->uninstalling)
                return;
        r = begin(supervisor);
        if (r < 0) {
                handler_hash_free(TAKE_PTR(supervisor->handler_hash));
                tell_no_key(supervisor, r);
        }
}

void handler_write_status(const struct watch *watch, struct text *json)
{
        const struct handler_change *change = &watch->handler;

        text_append_string(json, "\"handler\":{");
        json_string(json, "hash", change->hash);
        json_number(json, "changedAt", change->changed_realtime);
        json_bool(json, "pending", change->pass != HANDLER_PASS_NONE);
        json_number(json, "changes", change->changes);
        json_number(json, "madeDue", change->made_due);
        json_string(json, "unread", change->unread);
        json_close(json, "},");
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
        struct record record;
        int r = read_record(watch, &record);

        if (r < 0 || strcmp(record.key, watch->child->supervisor->handler_key_name) == 0)
                return r;
        change->hash[0] = '\0';
        change->stamp = change->other = 0;
        return 0;
}

int handler_used(struct watch *watch, uint64_t stamp)
{
        struct handler_change *change = &watch->handler;
        int r = 0;

        if (stamp == 0 || !watch->child->supervisor->handler_key_name[0])
                return 0;
        if (!change->is_read)
                r = read_first(watch);
        if (r < 0 || stamp == change->stamp || stamp == change->other || change->other == FILE_STAMP_SEVERAL)
                return r;
        change->other = change->other ? FILE_STAMP_SEVERAL : stamp;
        return handler_note(watch);
}

int handler_used_now(struct watch *watch)
{
        const struct config_handler *handler = &watch->config->handler;
        uint64_t stamp = 0;

        for (size_t i = 0; i < handler->exec_count; i++)
                stamp = file_stamp_add_argument(stamp, handler->exec[i]);
        return handler_used(watch, stamp);
}
