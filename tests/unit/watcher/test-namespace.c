/* SPDX-License-Identifier: Apache-2.0 */
/* Which namespaces a watch follows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "object/confined.h"

/* Patterns up to the first NULL. */
static bool match(const char *name, const char *const pattern[])
{
        struct record_string record[8];
        size_t count = 0;

        while (pattern[count]) {
                record[count].value = pattern[count];
                count++;
        }
        return namespace_match(record, count, name, strlen(name));
}

#define MATCH(name, ...) match(name, (const char *const[]){__VA_ARGS__, NULL})

static void test_one_pattern(void **state _unused_)
{
        assert_true(MATCH("team-a", "team-*"));
        assert_true(MATCH("team-", "team-*"));
        assert_false(MATCH("team", "team-*"));
        assert_false(MATCH("my-team-a", "team-*"));
        assert_true(MATCH("my-team-a", "*team*"));
        assert_true(MATCH("a", "?"));
        assert_false(MATCH("", "?"));
        assert_false(MATCH("ab", "?"));
        assert_true(MATCH("aXbXc", "a?b?c"));
        assert_true(MATCH("", "*"));
        assert_true(MATCH("default", "default"));
        assert_false(MATCH("default-2", "default"));
        assert_true(MATCH("abcbcd", "a*bcd")); /* the first attempt of the star fails */
        assert_true(MATCH("aaab", "*a*b"));
        assert_false(MATCH("aaac", "*a*b"));
        assert_false(MATCH("x", "[x]")); /* no other wildcards */
}

static void test_exclusions(void **state _unused_)
{
        assert_true(MATCH("default", "!kube-*"));
        assert_false(MATCH("kube-system", "!kube-*"));
        assert_false(MATCH("other", "team-*", "!team-x"));
        assert_true(MATCH("team-y", "team-*", "!team-x"));
        assert_false(MATCH("team-x", "team-*", "!team-x"));
        assert_false(MATCH("team-x", "!team-x", "team-*")); /* wherever it stands */
        assert_true(MATCH("one", "one", "team-*"));
        assert_false(MATCH("a", "!*"));
}

static void test_part_of_a_key(void **state _unused_)
{
        static const struct record_string pattern[] = {{"team-?"}};

        assert_true(namespace_match(pattern, 1, "team-a/object", 6));
        assert_false(namespace_match(pattern, 1, "team-a/object", 7));
        assert_true(namespace_match(NULL, 0, "anything", 8));
}

/* As long as the name and the pattern, not their product to the power of the stars. */
static void test_many_stars_end(void **state _unused_)
{
        char name[254], pattern[254];
        const struct record_string record = {pattern};

        memset(name, 'a', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        for (size_t i = 0; i + 2 < sizeof(pattern); i += 2)
                memcpy(pattern + i, "*a", 2);
        memcpy(pattern + sizeof(pattern) - 2, "b", 2);
        assert_false(namespace_match(&record, 1, name, sizeof(name) - 1));
}

static void test_what_a_pattern_is(void **state _unused_)
{
        static const struct record_string names[] = {{"default"}, {"team-a"}}, star[] = {{"a"}, {"b*"}},
                                          exclusion[] = {{"!a"}}, question[] = {{"a?"}};

        assert_false(namespaces_are_patterns(names, 2));
        assert_false(namespaces_are_patterns(NULL, 0));
        assert_true(namespaces_are_patterns(star, 2));
        assert_true(namespaces_are_patterns(exclusion, 1));
        assert_true(namespaces_are_patterns(question, 1));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_one_pattern),       cmocka_unit_test(test_exclusions),
                cmocka_unit_test(test_part_of_a_key),     cmocka_unit_test(test_many_stars_end),
                cmocka_unit_test(test_what_a_pattern_is),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
