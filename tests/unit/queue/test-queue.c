/* SPDX-License-Identifier: Apache-2.0 */
/* The queue's promises, by examples and under random operation sequences against a naive model. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/queue/queue-items.h"
#include "tests/unit/valgrind.h"

static void test_one_run_a_key(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1);
        struct queue_run run;

        (void)state;
        assert_int_equal(queue_push(queue, 0, &item, 1), QUEUE_ADDED);
        assert_true(queue_next(queue, 1, &run));
        item.fingerprint = 2;
        for (int i = 0; i < 20; i++)
                assert_int_equal(queue_push(queue, 0, &item, 1), QUEUE_MERGED);
        assert_false(queue_next(queue, 1, &run));
        done(queue, run.id, 1, 1);
        assert_true(queue_next(queue, 1, &run)); /* exactly one more */
        assert_int_equal(run.fingerprint, 2);
        done(queue, run.id, 2, 1);
        assert_false(queue_next(queue, 1, &run));
        assert_int_equal(queue_count_all(queue).queued, 0);
        queue_free(queue);
}

static void test_a_nudge_is_no_update(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1), nudge = {.key = "a",
                                                          .uid = "u",
                                                          .nudge = true,
                                                          .not_before = 50,
                                                          .reason = RUN_RELATED_CHANGED};
        struct queue_outcome failed = {.backs_off = true, .delay_usec = 100, .reason = RUN_RETRY};
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &item, 1);
        assert_true(queue_next(queue, 1, &run));
        item.fingerprint = 2;
        queue_push(queue, 0, &item, 2);
        queue_push(queue, 0, &nudge, 2);
        assert_int_equal(queue_nudge(queue, 0, "a", "u"), RUN_RELATED_CHANGED);
        nudge.on_record = true; /* its reason stays */
        nudge.reason = RUN_CHILD_CHANGED;
        queue_push(queue, 0, &nudge, 2);
        nudge.on_record = false;
        nudge.reason = RUN_RELATED_CHANGED;
        queue_push(queue, 0, &nudge, 2);
        assert_int_equal(queue_nudge(queue, 0, "a", "u"), RUN_CHILD_CHANGED);
        done(queue, run.id, 2, 3); /* it has read the change already, but not what came after */
        assert_false(queue_next(queue, 3, &run));
        assert_true(queue_next(queue, 50, &run));
        assert_int_equal(run.fingerprint, 0);

        nudge.not_before = 60;
        queue_push(queue, 0, &nudge, 51);
        queue_push(queue, 0, &item, 51);
        done(queue, run.id, 1, 52);
        assert_true(queue_next(queue, 52, &run)); /* one run for both */
        assert_int_equal(run.fingerprint, 2);
        assert_int_equal(queue_nudge(queue, 0, "a", "u"), RUN_REASON_NONE);

        queue_push(queue, 0, &nudge, 53);
        assert_int_equal(queue_done(queue, run.id, &failed, 54), 0);
        assert_false(queue_next(queue, 153, &run)); /* not within the backoff */
        assert_true(queue_next(queue, 154, &run));
        assert_int_equal(run.reason, RUN_RETRY);
        done(queue, run.id, 2, 155);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_AT_REST);
        queue_free(queue);
}

/* A bare nudge starts no handler: an item that waits for one, or comes while it runs, is kept. */
static void test_a_bare_nudge_takes_nothing_away(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item later = update("a", 1), bare = {.key = "a",
                                                          .uid = "u",
                                                          .nudge = true,
                                                          .bare = true,
                                                          .reason = RUN_FINALIZER};
        struct queue_outcome again = {.delay_usec = 20, .reason = RUN_FINALIZER};
        struct queue_run run;

        (void)state;
        later.not_before = 100;
        queue_push(queue, 0, &later, 1);
        queue_push(queue, 0, &bare, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_int_equal(run.reason, RUN_FINALIZER);
        assert_true(queue_has(queue, 0, "a", "u", CHANGE_UPDATED)); /* the one that waits */
        assert_int_equal(queue_done(queue, run.id, &again, 2), 0);
        assert_false(queue_next(queue, 21, &run));
        assert_true(queue_next(queue, 22, &run));
        assert_int_equal(run.reason, RUN_FINALIZER);
        done(queue, run.id, 0, 23);
        assert_false(queue_next(queue, 99, &run));
        assert_true(queue_next(queue, 100, &run));
        assert_int_equal(run.reason, RUN_CHANGED);
        queue_push(queue, 0, &bare, 101);
        assert_int_equal(
                queue_done(queue, run.id, &(struct queue_outcome){.handled = true, .backs_off = true}, 102),
                0);
        assert_false(queue_has(queue, 0, "a", "u", CHANGE_UPDATED));
        later.not_before = 0;
        queue_push(queue, 0, &later, 102);
        assert_true(queue_next(queue, 102, &run)); /* for both */
        assert_int_equal(run.reason, RUN_CHANGED);
        done(queue, run.id, 1, 103);
        assert_false(queue_next(queue, 1000, &run));
        assert_int_equal(queue_count_all(queue).delayed, 0);
        queue_free(queue);
}

static void test_a_nudge_goes_with_its_object(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1), nudge = {.key = "a",
                                                          .uid = "u",
                                                          .nudge = true,
                                                          .not_before = 50,
                                                          .reason = RUN_RELATED_CHANGED};
        struct queue_item deletion = {.key = "a", .uid = "u", .kind = CHANGE_DELETED, .reason = RUN_DELETED};
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &nudge, 1);
        item.uid = "v";
        queue_push(queue, 0, &item, 1);
        queue_push(queue, 0, &nudge, 1);
        assert_int_equal(queue_nudge(queue, 0, "a", "u"), RUN_REASON_NONE);
        assert_true(queue_next(queue, 1, &run));
        assert_string_equal(run.uid, "v");
        done(queue, run.id, 1, 1);
        queue_push(queue, 0, &nudge, 1);
        queue_push(queue, 0, &deletion, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_int_equal(run.kind, CHANGE_DELETED);
        done(queue, run.id, 0, 2);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_AT_REST);
        queue_free(queue);
}

/* A run has finalized what the news of its deletion tells about. */
static void test_a_deletion_that_is_over_with_a_run(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1),
                          gone = {.key = "a", .uid = "u", .kind = CHANGE_DELETED, .sequence = 7},
                          next = {.key = "a", .uid = "v", .kind = CHANGE_DELETED, .sequence = 8};
        uint64_t sequence = 0;
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &item, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_false(queue_take_deletion(queue, 0, "a", "u", 2, &sequence));
        queue_push(queue, 0, &gone, 2);
        queue_push(queue, 0, &next, 2);
        assert_true(queue_take_deletion(queue, 0, "a", "u", 2, &sequence));
        assert_int_equal(sequence, 7);
        done(queue, run.id, 1, 3);
        assert_true(queue_next(queue, 3, &run));
        assert_string_equal(run.uid, "v");
        done(queue, run.id, 0, 4);
        assert_false(queue_take_deletion(queue, 0, "a", "v", 2, &sequence));
        queue_free(queue);
}

static void test_what_cannot_run_needs_no_timer(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item suspect = update("a", 1), item = update("b", 1);
        struct queue_run run;

        (void)state;
        suspect.suspect = true;
        queue_push(queue, 0, &suspect, 1);
        assert_true(queue_next(queue, 1, &run)); /* alone */
        item.not_before = 50;
        queue_push(queue, 0, &item, 1);
        assert_int_equal(queue_next_time(queue), UINT64_MAX);
        done(queue, run.id, 1, 60);
        assert_int_equal(queue_next_time(queue), 50);
        assert_true(queue_next(queue, 60, &run));
        assert_string_equal(run.key, "b");
        queue_free(queue);
}

static void test_where_a_key_stands(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1);
        struct queue_run run;

        (void)state;
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_AT_REST);
        item.not_before = 50;
        queue_push(queue, 0, &item, 1);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_DELAYED);
        assert_int_equal(queue_look(queue, 0, "a").due, 50);
        item.not_before = 0;
        queue_push(queue, 0, &item, 2);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_QUEUED);
        assert_int_equal(queue_look(queue, 0, "a").since, 2);
        assert_int_equal(queue_look(queue, 0, "a").reason, RUN_CHANGED);
        assert_true(queue_next(queue, 3, &run));
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_RUNNING);
        item.fingerprint = 2;
        queue_push(queue, 0, &item, 3);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_RUNNING_DIRTY);
        done(queue, run.id, 1, 4);
        assert_true(queue_next(queue, 4, &run));
        done(queue, run.id, 2, 5);
        item.suspect = true;
        queue_push(queue, 0, &item, 6);
        assert_int_equal(queue_look(queue, 0, "a").state, QUEUE_SUSPECT);
        queue_free(queue);
}

static void test_a_paused_watch_keeps_its_keys(void **state)
{
        struct queue_outcome settles = {.reason = RUN_SETTLING}, fails = {.reason = RUN_RETRY};
        struct queue *queue = new_queue(2, 0);
        struct queue_item item = update("a", 1), asked = update("b", 1), suspect = update("s", 1);
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &item, 1);
        assert_true(queue_next(queue, 1, &run));
        queue_pause(queue, 0, true);
        assert_int_equal(queue_done(queue, run.id, &settles, 1), 0);
        item.key = "waits";
        queue_push(queue, 0, &item, 1);
        suspect.suspect = true;
        queue_push(queue, 0, &suspect, 1);
        asked.urgent = true;
        queue_push(queue, 0, &asked, 1);
        assert_true(queue_next(queue, 2, &run)); /* somebody waits for this one */
        assert_string_equal(run.key, "b");
        assert_int_equal(queue_done(queue, run.id, &fails, 2), 0);
        assert_true(queue_next(queue, 2, &run)); /* and what has begun is ended */
        assert_string_equal(run.key, "a");
        done(queue, run.id, 1, 2);
        assert_false(queue_next(queue, 3, &run)); /* but not for its retries */
        suspect.key = "t";
        queue_push(queue, 1, &suspect, 3);
        assert_true(queue_next(queue, 3, &run)); /* a suspect of another watch is not held up */
        assert_int_equal(run.watch, 1);
        done(queue, run.id, 1, 3);
        assert_int_equal(queue_count(queue, 0).queued, 3);
        queue_pause(queue, 0, false);
        for (int i = 0; i < 3; i++) {
                assert_true(queue_next(queue, 4, &run));
                done(queue, run.id, 1, 4);
        }
        assert_int_equal(queue_count_all(queue).queued, 0);
        queue_free(queue);
}

static void test_a_watch_that_is_taken_out(void **state)
{
        static const char *const key[] = {"a", "b", "c", "d", "e"};
        struct queue *queue = new_queue(2, 1);
        struct queue_item item = update("a", 1);
        struct queue_run run, other;

        (void)state;
        for (size_t i = 0; i < ELEMENTS(key); i++) {
                item.key = key[i];
                item.suspect = i == 1;
                item.urgent = i == 2;
                item.not_before = i == 3 ? 100 : 0;
                assert_int_equal(queue_push(queue, 0, &item, 1), QUEUE_ADDED);
        }
        item = update("a", 7);
        queue_push(queue, 1, &item, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_int_equal(run.watch, 0);
        queue_close(queue, 0);
        assert_int_equal(queue_clear(queue, 0, 0), -EBUSY); /* something runs */
        assert_true(queue_next(queue, 1, &other));
        assert_int_equal(other.watch, 1);
        done(queue, other.id, 7, 1);
        done(queue, run.id, 1, 1);
        assert_false(queue_next(queue, QUEUE_PATIENCE_USEC * 2, &run)); /* what is urgent, suspect or due */
        queue_push(queue, 1, &item, 1);
        assert_int_equal(queue_clear(queue, 0, 0), 0);
        assert_int_equal(queue_count(queue, 0).queued + queue_count(queue, 0).delayed, 0);
        assert_int_equal(queue_look(queue, 0, "d").state, QUEUE_AT_REST);
        assert_int_equal(queue_count_all(queue).queued, 1);
        assert_int_equal(queue_next_time(queue), UINT64_MAX);
        /* Its number serves another one, without a limit. */
        queue_push(queue, 0, &item, 1);
        item.key = "b";
        queue_push(queue, 0, &item, 1);
        for (int i = 0; i < 3; i++)
                assert_true(queue_next(queue, 1, &run));
        queue_free(queue);
}

static void test_what_was_read_needs_no_run(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1);
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &item, 1);
        assert_true(queue_next(queue, 1, &run));
        item.fingerprint = 2;
        queue_push(queue, 0, &item, 1);
        done(queue, run.id, 2, 1); /* the worker had read the newest version already */
        assert_false(queue_next(queue, 1, &run));
        queue_free(queue);
}

/* After our own write, the content that the handler was shown counts as a change. */
static void test_an_own_write_that_is_taken_back(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_outcome outcome = {
                .handled = true, .fingerprint = 1, .own_fingerprint = 2, .known_version = 6};
        struct queue_item item = update("a", 1);
        struct queue_run run;

        (void)state;
        item.version = 5;
        assert_int_equal(queue_push(queue, 0, &item, 0), QUEUE_ADDED);
        assert_true(queue_next(queue, 0, &run));
        assert_int_equal(queue_running(queue, 0, "a", "u"), RUN_CHANGED);
        assert_int_equal(queue_running(queue, 0, "a", "other"), RUN_REASON_NONE);
        assert_int_equal(queue_push(queue, 0, &item, 0), QUEUE_MERGED); /* told late */
        assert_int_equal(queue_done(queue, run.id, &outcome, 0), 0);
        assert_false(queue_next(queue, 0, &run));
        assert_int_equal(queue_running(queue, 0, "a", "u"), RUN_REASON_NONE);

        assert_int_equal(queue_push(queue, 0, &item, 0), QUEUE_ADDED);
        assert_true(queue_next(queue, 0, &run));
        item.version = 7;
        assert_int_equal(queue_push(queue, 0, &item, 0), QUEUE_MERGED);
        assert_int_equal(queue_done(queue, run.id, &outcome, 0), 0);
        assert_true(queue_next(queue, 0, &run));
        item = update("a", 2);
        item.version = 8;
        assert_int_equal(queue_push(queue, 0, &item, 0), QUEUE_MERGED);
        assert_int_equal(queue_done(queue, run.id, &outcome, 0), 0);
        assert_false(queue_next(queue, 0, &run));
        queue_free(queue);
}

static void test_deletion_before_the_next_object(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1), gone = {.key = "a", .uid = "old", .kind = CHANGE_DELETED};
        struct queue_outcome retry = {.delay_usec = 100, .reason = RUN_RETRY};
        struct queue_run run;

        (void)state;
        queue_push(queue, 0, &item, 1);
        queue_push(queue, 0, &gone, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_string_equal(run.uid, "old");
        assert_int_equal(queue_done(queue, run.id, &retry, 1), 0);
        assert_false(queue_next(queue, 50, &run)); /* the new object waits for the old one's deletion */
        assert_true(queue_next(queue, 101, &run));
        assert_int_equal(run.kind, CHANGE_DELETED);
        done(queue, run.id, 0, 102);
        assert_true(queue_next(queue, 102, &run));
        assert_string_equal(run.uid, "u");
        queue_free(queue);
}

static void test_delayed_add_then_add_is_one_run(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1);
        struct queue_run run;

        (void)state;
        item.not_before = 1000;
        queue_push(queue, 0, &item, 1);
        assert_int_equal(queue_next_time(queue), 1000);
        item.not_before = 0;
        queue_push(queue, 0, &item, 1);
        assert_true(queue_next(queue, 1, &run));
        done(queue, run.id, 1, 1);
        assert_false(queue_next(queue, 2000, &run));
        queue_free(queue);
}

static void test_far_future_adds_of_one_key_are_one_entry(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item item = update("a", 1);

        (void)state;
        for (uint64_t i = 0; i < (under_valgrind() ? 1000 : 100000); i++) {
                item.not_before = UINT64_C(1) << 40;
                queue_push(queue, 0, &item, i);
        }
        assert_int_equal(queue_count_all(queue).delayed, 1);
        queue_free(queue);
}

static void test_watches_take_turns_and_concurrency_holds(void **state)
{
        struct queue *queue = new_queue(2, 2);
        struct queue_run run;
        unsigned order[4];

        (void)state;
        for (int i = 0; i < 10; i++) {
                char key[8];

                snprintf(key, sizeof(key), "k%d", i);
                for (unsigned watch = 0; watch < 2; watch++)
                        queue_push(queue, watch,
                                   &(struct queue_item){.key = key, .uid = "u", .fingerprint = 1}, 1);
        }
        for (int i = 0; i < 4; i++) {
                assert_true(queue_next(queue, 1, &run));
                order[i] = run.watch;
        }
        assert_int_not_equal(order[0], order[1]);
        assert_int_not_equal(order[2], order[3]);
        assert_false(queue_next(queue, 1, &run)); /* two of each are running */
        queue_free(queue);
}

static void test_low_priority_ages(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item low = update("low", 1);
        struct queue_run run;
        int picks = 0;

        (void)state;
        low.priority = QUEUE_LOW;
        queue_push(queue, 0, &low, 1);
        do {
                char key[16];

                snprintf(key, sizeof(key), "n%d", picks);
                queue_push(queue, 0, &(struct queue_item){.key = key, .uid = "u", .fingerprint = 1}, 1);
                assert_true(queue_next(queue, 1, &run));
                assert_true(++picks <= QUEUE_AGEING);
        } while (strcmp(run.key, "low") != 0);
        queue_free(queue);
}

static void test_a_suspect_runs_last_and_alone(void **state)
{
        struct queue *queue = new_queue(2, 0);
        struct queue_item bad = update("bad", 1), good = update("good", 1), late = update("late", 1);
        struct queue_run first, run;

        (void)state;
        bad.suspect = true;
        queue_push(queue, 0, &bad, 1);
        queue_push(queue, 1, &good, 1);
        assert_true(queue_next(queue, 1, &first));
        assert_string_equal(first.key, "good");
        assert_false(queue_next(queue, 1, &run)); /* not beside another */
        done(queue, first.id, 1, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_string_equal(run.key, "bad");
        queue_push(queue, 1, &late, 1);
        assert_false(queue_next(queue, 1, &first)); /* and no other beside it */
        assert_int_equal(queue_count_all(queue).queued, 1);
        done(queue, run.id, 1, 1);
        assert_true(queue_next(queue, 1, &run));
        assert_string_equal(run.key, "late");
        done(queue, run.id, 1, 1);
        assert_int_equal(queue_count_all(queue).queued, 0);
        queue_free(queue);
}

static void test_a_suspect_does_not_wait_for_ever(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_item bad = update("bad", 1), good = update("good", 1), more = update("more", 1);
        uint64_t later = 1 + QUEUE_PATIENCE_USEC;
        struct queue_run first, run;

        (void)state;
        bad.suspect = true;
        queue_push(queue, 0, &good, 1);
        assert_true(queue_next(queue, 1, &first));
        queue_push(queue, 0, &bad, 1);
        queue_push(queue, 0, &more, 1);
        assert_false(queue_next(queue, later, &run)); /* what runs may end, nothing new begins */
        done(queue, first.id, 1, later);
        assert_true(queue_next(queue, later, &run));
        assert_string_equal(run.key, "bad");
        done(queue, run.id, 1, later);
        assert_true(queue_next(queue, later, &run));
        assert_string_equal(run.key, "more");
        queue_free(queue);
}

static void test_a_run_that_is_none(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_outcome outcome = {.handled = true};

        (void)state;
        assert_int_equal(queue_done(queue, 7, &outcome, 1), -ENOENT);
        queue_free(queue);
}

/* ---- random sequences: the model knows, for each key, the newest fingerprint and what was last handled */

#define KEYS    12
#define WATCHES 3
#define STEPS   20000

struct model {
        uint64_t newest[WATCHES][KEYS], handled[WATCHES][KEYS];
        bool running[WATCHES][KEYS];
        struct queue_run run[WATCHES * KEYS];
        size_t runs, running_of[WATCHES];
        uint64_t now, fingerprint;
};

static void model_key(size_t key, char name[8])
{
        snprintf(name, 8, "%c/k%zu", (char)('a' + key % 3), key);
}

static void random_push(struct queue *queue, struct model *model)
{
        unsigned watch = (unsigned)random() % WATCHES;
        size_t key = (size_t)random() % KEYS;
        char name[8];

        model_key(key, name);
        model->newest[watch][key] = ++model->fingerprint;
        assert_true(queue_push(queue, watch,
                               &(struct queue_item){.key = name,
                                                    .uid = "u",
                                                    .fingerprint = model->fingerprint,
                                                    .priority = random() % 2 ? QUEUE_LOW : QUEUE_NORMAL},
                               model->now) >= 0);
}

static void random_next(struct queue *queue, struct model *model)
{
        struct queue_run run;
        size_t key;

        if (!queue_next(queue, model->now, &run))
                return;
        key = (size_t)strtoul(run.key + 3, NULL, 10);
        assert_false(model->running[run.watch][key]);
        model->running[run.watch][key] = true;
        assert_true(++model->running_of[run.watch] <= 4);
        model->run[model->runs++] = run;
}

static void random_done(struct queue *queue, struct model *model)
{
        struct queue_outcome outcome = {
                .handled = random() % 3 != 0, .delay_usec = (uint64_t)(random() % 50), .reason = RUN_RETRY};
        size_t index, key;
        struct queue_run run;

        if (model->runs == 0)
                return;
        index = (size_t)random() % model->runs;
        run = model->run[index];
        key = (size_t)strtoul(run.key + 3, NULL, 10);
        model->run[index] = model->run[--model->runs];
        model->running[run.watch][key] = false;
        model->running_of[run.watch]--;
        if (random() % 5 == 0) {
                assert_int_equal(queue_return(queue, run.id, model->now), 0);
                return;
        }
        /* A worker reads the newest version, as old as its start or as new as now. */
        outcome.fingerprint = random() % 2 ? model->newest[run.watch][key] : run.fingerprint;
        if (outcome.handled)
                model->handled[run.watch][key] = outcome.fingerprint;
        assert_int_equal(queue_done(queue, run.id, &outcome, model->now), 0);
}

static void drain(struct queue *queue, struct model *model)
{
        struct queue_counts counts;

        for (int i = 0; i < 100000; i++) {
                struct queue_outcome outcome = {.handled = true};
                size_t key;

                model->now += 10;
                random_next(queue, model);
                if (model->runs == 0)
                        continue;
                key = (size_t)strtoul(model->run[0].key + 3, NULL, 10);
                outcome.fingerprint = model->newest[model->run[0].watch][key];
                model->handled[model->run[0].watch][key] = outcome.fingerprint;
                model->running[model->run[0].watch][key] = false;
                model->running_of[model->run[0].watch]--;
                assert_int_equal(queue_done(queue, model->run[0].id, &outcome, model->now), 0);
                model->run[0] = model->run[--model->runs];
                counts = queue_count_all(queue);
                if (counts.queued + counts.running + counts.delayed == 0 && model->runs == 0)
                        return;
        }
}

static void test_random_sequences(void **state)
{
        (void)state;
        for (unsigned seed = 1; seed <= 20; seed++) {
                struct queue *queue = new_queue(WATCHES, 4);
                struct model model = {.now = 1};
                struct queue_counts counts;

                srandom(seed);
                for (int step = 0; step < STEPS; step++) {
                        model.now += (uint64_t)(random() % 10);
                        switch (random() % 3) {
                        case 0:
                                random_push(queue, &model);
                                break;
                        case 1:
                                random_next(queue, &model);
                                break;
                        default:
                                random_done(queue, &model);
                        }
                        assert_int_equal(queue_count_all(queue).running, model.runs);
                }
                drain(queue, &model);
                counts = queue_count_all(queue);
                assert_int_equal(counts.queued + counts.running + counts.delayed, 0);
                for (size_t watch = 0; watch < WATCHES; watch++)
                        for (size_t key = 0; key < KEYS; key++)
                                assert_int_equal(model.handled[watch][key],
                                                 model.newest[watch][key]); /* nothing is lost */
                queue_free(queue);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_one_run_a_key),
                cmocka_unit_test(test_a_nudge_is_no_update),
                cmocka_unit_test(test_a_bare_nudge_takes_nothing_away),
                cmocka_unit_test(test_a_nudge_goes_with_its_object),
                cmocka_unit_test(test_a_deletion_that_is_over_with_a_run),
                cmocka_unit_test(test_what_cannot_run_needs_no_timer),
                cmocka_unit_test(test_where_a_key_stands),
                cmocka_unit_test(test_a_paused_watch_keeps_its_keys),
                cmocka_unit_test(test_a_watch_that_is_taken_out),
                cmocka_unit_test(test_what_was_read_needs_no_run),
                cmocka_unit_test(test_an_own_write_that_is_taken_back),
                cmocka_unit_test(test_deletion_before_the_next_object),
                cmocka_unit_test(test_delayed_add_then_add_is_one_run),
                cmocka_unit_test(test_far_future_adds_of_one_key_are_one_entry),
                cmocka_unit_test(test_watches_take_turns_and_concurrency_holds),
                cmocka_unit_test(test_low_priority_ages),
                cmocka_unit_test(test_a_suspect_runs_last_and_alone),
                cmocka_unit_test(test_a_suspect_does_not_wait_for_ever),
                cmocka_unit_test(test_a_run_that_is_none),
                cmocka_unit_test(test_random_sequences),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
