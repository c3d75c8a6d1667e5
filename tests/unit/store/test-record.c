/* SPDX-License-Identifier: Apache-2.0 */
/* A record: what stands with an object comes back, and what has a wrong checksum is given to nobody. */
#include "fixture.h"

#include <fcntl.h>
#include <sys/stat.h>

static void damage(struct fixture *fixture, const char *what)
{
        char path[160], *text;
        size_t length = strlen(what);
        struct stat info;
        int fd, hits = 0;

        snprintf(path, sizeof(path), "%s/%llu/data.mdb", fixture->folder,
                 (unsigned long long)store_generation(fixture->store));
        fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(fstat(fd, &info), 0);
        text = malloc((size_t)info.st_size);
        assert_non_null(text);
        assert_int_equal(pread(fd, text, (size_t)info.st_size, 0), info.st_size);
        for (size_t i = 0; i + length <= (size_t)info.st_size; i++)
                if (memcmp(text + i, what, length) == 0) {
                        assert_int_equal(pwrite(fd, "X", 1, (off_t)i), 1);
                        hits++;
                }
        assert_true(hits > 0);
        free(text);
        close(fd);
}

static void test_a_wrong_checksum_is_given_to_nobody(void **state)
{
        struct fixture *fixture = *state;
        struct store_object object;
        uint64_t generation;

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u1", "5", "{\"a\":\"needle\"}");
        fixture_put(fixture, "n/b", "u2", "5", "{\"b\":1}");
        assert_int_equal(store_commit(fixture->store), 0);
        damage(fixture, "needle");
        assert_int_equal(fixture_read(fixture, 0, "n/a", "u1", false, ""), -EBADMSG);
        assert_int_equal(fixture_read(fixture, 0, "n/b", "u2", false, "{\"b\":1}"), 0);
        assert_int_equal(store_get(fixture->store, "n/a", &object), -EBADMSG);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), -EBADMSG);
        generation = store_generation(fixture->store);
        assert_int_equal(store_rebuild(fixture->store, NULL), 0);
        assert_int_equal(store_generation(fixture->store), generation + 1);
        assert_int_equal(store_peek(fixture->store, "n/a", &object), -ENOENT);
}

static int refuse(const struct store_object *object _unused_, void *userdata _unused_)
{
        return -EPROTO;
}

static void test_who_does_not_look_at_the_json_is_given_what_is_whole(void **state)
{
        struct fixture *fixture = *state;
        struct store_object object;

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "thread", "5", "{}");
        fixture_put(fixture, "n/b", "u2", "5", "{\"b\":\"needle\"}");
        assert_int_equal(store_commit(fixture->store), 0);
        damage(fixture, "needle");
        damage(fixture, "thread");
        assert_int_equal(fixture_read(fixture, 0, "n/a", "thread", false, "{}"), -EBADMSG);
        assert_int_equal(store_peek(fixture->store, "n/a", &object), -EBADMSG);
        assert_int_equal(store_visit_objects(fixture->store, "", 1, refuse, NULL), -EBADMSG);
        assert_int_equal(store_peek(fixture->store, "n/b", &object), 0);
        assert_string_equal(object.uid, "u2");
        assert_null(object.json);
        store_object_done(&object);
}

static void test_marks_come_back(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        for (unsigned i = 0; i < 4; i++) {
                struct store_object object = fixture_object("n/a", "u", "5", "{}");

                object.held = i & 1;
                object.free = i & 2;
                assert_int_equal(store_put(fixture->store, &object), 0);
                assert_int_equal(store_get(fixture->store, "n/a", &object), 0);
                assert_int_equal(object.held, (i & 1) != 0);
                assert_int_equal(object.free, (i & 2) != 0);
                store_object_done(&object);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                fixture_test(test_marks_come_back),
                fixture_test(test_a_wrong_checksum_is_given_to_nobody),
                fixture_test(test_who_does_not_look_at_the_json_is_given_what_is_whole),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
