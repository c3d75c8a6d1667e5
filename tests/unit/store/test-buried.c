/* SPDX-License-Identifier: Apache-2.0 */
/* Contents of tombstones are bounded, for each namespace and in all: a deletion is never lost, its object's last content may
 * be. */
#include "fixture.h"

#define ROOM ((uint64_t)16 << 20)
#define SIZE 30000

static void open_bounded(struct fixture *fixture)
{
        _cleanup_error_ struct error error = ERROR_NONE;

        assert_int_equal(store_writer_new_within(fixture->folder, ROOM, NULL, &fixture->store, &error), 0);
}

static void commit(struct fixture *fixture)
{
        if (store_commit_due(fixture->store))
                assert_int_equal(store_commit(fixture->store), 0);
}

/* The last content is in the store, as in most cases. */
static int put_and_bury(struct fixture *fixture, const char *key, const char *uid)
{
        struct store_object identity = fixture_object(key, uid, "", "");
        char json[SIZE + 1];
        int r;

        memset(json, 'x', SIZE);
        json[SIZE] = '\0';
        fixture_put(fixture, key, uid, "1", json);
        r = store_bury(fixture->store, &identity);
        assert_true(store_tombstone_exists(fixture->store, key, uid));
        commit(fixture);
        return r;
}

/* Returns how many have their content. */
static unsigned bury_many(struct fixture *fixture, const char *namespace_name, unsigned count)
{
        unsigned whole = 0;
        char key[64];

        for (unsigned i = 0; i < count; i++) {
                snprintf(key, sizeof(key), "%s%u", namespace_name, i);
                whole += put_and_bury(fixture, key, key) == 0;
        }
        return whole;
}

static void test_a_namespace_leaves_room_for_others(void **state)
{
        struct fixture *fixture = *state;
        unsigned whole;

        open_bounded(fixture);
        whole = bury_many(fixture, "crowd/", 2000); /* 60 MB */
        assert_in_range(whole, ROOM / 16 / SIZE * 9 / 10, ROOM / 16 / SIZE);
        /* Of what came and went in one transaction, pages at the end of the file were never written: that is no damage. */
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(fixture_read(fixture, 0, "crowd/1", "crowd/1", true, ""),
                         -EPROTO); /* has its content */
        assert_int_equal(fixture_read(fixture, 0, "crowd/1999", "crowd/1999", true, ""), 0);
        assert_int_equal(put_and_bury(fixture, "quiet/a", "u"), 0);
        assert_int_equal(put_and_bury(fixture, "node", "u"), 0); /* has no namespace */
}

static void test_all_together_leave_room_for_objects(void **state)
{
        struct fixture *fixture = *state;
        char namespace_name[32];
        unsigned whole = 0;

        open_bounded(fixture);
        for (unsigned i = 0; i < 20; i++) {
                snprintf(namespace_name, sizeof(namespace_name), "n%u/", i);
                whole += bury_many(fixture, namespace_name, 100);
        }
        assert_in_range(whole, ROOM / 4 / SIZE / 2, ROOM / 4 / SIZE);
}

static void test_what_is_handled_makes_room(void **state)
{
        struct fixture *fixture = *state;
        char key[32];
        unsigned whole;

        open_bounded(fixture);
        whole = bury_many(fixture, "n/", 100);
        assert_int_equal(put_and_bury(fixture, "n/more", "u"), STORE_BURIED_ALONE);
        for (unsigned i = 0; i < 100; i++) {
                snprintf(key, sizeof(key), "n/%u", i);
                assert_int_equal(store_tombstone_remove(fixture->store, key, key), 0);
                assert_int_equal(store_tombstone_remove(fixture->store, key, key), 0);
                commit(fixture);
        }
        assert_int_equal(bury_many(fixture, "n/", 100), whole);
}

static void test_it_is_counted_beyond_a_death(void **state)
{
        struct fixture *fixture = *state;

        open_bounded(fixture);
        assert_true(bury_many(fixture, "n/", 100) < 100);
        fixture_close(fixture);
        open_bounded(fixture);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
        assert_int_equal(put_and_bury(fixture, "n/more", "u"), STORE_BURIED_ALONE);
        store_stop(fixture->store); /* what was not committed is not counted either */
        fixture_close(fixture);
        open_bounded(fixture);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
        assert_int_equal(bury_many(fixture, "m/", 1), 1);
}

/* A restored database shows it once more, and it is deleted again. */
static void test_a_tombstone_that_is_written_again(void **state)
{
        struct fixture *fixture = *state;

        open_bounded(fixture);
        for (unsigned i = 0; i < 200; i++)
                assert_int_equal(put_and_bury(fixture, "n/a", "u"), 0);
        assert_int_equal(bury_many(fixture, "n/b", 10), 10);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                fixture_test(test_a_namespace_leaves_room_for_others),
                fixture_test(test_all_together_leave_room_for_objects),
                fixture_test(test_what_is_handled_makes_room),
                fixture_test(test_it_is_counted_beyond_a_death),
                fixture_test(test_a_tombstone_that_is_written_again),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
