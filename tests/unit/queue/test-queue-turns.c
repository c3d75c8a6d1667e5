/* SPDX-License-Identifier: Apache-2.0 */
/* Whose turn it is: namespaces of a watch take turns, and no line is passed over for ever. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/queue/queue-items.h"

static void push(struct queue *queue, const char *key, enum queue_priority priority, enum run_reason reason,
                 bool by_hand)
{
        struct queue_item item = {.key = key,
                                  .uid = "u",
                                  .priority = priority,
                                  .fingerprint = 1,
                                  .reason = reason,
                                  .urgent = by_hand};

        assert_true(queue_push(queue, 0, &item, 1) >= 0);
}

static void push_many(struct queue *queue, const char *namespace, unsigned count, enum run_reason reason)
{
        for (unsigned i = 0; i < count; i++) {
                char key[32];

                snprintf(key, sizeof(key), "%s/k%u", namespace, i);
                push(queue, key, QUEUE_NORMAL, reason, false);
        }
}

/* Picks until the key is picked, and returns how many picks that took. */
static unsigned picks_until(struct queue *queue, const char *key)
{
        struct queue_run run;

        for (unsigned picks = 1;; picks++) {
                bool is_it;

                assert_true(queue_next(queue, 1, &run));
                is_it = strcmp(run.key, key) == 0;
                done(queue, run.id, 1, 1);
                if (is_it)
                        return picks;
        }
}

static void test_one_key_does_not_wait_for_ten_thousand(void **state)
{
        struct queue *queue = new_queue(1, 0);

        (void)state;
        push_many(queue, "crowd", 10000, RUN_CHANGED);
        push(queue, "quiet/one", QUEUE_NORMAL, RUN_CHANGED, false);
        assert_true(picks_until(queue, "quiet/one") <= 2);
        push_many(queue, "other", 100, RUN_CHANGED);
        push(queue, "quiet/one", QUEUE_NORMAL, RUN_CHANGED, false);
        assert_true(picks_until(queue, "quiet/one") <= 3);
        queue_free(queue);
}

static void test_what_has_begun_delays_its_own_namespace_only(void **state)
{
        struct queue *queue = new_queue(1, 0);

        (void)state;
        push_many(queue, "crowd", 150, RUN_SETTLING);
        push(queue, "crowd/new", QUEUE_NORMAL, RUN_CHANGED, false);
        push(queue, "quiet/one", QUEUE_NORMAL, RUN_CHANGED, false);
        assert_true(picks_until(queue, "quiet/one") <= 2);
        assert_true(picks_until(queue, "crowd/new") <= QUEUE_AGEING); /* and there it ages */
        queue_free(queue);
}

/* Each line has something all the time, in two namespaces. */
static void test_no_line_starves_another(void **state)
{
        static const struct {
                enum queue_priority priority;
                enum run_reason reason;
                bool by_hand;
        } line[] = {{QUEUE_NORMAL, RUN_REQUESTED, true},
                    {QUEUE_NORMAL, RUN_SETTLING, false},
                    {QUEUE_NORMAL, RUN_CHANGED, false},
                    {QUEUE_LOW, RUN_CHANGED, false}};
        struct queue *queue = new_queue(1, 0);
        unsigned picked[2][ELEMENTS(line)] = {{0}}, picks = 0;
        struct queue_run run;

        (void)state;
        for (; picks < 2000; picks++) {
                for (unsigned i = 0; i < 2 * ELEMENTS(line); i++) {
                        char key[8];

                        snprintf(key, sizeof(key), "%u/%zu", i % 2, i / 2 % ELEMENTS(line));
                        push(queue, key, line[i / 2].priority, line[i / 2].reason, line[i / 2].by_hand);
                }
                assert_true(queue_next(queue, 1, &run));
                picked[run.key[0] - '0'][run.key[2] - '0']++;
                done(queue, run.id, 1, 1);
        }
        for (unsigned i = 0; i < ELEMENTS(line); i++) {
                assert_true(picked[0][i] >= 10 && picked[1][i] >= 10);
                assert_true(picked[0][i] <= picked[1][i] + 1 && picked[1][i] <= picked[0][i] + 1);
        }
        queue_free(queue);
}

static void test_a_paused_watch_finds_what_has_begun(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_run run;

        (void)state;
        push_many(queue, "crowd", 50, RUN_CHANGED);
        push(queue, "a/begun", QUEUE_NORMAL, RUN_SETTLING, false);
        push(queue, "crowd/begun", QUEUE_NORMAL, RUN_SETTLING, false);
        queue_pause(queue, 0, true);
        assert_true(picks_until(queue, "a/begun") + picks_until(queue, "crowd/begun") <= 3);
        assert_false(queue_next(queue, 1, &run));
        queue_pause(queue, 0, false);
        for (int i = 0; i < 50; i++) {
                assert_true(queue_next(queue, 1, &run));
                done(queue, run.id, 1, 1);
        }
        assert_false(queue_next(queue, 1, &run));
        queue_free(queue);
}

/* Ten thousand keys of one namespace are due before one of another. */
static void test_what_is_due_does_not_wait_for_a_crowd_that_is_due(void **state)
{
        struct queue *queue = new_queue(1, 0);
        struct queue_run run;
        struct queue_item item = {.uid = "u", .fingerprint = 1, .reason = RUN_RETRY, .not_before = 10};
        unsigned picks = 0;

        (void)state;
        for (unsigned i = 0; i < 10000; i++) {
                char key[32];

                snprintf(key, sizeof(key), "crowd/k%u", i);
                item.key = key;
                assert_true(queue_push(queue, 0, &item, 1) >= 0);
        }
        for (unsigned i = 0; i < 3; i++) {
                const char *quiet[] = {"quiet/one", "quiet/two", "still/one"};

                item.key = quiet[i];
                item.not_before = 20;
                assert_true(queue_push(queue, 0, &item, 1) >= 0);
        }
        for (unsigned found = 0; found < 3; picks++) {
                assert_true(queue_next(queue, 20, &run));
                found += strncmp(run.key, "crowd", 5) != 0;
                done(queue, run.id, 1, 20);
        }
        assert_true(picks <= 6);
        for (; picks < 10003; picks++) {
                assert_true(queue_next(queue, 20, &run));
                done(queue, run.id, 1, 20);
        }
        assert_false(queue_next(queue, 20, &run));
        assert_true(queue_next_time(queue) == UINT64_MAX);
        queue_free(queue);
}

static void test_suspects_without_patience_let_others_run(void **state)
{
        struct queue *queue = new_queue(1, 0);
        uint64_t late = 2 + QUEUE_PATIENCE_USEC;
        struct queue_run run;
        unsigned others = 0;

        (void)state;
        push_many(queue, "quiet", 3, RUN_CHANGED);
        for (unsigned i = 0; i < 10; i++) {
                char key[16];

                snprintf(key, sizeof(key), "bad/k%u", i);
                assert_true(queue_push(queue, 0,
                                       &(struct queue_item){.key = key, .uid = "u", .suspect = true},
                                       1) >= 0);
        }
        for (unsigned i = 0; i < 6; i++) {
                assert_true(queue_next(queue, late, &run));
                others += strncmp(run.key, "quiet", 5) == 0;
                done(queue, run.id, 1, late);
        }
        assert_int_equal(others, 3);
        queue_free(queue);
}

/* A suspect, and a run that takes long. Each second phase is that of others. */
static void test_a_suspect_holds_others_back_for_half_of_the_time(void **state)
{
        struct queue *queue = new_queue(1, 0);
        uint64_t phase = QUEUE_PATIENCE_USEC, now = 1 + QUEUE_PATIENCE_USEC;
        struct queue_run slow, run;

        (void)state;
        push(queue, "n/slow", QUEUE_NORMAL, RUN_CHANGED, false);
        assert_true(queue_next(queue, 1, &slow));
        assert_true(queue_push(queue, 0, &(struct queue_item){.key = "n/bad", .uid = "u", .suspect = true},
                               1) >= 0);
        for (unsigned i = 0; i < 3; i++, phase *= 2) {
                push(queue, "n/other", QUEUE_NORMAL, RUN_CHANGED, false);
                assert_false(queue_next(queue, now, &run));
                assert_int_equal(queue_next_time(queue), now + phase);
                now += phase;
                assert_false(queue_next(queue, now - 1, &run));
                assert_true(queue_next(queue, now, &run));
                assert_string_equal(run.key, "n/other");
                assert_int_equal(queue_next_time(queue), UINT64_MAX); /* nothing is held back */
                done(queue, run.id, 1, now);
                now += phase;
        }
        push(queue, "n/other", QUEUE_NORMAL, RUN_CHANGED, false);
        done(queue, slow.id, 1, now);
        assert_true(queue_next(queue, now, &run));
        assert_string_equal(run.key, "n/bad");
        assert_int_equal(queue_next_time(queue), UINT64_MAX);
        done(queue, run.id, 1, now);
        assert_true(queue_next(queue, now, &slow));
        push(queue, "n/more", QUEUE_NORMAL, RUN_CHANGED, false);
        assert_true(queue_next(queue, now, &run)); /* and nobody waits any more */
        queue_free(queue);
}

static void test_who_waits_for_whom(void **state)
{
        struct queue *queue = new_queue(2, 0);
        struct queue_share share[2];
        struct queue_run run;
        struct queue_view view;

        (void)state;
        assert_int_equal(queue_shares(queue, share, 2), 0);
        push_many(queue, "large", 30, RUN_CHANGED);
        push_many(queue, "small", 2, RUN_CHANGED);
        push_many(queue, "larger", 31, RUN_SETTLING);
        push(queue, "small/low", QUEUE_LOW, RUN_CHANGED, false);
        assert_true(queue_next(queue, 5, &run));
        assert_string_equal(run.key, "large/k0");
        assert_int_equal(queue_shares(queue, share, 2), 2);
        assert_string_equal(share[0].namespace, "larger");
        assert_string_equal(share[1].namespace, "large");
        assert_int_equal(share[1].queued, 29);
        assert_int_equal(share[1].running, 1);
        assert_int_equal(share[1].since, 1);
        view = queue_look(queue, 0, "small/k1");
        assert_int_equal(view.ahead, 1);
        assert_int_equal(view.sharing, 3);
        for (unsigned i = 0; i < 63; i++)
                assert_true(queue_next(queue, 5, &run)); /* all of them run */
        assert_int_equal(queue_shares(queue, share, 2), 2);
        assert_true(share[0].queued == 0 && share[0].running > 0 && share[0].since == 0);
        queue_free(queue);
}

/* As many as there are; each has its turn once before any has its second. */
static void test_a_hundred_thousand_namespaces(void **state)
{
        enum { MANY = 100000 };
        struct queue *queue = new_queue(1, 0);
        struct queue_run run;
        char key[32];

        (void)state;
        for (unsigned i = 0; i < MANY; i++) {
                snprintf(key, sizeof(key), "n%u/a", i);
                push(queue, key, QUEUE_NORMAL, RUN_CHANGED, false);
        }
        push(queue, "n0/b", QUEUE_NORMAL, RUN_CHANGED, false);
        for (unsigned i = 0; i < MANY; i++) {
                snprintf(key, sizeof(key), "n%u/a", i);
                assert_true(queue_next(queue, 1, &run));
                assert_string_equal(run.key, key);
                done(queue, run.id, 1, 1);
        }
        assert_true(queue_next(queue, 1, &run));
        assert_string_equal(run.key, "n0/b");
        done(queue, run.id, 1, 1);
        assert_int_equal(queue_count(queue, 0).queued + queue_count(queue, 0).running, 0);
        queue_free(queue);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_one_key_does_not_wait_for_ten_thousand),
                cmocka_unit_test(test_what_has_begun_delays_its_own_namespace_only),
                cmocka_unit_test(test_no_line_starves_another),
                cmocka_unit_test(test_a_paused_watch_finds_what_has_begun),
                cmocka_unit_test(test_what_is_due_does_not_wait_for_a_crowd_that_is_due),
                cmocka_unit_test(test_suspects_without_patience_let_others_run),
                cmocka_unit_test(test_a_suspect_holds_others_back_for_half_of_the_time),
                cmocka_unit_test(test_who_waits_for_whom),
                cmocka_unit_test(test_a_hundred_thousand_namespaces),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
