/* SPDX-License-Identifier: Apache-2.0 */
/* What workers keep for `previous`: found by its version alone, bounded, and shared by several processes. */
#include "fixture.h"

#include <signal.h>

#include "store/previous.h"

#define ROOM 1 << 20
#define SIZE 200000
#define UID  "uid-1"

static struct previous *open_previous(const struct fixture *fixture)
{
        struct previous *store;

        assert_true(mkdir(fixture->folder, 0700) == 0 || errno == EEXIST);
        assert_int_equal(previous_open(fixture->folder, ROOM, &store), 0);
        return store;
}

static void expect_kept(struct previous *store, const char *key, const char *version, const char *json)
{
        char *found = NULL;

        assert_int_equal(previous_get(store, key, UID, version, &found), json ? 0 : -ENOENT);
        if (json)
                assert_string_equal(found, json);
        free(found);
}

static void keep(struct previous *store, const char *key, const char *version, const char *other,
                 const char *json)
{
        assert_int_equal(previous_put(store, key, UID, version, other, json, strlen(json)), 0);
}

static void test_a_version_is_found_beside_the_one_before_it(void **state)
{
        struct previous *store = open_previous(*state);

        keep(store, "ns/a", "1", "", "{\"v\":1}");
        keep(store, "ns/a2", "1", "", "{\"v\":2}"); /* its key begins as the other one's */
        keep(store, "ns/a", "2", "1", "{\"v\":3}");
        expect_kept(store, "ns/a", "1", "{\"v\":1}");
        expect_kept(store, "ns/a", "2", "{\"v\":3}");
        expect_kept(store, "ns/a", "3", NULL);
        keep(store, "ns/a", "3", "2", "{\"v\":4}");
        expect_kept(store, "ns/a", "1", NULL);
        expect_kept(store, "ns/a", "2", "{\"v\":3}");
        expect_kept(store, "ns/a", "3", "{\"v\":4}");
        assert_int_equal(previous_put(store, "ns/a", "uid-2", "4", "", "{}", 2), 0);
        expect_kept(store, "ns/a", "3", NULL);
        expect_kept(store, "ns/a2", "1", "{\"v\":2}");
        previous_close(store);
}

/* Nor does it take the room of its own next version. */
static void test_what_finds_no_room_changes_nothing(void **state)
{
        struct previous *store = open_previous(*state);
        char key[32] = "", *large = calloc(1, SIZE + 1);
        unsigned count = 0;
        int r = 0;

        assert_non_null(large);
        memset(large, 'x', SIZE);
        for (; r >= 0; count++) {
                snprintf(key, sizeof(key), "ns/%u", count);
                r = previous_put(store, key, UID, "1", "", large, SIZE);
        }
        assert_int_equal(r, -ENOSPC);
        assert_in_range(count, 4, 6);
        expect_kept(store, "ns/0", "1", large);
        expect_kept(store, key, "1", NULL);
        assert_int_equal(previous_put(store, "ns/0", UID, "2", "1", large, SIZE), -ENOSPC);
        expect_kept(store, "ns/0", "1", large);
        for (unsigned i = 0; i < 10; i++)
                keep(store, "ns/0", i % 2 ? "2" : "3", "", large);
        previous_close(store);
        free(large);
}

static bool is_not_b(const char *key, const char *uid, void *userdata)
{
        assert_string_equal(uid, UID);
        ++*(unsigned *)userdata;
        return strcmp(key, "ns/b") != 0;
}

static void test_what_nobody_wants_goes_little_by_little(void **state)
{
        struct previous *store = open_previous(*state);
        unsigned looks = 0;

        assert_int_equal(previous_sweep(store, 2, is_not_b, &looks), 0);
        assert_int_equal(looks, 0);
        keep(store, "ns/a", "1", "", "{}");
        keep(store, "ns/b", "1", "", "{}");
        keep(store, "ns/c", "1", "", "{}");
        for (unsigned i = 0; i < 4; i++)
                assert_int_equal(previous_sweep(store, 2, is_not_b, &looks), 0);
        assert_in_range(looks, 5, 8);
        expect_kept(store, "ns/a", "1", "{}");
        expect_kept(store, "ns/b", "1", NULL);
        expect_kept(store, "ns/c", "1", "{}");
        previous_close(store);
}

/* As a worker finds it damaged, while another one has it open. */
static void test_it_is_begun_anew(void **state)
{
        struct fixture *fixture = *state;
        struct previous *store = open_previous(fixture), *other = open_previous(fixture);

        keep(store, "ns/a", "1", "", "{}");
        assert_true(previous_is_current(other));
        previous_close(store);
        assert_int_equal(previous_begin_anew(fixture->folder), 0);
        assert_false(previous_is_current(other));
        store = open_previous(fixture);
        assert_true(previous_is_current(store));
        expect_kept(store, "ns/a", "1", NULL);
        keep(store, "ns/a", "2", "", "{}");
        previous_close(store);
        previous_close(other);
}

_noreturn_ static void write_for_ever(const struct fixture *fixture, const char *name, unsigned times)
{
        struct previous *store = open_previous(fixture);

        for (unsigned i = 0; times == 0 || i < times; i++)
                keep(store, name, i % 2 ? "1" : "2", "", "{}");
        _exit(0);
}

/* One of three is killed in the middle of its writes. */
static void test_processes_write_side_by_side(void **state)
{
        const char *const name[] = {"ns/a", "ns/b", "ns/killed"};
        struct previous *store;
        pid_t child[3];
        int status;

        for (unsigned i = 0; i < 3; i++) {
                child[i] = fork();
                assert_true(child[i] >= 0);
                if (child[i] == 0)
                        write_for_ever(*state, name[i], i < 2 ? 200 : 0);
        }
        for (unsigned i = 0; i < 2; i++) {
                assert_int_equal(waitpid(child[i], &status, 0), child[i]);
                assert_int_equal(status, 0);
        }
        assert_int_equal(kill(child[2], SIGKILL), 0);
        assert_int_equal(waitpid(child[2], &status, 0), child[2]);
        store = open_previous(*state);
        expect_kept(store, "ns/a", "1", "{}");
        expect_kept(store, "ns/a", "2", NULL);
        expect_kept(store, "ns/b", "1", "{}");
        keep(store, "ns/after", "1", "", "{}");
        previous_close(store);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                fixture_test(test_a_version_is_found_beside_the_one_before_it),
                fixture_test(test_what_finds_no_room_changes_nothing),
                fixture_test(test_what_nobody_wants_goes_little_by_little),
                fixture_test(test_it_is_begun_anew),
                fixture_test(test_processes_write_side_by_side),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
