/* SPDX-License-Identifier: Apache-2.0 */
/* A watcher is asked about the rows of the ledger; one that no message may carry ends nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/change/owed.h"
#include "controller/effects.h"
#include "tests/unit/ledger/ledger-folder.h"

#define ROWS (2 * PAGE_OWED)

struct asked {
        size_t count, pages, warnings;
        bool last;
};

static int note_owed(void *userdata, struct watch *watch, const struct message_owed *owed)
{
        struct asked *asked = userdata;

        (void)watch;
        for (size_t i = 0; i < owed->owed_count; i++)
                assert_memory_equal(owed->owed[i].key, "d/", 2);
        asked->count += owed->owed_count;
        asked->pages++;
        asked->last = owed->last;
        return 0;
}

static bool room(const void *userdata, const struct watch *watch)
{
        (void)userdata;
        (void)watch;
        return true;
}

static void ignore_turn(void *userdata)
{
        (void)userdata;
}

static void note_warning(void *userdata, int priority, const char *message_id, const struct log_field *field,
                         const char *message)
{
        (void)message_id;
        (void)field;
        ((struct asked *)userdata)->warnings +=
                priority == LOG_WARNING && strstr(message, "is of no object") != NULL;
}

static void put(struct ledger *ledger, const char *key, const char *uid)
{
        const struct ledger_row row = {.key = (char *)(uintptr_t)key, .uid = (char *)(uintptr_t)uid};

        assert_int_equal(ledger_put(ledger, "widgets", &row), 0);
}

static void test_a_row_of_no_object_is_dropped(void **state)
{
        static const struct controller_effects effects = {
                .settle = ignore_turn, .owed = note_owed, .has_room = room, .log = note_warning};
        struct config_watch config = {
                .name = (char[]){"widgets"}, .api_version = (char[]){"v1"}, .kind = (char[]){"Widget"}};
        const struct config operator_config = {.workers = 1};
        struct ledger_row row;
        struct controller controller;
        struct asked asked = {0};
        struct error error = ERROR_NONE;
        struct watch *watch;
        char *aside = NULL;

        (void)state;
        assert_int_equal(controller_init(&controller, &effects, &asked, 1, 1), 0);
        controller.config = &operator_config;
        assert_int_equal(queue_new(&controller.queue), 0);
        assert_int_equal(ledger_open(path, &controller.ledger, &aside, &error), 0);
        assert_int_equal(watch_take(&controller, &config, &watch), 0);
        for (unsigned i = 0; i < ROWS; i++) {
                char key[16];

                snprintf(key, sizeof(key), "d/%04u", i);
                put(controller.ledger, key, "u");
        }
        put(controller.ledger, "d/\xff", "u");
        put(controller.ledger, "d/x", "\xff");
        assert_int_equal(ledger_commit(controller.ledger), 0);

        watch->is_up = true;
        watch->owed_streaming = true;
        for (unsigned turns = 0; !asked.last; turns++) {
                assert_true(turns < 5);
                owed_page(watch);
                assert_int_equal(ledger_commit(controller.ledger), 0);
        }
        assert_int_equal(asked.count, ROWS);
        assert_int_equal(asked.warnings, 2);
        assert_int_equal(ledger_get(controller.ledger, "widgets", "d/\xff", "u", &row), -ENOENT);

        controller_done(&controller);
        queue_free(controller.queue);
        ledger_free(controller.ledger);
        free(aside);
}

static int set_up(void **state)
{
        (void)state;
        return folder_make("owed");
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove();
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_a_row_of_no_object_is_dropped, set_up, tear_down),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
