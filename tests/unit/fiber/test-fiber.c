/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers: order, waiting, both steps of an end, the bounds of a stack. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fiber/checkers.h"
#include "fiber/fiber.h"
#include "tests/unit/valgrind.h"

struct fixture {
        sd_event *event;
        struct fibers *fibers;
        char log[4096];
};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(fibers_new(fixture->event, &fixture->fibers), 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        fibers_free(fixture->fibers);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void note(struct fixture *fixture, const char *word)
{
        size_t used = strlen(fixture->log);
        int r = snprintf(fixture->log + used, sizeof(fixture->log) - used, "%s ", word);

        assert_true(r > 0 && used + (size_t)r < sizeof(fixture->log));
}

/* One turn of the loop. true: something was to be done. */
static bool turn(struct fixture *fixture)
{
        int r = sd_event_run(fixture->event, 0);

        assert_true(r >= 0);
        return r > 0;
}

static void turn_until_none(struct fixture *fixture)
{
        while (fibers_count(fixture->fibers) > 0)
                assert_true(sd_event_run(fixture->event, 10 * 1000) >= 0);
}

struct actor {
        struct fixture *fixture;
        struct fiber *fiber, *other;
        const char *name;
        unsigned times;
        int last;
};

static void act(void *userdata)
{
        struct actor *actor = userdata;

        assert_ptr_equal(fiber_current(), actor->fiber);
        for (unsigned i = 0; i < actor->times; i++) {
                char word[40];

                snprintf(word, sizeof(word), "%s%u", actor->name, i);
                note(actor->fixture, word);
                actor->last = fiber_suspend("a test");
                if (actor->last < 0)
                        note(actor->fixture, "cancelled");
        }
        note(actor->fixture, actor->name);
}

static void start(struct actor *actor)
{
        assert_int_equal(fiber_start(actor->fixture->fibers, actor->name, act, actor, &actor->fiber), 0);
}

static void test_nothing_runs_before_the_loop_turns(void **state)
{
        struct fixture *fixture = *state;
        struct actor a = {.fixture = fixture, .name = "a", .times = 1};
        uint64_t since = 0;

        start(&a);
        assert_string_equal(fixture->log, "");
        assert_null(fiber_waits_for(a.fiber, &since));
        turn(fixture);
        assert_string_equal(fixture->log, "a0 ");
        assert_string_equal(fiber_waits_for(a.fiber, &since), "a test");
        assert_true(since > 0);
        assert_string_equal(fiber_name(a.fiber), "a");
        assert_null(fiber_current());
        assert_false(turn(fixture)); /* nothing is pending while it waits */
        fiber_wake(a.fiber);
        assert_string_equal(fixture->log, "a0 ");
        turn(fixture);
        assert_string_equal(fixture->log, "a0 a ");
        assert_int_equal(fibers_count(fixture->fibers), 0);
}

static void test_a_round_runs_each_once_in_the_order_of_waking(void **state)
{
        struct fixture *fixture = *state;
        struct actor a = {.fixture = fixture, .name = "a", .times = 2},
                     b = {.fixture = fixture, .name = "b", .times = 1};

        start(&a);
        start(&b);
        turn(fixture);
        assert_string_equal(fixture->log, "a0 b0 ");
        fiber_wake(b.fiber);
        fiber_wake(a.fiber);
        fiber_wake(b.fiber); /* twice is once */
        turn(fixture);
        assert_string_equal(fixture->log, "a0 b0 b a1 ");
        fiber_wake(a.fiber);
        turn(fixture);
        assert_string_equal(fixture->log, "a0 b0 b a1 a ");
}

static void wake_other(void *userdata)
{
        struct actor *actor = userdata;

        for (unsigned i = 0; i < 3; i++) {
                note(actor->fixture, actor->name);
                fiber_wake(actor->other);
                fiber_wake(fiber_current()); /* itself: its next wait is none */
                assert_int_equal(fiber_suspend("itself"), 0);
        }
}

static void test_who_is_woken_by_a_fiber_waits_for_the_next_round(void **state)
{
        struct fixture *fixture = *state;
        struct actor a = {.fixture = fixture, .name = "a", .times = 1},
                     w = {.fixture = fixture, .name = "w"};

        start(&a);
        turn(fixture);
        w.other = a.fiber;
        assert_int_equal(fiber_start(fixture->fibers, "w", wake_other, &w, &w.fiber), 0);
        turn(fixture);
        assert_string_equal(fixture->log, "a0 w w w ");
        turn(fixture);
        assert_string_equal(fixture->log, "a0 w w w a ");
        assert_int_equal(fibers_count(fixture->fibers), 0);
}

static void test_cancelled_before_it_has_begun(void **state)
{
        struct fixture *fixture = *state;
        struct actor a = {.fixture = fixture, .name = "a", .times = 1};

        start(&a);
        fiber_cancel(a.fiber);
        turn(fixture);
        assert_string_equal(fixture->log, "a0 cancelled a ");
        assert_int_equal(a.last, -ECANCELED);
}

static void test_cancelled_while_it_waits_and_waits_again_to_clean_up(void **state)
{
        struct fixture *fixture = *state;
        struct actor a = {.fixture = fixture, .name = "a", .times = 2};

        start(&a);
        turn(fixture);
        assert_false(fiber_is_ending(a.fiber));
        fiber_cancel(a.fiber);
        assert_true(fiber_is_ending(a.fiber));
        fiber_wake(a.fiber); /* what it waited for comes as well */
        turn(fixture);
        assert_string_equal(fixture->log, "a0 cancelled a1 ");
        assert_false(turn(fixture));
        fiber_wake(a.fiber);
        turn(fixture);
        assert_string_equal(fixture->log, "a0 cancelled a1 a ");
        assert_int_equal(a.last, 0);
}

/* A process that ends has fibers that still wait, and a loop that takes nothing any more. */
static void test_cancelled_when_the_loop_is_over(void **state)
{
        struct fixture *fixture = *state;
        struct actor a = {.fixture = fixture, .name = "a", .times = 1};

        start(&a);
        turn(fixture);
        assert_int_equal(sd_event_exit(fixture->event, 0), 0);
        assert_int_equal(sd_event_loop(fixture->event), 0);
        fibers_cancel(fixture->fibers);
        fibers_turn(fixture->fibers);
        assert_string_equal(fixture->log, "a0 cancelled a ");
        assert_int_equal(fibers_count(fixture->fibers), 0);
}

static void test_asked_to_end_what_is_in_flight_goes_on(void **state)
{
        struct fixture *fixture = *state;
        struct actor a = {.fixture = fixture, .name = "a", .times = 1};

        start(&a);
        turn(fixture);
        fiber_ask_to_end(a.fiber);
        assert_true(fiber_is_ending(a.fiber));
        assert_false(turn(fixture));
        fiber_wake(a.fiber);
        turn(fixture);
        assert_int_equal(a.last, 0);
        assert_string_equal(fixture->log, "a0 a ");
}

/* ---- waiting for a time */

static void doze(void *userdata)
{
        struct actor *actor = userdata;

        actor->last = fiber_sleep(actor->times, "the clock");
}

static void test_sleeping(void **state)
{
        struct fixture *fixture = *state;
        struct actor brief = {.fixture = fixture, .times = 1000, .last = 1},
                     endless = {.fixture = fixture, .times = 3600u * 1000 * 1000, .last = 1};

        assert_int_equal(fiber_start(fixture->fibers, "endless", doze, &endless, &endless.fiber), 0);
        assert_int_equal(fiber_start(fixture->fibers, "brief", doze, &brief, &brief.fiber), 0);
        turn(fixture);
        fiber_wake(endless.fiber); /* for nothing */
        while (fibers_count(fixture->fibers) > 1)
                assert_true(sd_event_run(fixture->event, 10 * 1000) >= 0);
        assert_int_equal(brief.last, 0);
        assert_int_equal(endless.last, 1);
        fiber_cancel(endless.fiber);
        turn_until_none(fixture);
        assert_int_equal(endless.last, -ECANCELED);
}

struct sleeper {
        struct fiber *asleep;
        int last;
};

static void sleep_long(void *userdata)
{
        struct sleeper *sleeper = userdata;

        sleeper->last = fiber_sleep_at_most(UINT64_C(3600) * 1000 * 1000, "the clock", &sleeper->asleep);
}

static void test_a_sleep_is_ended_early(void **state)
{
        struct fixture *fixture = *state;
        struct sleeper told = {.last = 1}, cancelled = {.last = 1}, *each[] = {&told, &cancelled};

        fiber_end_sleep(&told.asleep); /* nobody sleeps */
        for (size_t i = 0; i < ELEMENTS(each); i++)
                assert_int_equal(fiber_start(fixture->fibers, "sleeper", sleep_long, each[i], NULL), 0);
        turn(fixture);
        assert_non_null(told.asleep);
        fiber_wake(told.asleep); /* for nothing */
        turn(fixture);
        assert_non_null(told.asleep);
        fiber_end_sleep(&told.asleep);
        turn(fixture);
        assert_int_equal(told.last, 0);
        assert_int_equal(cancelled.last, 1);
        fibers_cancel(fixture->fibers);
        turn_until_none(fixture);
        assert_null(told.asleep);
        assert_null(cancelled.asleep);
        assert_int_equal(cancelled.last, -ECANCELED);
}

/* ---- stacks */

/* Deep, and waiting at the bottom of it: what is on the stack is there afterwards. */
static unsigned descend(unsigned depth)
{
        volatile unsigned char frame[1024];
        unsigned sum;

        memset((void *)frame, (int)(depth & 0xff), sizeof(frame));
        if (depth == 0)
                return fiber_suspend("the bottom") == 0 ? 0 : 1000000;
        sum = descend(depth - 1);
        for (size_t i = 0; i < sizeof(frame); i++)
                if (frame[i] != (depth & 0xff))
                        return 1000000;
        return sum + 1;
}

struct diver {
        unsigned depth, result;
};

static void dive(void *userdata)
{
        struct diver *diver = userdata;

        diver->result = descend(diver->depth);
}

static void test_nested_calls_keep_their_frames(void **state)
{
        struct fixture *fixture = *state;
        struct diver shallow = {.depth = 10}, deep = {.depth = 4000};
        struct fiber *fiber[2];
        size_t size, used;

        assert_int_equal(fiber_start(fixture->fibers, "shallow", dive, &shallow, &fiber[0]), 0);
        assert_int_equal(fiber_start(fixture->fibers, "deep", dive, &deep, &fiber[1]), 0);
        turn(fixture);
        used = fiber_stack_used(fiber[1], &size);
        assert_true(used > (size_t)4000 * 1024 && used <= size);
        assert_true(fiber_stack_used(fiber[0], &size) < used);
        fiber_wake(fiber[0]);
        fiber_wake(fiber[1]);
        turn_until_none(fixture);
        assert_int_equal(shallow.result, 10);
        assert_int_equal(deep.result, 4000);
}

static void fall(void *userdata)
{
        unsigned *depth = userdata;

        *depth = descend(*depth);
}

static void test_over_the_end_of_a_stack_is_a_fault(void **state _unused_)
{
        struct fibers *fibers;
        sd_event *event;
        unsigned depth = 1000000;
        int status;
        pid_t child;

        if (under_valgrind())
                return; /* it reports that as a fault of its own */
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
                const struct rlimit none = {0};

                setrlimit(RLIMIT_CORE, &none);
                signal(SIGSEGV, SIG_DFL);
                /* A loop is of the process that has made it. */
                if (sd_event_new(&event) >= 0 && fibers_new(event, &fibers) == 0 &&
                    fiber_start(fibers, "falls", fall, &depth, NULL) == 0)
                        sd_event_run(event, 0);
                _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

static void test_a_stack_serves_one_after_the_other(void **state)
{
        struct fixture *fixture = *state;
        struct fiber *first = NULL;

        for (unsigned i = 0; i < 100; i++) {
                struct actor a = {.fixture = fixture, .name = "a", .times = 0};

                start(&a);
                first = first ? first : a.fiber;
                assert_ptr_equal(a.fiber, first);
                turn(fixture);
                assert_int_equal(fibers_count(fixture->fibers), 0);
        }
        fibers_trim(fixture->fibers);
        fibers_trim(fixture->fibers);
}

struct crowd {
        struct fiber *fiber;
        char *held; /* by the stack alone, while it waits */
        unsigned *done;
};

static void join(void *userdata)
{
        struct crowd *one = userdata;
        char *held = strdup("held");

        assert_non_null(held);
        for (unsigned i = 0; i < 10; i++)
                assert_int_equal(fiber_suspend("its turn"), 0);
        assert_string_equal(held, "held");
        free(held);
        ++*one->done;
}

static void test_a_thousand(void **state)
{
        struct fixture *fixture = *state;
        unsigned done = 0, size = under_valgrind() ? 100 : 1000;
        uint64_t since;
        struct crowd *crowd = calloc(size, sizeof(*crowd));

        assert_non_null(crowd);
        for (unsigned i = 0; i < size; i++) {
                crowd[i].done = &done;
                assert_int_equal(
                        fiber_start(fixture->fibers, "one of many", join, &crowd[i], &crowd[i].fiber), 0);
        }
        turn(fixture);
        assert_int_equal(fibers_count(fixture->fibers), size);
        for (unsigned i = 0; i < size; i++)
                assert_string_equal(fiber_waits_for(crowd[i].fiber, &since), "its turn");
        for (unsigned i = 0; i < 10; i++) {
                for (unsigned j = 0; j < size; j++)
                        fiber_wake(crowd[j].fiber);
                turn(fixture);
        }
        assert_int_equal(done, size);
        assert_int_equal(fibers_count(fixture->fibers), 0);
        free(crowd);
}

/* The search for leaks sees what is on the stack of a fiber that waits, and what no fiber has any more. */
static void test_what_a_stack_holds_is_no_leak(void **state)
{
        struct fixture *fixture = *state;
        unsigned done = 0;
        struct crowd one = {.done = &done};

        assert_int_equal(fiber_start(fixture->fibers, "holds", join, &one, &one.fiber), 0);
        turn(fixture);
#if defined(__SANITIZE_ADDRESS__)
        assert_int_equal(__lsan_do_recoverable_leak_check(), 0);
#endif
        while (done == 0) {
                fiber_wake(one.fiber);
                turn(fixture);
        }
}

/* Resident memory of the process, in bytes. */
static size_t resident(void)
{
        unsigned long all, pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");

        assert_non_null(file);
        assert_int_equal(fscanf(file, "%lu %lu", &all, &pages), 2);
        fclose(file);
        return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void test_only_touched_pages_cost(void **state)
{
        struct fixture *fixture = *state;
        struct actor actor[100];
        size_t before = resident();

        for (size_t i = 0; i < ELEMENTS(actor); i++) {
                actor[i] = (struct actor){.fixture = fixture, .name = "", .times = 1};
                start(&actor[i]);
        }
        turn(fixture);
        /* Checkers keep notes of their own for each page. */
#if !defined(__SANITIZE_ADDRESS__)
        if (!under_valgrind())
                assert_true(resident() - before < (size_t)ELEMENTS(actor) * (32 << 10));
#endif
        for (size_t i = 0; i < ELEMENTS(actor); i++)
                fiber_wake(actor[i].fiber);
        turn_until_none(fixture);
        assert_true(before > 0);
}

/* No room for one more is an error, not the end. */
static void test_no_room_for_a_stack(void **state)
{
        struct fixture *fixture = *state;
        struct rlimit limit, none;
        struct actor a = {.fixture = fixture, .name = "a", .times = 0};
        int r;

#if defined(__SANITIZE_ADDRESS__)
        return;
#endif
        if (under_valgrind())
                return; /* no room there for what the checker notes */
        assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
        none = (struct rlimit){.rlim_cur = 1 << 20, .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
        r = fiber_start(fixture->fibers, "a", act, &a, &a.fiber);
        assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
        assert_int_equal(r, -ENOMEM);
        assert_int_equal(fibers_count(fixture->fibers), 0);
        start(&a);
        turn(fixture);
        assert_string_equal(fixture->log, "a ");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_nothing_runs_before_the_loop_turns, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_round_runs_each_once_in_the_order_of_waking, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_who_is_woken_by_a_fiber_waits_for_the_next_round, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_cancelled_before_it_has_begun, setup, teardown),
                cmocka_unit_test_setup_teardown(test_cancelled_while_it_waits_and_waits_again_to_clean_up,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_cancelled_when_the_loop_is_over, setup, teardown),
                cmocka_unit_test_setup_teardown(test_asked_to_end_what_is_in_flight_goes_on, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_sleeping, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_sleep_is_ended_early, setup, teardown),
                cmocka_unit_test_setup_teardown(test_nested_calls_keep_their_frames, setup, teardown),
                cmocka_unit_test_setup_teardown(test_over_the_end_of_a_stack_is_a_fault, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_stack_serves_one_after_the_other, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_thousand, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_a_stack_holds_is_no_leak, setup, teardown),
                cmocka_unit_test_setup_teardown(test_only_touched_pages_cost, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_room_for_a_stack, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
