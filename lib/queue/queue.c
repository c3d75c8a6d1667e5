/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The queue of the supervisor: see queue.h for what it promises.
 *
 * An entry is in exactly one place: in the running list (a worker has it), in a ready list of its tenant, or
 * in its tenant's heap of delayed ones. entry_place() alone decides which, from the work that is pending;
 * every change takes the entry out first (entry_unplace) and places it again. What must never happen: an
 * entry without work that is not freed, work that is dropped without being handled or superseded.
 */
#include "queue/queue.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "queue/internal.h"

static void drop_work(struct work **slot)
{
        work_free(*slot);
        *slot = NULL;
}

static struct entry *entry_new(unsigned watch, const char *key)
{
        size_t key_size = strlen(key) + 1;
        struct entry *entry = malloc(sizeof(*entry) + key_size);

        if (!entry)
                return NULL;
        *entry = (struct entry){.watch = watch};
        memcpy(entry->key, key, key_size);
        return entry;
}

static void entry_free(struct entry *entry)
{
        while (entry->deletion) {
                struct work *work = entry->deletion;

                entry->deletion = work->next;
                work_free(work);
        }
        work_free(entry->update);
        work_free(entry->nudge);
        work_free(entry->current);
        free(entry);
}

int queue_new(struct queue **ret)
{
        struct queue *queue = calloc(1, sizeof(*queue));

        if (!queue)
                return -ENOMEM;
        *ret = queue;
        return 0;
}

void queue_free(struct queue *queue)
{
        if (!queue)
                return;
        for (size_t i = 0; i < queue->watch_count; i++)
                while (queue->watch[i].newest) {
                        entry_unplace(queue, queue->watch[i].newest);
                        entry_go(queue, queue->watch[i].newest);
                }
        free(queue->entries.bucket);
        free(queue->tenants.bucket);
        free(queue->delayed.node);
        free(queue->watch);
        free(queue);
}

/* ---- places */

static enum queue_line line_of(const struct work *work)
{
        return work->urgent                     ? LINE_BY_HAND
               : work->reason == RUN_SETTLING   ? LINE_BEGUN
               : work->priority == QUEUE_NORMAL ? LINE_NORMAL
                                                : LINE_LOW;
}

static void count_queued(struct queue_watch *watch, struct entry *entry, int change)
{
        watch->counts.queued += (size_t)change;
        entry->tenant->queued += (size_t)change;
}

void entry_unplace(struct queue *queue, struct entry *entry)
{
        struct queue_watch *watch = &queue->watch[entry->watch];
        const struct queue_counts *counts = &watch->counts;

        assert(entry->place == PLACE_NONE      ? true
               : entry->place == PLACE_RUNNING ? counts->running > 0
               : entry->place == PLACE_DELAYED ? counts->delayed > 0 && counts->settling <= counts->delayed
                                               : counts->queued > 0);
        switch (entry->place) {
        case PLACE_NONE:
                return;
        case PLACE_READY:
                tenant_wait_over(queue, entry);
                count_queued(watch, entry, -1);
                break;
        case PLACE_SUSPECT:
                entry_list_remove(&queue->suspects, entry);
                count_queued(watch, entry, -1);
                break;
        case PLACE_RUNNING:
                entry_list_remove(&queue->running, entry);
                watch->counts.running--;
                watch->counts.answered -= entry->answered;
                entry->tenant->running--;
                break;
        case PLACE_HELD:
                count_queued(watch, entry, -1);
                break;
        case PLACE_DELAYED:
                tenant_delay_over(queue, entry);
                watch->counts.delayed--;
                watch->counts.settling -= entry->settling;
                break;
        }
        entry->place = PLACE_NONE;
}

static void entry_place(struct queue *queue, struct entry *entry, uint64_t now)
{
        struct queue_watch *watch = &queue->watch[entry->watch];
        const struct work *head = entry_head(entry);

        assert(entry->place == PLACE_NONE);
        assert(entry->current || head);
        if (entry->current) {
                entry->place = PLACE_RUNNING;
                entry_list_append(&queue->running, entry);
                watch->counts.running++;
                watch->counts.answered += entry->answered;
                entry->tenant->running++;
        } else if (head->not_before > now) {
                entry->place = PLACE_DELAYED;
                entry->delay.due = head->not_before;
                tenant_delay(queue, entry);
                watch->counts.delayed++;
                entry->settling = head->reason == RUN_SETTLING;
                watch->counts.settling += entry->settling;
        } else if (watch->has_twins && twin_runs(queue, entry)) {
                entry->place = PLACE_HELD;
                entry->ready_since = now;
                count_queued(watch, entry, 1);
        } else if (head->suspect) {
                entry->place = PLACE_SUSPECT;
                entry->ready_since = now;
                entry_list_append(&queue->suspects, entry);
                count_queued(watch, entry, 1);
        } else {
                entry->place = PLACE_READY;
                entry->line = line_of(head);
                entry->ready_since = now;
                tenant_wait(queue, entry, false);
                count_queued(watch, entry, 1);
        }
}

void entry_go(struct queue *queue, struct entry *entry)
{
        entry_table_remove(queue, entry);
        tenant_leave(queue, entry);
        entry_free(entry);
}

/* Places an entry that still has work; frees one that has none. Returns whether it is at rest now. */
static bool entry_settle(struct queue *queue, struct entry *entry, uint64_t now)
{
        assert(entry->place == PLACE_NONE);
        if (entry->current || entry_head(entry)) {
                entry_place(queue, entry, now);
                return false;
        }
        entry_go(queue, entry);
        return true;
}

/* An entry that stays where it is keeps its turn in the line: it moves only when its new head says so. */
void entry_review(struct queue *queue, struct entry *entry, uint64_t now)
{
        const struct work *head = entry_head(entry);

        if (entry->place == PLACE_RUNNING)
                return;
        if (entry->place == PLACE_READY && head->not_before <= now && line_of(head) == entry->line &&
            !head->suspect)
                return;
        if (entry->place == PLACE_SUSPECT && head->not_before <= now && head->suspect)
                return;
        if (entry->place == PLACE_HELD && head->not_before <= now)
                return;
        if (entry->place == PLACE_DELAYED && head->not_before == entry->delay.due)
                return;
        entry_unplace(queue, entry);
        entry_place(queue, entry, now);
}

/* A run has begun or ended: those of the same object in other watches of its kind may not, or may. */
static void review_twins(struct queue *queue, const struct entry *entry, uint64_t now)
{
        struct entry *twin;

        if (!queue->watch[entry->watch].has_twins)
                return;
        for (unsigned watch = 0; (twin = next_twin(queue, entry->watch, entry->key, &watch)); watch++) {
                if (twin->place == PLACE_RUNNING || twin->place == PLACE_DELAYED)
                        continue;
                entry_unplace(queue, twin);
                entry_place(queue, twin, now);
        }
}

/* ---- push */

/* The reason of a request by hand tells its purpose: `release` is another run than the deletion that
 * waits. */
static void take_wish(struct work *work, const struct queue_item *item)
{
        if (!item->urgent)
                return;
        work->urgent = true;
        work->reason = item->reason;
}

static int push_deletion(struct entry *entry, const struct queue_item *item)
{
        struct work **slot = entry_deletion(entry, item->uid);

        /* A deleted object needs no update any more; an update of another UID is of the next object. */
        if (work_is_of(entry->update, item->uid))
                drop_work(&entry->update);
        if (work_is_of(entry->nudge, item->uid))
                drop_work(&entry->nudge);
        if (work_is(entry->current, CHANGE_DELETED, item->uid) && !entry->current->withdrawn) {
                take_wish(entry->current, item); /* for when it comes back */
                return 0;
        }
        if (*slot && (*slot)->kind != CHANGE_DELETED) {
                (*slot)->kind = CHANGE_DELETED; /* gone before it was told that it had left */
                (*slot)->reason = item->reason;
        }
        if (*slot) {
                (*slot)->sequence = item->sequence;
                take_wish(*slot, item);
                if (item->not_before < (*slot)->not_before)
                        (*slot)->not_before = item->not_before;
                return 0;
        }
        *slot = work_new(item);
        return *slot ? 0 : -ENOMEM;
}

/* The handler is owed `unselected` also if another object of the same name exists: like a deletion, it comes
 * before that object's update. */
static void line_up(struct entry *entry, struct work *left)
{
        struct work **slot = entry_deletion(entry, left->uid);

        if (*slot)
                work_free(left); /* its deletion is owed */
        else
                *slot = left;
}

static int push_update(struct entry *entry, const struct queue_item *item)
{
        _cleanup_(work_free_pointer) struct work *work = NULL;
        struct work *old;

        /* The run in flight tells the handler just that: the same news, found once more. */
        if (item->kind == CHANGE_UNSELECTED && work_is(entry->current, CHANGE_UNSELECTED, item->uid))
                return 0;
        work = work_new(item);
        if (!work)
                return -ENOMEM;
        if (entry->update && !work_is_of(entry->update, item->uid)) {
                if (item->kind == CHANGE_UNSELECTED && entry->update->kind == CHANGE_UPDATED) {
                        line_up(entry, TAKE_PTR(work));
                        return 0;
                }
                if (entry->update->kind == CHANGE_UNSELECTED)
                        line_up(entry, TAKE_PTR(entry->update));
                else
                        drop_work(&entry->update); /* of an object that is no more */
        }
        old = entry->update;
        if (old) {
                /* A request by hand is carried out, whatever else happens to the object. */
                bool is_asked = old->urgent && !item->urgent;

                work->suspect = work->suspect || old->suspect;
                work->urgent = work->urgent || is_asked;
                if (old->priority < work->priority)
                        work->priority = old->priority;
                if (old->not_before < work->not_before || is_asked) {
                        work->not_before = old->not_before;
                        work->reason = old->reason;
                }
                work_free(old);
        }
        entry->update = TAKE_PTR(work);
        if (entry->nudge && !work_is_of(entry->nudge, item->uid))
                drop_work(&entry->nudge);
        return 0;
}

/* Puts the nudge beside the update, which may turn out to have been read already; the nudge came after
 * that. */
static int push_nudge(struct entry *entry, const struct queue_item *item)
{
        struct work *work;

        if (entry->update && !work_is_of(entry->update, item->uid))
                return 0; /* of an object that is no more */
        if (entry->nudge && work_is_of(entry->nudge, item->uid) && entry->nudge->bare <= item->bare) {
                if (entry->nudge->bare < item->bare)
                        return 0; /* a run with a handler does it as well */
                if (item->not_before < entry->nudge->not_before)
                        entry->nudge->not_before = item->not_before;
                if (item->on_record)
                        entry->nudge->reason = item->reason;
                return 0;
        }
        work = work_new(item);
        if (!work)
                return -ENOMEM;
        work_free(entry->nudge);
        entry->nudge = work;
        return 0;
}

static int push_work(struct entry *entry, const struct queue_item *item)
{
        if (item->kind == CHANGE_DELETED)
                return push_deletion(entry, item);
        return item->nudge ? push_nudge(entry, item) : push_update(entry, item);
}

int queue_push(struct queue *queue, unsigned watch, const struct queue_item *item, uint64_t now)
{
        struct entry *entry = entry_table_find(queue, watch, item->key);
        int r;

        assert(watch < queue->watch_count && item->key[0]);
        assert(item->priority < QUEUE_PRIORITY_COUNT);
        assert(item->nudge || !item->bare);
        if (entry) {
                r = push_work(entry, item);
                if (r < 0)
                        return r;
                entry_review(queue, entry, now);
                return QUEUE_MERGED;
        }

        entry = entry_new(watch, item->key);
        if (!entry)
                return -ENOMEM;
        if (push_work(entry, item) < 0 || tenant_find(queue, entry) < 0) {
                entry_free(entry);
                return -ENOMEM;
        }
        if (entry_table_insert(queue, entry) < 0) {
                tenant_leave(queue, entry);
                entry_free(entry);
                return -ENOMEM;
        }
        entry_place(queue, entry, now);
        return QUEUE_ADDED;
}

/* ---- next */

#define RELEASED_MAX 64 /* for each that is picked */

static void release_due(struct queue *queue, uint64_t now)
{
        struct entry *entry;

        for (size_t i = 0; i < RELEASED_MAX && (entry = tenant_due(queue, now)); i++) {
                entry_unplace(queue, entry);
                entry_place(queue, entry, now);
        }
}

static bool watch_has_room(const struct queue_watch *watch)
{
        size_t over = watch->concurrency == 1 ? 0 : watch->counts.answered;

        assert(watch->counts.answered <= watch->counts.running);
        return watch->concurrency == 0 || watch->counts.running - over < watch->concurrency;
}

static bool watch_may_run(const struct queue_watch *watch)
{
        return !watch->closed && tenant_may_pick(watch) && watch_has_room(watch);
}

static void entry_start(struct queue *queue, struct entry *entry, uint64_t now, struct queue_run *ret)
{
        struct work *work = entry_head(entry); /* a ready entry has work */
        uint64_t ready_since = entry->ready_since;
        bool is_end = entry->deletion != NULL;

        assert(work && !entry->current);
        assert(!queue->watch[entry->watch].has_twins || !twin_runs(queue, entry));
        entry_unplace(queue, entry);
        if (is_end)
                entry->deletion = work->next;
        else if (entry->update && work == entry->update)
                entry->update = NULL;
        else
                entry->nudge = NULL;
        /* One run serves update and nudge; those of a later UID wait. A bare run serves itself alone. */
        if (!is_end && !work->bare) {
                drop_work(&entry->update);
                drop_work(&entry->nudge);
        }
        work->next = NULL;
        entry->current = work;
        entry->answered = false;
        entry->run = ++queue->last_run;
        rate_take(&queue->watch[entry->watch].bucket, entry, ready_since, now);
        entry_place(queue, entry, now);
        review_twins(queue, entry, now);

        *ret = (struct queue_run){
                .id = entry->run,
                .watch = entry->watch,
                .key = entry->key,
                .uid = work->uid,
                .kind = work->kind,
                .fingerprint = work->fingerprint,
                .sequence = work->sequence,
                .reason = work->reason,
                .waited_usec = now - ready_since,
                .behind = entry->behind,
        };
}

static bool next_ordinary(struct queue *queue, uint64_t now,
                          bool (*is_taken)(const void *userdata, unsigned watch), const void *userdata,
                          struct queue_run *ret)
{
        for (size_t i = 0; i < queue->watch_count; i++) {
                size_t turn = (queue->turn + i) % queue->watch_count;

                if (!watch_may_run(&queue->watch[turn]) || (is_taken && !is_taken(userdata, (unsigned)turn)))
                        continue;
                entry_start(queue, tenant_pick(&queue->watch[turn]), now, ret);
                queue->turn = (turn + 1) % queue->watch_count;
                return true;
        }
        return false;
}

bool queue_next(struct queue *queue, uint64_t now, struct queue_run *ret)
{
        return queue_next_for(queue, now, NULL, NULL, ret);
}

bool queue_next_for(struct queue *queue, uint64_t now,
                    bool (*is_taken)(const void *userdata, unsigned watch), const void *userdata,
                    struct queue_run *ret)
{
        struct entry *suspect;

        if (queue->alone != 0)
                return false;
        release_due(queue, now);
        rate_look(queue, now);
        suspect = suspect_next(queue);
        if (!suspect_goes_first(queue, suspect, now)) {
                queue->was_alone = false;
                if (next_ordinary(queue, now, is_taken, userdata, ret))
                        return true;
        }
        if (!suspect || queue->running.first)
                return false;
        assert(suspect->place == PLACE_SUSPECT);
        entry_start(queue, suspect, now, ret);
        queue->alone = ret->id;
        queue->was_alone = true;
        return true;
}

/* ---- done */

static struct entry *find_run(const struct queue *queue, uint64_t run)
{
        struct entry *entry = queue->running.first;

        while (entry && entry->run != run)
                entry = entry->next;
        return entry;
}

void queue_answered(struct queue *queue, uint64_t run)
{
        struct entry *entry = find_run(queue, run);

        assert(entry && !entry->answered);
        entry->answered = true;
        queue->watch[entry->watch].counts.answered++;
}

void queue_handler_ran(struct queue *queue, unsigned watch, uint64_t run, bool handler_ran, uint64_t now)
{
        struct bucket *bucket = &queue->watch[watch].bucket;
        struct entry *entry = bucket->interval_nsec > 0 ? find_run(queue, run) : NULL;

        if (entry)
                rate_ran(bucket, entry, handler_ran, now);
}

static bool was_read(const struct work *pending, const struct work *current,
                     const struct queue_outcome *outcome)
{
        if (!pending || pending->urgent || strcmp(pending->uid, current->uid) != 0 ||
            pending->fingerprint == 0)
                return false;
        if (pending->version == 0 || outcome->known_version == 0 || outcome->own_fingerprint == 0)
                return pending->fingerprint == outcome->fingerprint ||
                       pending->fingerprint == outcome->own_fingerprint ||
                       (pending->version != 0 && pending->version <= outcome->known_version);
        /* After our own write, what was read before it is a change: somebody has taken the write back. */
        return pending->version <= outcome->known_version ||
               pending->fingerprint == outcome->own_fingerprint;
}

/* The newer work runs, and takes over a request by hand. */
static void pass_on_work(const struct work *work, struct work *newer)
{
        if (!work->urgent || newer->urgent || !work_is_of(newer, work->uid))
                return;
        newer->urgent = true;
        newer->reason = work->reason;
        newer->not_before = work->not_before;
}

/* The work comes back: a deletion to the front of its line; an update, unless something newer is pending. */
static void work_return(struct entry *entry, struct work *work)
{
        if (work->withdrawn) {
                work_free(work);
        } else if (work->kind == CHANGE_DELETED) {
                work->next = entry->deletion;
                entry->deletion = work;
        } else if (work->kind == CHANGE_UNSELECTED && entry->update &&
                   !work_is_of(entry->update, work->uid) && !*entry_deletion(entry, work->uid)) {
                work->next = entry->deletion;
                entry->deletion = work;
        } else if (work->bare && !entry->nudge) {
                entry->nudge = work;
        } else if (work->bare) {
                work_free(work); /* what came in the meantime does it */
        } else if (entry->update || *entry_deletion(entry, work->uid)) {
                if (entry->update)
                        pass_on_work(work, entry->update);
                work_free(work);
        } else {
                entry->update = work;
        }
}

/* Out of its place, for entry_settle(). NULL: no such run is in flight. */
static struct entry *end_run(struct queue *queue, uint64_t run, uint64_t now, struct work **ret_work)
{
        struct entry *entry = find_run(queue, run);

        if (!entry)
                return NULL;
        if (queue->alone == run)
                queue->alone = 0;
        entry_unplace(queue, entry);
        assert(entry->place == PLACE_NONE && entry->current);
        *ret_work = TAKE_PTR(entry->current);
        review_twins(queue, entry, now);
        return entry;
}

int queue_done(struct queue *queue, uint64_t run, const struct queue_outcome *outcome, uint64_t now)
{
        struct work *work;
        struct entry *entry = end_run(queue, run, now, &work);

        if (!entry)
                return -ENOENT;
        entry->behind = !outcome->behind ? 0 : entry->behind < UINT8_MAX ? entry->behind + 1 : UINT8_MAX;
        if (work->kind == CHANGE_UPDATED && was_read(entry->update, work, outcome))
                drop_work(&entry->update);
        if (outcome->backs_off && work_is_of(entry->nudge, work->uid) && !entry->nudge->bare)
                drop_work(&entry->nudge);
        if (!outcome->handled || outcome->again) {
                work->not_before = outcome->delay_usec > 0 ? now + outcome->delay_usec : 0;
                /* The same thing once more: somebody still waits for it. */
                work->urgent = work->urgent && outcome->reason == work->reason;
                work->reason = outcome->reason;
                if (outcome->fingerprint != 0)
                        work->fingerprint = outcome->fingerprint;
                work_return(entry, work);
        } else {
                work_free(work);
        }
        entry_settle(queue, entry, now);
        return 0;
}

int queue_return(struct queue *queue, uint64_t run, uint64_t now)
{
        struct work *work;
        struct entry *entry = end_run(queue, run, now, &work);
        uint64_t ready_since;

        if (!entry)
                return -ENOENT;
        ready_since = entry->ready_since;
        work_return(entry, work);
        if (entry_settle(queue, entry, now) || entry->place != PLACE_READY)
                return 0;
        entry->ready_since = ready_since;
        tenant_wait_over(queue, entry);
        tenant_wait(queue, entry, true);
        return 0;
}

/* Some of the entry's work was dropped. */
static void entry_lost(struct queue *queue, struct entry *entry, uint64_t now)
{
        if (entry->place == PLACE_RUNNING)
                return;
        if (entry_head(entry)) {
                entry_review(queue, entry, now);
                return;
        }
        entry_unplace(queue, entry);
        entry_settle(queue, entry, now);
}

bool queue_take_deletion(struct queue *queue, unsigned watch, const char *key, const char *uid, uint64_t now,
                         uint64_t *ret_sequence)
{
        struct entry *entry = entry_table_find(queue, watch, key);
        struct work **slot = entry ? entry_deletion(entry, uid) : NULL, *work = slot ? *slot : NULL;

        if (!work || work->kind != CHANGE_DELETED)
                return false;
        *slot = work->next;
        *ret_sequence = work->sequence;
        work_free(work);
        entry_lost(queue, entry, now);
        return true;
}

void queue_withdraw_deletion(struct queue *queue, unsigned watch, const char *key, const char *uid,
                             uint64_t now)
{
        struct entry *entry = entry_table_find(queue, watch, key);
        uint64_t sequence;

        if (entry && work_is(entry->current, CHANGE_DELETED, uid))
                entry->current->withdrawn = true;
        (void)queue_take_deletion(queue, watch, key, uid, now, &sequence);
}

void queue_forget(struct queue *queue, unsigned watch, const char *key, const char *uid, uint64_t now)
{
        struct entry *entry = entry_table_find(queue, watch, key);
        struct work **slot, *work;

        if (!entry)
                return;
        if (work_is_of(entry->update, uid))
                drop_work(&entry->update);
        if (work_is_of(entry->nudge, uid))
                drop_work(&entry->nudge);
        slot = entry_deletion(entry, uid);
        work = *slot;
        if (work) {
                *slot = work->next;
                work_free(work);
        }
        entry_lost(queue, entry, now);
}
