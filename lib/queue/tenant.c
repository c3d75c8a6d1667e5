/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whose turn it is within a watch. Three steps, each of which passes nobody over forever: the ring
 * of a line (what is asked for by hand, then what is ordinary, then low priority; each eighth pick goes to
 * the one that was passed over), the tenant that is first in that ring and then goes to its end, and that
 * tenant's key (what has begun, then what is new, with the same ageing). A step costs the same however many
 * tenants and keys there are. What is delayed comes into these lines in turns, too.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/short-hash.h"
#include "queue/internal.h"

/* ---- tenants come and go */

/* The key's namespace; "" for a kind without namespaces. */
static size_t key_namespace_length(const char *key)
{
        const char *slash = strchr(key, '/');

        return slash ? (size_t)(slash - key) : 0;
}

static struct tenant *tenant_new(unsigned watch, const char *name, size_t length, uint64_t hash)
{
        struct tenant *tenant = malloc(sizeof(*tenant) + length + 1);

        if (!tenant)
                return NULL;
        *tenant = (struct tenant){.node.hash = hash, .watch = watch, .length = length};
        memcpy(tenant->name, name, length);
        tenant->name[length] = '\0';
        return tenant;
}

static uint64_t tenant_hash(unsigned watch, const char *name, size_t length)
{
        return XXH3_64bits_withSeed(name, length, watch);
}

struct tenant *tenant_look(const struct queue *queue, unsigned watch, const char *name, size_t length)
{
        struct table_node *node = table_look(&queue->tenants, tenant_hash(watch, name, length));

        for (; node; node = table_look_on(node)) {
                struct tenant *tenant = (struct tenant *)node;

                if (tenant->watch == watch && tenant->length == length &&
                    memcmp(tenant->name, name, length) == 0)
                        return tenant;
        }
        return NULL;
}

int tenant_find(struct queue *queue, struct entry *entry)
{
        size_t length = key_namespace_length(entry->key);
        struct tenant *tenant = tenant_look(queue, entry->watch, entry->key, length);

        if (!tenant) {
                tenant = tenant_new(entry->watch, entry->key, length,
                                    tenant_hash(entry->watch, entry->key, length));
                if (!tenant)
                        return -ENOMEM;
                if (heap_reserve(&queue->delayed, queue->tenants.count + 1) < 0 ||
                    table_insert(&queue->tenants, &tenant->node) < 0) {
                        free(tenant);
                        return -ENOMEM;
                }
        }
        tenant->entries++;
        entry->tenant = tenant;
        if (heap_reserve(&tenant->delayed, tenant->entries) < 0) {
                tenant_leave(queue, entry);
                return -ENOMEM;
        }
        return 0;
}

void tenant_leave(struct queue *queue, struct entry *entry)
{
        struct tenant *tenant = TAKE_PTR(entry->tenant);

        assert(tenant->entries > 0);
        if (--tenant->entries > 0)
                return;
        assert(tenant->queued == 0 && tenant->running == 0 && tenant->delayed.count == 0);
        table_remove(&queue->tenants, &tenant->node);
        free(tenant->delayed.node);
        free(tenant);
}

/* ---- rings */

static void ring_append(struct tenant_ring *ring, struct tenant *tenant, enum queue_line line)
{
        tenant->ring[line].next = NULL;
        tenant->ring[line].previous = ring->last;
        *(ring->last ? &ring->last->ring[line].next : &ring->first) = tenant;
        ring->last = tenant;
        tenant->ring[line].is_in = true;
        ring->count++;
}

static void ring_prepend(struct tenant_ring *ring, struct tenant *tenant, enum queue_line line)
{
        tenant->ring[line].previous = NULL;
        tenant->ring[line].next = ring->first;
        *(ring->first ? &ring->first->ring[line].previous : &ring->last) = tenant;
        ring->first = tenant;
        tenant->ring[line].is_in = true;
        ring->count++;
}

static void ring_remove(struct tenant_ring *ring, struct tenant *tenant, enum queue_line line)
{
        struct tenant *next = tenant->ring[line].next, *previous = tenant->ring[line].previous;

        *(previous ? &previous->ring[line].next : &ring->first) = next;
        *(next ? &next->ring[line].previous : &ring->last) = previous;
        tenant->ring[line].is_in = false;
        ring->count--;
}

static bool belongs_into(const struct tenant *tenant, enum queue_line line)
{
        return tenant->ready[line].first || (line == LINE_NORMAL && tenant->ready[LINE_BEGUN].first);
}

static void enter_rings(struct queue_watch *watch, struct tenant *tenant)
{
        for (enum queue_line line = 0; line < LINE_COUNT; line++) {
                bool belongs = belongs_into(tenant, line);

                if (belongs && !tenant->ring[line].is_in)
                        ring_append(&watch->ring[line], tenant, line);
                else if (!belongs && tenant->ring[line].is_in)
                        ring_remove(&watch->ring[line], tenant, line);
        }
}

/* The rings in which a key of this line waits. */
static bool is_of_ring(enum queue_line line, enum queue_line ring)
{
        return ring == line || (line == LINE_BEGUN && ring == LINE_NORMAL);
}

static void move_in_rings(struct queue_watch *watch, struct tenant *tenant, enum queue_line line,
                          void (*put)(struct tenant_ring *, struct tenant *, enum queue_line))
{
        for (enum queue_line ring = 0; ring < LINE_COUNT; ring++) {
                if (!tenant->ring[ring].is_in || !is_of_ring(line, ring))
                        continue;
                ring_remove(&watch->ring[ring], tenant, ring);
                put(&watch->ring[ring], tenant, ring);
        }
}

void tenant_wait(struct queue *queue, struct entry *entry, bool again)
{
        struct queue_watch *watch = &queue->watch[entry->watch];
        struct tenant *tenant = entry->tenant;

        (again ? entry_list_prepend : entry_list_append)(&tenant->ready[entry->line], entry);
        enter_rings(watch, tenant);
        if (again)
                move_in_rings(watch, tenant, entry->line, ring_prepend);
}

void tenant_wait_over(struct queue *queue, struct entry *entry)
{
        entry_list_remove(&entry->tenant->ready[entry->line], entry);
        enter_rings(&queue->watch[entry->watch], entry->tenant);
}

/* ---- what is delayed */

static void tenant_out_of_heap(struct queue *queue, struct tenant *tenant)
{
        if (tenant->delayed.count > 0)
                heap_remove(&queue->delayed, &tenant->turn);
}

static void tenant_into_heap(struct queue *queue, struct tenant *tenant)
{
        if (tenant->delayed.count == 0)
                return;
        tenant->turn.due = heap_first(&tenant->delayed)->due;
        tenant->turn.order = 0;
        /* To the time of its last turn, behind others that have waited for as long. */
        if (tenant->turn.due <= tenant->released) {
                tenant->turn.due = tenant->released;
                tenant->turn.order = tenant->release;
        }
        heap_insert(&queue->delayed, &tenant->turn);
}

void tenant_delay(struct queue *queue, struct entry *entry)
{
        tenant_out_of_heap(queue, entry->tenant);
        heap_insert(&entry->tenant->delayed, &entry->delay);
        tenant_into_heap(queue, entry->tenant);
}

void tenant_delay_over(struct queue *queue, struct entry *entry)
{
        tenant_out_of_heap(queue, entry->tenant);
        heap_remove(&entry->tenant->delayed, &entry->delay);
        tenant_into_heap(queue, entry->tenant);
}

struct entry *tenant_due(struct queue *queue, uint64_t now)
{
        struct heap_node *first = heap_first(&queue->delayed);
        struct tenant *tenant;

        if (!first || first->due > now)
                return NULL;
        tenant = OWNER_OF(first, struct tenant, turn);
        tenant->released = now;
        tenant->release = ++queue->last_release;
        return OWNER_OF(heap_first(&tenant->delayed), struct entry, delay);
}

/* ---- picking */

/* An uninstallation does not wait for a handler's rate. */
static bool first_needs_no_token(const struct queue_watch *watch)
{
        return !work_needs_token(entry_head(watch->ring[LINE_BY_HAND].first->ready[LINE_BY_HAND].first));
}

/* Whether the ring waits. In a paused watch only runs that go on, and those asked for by hand, may run;
 * without a token, only runs that go on. */
static bool ring_waits(const struct queue_watch *watch, enum queue_line line)
{
        if (watch->bucket.empty)
                return watch->ring[line].first &&
                       (line == LINE_BEGUN || (line == LINE_BY_HAND && first_needs_no_token(watch)));
        return watch->ring[line].first &&
               (watch->paused ? line == LINE_BY_HAND || line == LINE_BEGUN : line != LINE_BEGUN);
}

bool tenant_may_pick(const struct queue_watch *watch)
{
        for (enum queue_line line = 0; line < LINE_COUNT; line++)
                if (ring_waits(watch, line))
                        return true;
        return false;
}

static enum queue_line next_ring(struct queue_watch *watch)
{
        enum queue_line first = LINE_COUNT, aged = LINE_COUNT, next;

        if (watch->bucket.empty) /* nobody is passed over: the others wait for a token */
                return ring_waits(watch, LINE_BY_HAND) ? LINE_BY_HAND : LINE_BEGUN;
        for (enum queue_line line = 0; line < LINE_COUNT; line++) {
                if (!ring_waits(watch, line)) {
                        watch->passed[line] = 0;
                        continue;
                }
                if (first == LINE_COUNT)
                        first = line;
                if (++watch->passed[line] >= QUEUE_AGEING &&
                    (aged == LINE_COUNT || watch->passed[line] > watch->passed[aged]))
                        aged = line;
        }
        next = aged < LINE_COUNT ? aged : first;
        assert(next < LINE_COUNT);
        watch->passed[next] = 0;
        return next;
}

static enum queue_line begun_or_new(struct tenant *tenant)
{
        bool begun = tenant->ready[LINE_BEGUN].first, new = tenant->ready[LINE_NORMAL].first;

        return begun && (!new || ++tenant->picks % QUEUE_AGEING != 0) ? LINE_BEGUN : LINE_NORMAL;
}

struct entry *tenant_pick(struct queue_watch *watch)
{
        enum queue_line line = next_ring(watch);
        struct tenant *tenant = watch->ring[line].first;

        if (line == LINE_NORMAL)
                line = begun_or_new(tenant);
        if (watch->bucket.empty) { /* its turn for a token is still to come */
                ring_remove(&watch->ring[line], tenant, line);
                ring_append(&watch->ring[line], tenant, line);
        } else {
                move_in_rings(watch, tenant, line, ring_append);
        }
        assert(tenant->ready[line].first);
        return tenant->ready[line].first;
}
