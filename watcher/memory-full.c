/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Confidential objects are kept in memory, within a bound (`secrets.memory`). A watch that reaches it
 * neither ends the other watches nor starts over again and again: it stands still with what it has, says so,
 * and is subject to its deadline. The next life begins with an empty store: there may be fewer objects by
 * then. The supervisor begins it (supervisor/room.c), or the next start does.
 */
#include <errno.h>
#include <sys/statvfs.h>

#include "base/exit-code.h"
#include "store/suspect.h"
#include "watcher/watcher.h"

#define MIB ((uint64_t)1 << 20)

static bool file_system_is_full(const char *path)
{
        struct statvfs st;

        return statvfs(path, &st) == 0 && (uint64_t)st.f_bavail * st.f_bsize < MIB;
}

static void describe(const struct watcher *watcher, char *text, size_t size)
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

/* Nothing is on its way any more, so nobody comes back to the store. */
static void stand_still(struct watcher *watcher)
{
        kube_discovery_cancel(TAKE_PTR(watcher->discovery));
        kube_transfer_cancel(TAKE_PTR(watcher->identity));
        kube_transfer_cancel(TAKE_PTR(watcher->version));
        streams_stop(watcher);
        verification_free(TAKE_PTR(watcher->verification));
        search_free(watcher);
        watcher->setup_timer = sd_event_source_disable_unref(watcher->setup_timer);
        watcher->settle_source = sd_event_source_disable_unref(watcher->settle_source);
        watcher->commit_timer = sd_event_source_disable_unref(watcher->commit_timer);
}

static int on_full(sd_event_source *source _unused_, void *userdata)
{
        struct watcher *watcher = userdata;
        char text[700];

        if (watcher->child->stopping)
                return 0;
        stand_still(watcher);
        describe(watcher, text, sizeof(text));
        trouble_stand(watcher, text);
        return 0;
}

/* The caller is in the middle of something: the rest is done once it has returned to the event loop. */
int watcher_is_full(struct watcher *watcher)
{
        if (watcher->full)
                return -ECANCELED;
        watcher->full = true;
        if (watcher->store)
                store_stop(watcher->store);
        (void)store_suspect_mark(watcher->config->store_folder, "it had no room in memory for all objects");
        if (sd_event_add_defer(watcher->child->event, &watcher->full_source, on_full, watcher) < 0)
                return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                                   "no memory for an event source");
        return -ECANCELED;
}
