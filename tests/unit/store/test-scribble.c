/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 300 kinds of damage to a store that nobody uses, and as many to one that is read: what comes out is what
 * was written, or nothing. To die over it is allowed (the supervisor marks such a store), to hang or to
 * believe it is not.
 */
#include "fixture.h"
#include "tests/unit/scribble.h"

#include <stdlib.h>
#include <sys/stat.h>

#define OBJECTS    250
#define TOMBSTONES 20
#define SEED       UINT64_C(0x5c121bb1e)

enum verdict { INTACT, REBUILT, MISSING, WRONG, REFUSED };

static char *json_of(int i)
{
        static char json[6000];
        int size = snprintf(json, sizeof(json), "{\"n\":%d,\"text\":\"", i);

        memset(json + size, 'a' + i % 26, (size_t)(i * 37 % 5000));
        snprintf(json + size + i * 37 % 5000, 3, "\"}");
        return json;
}

static void fill(struct fixture *fixture)
{
        char key[32], uid[32];

        for (int i = 0; i < OBJECTS + TOMBSTONES; i++) {
                struct record_change change = {
                        .key = key, .uid = uid, .resource_version = "7", .fingerprint = 5};
                struct store_object object;

                snprintf(key, sizeof(key), "n/object-%d", i);
                snprintf(uid, sizeof(uid), "uid-%d", i);
                object = fixture_object(key, uid, "7", json_of(i));
                assert_int_equal(store_put(fixture->store, &object), 0);
                if (i >= OBJECTS)
                        assert_int_equal(store_bury(fixture->store, &object), 0);
                if (i % 5 == 0)
                        assert_int_equal(store_dirty_add(fixture->store, &change), 0);
                if (i % 9 == 0)
                        assert_int_equal(store_question_add(fixture->store, key, uid, true), 0);
        }
        assert_int_equal(store_commit(fixture->store), 0);
}

/* ---- what a process finds */

struct meeting {
        struct fixture *fixture;
        bool writer;
};

static int compare(const struct store_object *object, int i)
{
        char uid[32];

        snprintf(uid, sizeof(uid), "uid-%d", i);
        return strcmp(object->uid, uid) == 0 && strcmp(object->resource_version, "7") == 0 &&
                               object->fingerprint == 11 && object->json &&
                               strcmp(object->json, json_of(i)) == 0
                       ? INTACT
                       : WRONG;
}

static int look_at(struct store *store, bool writer, int i)
{
        struct store_object object;
        char key[32];
        int r, verdict;

        snprintf(key, sizeof(key), "n/object-%d", i);
        r = writer ? store_get(store, key, &object) : store_read(store, 1, key, &object);
        if (r < 0)
                return MISSING;
        verdict = compare(&object, i);
        store_object_done(&object);
        return verdict;
}

static int count_dirty(const struct record_change *change, void *userdata)
{
        int *count = userdata, i;

        if (sscanf(change->key, "n/object-%d", &i) != 1 || i % 5 != 0 || change->fingerprint != 5 ||
            change->kind != CHANGE_UPDATED)
                return -EPROTO;
        (*count)++;
        return 0;
}

/* As the watcher begins its life. */
static int meet_as_writer(struct fixture *fixture)
{
        _cleanup_(store_free_pointer) struct store *store = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        bool rebuilt = false;
        int dirty = 0, verdict = INTACT, r = store_writer_new(fixture->folder, &rebuilt, &store, &error);

        if (r < 0)
                return REFUSED;
        if (rebuilt || store_verify(store, NULL, NULL) < 0)
                return REBUILT;
        for (int i = 0; i < OBJECTS && verdict == INTACT; i++)
                verdict = look_at(store, true, i);
        if (verdict == INTACT && (store_dirty_take(store, SIZE_MAX, 0, count_dirty, &dirty) < 0 ||
                                  dirty != (OBJECTS + TOMBSTONES + 4) / 5))
                verdict = WRONG;
        return verdict;
}

/* As a worker, which does not look at the whole first. */
static int meet_as_reader(struct fixture *fixture)
{
        _cleanup_(store_free_pointer) struct store *store = NULL;
        int verdict = INTACT;

        if (store_reader_new(fixture->folder, &store) < 0)
                return REFUSED;
        for (int i = 0; i < OBJECTS && verdict != WRONG; i++) {
                int found = look_at(store, false, i);

                if (found != INTACT)
                        verdict = found;
        }
        return verdict;
}

static int meet(void *userdata)
{
        const struct meeting *meeting = userdata;

        return meeting->writer ? meet_as_writer(meeting->fixture) : meet_as_reader(meeting->fixture);
}

/* ---- the damage */

static void data_path(const struct fixture *fixture, char path[128])
{
        snprintf(path, 128, "%s/1/data.mdb", fixture->folder);
}

/* Each meeting finds generation 1 again, called clean, whatever the one before has made of it. */
static void lay_out(const struct fixture *fixture, const struct scribble_file *data)
{
        const struct scribble_file current = {(char[]){"1 clean\n"}, 8};
        char path[128];

        snprintf(path, sizeof(path), "%s/1", fixture->folder);
        (void)mkdir(path, 0700);
        data_path(fixture, path);
        assert_int_equal(scribble_store(path, data), 0);
        snprintf(path, sizeof(path), "%s/1/lock.mdb", fixture->folder);
        (void)unlink(path);
        snprintf(path, sizeof(path), "%s/CURRENT", fixture->folder);
        assert_int_equal(scribble_store(path, &current), 0);
}

static void is_no_belief(int verdict, bool writer, uint64_t seed)
{
        bool died = verdict == -SIGSEGV || verdict == -SIGBUS || verdict == -SIGABRT || verdict == -SIGFPE ||
                    verdict == 1;

        if (died || verdict == INTACT || verdict == REBUILT || (verdict == MISSING && !writer))
                return;
        fail_msg("seed %llu, %s: verdict %d", (unsigned long long)seed, writer ? "writer" : "reader",
                 verdict);
}

static void scribble(struct fixture *fixture, bool writer)
{
        struct meeting meeting = {fixture, writer};
        const unsigned count = scribble_count();
        static struct scribble_file whole,
                damaged; /* what only the stack knows is lost to a child's leak check */
        unsigned died = 0, found = 0, intact = 0;
        char path[128];

        fixture_open(fixture);
        fill(fixture);
        fixture_close(fixture);
        data_path(fixture, path);
        assert_int_equal(scribble_load(path, &whole), 0);
        for (uint64_t seed = SEED; seed < SEED + count; seed++) {
                int verdict;

                scribble_copy(&whole, seed, &damaged);
                lay_out(fixture, &damaged);
                verdict = scribble_meet(meet, &meeting);
                is_no_belief(verdict, writer, seed);
                died += verdict < 0;
                intact += verdict == INTACT;
                found += verdict > INTACT;
        }
        print_message("%s: %u times nothing was hit, %u times it was found, %u times it was died of\n",
                      writer ? "writer" : "reader", intact, found, died);
        assert_true(found > count / 4);
        free(damaged.bytes);
        free(whole.bytes);
        whole = damaged = (struct scribble_file){0};
}

static void test_at_rest(void **state)
{
        scribble(*state, true);
}

static void test_while_it_is_read(void **state)
{
        scribble(*state, false);
}

static void test_an_unharmed_store_is_believed(void **state)
{
        struct fixture *fixture = *state;
        struct meeting meeting = {fixture, true};

        fixture_open(fixture);
        fill(fixture);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
        for (int i = 0; i < OBJECTS; i += 3) {
                char key[32];

                snprintf(key, sizeof(key), "n/object-%d", i);
                assert_int_equal(store_touch(fixture->store, key, 9), 0);
                if (i % 2 == 0)
                        assert_int_equal(store_remove(fixture->store, key), 0);
        }
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
        fixture_close(fixture);
        assert_int_equal(scribble_meet(meet, &meeting), MISSING);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_an_unharmed_store_is_believed, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_at_rest, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_while_it_is_read, fixture_setup, fixture_teardown),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
