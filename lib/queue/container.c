/* SPDX-License-Identifier: Apache-2.0 */
/* The containers below the queue: hash table, lists, heap. They own no entry; queue.c does. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/short-hash.h"
#include "queue/internal.h"

/* A piece of work in the queue: what is pending for a key, or in flight. */

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

#define BUCKETS_FIRST 64
#define HEAP_FIRST    4

/* ---- hash tables */

static struct table_node **bucket_of(const struct table *table, uint64_t hash)
{
        return &table->bucket[hash & (table->bucket_count - 1)];
}

static struct table_node *first_of_hash(struct table_node *node, uint64_t hash)
{
        while (node && node->hash != hash)
                node = node->chain;
        return node;
}

struct table_node *table_look(const struct table *table, uint64_t hash)
{
        return table->bucket_count > 0 ? first_of_hash(*bucket_of(table, hash), hash) : NULL;
}

struct table_node *table_look_on(const struct table_node *node)
{
        return first_of_hash(node->chain, node->hash);
}

/* The table follows the number of nodes both ways: a burst must not cost memory forever. */
static int table_resize(struct table *table, size_t count)
{
        struct table_node **old = table->bucket, **bucket = calloc(count, sizeof(struct table_node *));
        size_t old_count = table->bucket_count;

        if (!bucket)
                return -ENOMEM;
        table->bucket = bucket;
        table->bucket_count = count;
        for (size_t i = 0; i < old_count; i++) {
                struct table_node *node = old[i];

                while (node) {
                        struct table_node *next = node->chain, **place = bucket_of(table, node->hash);

                        node->chain = *place;
                        *place = node;
                        node = next;
                }
        }
        free(old);
        return 0;
}

int table_insert(struct table *table, struct table_node *node)
{
        struct table_node **place;

        if (table->count >= table->bucket_count &&
            table_resize(table, table->bucket_count ? table->bucket_count * 2 : BUCKETS_FIRST) < 0)
                return -ENOMEM;
        place = bucket_of(table, node->hash);
        node->chain = *place;
        *place = node;
        table->count++;
        return 0;
}

void table_remove(struct table *table, struct table_node *node)
{
        struct table_node **place = bucket_of(table, node->hash);

        while (*place != node)
                place = &(*place)->chain;
        *place = node->chain;
        table->count--;
        if (table->bucket_count > BUCKETS_FIRST && table->count < table->bucket_count / 8)
                (void)table_resize(table, table->bucket_count / 2); /* a larger table is no harm */
}

/* ---- entries */

static uint64_t hash_of_key(unsigned watch, const char *key)
{
        return XXH3_64bits_withSeed(key, strlen(key), watch);
}

struct entry *entry_table_find(const struct queue *queue, unsigned watch, const char *key)
{
        struct table_node *node = table_look(&queue->entries, hash_of_key(watch, key));

        for (; node; node = table_look_on(node)) {
                struct entry *entry = (struct entry *)node;

                if (entry->watch == watch && strcmp(entry->key, key) == 0)
                        return entry;
        }
        return NULL;
}

int entry_table_insert(struct queue *queue, struct entry *entry)
{
        int r;

        entry->node.hash = hash_of_key(entry->watch, entry->key);
        r = table_insert(&queue->entries, &entry->node);
        if (r < 0)
                return r;
        entry->older = queue->watch[entry->watch].newest;
        if (entry->older)
                entry->older->newer = entry;
        queue->watch[entry->watch].newest = entry;
        return 0;
}

void entry_table_remove(struct queue *queue, struct entry *entry)
{
        table_remove(&queue->entries, &entry->node);
        *(entry->newer ? &entry->newer->older : &queue->watch[entry->watch].newest) = entry->older;
        if (entry->older)
                entry->older->newer = entry->newer;
}

void entry_list_append(struct entry_list *list, struct entry *entry)
{
        entry->next = NULL;
        entry->previous = list->last;
        if (list->last)
                list->last->next = entry;
        else
                list->first = entry;
        list->last = entry;
}

void entry_list_prepend(struct entry_list *list, struct entry *entry)
{
        entry->previous = NULL;
        entry->next = list->first;
        if (list->first)
                list->first->previous = entry;
        else
                list->last = entry;
        list->first = entry;
}

void entry_list_remove(struct entry_list *list, struct entry *entry)
{
        assert(entry->previous ? entry->previous->next == entry : list->first == entry);
        assert(entry->next ? entry->next->previous == entry : list->last == entry);
        if (entry->previous)
                entry->previous->next = entry->next;
        else
                list->first = entry->next;
        if (entry->next)
                entry->next->previous = entry->previous;
        else
                list->last = entry->previous;
        entry->next = entry->previous = NULL;
}

/* ---- heaps */

int heap_reserve(struct heap *heap, size_t count)
{
        struct heap_node **node;
        size_t allocated = heap->allocated ? heap->allocated : HEAP_FIRST;

        while (allocated < count)
                allocated *= 2;
        if (allocated == heap->allocated)
                return 0;
        node = reallocarray(heap->node, allocated, sizeof(struct heap_node *));
        if (!node)
                return -ENOMEM;
        heap->node = node;
        heap->allocated = allocated;
        return 0;
}

static bool is_sooner(const struct heap_node *node, const struct heap_node *other)
{
        return node->due != other->due ? node->due < other->due : node->order < other->order;
}

static void heap_set(struct heap *heap, size_t index, struct heap_node *node)
{
        heap->node[index] = node;
        node->index = index;
}

static void heap_rise(struct heap *heap, size_t index, struct heap_node *node)
{
        while (index > 0 && is_sooner(node, heap->node[(index - 1) / 2])) {
                heap_set(heap, index, heap->node[(index - 1) / 2]);
                index = (index - 1) / 2;
        }
        heap_set(heap, index, node);
}

static void heap_sink(struct heap *heap, size_t index, struct heap_node *node)
{
        size_t child;

        while ((child = index * 2 + 1) < heap->count) {
                if (child + 1 < heap->count && is_sooner(heap->node[child + 1], heap->node[child]))
                        child++;
                if (!is_sooner(heap->node[child], node))
                        break;
                heap_set(heap, index, heap->node[child]);
                index = child;
        }
        heap_set(heap, index, node);
}

void heap_insert(struct heap *heap, struct heap_node *node)
{
        assert(heap->count < heap->allocated); /* heap_reserve() has made room */
        heap->count++;
        heap_rise(heap, heap->count - 1, node);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
        size_t index = node->index;
        struct heap_node *last;

        assert(index < heap->count && heap->node[index] == node);
        last = heap->node[--heap->count];

        if (last == node)
                return;
        if (index > 0 && is_sooner(last, heap->node[(index - 1) / 2]))
                heap_rise(heap, index, last);
        else
                heap_sink(heap, index, last);
}

struct heap_node *heap_first(const struct heap *heap)
{
        return heap->count > 0 ? heap->node[0] : NULL;
}

/* ---- twins */

struct entry *next_twin(const struct queue *queue, unsigned own, const char *key, unsigned *watch)
{
        uint64_t kind = queue->watch[own].kind;

        for (; kind != 0 && *watch < queue->watch_count; (*watch)++) {
                struct entry *twin = *watch != own && queue->watch[*watch].kind == kind
                                             ? entry_table_find(queue, *watch, key)
                                             : NULL;

                if (twin)
                        return twin;
        }
        return NULL;
}

bool twin_runs(const struct queue *queue, const struct entry *entry)
{
        const struct entry *twin;

        for (unsigned watch = 0; (twin = next_twin(queue, entry->watch, entry->key, &watch)); watch++)
                if (twin->current)
                        return true;
        return false;
}
