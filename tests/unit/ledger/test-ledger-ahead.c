/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is read ahead, and wherever it is known that there is no row: each answer is what a plain table
 * of the same rows says. More rows than the ledger keeps in memory, in the order of their keys and in none.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "ledger/ledger.h"
#include "tests/unit/ledger/ledger-folder.h"
#include "tests/unit/valgrind.h"

#define WATCHES 2
#define KEYS    4000
#define UIDS    2
#define ROUNDS  12
#define STEPS   6000

/* When the row was handled; 0: there is none. */
typedef uint64_t table_t[WATCHES][KEYS][UIDS];

struct place {
        size_t watch, key, uid;
};

static uint64_t random_state;

static uint64_t random_below(uint64_t bound)
{
        random_state = random_state * 6364136223846793005U + 1442695040888963407U;
        return (random_state >> 33) % bound;
}

static int set_up(void **state)
{
        (void)state;
        random_state = 20;
        return folder_make("ahead");
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove();
}

static struct ledger *open_ledger(void)
{
        struct error error = ERROR_NONE;
        struct ledger *ledger = NULL;
        char *aside;

        assert_int_equal(ledger_open(path, &ledger, &aside, &error), 0);
        assert_null(aside);
        return ledger;
}

static const char *const watch_name[WATCHES] = {"gadgets", "widgets"};
static const char *const uid_name[UIDS] = {"u", "v"};

static const char *key_name(size_t key)
{
        static char name[16];

        snprintf(name, sizeof(name), "d/%05zu", key);
        return name;
}

static void check(struct ledger *ledger, table_t table, struct place place)
{
        uint64_t expected = table[place.watch][place.key][place.uid];
        const struct ledger_row *row;
        int r = ledger_look(ledger, watch_name[place.watch], key_name(place.key), uid_name[place.uid], &row);

        assert_int_equal(r, expected > 0 ? 0 : -ENOENT);
        if (r == 0) {
                assert_int_equal(row->handled_realtime, expected);
                assert_string_equal(row->key, key_name(place.key));
                assert_string_equal(row->uid, uid_name[place.uid]);
                assert_string_equal(row->last_error, expected % 3 == 0 ? "why" : "");
        }
}

static void put(struct ledger *ledger, table_t table, struct place place)
{
        uint64_t handled = 1 + random_below(1000000);
        struct ledger_row row = {
                .key = (char *)(uintptr_t)key_name(place.key),
                .uid = (char *)(uintptr_t)uid_name[place.uid],
                .handled_realtime = handled,
                .last_error = handled % 3 == 0 ? (char[]){"why"} : NULL,
        };

        assert_int_equal(ledger_put(ledger, watch_name[place.watch], &row), 0);
        table[place.watch][place.key][place.uid] = handled;
}

static void take_away(struct ledger *ledger, table_t table, struct place place)
{
        assert_return_code(
                ledger_remove(ledger, watch_name[place.watch], key_name(place.key), uid_name[place.uid]), 0);
        table[place.watch][place.key][place.uid] = 0;
}

static void change(struct ledger *ledger, table_t table, struct place place)
{
        switch (random_below(20)) {
        case 0:
                put(ledger, table, place);
                return;
        case 1:
                take_away(ledger, table, place);
                return;
        case 2:
                if (random_below(20) == 0)
                        assert_int_equal(ledger_commit(ledger), 0);
                return;
        case 3:
                if (random_below(200) == 0) /* a quiet moment */
                        ledger_rest(ledger);
                return;
        default:
                return;
        }
}

/* 0: in the order of the keys; 1: against it; else in none. */
static struct place next_place(struct place place, uint64_t order)
{
        if (order > 1)
                return (struct place){random_below(WATCHES), random_below(KEYS), random_below(UIDS)};
        if (order == 0 && ++place.uid == UIDS) {
                place.uid = 0;
                place.key = (place.key + 1) % KEYS;
        } else if (order == 1 && place.uid-- == 0) {
                place.uid = UIDS - 1;
                place.key = (place.key + KEYS - 1) % KEYS;
        }
        return place;
}

static void go_through(struct ledger *ledger, table_t table, uint64_t order, bool changes)
{
        struct place place = next_place((struct place){0}, 2);

        for (size_t i = 0; i < (under_valgrind() ? STEPS / 4 : STEPS); i++) {
                place = next_place(place, order);
                check(ledger, table, place);
                if (changes)
                        change(ledger, table, place);
        }
}

static void check_all(struct ledger *ledger, table_t table)
{
        for (size_t watch = 0; watch < WATCHES; watch++)
                for (size_t key = 0; key < KEYS; key++)
                        for (size_t uid = 0; uid < UIDS; uid++)
                                check(ledger, table, (struct place){watch, key, uid});
}

static void test_what_is_read_ahead_is_what_is_there(void **state)
{
        static table_t table;
        struct ledger *ledger = open_ledger();

        (void)state;
        memset(table, 0, sizeof(table));
        go_through(ledger, table, 0, true); /* as a first list comes: there is nothing yet */
        for (size_t watch = 0; watch < WATCHES; watch++)
                for (size_t key = 0; key < KEYS; key += 1 + random_below(3))
                        put(ledger, table, (struct place){watch, key, random_below(UIDS)});
        assert_int_equal(ledger_commit(ledger), 0);
        for (size_t round = 0; round < ROUNDS; round++) {
                go_through(ledger, table, random_below(3), round % 4 != 3);
                if (round % 4 == 2) {
                        ledger_free(ledger);
                        ledger = open_ledger();
                }
        }
        check_all(ledger, table);
        ledger_free(ledger);
}

static void lie(const char *statement)
{
        sqlite3 *database;

        assert_int_equal(sqlite3_open(path, &database), SQLITE_OK);
        assert_int_equal(sqlite3_exec(database, statement, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(database);
}

/* It is found by whoever asks for it, not by those before it. */
static void test_damage_ahead_is_told_to_who_asks_for_it(void **state)
{
        static table_t table;
        const struct ledger_row *row;
        struct ledger *ledger = open_ledger();

        (void)state;
        memset(table, 0, sizeof(table));
        for (size_t key = 0; key < 200; key++)
                put(ledger, table, (struct place){0, key, 0});
        ledger_free(ledger);
        ledger = open_ledger();
        lie("UPDATE ledger SET handled_realtime = handled_realtime + 1 WHERE key = 'd/00100'");
        for (size_t key = 0; key < 100; key++)
                check(ledger, table, (struct place){0, key, 0});
        assert_int_equal(ledger_look(ledger, watch_name[0], key_name(100), uid_name[0], &row), -EBADMSG);
        check(ledger, table, (struct place){0, 101, 0});
        ledger_free(ledger);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_what_is_read_ahead_is_what_is_there, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_damage_ahead_is_told_to_who_asks_for_it, set_up,
                                                tear_down),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
