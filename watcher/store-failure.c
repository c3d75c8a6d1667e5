/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/store-failure.h"

#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "watcher/memory-full.h"

int store_failed(struct watcher *watcher, int status)
{
        struct error error = ERROR_NONE;
        int r;

        if (status == -EBADMSG) {
                /* Wrong data must not be given to anyone; the cluster has the right data. */
                log_write(LOG_WARNING, MESSAGE_ID_STORE_REBUILT,
                          LOG_FIELDS({"RECONCILED_WATCH", watcher->config->watch}),
                          "the object store of watch %s is damaged (a checksum is wrong); it is being "
                          "rebuilt from the API server",
                          watcher->config->watch);
                r = store_rebuild(watcher->store, &error);
                error_done(&error);
                if (r >= 0)
                        return child_fatal(
                                watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                                "the object store was damaged and has been removed; the next start fills it "
                                "again");
                status = r;
        }
        if (status == -ENOSPC && watcher->config->memory_max > 0)
                return memory_is_full(watcher);
        return child_fatal(watcher->child, EXIT_CODE_IO, watcher->config->watch, NULL,
                           "the object store in %s cannot be written: %s", watcher->config->store_folder,
                           strerror(-status));
}
