/* SPDX-License-Identifier: Apache-2.0 */
/* The store seen from outside: what is written is read, by other processes too; what is damaged is never
 * given to anyone. */
#include "fixture.h"
#include "store/suspect.h"

#include <fcntl.h>
#include <lmdb.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <xxhash.h>

static void test_put_and_read(void **state)
{
        struct fixture *fixture = *state;
        struct store_object object;

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u1", "5", "{\"a\":1}");
        assert_int_equal(fixture_read(fixture, 0, "n/a", "u1", false, "{\"a\":1}"), -ENOENT);
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(fixture_read(fixture, 0, "n/a", "u1", false, "{\"a\":1}"), 0);
        assert_int_equal(fixture_read(fixture, 0, "n/b", "u1", false, ""), -ENOENT);
        assert_int_equal(store_peek(fixture->store, "n/a", &object), 0);
        assert_string_equal(object.resource_version, "5");
        assert_int_equal(object.fingerprint, 11);
        assert_int_equal(object.mark, 1);
        assert_null(object.json);
        store_object_done(&object);
        assert_int_equal(store_count(fixture->store), 1);
        assert_int_equal(store_remove(fixture->store, "n/a"), 0);
        assert_int_equal(store_remove(fixture->store, "n/a"), 0);
        assert_int_equal(store_peek(fixture->store, "n/a", &object), -ENOENT);
}

static void test_no_store_no_object(void **state)
{
        struct fixture *fixture = *state;

        assert_int_equal(fixture_read(fixture, 0, "n/a", "u", false, ""), -ENOENT);
        assert_int_equal(fixture_read(fixture, 9, "n/a", "u", false, ""), -ENOENT);
}

static void test_keys_that_do_not_fit(void **state)
{
        struct fixture *fixture = *state;
        char key[600];
        struct store_object object = fixture_object(key, "u", "1", "{}");

        memset(key, 'k', sizeof(key) - 1);
        key[sizeof(key) - 1] = '\0';
        fixture_open(fixture);
        assert_int_equal(store_put(fixture->store, &object), -ENAMETOOLONG);
        assert_int_equal(store_bury(fixture->store, &object), -ENAMETOOLONG);
        object.key = (char *)(uintptr_t) "";
        assert_int_equal(store_put(fixture->store, &object), -ENAMETOOLONG);
}

static void test_bury(void **state)
{
        struct fixture *fixture = *state;
        struct store_object identity = fixture_object("n/a", "u1", "", "");
        struct store_object newer = fixture_object("n/b", "u2", "9", "{\"last\":true}");

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u1", "5", "{\"a\":1}");
        fixture_put(fixture, "n/b", "u2", "6", "{\"b\":1}");
        assert_int_equal(store_bury(fixture->store, &identity), 0);
        assert_int_equal(store_bury(fixture->store, &newer), 0);
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(store_count(fixture->store), 0);
        assert_true(store_tombstone_exists(fixture->store, "n/a", "u1"));
        assert_false(store_tombstone_exists(fixture->store, "n/a", "u2"));
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(fixture_read(fixture, 0, "n/a", "u1", true, "{\"a\":1}"), 0);
        assert_int_equal(fixture_read(fixture, 0, "n/b", "u2", true, "{\"last\":true}"), 0);
        assert_int_equal(store_tombstone_remove(fixture->store, "n/a", "u1"), 0);
        assert_int_equal(store_tombstone_remove(fixture->store, "n/a", "u1"), 0);
        assert_false(store_tombstone_exists(fixture->store, "n/a", "u1"));
}

static void beat(void *userdata)
{
        ++*(unsigned *)userdata;
}

static void test_held_marks_go_together(void **state)
{
        struct fixture *fixture = *state;
        struct store_object object;
        unsigned beats = 0;
        char key[32];

        fixture_open(fixture);
        for (unsigned i = 0; i < 3000; i++) {
                snprintf(key, sizeof(key), "n/%u", i);
                object = fixture_object(key, "u", "5", "{\"a\":1}");
                object.held = i % 2 == 0;
                assert_int_equal(store_put(fixture->store, &object), 0);
        }
        assert_int_equal(store_unhold(fixture->store, beat, &beats), 0);
        assert_true(beats > 1);
        assert_false(store_in_transaction(fixture->store));
        for (unsigned i = 0; i < 3000; i++) {
                snprintf(key, sizeof(key), "n/%u", i);
                assert_int_equal(store_get(fixture->store, key, &object), 0);
                assert_false(object.held);
                assert_string_equal(object.json, "{\"a\":1}");
                assert_string_equal(object.resource_version, "5");
                assert_int_equal(object.mark, 1);
                store_object_done(&object);
        }
        assert_int_equal(store_verify(fixture->store, beat, &beats), 0);
}

static void test_bury_keeps_the_next_object_of_that_name(void **state)
{
        struct fixture *fixture = *state;
        struct store_object old = fixture_object("n/a", "u1", "", "");
        struct store_object object;

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u2", "7", "{\"new\":true}");
        assert_int_equal(store_bury(fixture->store, &old), 0);
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(store_peek(fixture->store, "n/a", &object), 0);
        assert_string_equal(object.uid, "u2");
        store_object_done(&object);
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(fixture_read(fixture, 0, "n/a", "u1", true, ""), 0);
}

struct visited {
        struct fixture *fixture;
        size_t count;
        bool bury;
};

static int visit(const struct store_object *object, void *userdata)
{
        struct visited *visited = userdata;

        visited->count++;
        return visited->bury ? store_bury(visited->fixture->store, object) : 0;
}

static void test_what_a_list_did_not_mark(void **state)
{
        enum { COUNT = 3000 };
        struct fixture *fixture = *state;
        struct visited visited = {.fixture = fixture, .bury = true};
        char key[32];

        fixture_open(fixture);
        for (int i = 0; i < COUNT; i++) {
                snprintf(key, sizeof(key), "n/%d", i);
                fixture_put(fixture, key, key, "1", "{}");
        }
        for (int i = 0; i < COUNT; i += 2) {
                snprintf(key, sizeof(key), "n/%d", i);
                assert_int_equal(store_touch(fixture->store, key, 2), 0);
        }
        assert_int_equal(store_visit_unmarked(fixture->store, 2, visit, &visited), 0);
        assert_int_equal(visited.count, COUNT / 2);
        assert_int_equal(store_count(fixture->store), COUNT / 2);
        visited = (struct visited){.fixture = fixture};
        assert_int_equal(store_visit_unmarked(fixture->store, 2, visit, &visited), 0);
        assert_int_equal(visited.count, 0);
        assert_int_equal(store_visit_tombstones(fixture->store, visit, &visited), 0);
        assert_int_equal(visited.count, COUNT / 2);
}

static void test_meta(void **state)
{
        struct fixture *fixture = *state;
        struct store_meta meta = {
                .cluster = (char *)(uintptr_t) "c",
                .scope = (char *)(uintptr_t) "s",
                .mark = 3,
        };
        struct store_meta read;

        fixture_open(fixture);
        assert_int_equal(store_meta_get(fixture->store, &read), 0);
        store_meta_done(&read);
        assert_int_equal(store_meta_set(fixture->store, &meta), 0);
        fixture_close(fixture);
        fixture_open(fixture);
        assert_int_equal(store_meta_get(fixture->store, &read), 0);
        assert_string_equal(read.cluster, "c");
        assert_string_equal(read.scope, "s");
        assert_int_equal(read.mark, 3);
        store_meta_done(&read);
}

static void test_an_epoch_is_known_to_the_next_writer(void **state)
{
        struct fixture *fixture = *state;
        struct store_epoch epoch = {4711, 12}, read;

        fixture_open(fixture);
        assert_int_equal(store_epoch_set(fixture->store, &epoch), 0);
        assert_int_equal(store_commit(fixture->store), 0);
        store_free(TAKE_PTR(fixture->store));
        fixture_open(fixture);
        assert_int_equal(store_epoch_get(fixture->store, &read), 0);
        assert_memory_equal(&read, &epoch, sizeof(epoch));
        assert_int_equal(store_rebuild(fixture->store, NULL), 0);
        assert_int_equal(store_epoch_get(fixture->store, &read), 0);
        assert_true(read.restored_boottime == 0 && read.epoch == 0);
}

static void test_positions(void **state)
{
        struct fixture *fixture = *state;
        char version[] = "77", basis[] = "b", empty[] = "";
        struct store_position position = {.resource_version = version, .basis = basis, .mark = 3}, read;

        fixture_open(fixture);
        assert_int_equal(store_position_get(fixture->store, "", &read), -ENOENT);
        assert_int_equal(store_position_set(fixture->store, "", &position), 0);
        position.resource_version = empty;
        assert_int_equal(store_position_set(fixture->store, "default", &position), 0);
        fixture_close(fixture);
        fixture_open(fixture);
        assert_int_equal(store_position_get(fixture->store, "", &read), 0);
        assert_string_equal(read.resource_version, "77");
        assert_string_equal(read.basis, "b");
        assert_int_equal(read.mark, 3);
        store_position_done(&read);
        assert_int_equal(store_position_get(fixture->store, "default", &read), 0);
        assert_string_equal(read.resource_version, "");
        store_position_done(&read);
        assert_int_equal(store_rebuild(fixture->store, NULL), 0);
        assert_int_equal(store_position_get(fixture->store, "", &read), -ENOENT);
}

static void test_questions_go_round(void **state)
{
        struct fixture *fixture = *state;
        struct store_question question = {0}, next;
        unsigned count = 0;
        int r;

        fixture_open(fixture);
        assert_int_equal(store_question_next(fixture->store, NULL, &next), -ENOENT);
        assert_int_equal(store_question_add(fixture->store, "n/a", "u2", false), 0);
        assert_int_equal(store_question_add(fixture->store, "n/a", "u1", true), 0);
        assert_int_equal(store_question_add(fixture->store, "n/a", "u1", false), 0); /* is still owed */
        assert_int_equal(store_question_add(fixture->store, "n/b", "u3", false), 0);
        assert_int_equal(store_question_count(fixture->store), 3);
        fixture_close(fixture);
        fixture_open(fixture);
        while ((r = store_question_next(fixture->store, count ? &question : NULL, &next)) >= 0) {
                store_question_done(&question);
                question = next;
                assert_int_equal(question.owed, strcmp(question.uid, "u1") == 0);
                if (count++ == 1)
                        assert_int_equal(store_question_remove(fixture->store, "n/a", "u2"), 0);
        }
        assert_int_equal(r, -ENOENT);
        assert_int_equal(count, 3);
        assert_string_equal(question.key, "n/b");
        store_question_done(&question);
        assert_int_equal(store_question_remove(fixture->store, "n/a", "u2"), 0); /* once more is nothing */
        assert_int_equal(store_question_count(fixture->store), 2);
}

struct sweep {
        char last[16];
        unsigned count;
};

static int sweep_object(const struct store_object *object, void *userdata)
{
        struct sweep *sweep = userdata;

        assert_true(strcmp(sweep->last, object->key) < 0);
        snprintf(sweep->last, sizeof(sweep->last), "%s", object->key);
        sweep->count++;
        return 0;
}

static void test_objects_are_visited_in_portions(void **state)
{
        struct fixture *fixture = *state;
        struct sweep sweep = {0};
        char key[16];
        int count;

        fixture_open(fixture);
        for (int i = 0; i < 100; i++) {
                snprintf(key, sizeof(key), "n/%03d", i);
                fixture_put(fixture, key, "u", "1", "{}");
        }
        do {
                char after[16];

                memcpy(after, sweep.last, sizeof(after));
                count = store_visit_objects(fixture->store, after, 7, sweep_object, &sweep);
                assert_true(count >= 0 && count <= 7);
                if (sweep.count == 49) /* what is behind goes on without it */
                        assert_int_equal(store_remove(fixture->store, sweep.last), 0);
        } while (count > 0);
        assert_int_equal(sweep.count, 100);
}

static void test_a_list_fills_it_in_order(void **state)
{
        static const char *const key[] = {"n/b", "n/c", "n/d", "n/d", "n/a", "n/c"};
        struct fixture *fixture = *state;
        struct store_object object;
        struct sweep sweep = {0};

        fixture_open(fixture);
        store_expect_order(fixture->store);
        for (size_t i = 0; i < ELEMENTS(key); i++) {
                bool again = i == 3;

                assert_int_equal(store_peek(fixture->store, key[i], &object), again ? 0 : -ENOENT);
                if (again)
                        store_object_done(&object);
                fixture_put(fixture, key[i], "u", again ? "2" : "1", "{}");
                assert_int_equal(store_commit(fixture->store), 0);
                if (i == 1) /* the last one goes */
                        assert_int_equal(store_remove(fixture->store, key[i]), 0);
        }
        store_expect_order(fixture->store); /* it is not empty any more */
        assert_int_equal(store_peek(fixture->store, "n/b", &object), 0);
        store_object_done(&object);
        fixture_close(fixture);
        fixture_open(fixture);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
        assert_int_equal(store_visit_objects(fixture->store, "", 10, sweep_object, &sweep), 4);
        assert_int_equal(store_peek(fixture->store, "n/d", &object), 0);
        assert_string_equal(object.resource_version, "2");
        store_object_done(&object);
}

/* Blocks are taken ahead, and not many: the file itself is as large as its content. */
static void test_a_large_list_fills_it_in_order(void **state)
{
        enum { COUNT = 3000, SIZE = 3000 };
        _cleanup_free_ char *json = calloc(1, SIZE + 1);
        struct fixture *fixture = *state;
        char key[16], path[160];
        struct stat info;

        assert_non_null(json);
        memset(json, '7', SIZE);
        fixture_open(fixture);
        store_expect_order(fixture->store);
        for (unsigned i = 0; i < COUNT; i++) {
                snprintf(key, sizeof(key), "n/%04u", i);
                fixture_put(fixture, key, "u", "1", json);
                if (store_commit_due(fixture->store))
                        assert_int_equal(store_commit(fixture->store), 0);
        }
        fixture_close(fixture);
        snprintf(path, sizeof(path), "%s/1/data.mdb", fixture->folder);
        assert_int_equal(stat(path, &info), 0);
        assert_in_range(info.st_size, COUNT * SIZE, 2 * COUNT * SIZE);
        assert_in_range(info.st_blocks * 512, 1, info.st_size + 4 * STORE_BATCH_BYTES);
        fixture_open(fixture);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
        assert_int_equal(store_count(fixture->store), COUNT);
        assert_int_equal(fixture_read(fixture, 0, "n/2999", "u", false, json), 0);
}

static void test_one_writer(void **state)
{
        struct fixture *fixture = *state;
        struct store *second = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;

        fixture_open(fixture);
        assert_int_equal(store_writer_new(fixture->folder, NULL, &second, &error), -EBUSY);
        assert_null(second);
        assert_non_null(strstr(error_message(&error), "another process"));
}

static void test_nobody_else_may_read_the_files(void **state)
{
        struct fixture *fixture = *state;
        char path[160];
        struct stat info;

        fixture_open(fixture);
        snprintf(path, sizeof(path), "%s/%llu/data.mdb", fixture->folder,
                 (unsigned long long)store_generation(fixture->store));
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 077, 0);
        assert_int_equal(stat(fixture->folder, &info), 0);
        assert_int_equal(info.st_mode & 077, 0);
}

/* ---- a process that dies in the middle */

static void write_and_die(struct fixture *fixture)
{
        int status;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                fixture_open(fixture);
                fixture_put(fixture, "n/a", "u1", "5", "{}");
                if (store_commit(fixture->store) < 0)
                        _exit(1);
                fixture_put(fixture, "n/b", "u2", "6", "{}");
                _exit(0); /* neither committed nor closed */
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void test_survives_its_writer(void **state)
{
        struct fixture *fixture = *state;
        _cleanup_error_ struct error error = ERROR_NONE;
        bool rebuilt = true;

        write_and_die(fixture);
        assert_int_equal(store_writer_new(fixture->folder, &rebuilt, &fixture->store, &error), 0);
        assert_false(rebuilt);
        assert_int_equal(store_count(fixture->store), 1);
}

static void write_current(struct fixture *fixture, const char *text)
{
        char path[160];
        FILE *file;

        snprintf(path, sizeof(path), "%s/CURRENT", fixture->folder);
        file = fopen(path, "we");
        assert_non_null(file);
        fputs(text, file);
        fclose(file);
}

static void assert_rebuilt(struct fixture *fixture, const char *why)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        bool rebuilt = false;

        assert_int_equal(store_writer_new(fixture->folder, &rebuilt, &fixture->store, &error), 0);
        assert_true(rebuilt);
        assert_non_null(strstr(error_message(&error), why));
        assert_int_equal(store_count(fixture->store), 0);
        assert_int_equal(store_generation(fixture->store), 2);
}

static void test_a_power_loss_makes_it_suspect(void **state)
{
        struct fixture *fixture = *state;

        write_and_die(fixture);
        write_current(fixture, "1 01234567-89ab-cdef-0123-456789abcdef\n");
        assert_rebuilt(fixture, "the machine went down");
}

static void test_a_suspect_store(void **state)
{
        struct fixture *fixture = *state;
        _cleanup_free_ char *why = NULL;

        write_and_die(fixture);
        assert_int_equal(store_suspect_mark(fixture->folder, "somebody died over it"), 0);
        assert_rebuilt(fixture, "somebody died over it");
        assert_int_equal(store_suspect_read(fixture->folder, &why), -ENOENT); /* once */
}

static void test_a_clean_store_is_not_trusted_when_suspect(void **state)
{
        struct fixture *fixture = *state;

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u1", "5", "{}");
        fixture_close(fixture);
        assert_int_equal(store_suspect_mark(fixture->folder, ""), 0);
        assert_rebuilt(fixture, "found damaged");
}

static void test_a_clean_store_survives_a_reboot(void **state)
{
        struct fixture *fixture = *state;
        char path[160], text[64] = "";
        FILE *file;

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u1", "5", "{}");
        snprintf(path, sizeof(path), "%s/CURRENT", fixture->folder);
        file = fopen(path, "re");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof(text), file));
        fclose(file);
        assert_null(strstr(text, "clean")); /* while it is being written it is not */
        fixture_close(fixture);
        file = fopen(path, "re");
        assert_non_null(file);
        assert_non_null(fgets(text, sizeof(text), file));
        fclose(file);
        assert_string_equal(text, "1 clean\n");
        fixture_open(fixture);
        assert_int_equal(store_count(fixture->store), 1);
}

static void test_a_damaged_current(void **state)
{
        struct fixture *fixture = *state;

        write_and_die(fixture);
        write_current(fixture, "");
        fixture->store = NULL;
        {
                _cleanup_error_ struct error error = ERROR_NONE;
                bool rebuilt = false;

                assert_int_equal(store_writer_new(fixture->folder, &rebuilt, &fixture->store, &error), 0);
                assert_true(rebuilt);
                assert_int_equal(store_count(fixture->store), 0);
        }
}

static void test_a_file_that_is_no_database(void **state)
{
        struct fixture *fixture = *state;
        char path[160];

        fixture_open(fixture);
        fixture_close(fixture);
        snprintf(path, sizeof(path), "%s/1/data.mdb", fixture->folder);
        assert_int_equal(truncate(path, 0), 0);
        assert_int_equal(truncate(path, 65536), 0);
        assert_rebuilt(fixture, "");
}

/* The meta record as another release writes it: its second number is the schema, its first the sum of the
 * rest. */
static void write_schema(const struct fixture *fixture, uint64_t schema)
{
        char path[160], record[256];
        uint64_t sum;
        MDB_env *environment;
        MDB_txn *transaction;
        MDB_dbi table;
        MDB_val key = {4, (char[]){"meta"}}, value;

        snprintf(path, sizeof(path), "%s/1", fixture->folder);
        assert_int_equal(mdb_env_create(&environment), 0);
        assert_int_equal(mdb_env_set_maxdbs(environment, 20), 0);
        assert_int_equal(mdb_env_open(environment, path, 0, 0600), 0);
        assert_int_equal(mdb_txn_begin(environment, NULL, 0, &transaction), 0);
        assert_int_equal(mdb_dbi_open(transaction, "meta", 0, &table), 0);
        assert_int_equal(mdb_get(transaction, table, &key, &value), 0);
        assert_true(value.mv_size > 2 * sizeof(uint64_t) && value.mv_size <= sizeof(record));
        memcpy(record, value.mv_data, value.mv_size);
        memcpy(record + sizeof(sum), &schema, sizeof(schema));
        sum = XXH3_64bits(record + sizeof(sum), value.mv_size - sizeof(sum));
        memcpy(record, &sum, sizeof(sum));
        value.mv_data = record;
        assert_int_equal(mdb_put(transaction, table, &key, &value, 0), 0);
        assert_int_equal(mdb_txn_commit(transaction), 0);
        mdb_env_close(environment);
}

static void test_of_another_schema(struct fixture *fixture, uint64_t schema)
{
        char why[64];

        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u1", "5", "{}");
        fixture_close(fixture);
        write_schema(fixture, STORE_SCHEMA); /* as it is: that is how it is read */
        fixture_open(fixture);
        assert_int_equal(store_count(fixture->store), 1);
        fixture_close(fixture);
        write_schema(fixture, schema);
        snprintf(why, sizeof(why), "its schema is version %llu", (unsigned long long)schema);
        assert_rebuilt(fixture, why);
}

static void test_a_newer_schema(void **state)
{
        test_of_another_schema(*state, STORE_SCHEMA + 1);
}

static void test_an_older_schema(void **state)
{
        test_of_another_schema(*state, STORE_SCHEMA - 1);
}

/* ---- readers follow a rebuild */

static void test_a_reader_follows_a_rebuild(void **state)
{
        struct fixture *fixture = *state;
        int to_child[2], to_parent[2], status;
        char byte = 0;
        pid_t pid;

        assert_int_equal(pipe(to_child), 0);
        assert_int_equal(pipe(to_parent), 0);
        fixture_open(fixture);
        fixture_put(fixture, "n/a", "u1", "1", "{}");
        fixture_close(fixture);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                struct store *reader = NULL;
                struct store_object object;
                int failed = store_reader_new(fixture->folder, &reader);

                failed |= store_read(reader, 1, "n/a", &object);
                store_object_done(&object);
                failed |= write(to_parent[1], "r", 1) != 1 || read(to_child[0], &byte, 1) != 1;
                failed |= store_read(reader, 1, "n/a", &object) != 0; /* still open: its content stays */
                store_object_done(&object);
                failed |= store_read(reader, 2, "n/a", &object) != -ENOENT;
                failed |= store_read(reader, 2, "n/b", &object);
                store_object_done(&object);
                failed |= store_read(reader, 0, "n/b", &object);
                store_object_done(&object);
                store_free(reader);
                _exit(failed ? 1 : 0);
        }
        assert_int_equal(read(to_parent[0], &byte, 1), 1);
        fixture_open(fixture);
        assert_int_equal(store_rebuild(fixture->store, NULL), 0);
        fixture_put(fixture, "n/b", "u2", "1", "{}");
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(write(to_child[1], "w", 1), 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        for (int i = 0; i < 2; i++) {
                close(to_child[i]);
                close(to_parent[i]);
        }
}

/* ---- size */

static void test_grows(void **state)
{
        enum { COUNT = 64, SIZE = 512 * 1024 };
        struct fixture *fixture = *state;
        _cleanup_free_ char *json = malloc(SIZE);
        char key[32];

        assert_non_null(json);
        memset(json, 'x', SIZE - 1);
        json[SIZE - 1] = '\0';
        fixture_open(fixture);
        for (int i = 0; i < COUNT; i++) {
                snprintf(key, sizeof(key), "n/%d", i);
                fixture_put(fixture, key, "u", "1", json);
                if (store_commit_due(fixture->store))
                        assert_int_equal(store_commit(fixture->store), 0);
        }
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(fixture_read(fixture, 0, "n/63", "u", false, json), 0);
        assert_int_equal(store_count(fixture->store), COUNT);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                fixture_test(test_put_and_read),
                fixture_test(test_no_store_no_object),
                fixture_test(test_keys_that_do_not_fit),
                fixture_test(test_bury),
                fixture_test(test_held_marks_go_together),
                fixture_test(test_bury_keeps_the_next_object_of_that_name),
                fixture_test(test_what_a_list_did_not_mark),
                fixture_test(test_an_epoch_is_known_to_the_next_writer),
                fixture_test(test_positions),
                fixture_test(test_questions_go_round),
                fixture_test(test_objects_are_visited_in_portions),
                fixture_test(test_a_list_fills_it_in_order),
                fixture_test(test_a_large_list_fills_it_in_order),
                fixture_test(test_meta),
                fixture_test(test_one_writer),
                fixture_test(test_nobody_else_may_read_the_files),
                fixture_test(test_survives_its_writer),
                fixture_test(test_a_power_loss_makes_it_suspect),
                fixture_test(test_a_suspect_store),
                fixture_test(test_a_clean_store_is_not_trusted_when_suspect),
                fixture_test(test_a_clean_store_survives_a_reboot),
                fixture_test(test_a_damaged_current),
                fixture_test(test_a_file_that_is_no_database),
                fixture_test(test_a_newer_schema),
                fixture_test(test_an_older_schema),
                fixture_test(test_a_reader_follows_a_rebuild),
                fixture_test(test_grows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
