/* SPDX-License-Identifier: Apache-2.0 */
/* The sweep: every object once, namespaces in turns, whatever is put into the store meanwhile. */
#include "fixture.h"

#include "store/sweep.h"

#define MANY 500

struct seen {
        char key[2 * MANY][32];
        size_t count;
};

static int see(const struct store_object *object, void *userdata)
{
        struct seen *seen = userdata;

        for (size_t i = 0; i < seen->count; i++)
                assert_string_not_equal(seen->key[i], object->key);
        snprintf(seen->key[seen->count++], sizeof(seen->key[0]), "%s", object->key);
        return 0;
}

static size_t place_of(const struct seen *seen, const char *key)
{
        size_t i = 0;

        while (i < seen->count && strcmp(seen->key[i], key) != 0)
                i++;
        return i;
}

static void put_many(struct fixture *fixture, const char *namespace, unsigned from, unsigned to)
{
        for (; from < to; from++) {
                char key[32];

                snprintf(key, sizeof(key), "%s%03u", namespace, from);
                fixture_put(fixture, key, "1", "1", "{}");
        }
}

static size_t go_on(struct fixture *fixture, struct sweep *sweep, bool complete, size_t max,
                    struct seen *seen)
{
        int r = sweep_go_on(sweep, fixture->store, complete, max, max, see, seen);

        assert_true(r >= 0 && (size_t)r <= max);
        return (size_t)r;
}

static void test_namespaces_take_turns(void **state)
{
        struct fixture *fixture = *state;
        struct sweep sweep = {.is_on = false};
        struct seen seen = {.count = 0};

        fixture_open(fixture);
        put_many(fixture, "a/", 0, MANY);
        put_many(fixture, "a-small/", 0, 1);
        put_many(fixture, "b/", 0, SWEEP_SHARE);
        put_many(fixture, "c/", 0, SWEEP_SHARE + 1);
        put_many(fixture, "z/", 0, 1);
        assert_int_equal(sweep_begin(&sweep), 0);
        while (sweep.is_on)
                (void)go_on(fixture, &sweep, true, 7, &seen);
        assert_int_equal(seen.count, MANY + 1 + SWEEP_SHARE + SWEEP_SHARE + 1 + 1);
        assert_true(place_of(&seen, "z/000") <= 1 + 3 * SWEEP_SHARE);
        assert_true(place_of(&seen, "c/008") <= 2 + 3 * SWEEP_SHARE + 2 * SWEEP_SHARE + 7);
        assert_int_equal(place_of(&seen, "a/499"), seen.count - 1);
}

static void test_objects_of_the_cluster_are_one_group(void **state)
{
        struct fixture *fixture = *state;
        struct sweep sweep = {.is_on = false};
        struct seen seen = {.count = 0};

        fixture_open(fixture);
        put_many(fixture, "n", 0, 3 * SWEEP_SHARE);
        assert_int_equal(sweep_begin(&sweep), 0);
        assert_int_equal(go_on(fixture, &sweep, true, 200, &seen), 3 * SWEEP_SHARE);
        assert_false(sweep.is_on);
}

/* Where there is room for new namespaces only, those get their share, and nobody gets more. */
static void test_room_for_those_that_come_late(void **state)
{
        struct fixture *fixture = *state;
        struct sweep sweep = {.is_on = false};
        struct seen seen = {.count = 0};

        fixture_open(fixture);
        put_many(fixture, "a/", 0, 100);
        assert_int_equal(sweep_begin(&sweep), 0);
        assert_int_equal(go_on(fixture, &sweep, false, 50, &seen), 50);
        put_many(fixture, "b/", 0, 1);
        assert_int_equal(sweep_go_on(&sweep, fixture->store, false, 20, 0, see, &seen), 1);
        assert_string_equal(seen.key[50], "b/000");
        assert_int_equal(sweep_go_on(&sweep, fixture->store, true, 20, 0, see, &seen), 0);
        assert_true(sweep.is_on);
        assert_int_equal(go_on(fixture, &sweep, true, 100, &seen), 50);
        assert_false(sweep.is_on);
}

/* What is put where it has been is for others to announce; it says so. */
static void test_a_list_that_is_not_complete(void **state)
{
        struct fixture *fixture = *state;
        struct sweep sweep = {.is_on = false};
        struct seen seen = {.count = 0};

        fixture_open(fixture);
        assert_int_equal(sweep_begin(&sweep), 0);
        put_many(fixture, "b/", 100, 100 + SWEEP_SHARE + 10);
        assert_int_equal(go_on(fixture, &sweep, false, 200, &seen), SWEEP_SHARE + 10);
        assert_int_equal(go_on(fixture, &sweep, false, 200, &seen), 0);
        assert_true(sweep.is_on);
        assert_false(sweep_is_to_come(&sweep, "a/1"));
        assert_false(sweep_is_to_come(&sweep, "b/100"));
        assert_true(sweep_is_to_come(&sweep, "b/200"));
        assert_true(sweep_is_to_come(&sweep, "c/1"));
        put_many(fixture, "b/", 200, 210);
        put_many(fixture, "c/", 0, 2);
        assert_int_equal(go_on(fixture, &sweep, false, 200, &seen), 12);
        assert_false(sweep_is_to_come(&sweep, "b/205"));
        assert_int_equal(go_on(fixture, &sweep, true, 200, &seen), 0);
        assert_false(sweep.is_on);
        assert_false(sweep_is_to_come(&sweep, "d/1"));
}

/* It begins anew, with what it had not come by yet, too. */
static void test_anew(void **state)
{
        struct fixture *fixture = *state;
        struct sweep sweep = {.is_on = false};
        struct seen seen = {.count = 0}, again = {.count = 0};

        fixture_open(fixture);
        put_many(fixture, "a/", 0, 2 * SWEEP_SHARE);
        assert_int_equal(sweep_begin(&sweep), 0);
        assert_int_equal(go_on(fixture, &sweep, true, SWEEP_SHARE + 5, &seen), SWEEP_SHARE + 5);
        assert_int_equal(sweep_begin(&sweep), 0);
        assert_int_equal(go_on(fixture, &sweep, true, MANY, &again), 2 * SWEEP_SHARE);
        assert_false(sweep.is_on);
        assert_int_equal(sweep_begin(&sweep), 0);
        sweep_done(&sweep);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                fixture_test(test_namespaces_take_turns),
                fixture_test(test_objects_of_the_cluster_are_one_group),
                fixture_test(test_room_for_those_that_come_late),
                fixture_test(test_a_list_that_is_not_complete),
                fixture_test(test_anew),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
