/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns are RE2's, and no match takes long. That a real server says the same: tests/conformance/test_schema.py */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "devserver/schema/schema-pattern.h"
#include "tests/unit/valgrind.h"

static void test_matches(void **state _unused_)
{
        static const struct {
                const char *pattern, *text;
                bool found;
        } table[] = {
                {"b", "abc", true},
                {"^b", "abc", false},
                {"^a$", "a\n", false},
                {"a.c", "a\nc", false},
                {"(?s)a.c", "a\nc", true},
                {"(?i)ABC", "xabc", true},
                {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true},
                {"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-", false},
                {"^\\d{2,3}$", "12", true},
                {"^\\d+$", "\xd9\xa1", false}, /* ARABIC-INDIC DIGIT ONE */
                {"^.$", "\xc3\xbc", true},
                {"^\\pL+$", "\xc3\xbc", true},
                {"^(?P<n>a|b)+?$", "ab", true},
                {"^\\Q(\\E$", "(", true},
                {"a|", "x", true},
                {"[^]]", "]", false},
                {"a{,2}", "a{,2}", true},
                {"\\Ax\\z", "x", true},
                {"(", "(", false}, /* it cannot be used */
        };

        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (pattern_matches(table[i].pattern, table[i].text) != table[i].found)
                        fail_msg("\"%s\" and \"%s\"", table[i].pattern, table[i].text);
        patterns_done();
}

static void test_what_re2_refuses(void **state _unused_)
{
        static const char *const table[] = {"(?=a)",   "(?<!a)", "(?>a)", "(*UTF)a", "(a)\\1", "\\K",
                                            "\\R",     "\\C",    "a++",   "a**",     "a+?+",   "a{2}*",
                                            "a{1001}", "a)",     "[a",    "a\\",     "*a",     "(?x)a"};
        char text[300];

        for (size_t i = 0; i < ELEMENTS(table); i++)
                if (!pattern_mistake(table[i], text, sizeof(text)))
                        fail_msg("\"%s\" was taken", table[i]);
        assert_null(pattern_mistake("[*+?(]\\*+a+?[[:alpha:]]*(?:b)?", text, sizeof(text)));
}

/* Without a limit some of them would take longer than the world has been there. */
static void test_no_match_takes_long(void **state _unused_)
{
        static const char *const table[] = {"^(a+)+$", "^(a|a)*$",        "^(.*)*x$",
                                            "(a*)*b",  "^(a?){50}a{50}$", "(x+x+)+y"};
        _cleanup_free_ char *text = malloc(20001);

        assert_non_null(text);
        memset(text, 'a', 19999);
        memcpy(text + 19999, "!", 2);
        /* They end at one limit, by the same way through our code. */
        for (size_t i = 0; i < (under_valgrind() ? 1 : ELEMENTS(table)); i++)
                assert_false(pattern_matches(table[i], text));
        patterns_done();
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_matches),
                cmocka_unit_test(test_what_re2_refuses),
                cmocka_unit_test(test_no_match_takes_long),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
