/* SPDX-License-Identifier: Apache-2.0 */
/* A piece of work in the queue: what is pending for a key, or under way. */
#include <string.h>

#include "queue/internal.h"

bool work_is(const struct work *work, enum change_kind kind, const char *uid)
{
        return work && work->kind == kind && strcmp(work->uid, uid) == 0;
}

void work_free(struct work *work)
{
        free(work);
}

struct work *work_new(const struct queue_item *item)
{
        size_t uid_size = strlen(item->uid) + 1;
        struct work *work = malloc(sizeof(*work) + uid_size);

        if (!work)
                return NULL;
        *work = (struct work){
                .kind = item->kind,
                .priority = item->priority,
                .fingerprint = item->fingerprint,
                .version = item->version,
                .sequence = item->sequence,
                .not_before = item->not_before,
                .suspect = item->suspect,
                .urgent = item->urgent,
                .bare = item->bare,
                .reason = item->reason,
        };
        memcpy(work->uid, item->uid, uid_size);
        return work;
}

bool work_is_of(const struct work *work, const char *uid)
{
        return work && strcmp(work->uid, uid) == 0;
}

bool work_is_leaving(const struct work *work, const char *uid)
{
        return work_is(work, CHANGE_UNSELECTED, uid) && work->reason == RUN_UNSELECTED; /* not a retry */
}

struct work *entry_head(const struct entry *entry)
{
        if (entry->deletion)
                return entry->deletion;
        if (entry->update && entry->nudge && !entry->update->urgent &&
            entry->nudge->not_before < entry->update->not_before)
                return entry->nudge;
        return entry->update ? entry->update : entry->nudge;
}

struct work **entry_deletion(struct entry *entry, const char *uid)
{
        struct work **slot = &entry->deletion;

        while (*slot && strcmp((*slot)->uid, uid) != 0)
                slot = &(*slot)->next;
        return slot;
}
