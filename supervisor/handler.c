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
#include "controller/run/handler-change.h"
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

/* ---- looking at it */

static void tell_unread(struct watch *watch, char *text, bool is_known)
{
        const char *unread = text ? text : "";

        if (text)
                utf8_clean(text);
        if (strncmp(place_of(watch)->handler_unread, unread, sizeof(place_of(watch)->handler_unread) - 1) ==
            0)
                return;
        snprintf(place_of(watch)->handler_unread, sizeof(place_of(watch)->handler_unread), "%s", unread);
        if (unread[0])
                log_write(LOG_WARNING, MESSAGE_ID_HANDLER_UNREAD,
                          LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}),
                          "whether the handler of watch %s has changed %s: %s; it runs all the same. Make "
                          "the file "
                          "readable for the operator, or say its version in handler.version",
                          watch->config->name,
                          is_known ? "is judged without a file that the operator has no right to read"
                                   : "is not known before the next reload or start",
                          place_of(watch)->handler_unread);
}

static int judge(struct watch *watch)
{
        struct handler_hash *hashes = supervisor_of(watch)->handler_hash;
        _cleanup_text_ struct text unread = TEXT_EMPTY;
        char hash[HANDLER_HASH_SIZE];
        int known = handler_hash_get(hashes, &watch->config->handler, hash, &unread);

        if (known == -ENOENT) /* it is newer than what was read, and is looked at next */
                return 0;
        if (known == -ENOMEM)
                return known;
        tell_unread(watch, unread.data, known >= 0);
        return handler_judge(watch, known >= 0 ? hash : NULL,
                             known >= 0 ? handler_hash_stamp(hashes, &watch->config->handler) : 0);
}

/* A watch a turn; when all are judged, what was read is forgotten. */
static int judge_next(struct supervisor *supervisor)
{
        struct watch *watch = NULL;

        while (!watch && supervisor->handler_place < supervisor->controller.watch_count) {
                watch = &supervisor->controller.watch[supervisor->handler_place++];
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
        if (!supervisor->handler_hash || supervisor->phase > PHASE_RUNNING ||
            supervisor->controller.uninstall.active)
                return 0;
        while (handler_hash_step(supervisor->handler_hash) > 0)
                if (turn_is_spent(supervisor))
                        return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
        r = ledger_try_hold(supervisor->controller.ledger);
        if (r == -EBUSY) {
                controller_settle_later(&supervisor->controller);
                return 0;
        }
        if (r >= 0)
                r = judge_next(supervisor);
        turn_settle_soon(supervisor);
        if (r < 0)
                ledger_failed(&supervisor->controller, r);
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
                handler_key_name(key, supervisor->controller.handler_key_name);
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
        FOREACH_WATCH(watch, &supervisor->controller)
                if (!watch->config->owner && !watch->leaving)
                        tell_unread(watch, unread, false);
}

void handlers_review(struct supervisor *supervisor)
{
        int r;

        handler_hash_free(TAKE_PTR(supervisor->handler_hash));
        supervisor->handler_place = 0;
        if (supervisor->controller.uninstall.active)
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
        json_string(json, "unread", place_of(watch)->handler_unread);
        json_close(json, "},");
}

uint64_t handler_stamp_now(const struct config_handler *handler)
{
        uint64_t stamp = 0;

        for (size_t i = 0; i < handler->exec_count; i++)
                stamp = file_stamp_add_argument(stamp, handler->exec[i]);
        return stamp;
}
