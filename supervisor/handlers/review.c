/* SPDX-License-Identifier: Apache-2.0 */
/* See review.h. */
#include "supervisor/handlers/review.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "controller/effects.h"
#include "controller/run/handler-change.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/file.h"
#include "supervisor/handlers/handler-hash.h"
#include "supervisor/phase.h"
#include "supervisor/supervisor.h"
#include "supervisor/turn.h"
#include "supervisor/watches/place.h"

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
        const struct file_rules rules = {.mode = 0600, .durable = true};
        _cleanup_free_ char *new = NULL;

        if (asprintf(&new, "%s.new", path) < 0) {
                new = NULL;
                return -ENOMEM;
        }
        if (getrandom(ret, HANDLER_KEY_SIZE, 0) != HANDLER_KEY_SIZE)
                return -EIO;
        return file_replace(path, new, ret, HANDLER_KEY_SIZE, &rules);
}

/* In a file of its own: with a copy of the ledger alone, values that arguments or environment might have
 * cannot be tried. */
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
                          "changes of the handler of watch %s %s: %s; it runs all the same. Make the file "
                          "readable for the operator, or set handler.version",
                          watch->config->name,
                          is_known ? "are found without a file that the operator has no right to read"
                                   : "are not found before the next reload or start",
                          place_of(watch)->handler_unread);
}

static int judge(struct watch *watch)
{
        struct handler_hash *hashes = supervisor_of(watch)->handlers.hash;
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

        while (!watch && supervisor->handlers.place < supervisor->controller.watch_count) {
                watch = &supervisor->controller.watch[supervisor->handlers.place++];
                if (!watch->config || watch->config->owner || watch->leaving)
                        watch = NULL;
        }
        if (watch)
                return judge(watch);
        handler_hash_free(TAKE_PTR(supervisor->handlers.hash));
        return 0;
}

/* Reads for a while, and judges one watch in each turn after that; the end of the turn writes what has come
 * of it and asks for the next one. */
static int on_idle(sd_event_source *source, void *userdata)
{
        struct supervisor *supervisor = userdata;
        int r;

        turn_is(supervisor, "handlers are looked at");
        if (!supervisor->handlers.hash || supervisor->phase > PHASE_RUNNING ||
            supervisor->controller.uninstall.active)
                return 0;
        while (handler_hash_step(supervisor->handlers.hash) > 0)
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
        return supervisor->handlers.hash ? turn_when_idle(supervisor, &supervisor->handlers.source, on_idle)
                                         : 0;
}

static int begin(struct supervisor *supervisor)
{
        uint8_t key[HANDLER_KEY_SIZE];
        int r = load_key(supervisor, key);

        if (r >= 0) {
                handler_key_name(key, supervisor->controller.handler_key_name);
                r = handler_hash_new(key, &supervisor->handlers.hash);
        }
        explicit_bzero(key, sizeof(key));
        for (size_t i = 0; i < supervisor->config->watch_count && r >= 0; i++)
                if (!supervisor->config->watch[i].owner)
                        r = handler_hash_add(supervisor->handlers.hash,
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

        handler_hash_free(TAKE_PTR(supervisor->handlers.hash));
        supervisor->handlers.place = 0;
        if (supervisor->controller.uninstall.active)
                return;
        r = begin(supervisor);
        if (r < 0) {
                handler_hash_free(TAKE_PTR(supervisor->handlers.hash));
                tell_no_key(supervisor, r);
        }
}
