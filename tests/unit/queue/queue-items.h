/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A queue, what goes into it, and the end of a run: for the tests of the queue. Include cmocka.h before. */
#include "queue/look.h"
#include "queue/queue-watch.h"
#include "queue/queue.h"

static inline struct queue *new_queue(unsigned watches, unsigned concurrency)
{
        struct queue *queue;

        assert_int_equal(queue_new(&queue), 0);
        for (unsigned i = 0; i < watches; i++)
                assert_int_equal(queue_add_watch(queue, concurrency), (int)i);
        return queue;
}

static inline struct queue_item update(const char *key, uint64_t fingerprint)
{
        return (struct queue_item){.key = key,
                                   .uid = "u",
                                   .kind = CHANGE_UPDATED,
                                   .fingerprint = fingerprint,
                                   .reason = RUN_CHANGED};
}

static inline void done(struct queue *queue, uint64_t run, uint64_t fingerprint, uint64_t now)
{
        struct queue_outcome outcome = {.handled = true, .fingerprint = fingerprint};

        assert_int_equal(queue_done(queue, run, &outcome, now), 0);
}
