/* SPDX-License-Identifier: Apache-2.0 */
/* The dirty index: order, one entry a key, and never an end behind the next beginning. */
#include "fixture.h"

struct taken {
        char text[512];
        size_t count;
        uint64_t last;
        bool first[32];
};

static int take_any(const struct record_change *change, void *userdata)
{
        static const char *const kind[] = {"+", "-", "?", "*"};
        struct taken *taken = userdata;
        size_t length = strlen(taken->text);

        taken->last = change->sequence;
        taken->first[taken->count] = change->first;
        snprintf(taken->text + length, sizeof(taken->text) - length, "%s%s%s.%s=%s", length ? " " : "",
                 kind[change->kind], change->key, change->uid, change->resource_version);
        taken->count++;
        return 0;
}

/* In one namespace: in order. */
static int take(const struct record_change *change, void *userdata)
{
        struct taken *taken = userdata;

        assert_true(change->sequence > taken->last);
        return take_any(change, userdata);
}

static void add(struct fixture *fixture, enum change_kind kind, const char *key, const char *uid,
                const char *version, bool first)
{
        struct record_change change = {
                .kind = kind,
                .key = key,
                .uid = uid,
                .resource_version = version,
                .fingerprint = 5,
                .first = first,
        };

        assert_int_equal(store_dirty_add(fixture->store, &change), 0);
}

static void assert_taken(struct fixture *fixture, size_t max, const char *expected)
{
        struct taken taken = {0};

        assert_int_equal(store_dirty_take(fixture->store, max, 0, take, &taken), 0);
        assert_string_equal(taken.text, expected);
}

static void assert_in_turns(struct fixture *fixture, size_t max, const char *expected)
{
        struct taken taken = {0};

        assert_int_equal(store_dirty_take(fixture->store, max, 0, take_any, &taken), 0);
        assert_string_equal(taken.text, expected);
}

static void test_order(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/b", "1", "1", false);
        add(fixture, CHANGE_UPDATED, "n/a", "2", "2", false);
        add(fixture, CHANGE_DELETED, "n/c", "3", "3", false);
        assert_int_equal(store_dirty_count(fixture->store), 3);
        assert_taken(fixture, 2, "+n/b.1=1 +n/a.2=2");
        assert_taken(fixture, 2, "-n/c.3=3");
        assert_taken(fixture, 2, "");
        assert_int_equal(store_dirty_count(fixture->store), 0);
}

static void test_one_entry_a_key_with_the_newest_data(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "1", false);
        add(fixture, CHANGE_UPDATED, "n/b", "2", "2", false);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "3", false);
        assert_taken(fixture, 9, "+n/a.1=3 +n/b.2=2");
}

static void test_deleted_and_created_again(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "1", false);
        add(fixture, CHANGE_DELETED, "n/a", "1", "2", false);
        add(fixture, CHANGE_UPDATED, "n/a", "2", "3", false);
        add(fixture, CHANGE_DELETED, "n/a", "2", "4", false);
        add(fixture, CHANGE_UPDATED, "n/a", "3", "5", false);
        assert_taken(fixture, 9, "-n/a.1=2 -n/a.2=4 +n/a.3=5");
}

static void test_a_late_verdict_on_the_old_one_comes_before_the_new_ones_update(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "2", "3", false);
        add(fixture, CHANGE_UPDATED, "n/b", "4", "4", true);
        add(fixture, CHANGE_DELETED, "n/a", "1", "", false);
        add(fixture, CHANGE_DELETED, "n/a", "1", "", false);
        assert_taken(fixture, 9, "+n/b.4=4 -n/a.1= +n/a.2=3");
}

static void test_unselected_and_selected_again(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "1", false);
        add(fixture, CHANGE_UNSELECTED, "n/a", "1", "", false);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "2", false);
        assert_taken(fixture, 9, "?n/a.1= +n/a.1=2");
}

static void test_an_event_outranks_a_first_sync(void **state)
{
        struct fixture *fixture = *state;
        struct taken taken = {0};

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "1", true);
        add(fixture, CHANGE_UPDATED, "n/b", "2", "1", true);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "2", false);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "2", true);
        assert_int_equal(store_dirty_take(fixture->store, 9, 0, take, &taken), 0);
        assert_int_equal(taken.count, 2);
        assert_false(taken.first[0]);
        assert_true(taken.first[1]);
}

/* Namespaces take turns; within one, and in a kind without namespaces, the oldest goes first. */
static void test_namespaces_take_turns(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        for (unsigned i = 0; i < 10000; i++) {
                char key[24];

                snprintf(key, sizeof(key), "crowd/k%u", i);
                add(fixture, CHANGE_UPDATED, key, "1", "1", false);
        }
        assert_in_turns(fixture, 2, "+crowd/k0.1=1 +crowd/k1.1=1");
        add(fixture, CHANGE_UPDATED, "quiet/a", "2", "2", false);
        add(fixture, CHANGE_DELETED, "another/b", "3", "3", false);
        add(fixture, CHANGE_UPDATED, "another/b", "4", "4", false);
        add(fixture, CHANGE_UPDATED, "cluster", "5", "5", false);
        assert_in_turns(fixture, 5, "+quiet/a.2=2 +cluster.5=5 -another/b.3=3 +crowd/k2.1=1 +another/b.4=4");
        assert_in_turns(fixture, 2, "+crowd/k3.1=1 +crowd/k4.1=1");
        assert_int_equal(store_dirty_count(fixture->store), 10000 - 5);
        /* A spare one is for another namespace. */
        assert_int_equal(store_dirty_take(fixture->store, 2, 1, take_any, &(struct taken){0}), 0);
        assert_int_equal(store_dirty_count(fixture->store), 10000 - 6);
        assert_false(store_dirty_turns(fixture->store));
        add(fixture, CHANGE_UPDATED, "quiet/a", "6", "6", false);
        assert_true(store_dirty_turns(fixture->store));
        assert_int_equal(store_dirty_take(fixture->store, 1, 1, take_any, &(struct taken){0}), 0);
        assert_true(store_dirty_turns(fixture->store)); /* it is the crowd's turn again */
        assert_int_equal(store_dirty_count(fixture->store), 10000 - 6);
}

/* The turn is no part of the order within a namespace, which a crash does not change. */
static void test_a_life_goes_on_behind_all_namespaces(void **state)
{
        struct fixture *fixture = *state;
        struct taken taken = {0};

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "b/first", "1", "1", false);
        add(fixture, CHANGE_UPDATED, "z/second", "1", "1", false);
        add(fixture, CHANGE_DELETED, "a/x", "1", "1", false);
        fixture_close(fixture);
        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "a/x", "2", "2", false);
        assert_int_equal(store_dirty_take(fixture->store, 9, 0, take_any, &taken), 0);
        assert_string_equal(taken.text, "-a/x.1=1 +b/first.1=1 +z/second.1=1 +a/x.2=2");
        assert_int_equal(taken.last, 4);
}

static void test_survives_a_restart(void **state)
{
        struct fixture *fixture = *state;
        struct taken taken = {0};

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "1", false);
        add(fixture, CHANGE_UPDATED, "n/b", "1", "1", false);
        fixture_close(fixture);
        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/c", "1", "1", false);
        assert_int_equal(store_dirty_take(fixture->store, 9, 0, take, &taken), 0);
        assert_string_equal(taken.text, "+n/a.1=1 +n/b.1=1 +n/c.1=1");
}

static void test_child_changes_of_two_owners_of_one_name(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_CHILD, "n/a", "2", "1", false);
        add(fixture, CHANGE_CHILD, "n/a", "1", "2", false);
        add(fixture, CHANGE_CHILD, "n/a", "2", "3", false);
        assert_int_equal(store_dirty_count(fixture->store), 2);
        assert_taken(fixture, 9, "*n/a.2=1.3 *n/a.1=2");
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
}

/* As commit 8412dad left it: a change of a child is an update, found by the owner's key alone. */
static void test_a_child_change_of_an_older_store(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "1", false);
        add(fixture, CHANGE_CHILD, "n/a", "2", "2", false);
        add(fixture, CHANGE_CHILD, "n/a", "1", "3", false);
        fixture_close(fixture);
        fixture_open(fixture);
        assert_taken(fixture, 9, "+n/a.1=1 *n/a.2=2 *n/a.1=3");
        assert_int_equal(store_dirty_count(fixture->store), 0);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
}

static int refuse(const struct record_change *change _unused_, void *userdata _unused_)
{
        return -ENOMEM;
}

static void test_what_is_not_taken_stays(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        add(fixture, CHANGE_UPDATED, "n/a", "1", "1", false);
        assert_int_equal(store_dirty_take(fixture->store, 9, 0, refuse, NULL), -ENOMEM);
        assert_taken(fixture, 9, "+n/a.1=1");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                fixture_test(test_order),
                fixture_test(test_one_entry_a_key_with_the_newest_data),
                fixture_test(test_deleted_and_created_again),
                fixture_test(test_a_late_verdict_on_the_old_one_comes_before_the_new_ones_update),
                fixture_test(test_unselected_and_selected_again),
                fixture_test(test_an_event_outranks_a_first_sync),
                fixture_test(test_namespaces_take_turns),
                fixture_test(test_a_life_goes_on_behind_all_namespaces),
                fixture_test(test_survives_a_restart),
                fixture_test(test_child_changes_of_two_owners_of_one_name),
                fixture_test(test_a_child_change_of_an_older_store),
                fixture_test(test_what_is_not_taken_stays),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
