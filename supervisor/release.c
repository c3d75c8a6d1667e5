/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our finalizer comes off without a cleanup: of one object, because somebody answers for it (release), or of
 * all, because the operator goes for good (uninstall). Workers do it, as runs of their own that start no
 * handler; the log keeps who asked, and why.
 */
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/message-id.h"
#include "supervisor/supervisor.h"

const char release_reason[] = "release", uninstall_reason[] = "uninstall";

struct search {
        struct supervisor *supervisor;
        struct watch *watch;
        const char *key;    /* NULL: all */
        const char *reason; /* static */
        size_t found;
        char *last_key, *last_uid;
};

static int take_row(const char *watch_name _unused_, const struct ledger_row *row, void *userdata)
{
        struct search *search = userdata;
        /* What is gone already is merely forgotten: behind its deletion nothing would come to its turn. */
        bool is_gone = row->deleting && search->reason == uninstall_reason;
        struct queue_item item = {.key = row->key,
                                  .uid = row->uid,
                                  .kind = is_gone ? CHANGE_DELETED : CHANGE_UPDATED,
                                  .urgent = true,
                                  .reason = search->reason};
        unsigned number = (unsigned)(search->watch - search->supervisor->watch);
        int r;

        if (search->key && strcmp(row->key, search->key) != 0)
                return 0;
        free(search->last_key);
        free(search->last_uid);
        search->last_key = strdup(row->key);
        search->last_uid = strdup(row->uid);
        if (!search->last_key || !search->last_uid)
                return -ENOMEM;
        search->found++;
        r = queue_push(search->supervisor->queue, number, &item, clock_boottime_usec());
        return r < 0 ? r : 0;
}

static void search_done(struct search *search)
{
        free(search->last_key);
        free(search->last_uid);
}

#define UIDS_MAX  100 /* of one key: its rows stand together */
#define PAGE_SIZE 500

int release_finalizer(struct supervisor *supervisor, struct watch *watch, const char *key, const char *why,
                      uid_t uid)
{
        struct search search = {supervisor, watch, key, release_reason, 0, NULL, NULL};
        char user[24];
        int r = ledger_visit(supervisor->ledger, watch->config->name, key, "", UIDS_MAX, take_row, &search);

        search_done(&search);
        if (r < 0)
                return r;
        if (search.found == 0)
                return -ENOENT;
        snprintf(user, sizeof(user), "%u", (unsigned)uid);
        log_write(LOG_WARNING, MESSAGE_ID_FINALIZER_RELEASED,
                  LOG_FIELDS({"RECONCILED_WATCH", watch->config->name}, {"RECONCILED_KEY", key},
                             {"RECONCILED_USER", user}, {"RECONCILED_WHY", why}),
                  "our finalizer of %s of watch %s is taken off by hand (user %s): %s; what its handler has "
                  "made may be left over",
                  key, watch->config->name, user, why);
        turn_settle_soon(supervisor);
        return 0;
}

static int release_all(struct supervisor *supervisor, struct watch *watch)
{
        struct search search = {supervisor, watch, NULL, uninstall_reason, 0, strdup(""), strdup("")};
        int r = search.last_key && search.last_uid ? 1 : -ENOMEM;

        while (r > 0) {
                _cleanup_free_ char *key = strdup(search.last_key), *uid = strdup(search.last_uid);

                r = key && uid ? ledger_visit(supervisor->ledger, watch->config->name, key, uid, PAGE_SIZE,
                                              take_row, &search)
                               : -ENOMEM;
        }
        search_done(&search);
        return r;
}

int uninstall(struct supervisor *supervisor, uid_t uid)
{
        int r = 0;

        /* From now on nothing else runs, not even what waits in the queue: it would bring the finalizers
         * back. */
        supervisor->uninstalling = true;
        FOREACH_WATCH(watch, supervisor)
                pause_apply(watch);
        assign_recall(supervisor, "the operator is uninstalled");
        log_write(
                LOG_WARNING, MESSAGE_ID_UNINSTALLING, NULL,
                "operator %s is uninstalled (user %u): its finalizers are taken off everything, and nothing "
                "else runs any more; a restart would bring them back",
                supervisor->config->operator_name, (unsigned)uid);
        FOREACH_WATCH(watch, supervisor)
                if (watch->config->finalizer && !watch->leaving && r >= 0)
                        r = release_all(supervisor, watch);
        turn_settle_soon(supervisor);
        return r;
}
