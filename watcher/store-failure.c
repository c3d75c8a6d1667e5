/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/store-failure.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "store/suspect.h"
#include "store/writer.h"
#include "watcher/stream/stream.h"

#define MIB ((uint64_t)1 << 20)

static bool file_system_is_full(const char *path)
{
        struct statvfs st;

        return statvfs(path, &st) == 0 && (uint64_t)st.f_bavail * st.f_bsize < MIB;
}

static void describe_memory(const struct watcher *watcher, char *text, size_t size)
{
        const struct message_config_watcher *config = watcher->config;
        unsigned long long count = watcher->store ? store_count(watcher->store) : 0;
        double max = (double)config->memory_max / (double)MIB;

        if (file_system_is_full(config->store_folder))
                snprintf(text, size,
                         "the file system of %s is full (%llu %s, of the %.6g MiB that secrets.memory "
                         "allows): confidential objects are kept in memory; make it larger",
                         config->store_folder, count, counted(count, "object", "objects"), max);
        else
                snprintf(text, size,
                         "%s %s does not fit into secrets.memory, %.6g MiB (%llu %s): confidential "
                         "objects are kept in memory; raise secrets.memory, or select fewer of them "
                         "(namespaces, labelSelector, fieldSelector: type!=helm.sh/release.v1)",
                         config->api_version, config->kind, max, count,
                         counted(count, "object does", "objects do"));
}

/* Afterwards nothing is in flight, so nothing comes back to the store. */
static void stand_still(struct watcher *watcher)
{
        streams_stop(watcher);
        fibers_cancel(watcher->fibers);
        watcher->announce.source = sd_event_source_disable_unref(watcher->announce.source);
        watcher->announce.commit_timer = sd_event_source_disable_unref(watcher->announce.commit_timer);
}

static int on_full(sd_event_source *source _unused_, void *userdata)
{
        struct watcher *watcher = userdata;
        char text[700];

        if (watcher->child->stopping)
                return 0;
        stand_still(watcher);
        describe_memory(watcher, text, sizeof(text));
        failures_stand(watcher, text);
        return 0;
}

/* The caller is in the middle of its work: the watcher stands still once that has returned to the event
 * loop. */
int memory_is_full(struct watcher *watcher)
{
        if (watcher->full)
                return -ECANCELED;
        watcher->full = true;
        if (watcher->store)
                store_stop(watcher->store);
        (void)store_suspect_mark(watcher->config->store_folder,
                                 "there was no room in memory for all objects");
        if (sd_event_add_defer(watcher->child->event, &watcher->full_source, on_full, watcher) < 0)
                return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, "no memory for an event source");
        return -ECANCELED;
}

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
                                watcher->child, EXIT_CODE_SOFTWARE,
                                "the object store was damaged and has been removed; the next start fills it "
                                "again");
                status = r;
        }
        if (status == -ENOSPC && watcher->config->memory_max > 0)
                return memory_is_full(watcher);
        return child_fatal(watcher->child, EXIT_CODE_IO, "the object store in %s cannot be written: %s%s",
                           watcher->config->store_folder, strerror(-status),
                           status == -ENOSPC ? " (it leaves 5 % of the file system, at most 256 MiB, to "
                                               "others); free some, or select fewer objects"
                                             : "");
}
