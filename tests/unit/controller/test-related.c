/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of related objects: all that may depend on them are asked, also if no turn has time for long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdlib.h>

#include "controller/change/related-changes.h"
#include "controller/effects.h"
#include "queue/look.h"
#include "tests/unit/ledger/ledger-folder.h"

#define OBJECTS 180 /* more than three pages */

struct turn { /* what the controller asks of its caller */
        bool settle, has_time;
};

static void note_settle(void *userdata)
{
        ((struct turn *)userdata)->settle = true;
}

static bool turn_has_time(const void *userdata)
{
        return ((const struct turn *)userdata)->has_time;
}

static void ignore_wake(void *userdata, enum controller_wake what, uint64_t at)
{
        (void)userdata;
        (void)what;
        (void)at;
}

static uint64_t no_chance(void *userdata)
{
        (void)userdata;
        return 0;
}

static void fill(struct ledger *ledger)
{
        for (unsigned i = 0; i < OBJECTS; i++) {
                char key[16];
                struct ledger_row row = {.key = key, .uid = key};

                snprintf(key, sizeof(key), "d/%03u", i);
                assert_int_equal(ledger_put(ledger, "widgets", &row), 0);
        }
        assert_int_equal(ledger_commit(ledger), 0);
}

/* One turn, and whether the next one is asked for. */
static bool idle(struct controller *controller, struct turn *turn, bool has_time)
{
        const struct controller_now now = {1, 1, 1};

        *turn = (struct turn){.has_time = has_time};
        controller_tell_time(controller, &now);
        controller_idle(controller);
        return turn->settle;
}

static void test_a_turn_without_time_asks_for_the_next_one(void **state)
{
        static const struct controller_effects effects = {
                .settle = note_settle, .wake = ignore_wake, .has_time = turn_has_time, .random = no_chance};
        struct config_watch config[] = {
                {.name = (char[]){"widgets"}, .api_version = (char[]){"v1"}, .kind = (char[]){"Widget"}},
                {.name = (char[]){"related"},
                 .api_version = (char[]){"v1"},
                 .kind = (char[]){"Related"},
                 .owner = (char[]){"widgets"},
                 .is_related = true}};
        const struct record_change change = {.key = "d/related", .uid = "r", .resource_version = "7"};
        const struct config operator_config = {.workers = 1};
        struct controller controller;
        struct turn turn = {0};
        struct watch *watch[2];
        struct queue_counts asked;
        struct error error = ERROR_NONE;
        char *aside = NULL;
        unsigned turns = 0;

        (void)state;
        assert_int_equal(controller_init(&controller, &effects, &turn, 1, 2), 0);
        controller.config = &operator_config;
        assert_int_equal(queue_new(&controller.queue), 0);
        assert_int_equal(ledger_open(path, &controller.ledger, &aside, &error), 0);
        for (size_t i = 0; i < 2; i++)
                assert_int_equal(watch_take(&controller, &config[i], &watch[i]), 0);
        fill(controller.ledger);

        assert_int_equal(related_changed(watch[1], &change), 0);
        while (related_is_pending(&controller)) {
                assert_true(idle(&controller, &turn, false));
                assert_true(related_is_pending(&controller));
                assert_true(idle(&controller, &turn, true));
                assert_true(turns++ < OBJECTS);
        }
        asked = queue_count(controller.queue, watch_number(watch[0]));
        assert_int_equal(asked.queued + asked.delayed, OBJECTS);

        controller_done(&controller);
        queue_free(controller.queue);
        ledger_free(controller.ledger);
        free(aside);
}

static int set_up(void **state)
{
        (void)state;
        return folder_make("related");
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove();
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_a_turn_without_time_asks_for_the_next_one, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
