/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The watches whose work the queue holds, by their numbers. */
#include "queue/queue.h"

/* Returns the number of the watch (0, 1, ...) or a negative errno. concurrency 0 = no limit. */
int queue_add_watch(struct queue *queue, unsigned concurrency);

/* Watches of one kind (not 0) have the same objects under the same keys. Before anything is pushed. */
void queue_set_kind(struct queue *queue, unsigned watch, uint64_t kind);

void queue_pause(struct queue *queue, unsigned watch, bool paused);

/* Until the watch is cleared, none of its keys is picked, not even urgent ones; runs in flight go on. */
void queue_close(struct queue *queue, unsigned watch);
/* Forgets everything of a watch. -EBUSY while something runs; -EAGAIN: there is so much of it that further
 * calls are needed. Its number may then serve another watch, which is neither closed nor paused. */
int queue_clear(struct queue *queue, unsigned watch, unsigned concurrency);
/* This watch has learned something of the object. Runs of other watches of its kind that the object has
 * left, and that wait until this one has it, become due at once. */
void queue_hurry_twins(struct queue *queue, unsigned watch, const char *key, const char *uid, uint64_t now);
