/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/folders/previous-folder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/file.h"
#include "os/folder.h"
#include "supervisor/supervisor.h"
#include "supervisor/watches/place.h"

#define ENDED_IN_ORDER "clean"
#define STATE_MAX      64

static int write_state(const char *folder, const char *state)
{
        const struct file_rules rules = {.mode = 0600, .durable = true};
        _cleanup_free_ char *path = format_string("%s/STATE", folder),
                            *temporary = format_string("%s/STATE.new", folder);

        return path && temporary ? file_replace(path, temporary, state, strlen(state), &rules) : -ENOMEM;
}

static bool is_trusted(const char *folder, const char *boot)
{
        _cleanup_free_ char *path = format_string("%s/STATE", folder), *state = NULL;
        size_t size;

        return path && file_read(path, STATE_MAX, &state, &size) >= 0 &&
               (strcmp(state, ENDED_IN_ORDER) == 0 || (boot[0] && strcmp(state, boot) == 0));
}

static int make_previous_folder(const char *path)
{
        return mkdir(path, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

static int prepare_folder(const char *store_folder, const char *folder, const char *boot)
{
        int r = is_trusted(folder, boot) ? 0 : folder_remove(folder);

        if (r >= 0 || r == -ENOENT)
                r = make_previous_folder(store_folder);
        if (r >= 0)
                r = make_previous_folder(folder);
        return r < 0 ? r : write_state(folder, boot);
}

bool previous_folder_begin(const struct supervisor *supervisor, const struct config_watch *config,
                           const char *store_folder)
{
        _cleanup_free_ char *folder = format_string("%s/previous", store_folder);
        int r = folder ? 0 : -ENOMEM;

        if (r >= 0 && config->previous)
                r = prepare_folder(store_folder, folder, supervisor->clock.boot);
        else if (r >= 0)
                (void)folder_remove(folder); /* what cannot be removed costs disk alone */
        if (r < 0)
                log_write(LOG_WARNING, MESSAGE_ID_PREVIOUS_NOT_KEPT,
                          LOG_FIELDS({"RECONCILED_WATCH", config->name}),
                          "%s/previous cannot be prepared: %s; objects of watch %s have no `previous` until "
                          "the next start",
                          store_folder, strerror(-r), config->name);
        return r >= 0;
}

void previous_folder_suspect(const struct watch *watch)
{
        _cleanup_free_ char *path = format_string("%s/previous/STATE", watch_place_of(watch)->store_folder);

        if (path)
                (void)unlink(path);
}

/* What cannot be brought to the disk is not called clean, nor what was not looked at. */
static void end_in_order(const char *store_folder, const char *boot)
{
        _cleanup_free_ char *folder = format_string("%s/previous", store_folder),
                            *data = format_string("%s/previous/kept/1/data.mdb", store_folder);
        _cleanup_close_ int fd = data ? open(data, O_RDWR | O_CLOEXEC | O_NOFOLLOW) : -1;

        if (folder && is_trusted(folder, boot) && fd >= 0 && fsync(fd) >= 0)
                (void)write_state(folder, ENDED_IN_ORDER);
}

void previous_folders_end(struct supervisor *supervisor)
{
        FOREACH_WATCH(watch, &supervisor->controller)
                if (watch->config->previous && watch_place_of(watch)->store_folder)
                        end_in_order(watch_place_of(watch)->store_folder, supervisor->clock.boot);
}
