/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a handler is another one: by contents and settings, and by nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "supervisor/handlers/handler-hash.h"

static uint8_t key[HANDLER_KEY_SIZE] = {1, 2, 3};
static char folder[] = "/tmp/handler-hash-XXXXXX", path[64];

static int setup(void **state)
{
        (void)state;
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/file", folder);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        (void)unlink(path);
        return rmdir(folder);
}

static void write_file(const char *content)
{
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_true(fputs(content, file) >= 0);
        assert_int_equal(fclose(file), 0);
}

static int hash_handler(const struct config_handler *handler, char ret[HANDLER_HASH_SIZE], size_t *ret_steps)
{
        _cleanup_text_ struct text unread = TEXT_EMPTY;
        struct handler_hash *hash;
        size_t steps = 1;
        int r;

        assert_int_equal(handler_hash_new(key, &hash), 0);
        assert_int_equal(handler_hash_add(hash, handler), 0);
        while ((r = handler_hash_step(hash)) > 0)
                steps++;
        assert_int_equal(r, 0);
        r = handler_hash_get(hash, handler, ret, &unread);
        assert_true(r >= 0 || unread.size > 0);
        handler_hash_free(hash);
        if (ret_steps)
                *ret_steps = steps;
        return r;
}

static void assert_same(const struct config_handler *a, const struct config_handler *b, bool same)
{
        char one[HANDLER_HASH_SIZE], two[HANDLER_HASH_SIZE];

        assert_int_equal(hash_handler(a, one, NULL), 0);
        assert_int_equal(hash_handler(b, two, NULL), 0);
        assert_int_equal(strlen(one), HANDLER_HASH_SIZE - 1);
        assert_int_equal(strcmp(one, two) == 0, same);
}

#define ARGUMENTS(...)                                                                                      \
        .exec = (char **)(uintptr_t)(const char *const[]){__VA_ARGS__},                                     \
        .exec_count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void test_settings_count(void **state)
{
        const struct config_handler plain = {ARGUMENTS("/none", "ab", "c")};
        struct config_pair pair[] = {{(char[]){"A"}, (char[]){"1"}}, {(char[]){"B"}, (char[]){"2"}}};
        struct config_pair turned[] = {{(char[]){"B"}, (char[]){"2"}}, {(char[]){"A"}, (char[]){"1"}}};
        struct config_pair moved[] = {{(char[]){"A"}, (char[]){"2"}}, {(char[]){"B"}, (char[]){"1"}}};
        struct config_handler other;

        (void)state;
        assert_same(&plain, &plain, true);
        assert_same(&plain, &(struct config_handler){ARGUMENTS("/none", "a", "bc")}, false);
        assert_same(&plain, &(struct config_handler){ARGUMENTS("/none", "ab", "c", "")}, false);
        other = plain;
        other.kind = HANDLER_SERVE;
        assert_same(&plain, &other, false);
        other = plain;
        other.user = (char[]){"nobody"};
        assert_same(&plain, &other, false);
        other = plain;
        other.version = (char[]){"nobody"};
        assert_same(&plain, &other, false);
        other = plain;
        other.credentials = pair;
        other.credentials_count = 2;
        assert_same(&plain, &other, false);
        assert_same(&other,
                    &(struct config_handler){ARGUMENTS("/none", "ab", "c"), .environment = pair,
                                             .environment_count = 2},
                    false);
        other = plain;
        other.kubernetes_account = (char[]){"widgets"};
        assert_same(&plain, &other, false);
        other = plain;
        other.request_max = 1;
        assert_same(&plain, &other, false);
        other = plain;
        other.timeout_usec = 5;
        assert_same(&plain, &other, true);
        other.environment = pair;
        other.environment_count = 2;
        assert_same(&plain, &other, false);
        assert_same(&other,
                    &(struct config_handler){ARGUMENTS("/none", "ab", "c"), .environment = turned,
                                             .environment_count = 2},
                    true);
        assert_same(&other,
                    &(struct config_handler){ARGUMENTS("/none", "ab", "c"), .environment = moved,
                                             .environment_count = 2},
                    false);
}

static void test_contents_count(void **state)
{
        const struct config_handler handler = {ARGUMENTS("/none", path)};
        const struct config_handler relative = {ARGUMENTS("/none", path + 1)};
        char one[HANDLER_HASH_SIZE], two[HANDLER_HASH_SIZE];

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                const struct config_handler *each = i == 0 ? &handler : &relative;

                write_file("one");
                assert_int_equal(hash_handler(each, one, NULL), 0);
                write_file("one");
                assert_int_equal(hash_handler(each, two, NULL), 0);
                assert_string_equal(one, two);
                write_file("two");
                assert_int_equal(hash_handler(each, two, NULL), 0);
                assert_string_not_equal(one, two);
                assert_int_equal(unlink(path), 0);
                assert_int_equal(hash_handler(each, two, NULL), 0);
                assert_string_not_equal(one, two);
        }
}

/* Nobody writes to the FIFO, so that opening it would wait for ever. */
static void test_what_is_no_file_is_a_word(void **state)
{
        const struct config_handler handler = {ARGUMENTS("/none", folder, path, "/dev/null", "", "-v")};
        char one[HANDLER_HASH_SIZE], two[HANDLER_HASH_SIZE];

        (void)state;
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(hash_handler(&handler, one, NULL), 0);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(hash_handler(&handler, two, NULL), 0);
        assert_string_equal(one, two);
}

static void test_a_large_file_takes_many_steps(void **state)
{
        const struct config_handler handler = {ARGUMENTS("/none", path)};
        char one[HANDLER_HASH_SIZE], two[HANDLER_HASH_SIZE];
        size_t steps;

        (void)state;
        write_file("");
        assert_int_equal(truncate(path, 64 << 20), 0);
        assert_int_equal(hash_handler(&handler, one, &steps), 0);
        assert_in_range(steps, 64, 10000);
        assert_int_equal(truncate(path, (64 << 20) - 1), 0);
        assert_int_equal(hash_handler(&handler, two, NULL), 0);
        assert_string_not_equal(one, two);
        /* Above the limit it is not read to its end. */
        assert_int_equal(truncate(path, (off_t)1 << 40), 0);
        assert_int_equal(hash_handler(&handler, two, &steps), 0);
        assert_in_range(steps, 1024, 100000);
        assert_int_equal(unlink(path), 0);
}

static void test_a_file_that_fails_leaves_it_open(void **state)
{
        const struct config_handler handler = {ARGUMENTS("/none", "/proc/self/mem")};
        char hash[HANDLER_HASH_SIZE];

        (void)state;
        assert_int_equal(hash_handler(&handler, hash, NULL), -EIO);
}

static void test_another_key_makes_another_hash(void **state)
{
        const struct config_handler handler = {ARGUMENTS("/none")};
        char one[HANDLER_HASH_SIZE], two[HANDLER_HASH_SIZE], first_name[HANDLER_HASH_SIZE];

        (void)state;
        assert_int_equal(hash_handler(&handler, one, NULL), 0);
        handler_key_name(key, first_name);
        key[31]++;
        assert_int_equal(hash_handler(&handler, two, NULL), 0);
        assert_string_not_equal(one, two);
        handler_key_name(key, two);
        assert_string_not_equal(first_name, two);
        key[31]--;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_settings_count),
                cmocka_unit_test(test_contents_count),
                cmocka_unit_test(test_what_is_no_file_is_a_word),
                cmocka_unit_test(test_a_large_file_takes_many_steps),
                cmocka_unit_test(test_a_file_that_fails_leaves_it_open),
                cmocka_unit_test(test_another_key_makes_another_hash),
        };

        return cmocka_run_group_tests(tests, setup, teardown);
}
