/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The containers below the queue (lib/queue/container.c): a hash table of entries, doubly linked lists, a
 * binary heap by due time. Only the files of the queue include this.
 */
#include "queue/queue.h"

struct work {
        struct work *next; /* the next deletion of the same key */
        enum change_kind kind;
        enum queue_priority priority;
        bool suspect, urgent;
        bool withdrawn; /* a deletion that a worker has: however it ends, it does not come back */
        bool bare;      /* see struct queue_item */
        uint64_t version;
        uint64_t fingerprint, sequence, not_before;
        enum run_reason reason;
        char uid[];
};

enum entry_place { PLACE_NONE, PLACE_READY, PLACE_SUSPECT, PLACE_RUNNING, PLACE_DELAYED, PLACE_HELD };

struct entry {
        struct entry *chain;           /* in its bucket */
        struct entry *next, *previous; /* in a ready list or the running list */
        struct entry *newer, *older;   /* entries of the same watch */
        size_t heap_index;             /* in the heap */
        uint64_t hash;
        struct work *deletion; /* pending, oldest first */
        struct work *update;   /* pending */
        struct work *nudge;    /* pending; of the UID of the update, if there is one */
        struct work *current;  /* a worker has it */
        uint64_t run, due, ready_since;
        unsigned watch;
        enum entry_place place;
        bool settling;  /* while it is delayed */
        uint8_t behind; /* runs in a row that ended so */
        size_t line;    /* the ready list in which it stands: enum queue_priority, or LINE_URGENT */
        char key[];
};

#define LINE_URGENT QUEUE_PRIORITY_COUNT
#define LINE_COUNT  (QUEUE_PRIORITY_COUNT + 1)

struct entry_list {
        struct entry *first, *last;
};

struct entry_heap {
        struct entry **entry;
        size_t count, allocated;
};

struct queue_watch {
        struct entry_list ready[LINE_COUNT];
        struct entry *newest; /* newest of all the watch's entries */
        bool paused, closed;
        struct queue_counts counts;
        unsigned concurrency;
        unsigned picks;
        uint64_t kind;  /* 0: its objects are those of no other watch */
        bool has_twins; /* another watch is, or was, of its kind */
};

struct queue {
        struct queue_watch *watch;
        size_t watch_count;
        size_t turn; /* the watch that is asked first, next time */
        struct entry **bucket;
        size_t bucket_count, entry_count;
        struct entry_list running, suspects;
        uint64_t alone; /* the run beside which nothing else starts; 0 */
        struct entry_heap heap;
        uint64_t last_run;
};

/* lib/queue/container.c: work */
struct work *work_new(const struct queue_item *item);
void work_free(struct work *work);
DEFINE_CLEANUP(struct work *, work_free);
bool work_is(const struct work *work, enum change_kind kind, const char *uid);
bool work_is_of(const struct work *work, const char *uid);
bool work_is_leaving(const struct work *work, const char *uid); /* it is told that, or waits for a twin */
struct work *entry_head(const struct entry *entry);             /* the entry's next work; NULL: none */
/* Where the deletion of this UID stands, or the place behind the last one. */
struct work **entry_deletion(struct entry *entry, const char *uid);

/* lib/queue/queue.c */
/* After its work has changed. */
void entry_review(struct queue *queue, struct entry *entry, uint64_t now);

/* lib/queue/container.c */
struct entry *entry_table_find(const struct queue *queue, unsigned watch, const char *key);
int entry_table_insert(struct queue *queue, struct entry *entry);
void entry_table_remove(struct queue *queue,
                        struct entry *entry); /* an entry that is not in it is ignored */

/* The entry of the same object in another watch of its kind than `own`, the first one from *watch on; NULL:
 * none. */
struct entry *next_twin(const struct queue *queue, unsigned own, const char *key, unsigned *watch);
bool twin_runs(const struct queue *queue, const struct entry *entry);

void entry_list_append(struct entry_list *list, struct entry *entry);
void entry_list_prepend(struct entry_list *list, struct entry *entry);
void entry_list_remove(struct entry_list *list, struct entry *entry);

/* Room for `count` entries, so that inserting cannot fail. */
int entry_heap_reserve(struct entry_heap *heap, size_t count);
void entry_heap_insert(struct entry_heap *heap, struct entry *entry);
void entry_heap_remove(struct entry_heap *heap, struct entry *entry);
struct entry *entry_heap_first(const struct entry_heap *heap);
