/* SPDX-License-Identifier: Apache-2.0 */
/* Which handlers have the same stamp. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "supervisor/handlers/stamp.h"

static char folder[] = "/tmp/stamp-XXXXXX", path[64], other_path[64];

static int setup(void **state)
{
        (void)state;
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/file", folder);
        snprintf(other_path, sizeof(other_path), "%s/other", folder);
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        return rmdir(folder);
}

static void write_file(const char *name, const char *content, time_t mtime)
{
        const struct timespec times[] = {{.tv_sec = mtime}, {.tv_sec = mtime}};
        FILE *file = fopen(name, "w");

        assert_non_null(file);
        assert_true(fputs(content, file) >= 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(utimensat(AT_FDCWD, name, times, 0), 0);
}

static uint64_t stamp_of(const struct config_handler *handler)
{
        return handler_stamp(&(struct config_watch){.handler = *handler});
}

static void assert_same(const struct config_handler *a, const struct config_handler *b, bool same)
{
        assert_int_equal(stamp_of(a) == stamp_of(b), same);
}

#define ARGUMENTS(...)                                                                                      \
        .exec = (char **)(uintptr_t)(const char *const[]){__VA_ARGS__},                                     \
        .exec_count = sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)

static void test_settings_count(void **state)
{
        const struct config_handler plain = {ARGUMENTS("/none", "ab", "c")};
        struct config_handler other = plain;

        (void)state;
        assert_same(&plain, &other, true);
        assert_same(&plain, &(struct config_handler){ARGUMENTS("/none", "a", "bc")}, false);
        assert_same(&plain, &(struct config_handler){ARGUMENTS("/none", "ab", "c", "")}, false);
        other.kind = HANDLER_SERVE;
        assert_same(&plain, &other, false);
        other = plain;
        other.version = (char[]){"2"};
        assert_same(&plain, &other, false);
        other = plain;
        other.timeout_usec = 5;
        assert_same(&plain, &other, true);
}

/* Values may be secret, and nobody may try them on a copy of the ledger. */
static void test_names_of_the_environment_count(void **state)
{
        struct config_pair pair[] = {{(char[]){"A"}, (char[]){"1"}}, {(char[]){"B"}, (char[]){"2"}}};
        struct config_pair turned[] = {{(char[]){"B"}, (char[]){"3"}}, {(char[]){"A"}, (char[]){"4"}}};
        const struct config_handler none = {ARGUMENTS("/none")};
        const struct config_handler one = {ARGUMENTS("/none"), .environment = pair, .environment_count = 1};
        const struct config_handler two = {ARGUMENTS("/none"), .environment = pair, .environment_count = 2};

        (void)state;
        assert_same(&none, &one, false);
        assert_same(&one, &two, false);
        assert_same(
                &two,
                &(struct config_handler){ARGUMENTS("/none"), .environment = turned, .environment_count = 2},
                true);
}

/* What was refused for the sake of the configuration is tried again with one that allows it. */
static void test_what_answers_may_write_counts(void **state)
{
        char *text[] = {(char[]){"a"}, (char[]){"b"}};
        char *turned[] = {text[1], text[0]};
        struct config_owned map = {.api_version = (char[]){"v1"}, .kind = (char[]){"ConfigMap"}},
                            there = map;
        const struct config_watch row[] = {
                {.name = NULL},
                {.owns = &map, .owns_count = 1},
                {.answers = &map, .answers_count = 1},
                {.patches = &map, .patches_count = 1},
                {.patches = &there, .patches_count = 1},
                {.child_namespace = text, .child_namespace_count = 1},
                {.child_namespace = text, .child_namespace_count = 2},
        };

        (void)state;
        there.namespace = text;
        there.namespace_count = 1;
        for (size_t a = 0; a < ELEMENTS(row); a++)
                for (size_t b = 0; b < ELEMENTS(row); b++)
                        assert_int_equal(handler_stamp(&row[a]) == handler_stamp(&row[b]), a == b);
        assert_true(handler_stamp(
                            &(struct config_watch){.child_namespace = turned, .child_namespace_count = 2}) ==
                    handler_stamp(&row[ELEMENTS(row) - 1]));
}

static void test_size_and_time_of_files_count(void **state)
{
        const struct config_handler script = {ARGUMENTS("/none", path)};
        const struct config_handler relative = {ARGUMENTS("/none", path + 1)};

        (void)state;
        for (size_t i = 0; i < 2; i++) {
                const struct config_handler *handler = i == 0 ? &script : &relative;
                uint64_t missing = stamp_of(handler), one, later, earlier, longer;

                write_file(path, "one", 1000);
                one = stamp_of(handler);
                write_file(path, "two", 1000);
                assert_int_equal(one, stamp_of(handler));
                write_file(path, "one", 1001);
                later = stamp_of(handler);
                write_file(path, "one", 999);
                earlier = stamp_of(handler);
                write_file(path, "one and a half", 1000);
                longer = stamp_of(handler);
                assert_true(missing != one && one != later && one != earlier && one != longer);
                assert_int_equal(chmod(path, 0111), 0); /* no right to read it is needed */
                assert_int_equal(longer, stamp_of(handler));
                assert_int_equal(unlink(path), 0);
                assert_int_equal(missing, stamp_of(handler));
        }
}

/* As a ConfigMap's volume does it. */
static void test_links_are_followed(void **state)
{
        const struct config_handler handler = {ARGUMENTS("/none", path)};
        uint64_t one;

        (void)state;
        write_file(other_path, "one", 1000);
        assert_int_equal(symlink("other", path), 0);
        one = stamp_of(&handler);
        write_file(other_path, "two", 1001);
        assert_int_not_equal(one, stamp_of(&handler));
        assert_int_equal(unlink(path), 0);
        assert_int_equal(unlink(other_path), 0);
}

static void test_what_is_no_file_is_a_word(void **state)
{
        const struct config_handler handler = {ARGUMENTS("/none", folder, path, "/dev/null", "", "-v")};
        uint64_t without = stamp_of(&handler);

        (void)state;
        assert_int_equal(mkfifo(path, 0600), 0);
        assert_int_equal(without, stamp_of(&handler));
        assert_int_equal(unlink(path), 0);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_settings_count),
                cmocka_unit_test(test_names_of_the_environment_count),
                cmocka_unit_test(test_what_answers_may_write_counts),
                cmocka_unit_test(test_size_and_time_of_files_count),
                cmocka_unit_test(test_links_are_followed),
                cmocka_unit_test(test_what_is_no_file_is_a_word),
        };

        return cmocka_run_group_tests(test, setup, teardown);
}
