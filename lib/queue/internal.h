/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The containers below the queue (lib/queue/container.c): hash tables, doubly linked lists, a binary heap by
 * due time; and the turns of tenants (lib/queue/tenant.c). Only the files of the queue include this.
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

/* Entries of a hash table begin with this. */
struct table_node {
        struct table_node *chain; /* in its bucket */
        uint64_t hash;
};

struct table {
        struct table_node **bucket;
        size_t bucket_count, count;
};

/* Entries of a heap embed this. */
struct heap_node {
        uint64_t due, order; /* of two that are due at once, the one of the lower order goes first */
        size_t index;        /* in its heap */
};

#define OWNER_OF(node, type, member) ((type *)(void *)((char *)(node)-offsetof(type, member)))

struct heap {
        struct heap_node **node;
        size_t count, allocated;
};

/* In the order in which a tenant's keys go. BY_HAND: a user waits. BEGUN: a run that has begun is finished
 * first. */
enum queue_line { LINE_BY_HAND, LINE_BEGUN, LINE_NORMAL, LINE_LOW, LINE_COUNT };

struct entry {
        struct table_node node;
        struct entry *next, *previous; /* in a ready list or the running list */
        struct entry *newer, *older;   /* entries of the same watch */
        struct tenant *tenant;         /* whose key it is; for as long as the entry is there */
        struct heap_node delay;        /* in the heap of its tenant */
        struct work *deletion;         /* pending, oldest first */
        struct work *update;           /* pending */
        struct work *nudge;            /* pending; of the UID of the update, if there is one */
        struct work *current;          /* a worker has it */
        uint64_t run, ready_since;
        unsigned watch;
        enum entry_place place;
        bool settling;        /* while it is delayed */
        bool answered;        /* while it is running: see queue_answered() */
        bool has_token;       /* likewise: taken from the bucket of its watch */
        uint8_t behind;       /* runs in a row that ended so */
        enum queue_line line; /* the ready list of its tenant that it is in */
        char key[];
};

struct entry_list {
        struct entry *first, *last;
};

/*
 * All keys of a namespace in a watch; of a kind without namespaces, all keys of the watch. It is there while
 * one of its keys is not at rest. Tenants that have something in a line are in the ring of that line, and
 * the first one has the next turn. The ring of LINE_NORMAL also has those with something in LINE_BEGUN: that
 * is a line of its own only while the watch is paused. A tenant with delayed keys is in the queue's heap, by
 * the first of them.
 */
struct tenant {
        struct table_node node;
        unsigned watch;
        size_t entries;         /* keys, wherever they are */
        size_t queued, running; /* of these */
        struct heap delayed;
        struct heap_node turn;      /* for what is delayed */
        uint64_t released, release; /* when something of it was released last, and the number of that */
        struct entry_list ready[LINE_COUNT];
        unsigned picks; /* of LINE_BEGUN and LINE_NORMAL, for ageing */
        struct {
                bool is_in;
                struct tenant *next, *previous;
        } ring[LINE_COUNT];
        size_t length;
        char name[]; /* `length` bytes, and a NUL */
};

struct tenant_ring {
        struct tenant *first, *last;
        size_t count;
};

/* lib/queue/rate.c. interval_nsec 0: there is no limit. */
struct bucket {
        uint64_t interval_nsec, full_nsec; /* until a token is back; when all are, CLOCK_BOOTTIME */
        unsigned burst;                    /* tokens when it is full */
        bool empty;                        /* when rate_look() last looked */
        bool suspect_last;                 /* the last run that might have taken a token was one */
        struct {
                uint64_t runs, usec;
        } waited; /* for a token, since the start */
};

struct queue_watch {
        struct tenant_ring ring[LINE_COUNT];
        unsigned passed[LINE_COUNT]; /* picks in a row that a ring with somebody in it was not chosen */
        struct entry *newest;        /* newest of all the watch's entries */
        bool paused, closed;
        struct queue_counts counts;
        unsigned concurrency;
        uint64_t kind;  /* 0: its objects are those of no other watch */
        bool has_twins; /* another watch is, or was, of its kind */
        struct bucket bucket;
};

struct queue {
        struct queue_watch *watch;
        size_t watch_count, rated; /* rated: watches with a limit on how often runs begin */
        size_t turn;               /* the watch that is asked first, next time */
        struct table entries, tenants;
        struct entry_list running, suspects;
        uint64_t alone; /* the run beside which nothing else starts; 0 */
        bool was_alone; /* the last run: now it is the turn of others */
        struct {
                uint64_t since,
                        usec; /* of a phase in which nothing begins; one as long follows, in which others begin */
                uint64_t until; /* nothing begins before this time; 0 if something may */
        } drain;
        struct heap delayed; /* tenants */
        uint64_t last_run, last_release;
};

/* lib/queue/container.c: work */
struct work *work_new(const struct queue_item *item);
void work_free(struct work *work);
DEFINE_CLEANUP(struct work *, work_free);
bool work_is(const struct work *work, enum change_kind kind, const char *uid);
bool work_is_of(const struct work *work, const char *uid);
bool work_is_leaving(const struct work *work, const char *uid); /* it was told so, or waits for a twin */
struct work *entry_head(const struct entry *entry); /* the entry's next work; NULL if there is none */
/* The place of this UID's deletion in the list, or the end of the list. */
struct work **entry_deletion(struct entry *entry, const char *uid);

/* lib/queue/queue.c */
/* Called after the entry's work has changed. */
void entry_review(struct queue *queue, struct entry *entry, uint64_t now);
void entry_unplace(struct queue *queue, struct entry *entry);
void entry_go(struct queue *queue, struct entry *entry); /* frees one that has no place */

/* lib/queue/container.c */
/* The first of this hash, and the next one; NULL if there is none. */
struct table_node *table_look(const struct table *table, uint64_t hash);
struct table_node *table_look_on(const struct table_node *node);
int table_insert(struct table *table, struct table_node *node); /* by its hash; -ENOMEM */
void table_remove(struct table *table, struct table_node *node);

struct entry *entry_table_find(const struct queue *queue, unsigned watch, const char *key);
int entry_table_insert(struct queue *queue, struct entry *entry);
void entry_table_remove(struct queue *queue, struct entry *entry);

/* The entry of the same object in another watch of its kind than `own`, the first one from *watch on; NULL
 * if there is none. */
struct entry *next_twin(const struct queue *queue, unsigned own, const char *key, unsigned *watch);
bool twin_runs(const struct queue *queue, const struct entry *entry);

void entry_list_append(struct entry_list *list, struct entry *entry);
void entry_list_prepend(struct entry_list *list, struct entry *entry);
void entry_list_remove(struct entry_list *list, struct entry *entry);

/* Room for `count` nodes, so that inserting cannot fail. */
int heap_reserve(struct heap *heap, size_t count);
void heap_insert(struct heap *heap, struct heap_node *node);
void heap_remove(struct heap *heap, struct heap_node *node);
struct heap_node *heap_first(const struct heap *heap);

/* lib/queue/tenant.c */
struct tenant *tenant_look(const struct queue *queue, unsigned watch, const char *name,
                           size_t length); /* NULL: all of its keys are at rest */
int tenant_find(struct queue *queue,
                struct entry *entry); /* the one of this entry's key, or a new one; -ENOMEM */
void tenant_leave(struct queue *queue, struct entry *entry); /* the entry goes */
/* Puts the entry into its line, or takes it out. again: at the front, as if it had not been picked. */
void tenant_wait(struct queue *queue, struct entry *entry, bool again);
void tenant_wait_over(struct queue *queue, struct entry *entry);
/* Put an entry among the delayed ones, take it out, and find the one to release next (NULL if none is due). Tenants with
 * keys that are due take turns, so one that has many holds up nobody else's. */
void tenant_delay(struct queue *queue, struct entry *entry);
void tenant_delay_over(struct queue *queue, struct entry *entry);
struct entry *tenant_due(struct queue *queue, uint64_t now);
bool tenant_may_pick(const struct queue_watch *watch);
struct entry *tenant_pick(struct queue_watch *watch); /* whose turn it is; the turn is over with that */

/* lib/queue/alone.c */
struct entry *suspect_next(const struct queue *queue); /* NULL if none may run */
/* Whether nothing else may begin now: the suspect runs, or waits for the end of what runs. suspect may be NULL. */
bool suspect_goes_first(struct queue *queue, const struct entry *suspect, uint64_t now);

/* lib/queue/rate.c */
/* A run that goes on needs no token, nor does one that only takes our finalizer off or puts it on. */
bool work_needs_token(const struct work *work);
void rate_look(struct queue *queue, uint64_t now); /* which buckets are empty now */
/* A run begins, and takes its token if it needs one. */
void rate_take(struct bucket *bucket, struct entry *entry, uint64_t ready_since, uint64_t now);
void rate_ran(struct bucket *bucket, struct entry *entry, bool handler_ran, uint64_t now);
/* When something that waits for a token gets it; USEC_INFINITY = never. */
uint64_t rate_next_time(const struct queue *queue);
