/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the leader record that outlive a leader: written and read again, and what is not of this form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "election/lasting.h"
#include "object/identity.h"

static struct lasting read_one(const char *text)
{
        struct lasting line;
        const char *at = text;

        assert_true(lasting_next(&at, &line));
        assert_true(*at == '\0');
        return line;
}

static void assert_same_text(const char *a, const char *b)
{
        if (a && b)
                assert_string_equal(a, b);
        else
                assert_true(!a && !b);
}

static void test_lines_survive(void **state)
{
        const struct {
                const char *text;
                struct lasting lasting;
        } line[] = {
                {"uninstalling 1795814018571686 1000\n",
                 {.kind = LASTING_UNINSTALL, .since = 1795814018571686, .user = 1000}},
                {"paused widgets 7 0 we%20look%20at%20100%20%25%0Aof%20it\n",
                 {.kind = LASTING_PAUSE,
                  .watch = (char[]){"widgets"},
                  .since = 7,
                  .reason = (char[]){"we look at 100 %\nof it"}}},
                {"paused widgets 7 0 -\n",
                 {.kind = LASTING_PAUSE, .watch = (char[]){"widgets"}, .since = 7, .reason = (char[]){""}}},
                {"paused %2D 7 0 a-\n",
                 {.kind = LASTING_PAUSE, .watch = (char[]){"-"}, .since = 7, .reason = (char[]){"a-"}}},
                {"running w default%2Fa u 1\n",
                 {.kind = LASTING_RUN,
                  .watch = (char[]){"w"},
                  .key = (char[]){"default/a"},
                  .uid = (char[]){"u"},
                  .flag = 1}},
                {"crashed w system%3An%C3%A9 u 3 999999999999999999\n",
                 {.kind = LASTING_CRASH,
                  .watch = (char[]){"w"},
                  .key = (char[]){"system:n\xc3\xa9"},
                  .uid = (char[]){"u"},
                  .crashes = 3,
                  .until = UINT64_C(999999999999999999)}},
                {"doubtful w a u 1 5 0\n",
                 {.kind = LASTING_DOUBT,
                  .watch = (char[]){"w"},
                  .key = (char[]){"a"},
                  .uid = (char[]){"u"},
                  .crashes = 1,
                  .until = 5}},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(line); i++) {
                _cleanup_text_ struct text text = TEXT_EMPTY;
                struct lasting back;

                lasting_write(&text, &line[i].lasting);
                assert_string_equal(text.data, line[i].text);
                back = read_one(text.data);
                assert_int_equal(back.kind, line[i].lasting.kind);
                assert_same_text(back.watch, line[i].lasting.watch);
                assert_same_text(back.key, line[i].lasting.key);
                assert_same_text(back.uid, line[i].lasting.uid);
                assert_same_text(back.reason, line[i].lasting.reason);
                assert_true(back.since == line[i].lasting.since && back.user == line[i].lasting.user &&
                            back.crashes == line[i].lasting.crashes && back.until == line[i].lasting.until &&
                            back.flag == line[i].lasting.flag);
                lasting_done(&back);
        }
}

static void assert_is_no_line_of_ours(const char *text, enum lasting_kind kind)
{
        struct lasting line = read_one(text);

        assert_int_equal(line.kind, kind);
        assert_true(!line.watch && !line.key && !line.uid && !line.reason);
        assert_true(!line.since && !line.user && !line.crashes && !line.until && !line.flag);
        assert_int_equal(line.line_size, strcspn(text, "\n"));
        assert_ptr_equal(line.line, text);
}

/* They stay as they are: nobody acts on them. */
static void test_lines_of_other_releases(void **state)
{
        static const char *const other[] = {"of a later release\n", "Paused widgets 7 0 -\n", "x"};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(other); i++)
                assert_is_no_line_of_ours(other[i], LASTING_OTHER);
}

/* Nobody keeps them: their texts would become rows that no message may carry, and names that no file may have. */
static void test_damaged_lines(void **state)
{
        static const char *const damaged[] = {
                "paused\n",
                "paused widgets 7 0\n",
                "paused widgets 7 0 a b\n",
                "paused widgets 7 0 a \n",
                "paused widgets 07 0 a\n",
                "paused widgets -7 0 a\n",
                "paused widgets 7  a\n",
                "paused  7 0 a\n",
                "paused w%2 7 0 a\n",
                "paused w%zz 7 0 a\n",
                "paused w%00 7 0 a\n",
                "paused w%2f 7 0 a\n",
                "running w a u 2\n",
                "running w a u\n",
                "crashed w a u 1 1000000000000000000\n",
                "paused widgets 0 0 -\n",
                "paused widgets 7 4294967296 -\n",
                "paused - 7 0 -\n",
                "running w - u 1\n",
                "running w a - 1\n",
                "running w %2Fa u 1\n",
                "running w a%2F u 1\n",
                "running w a%2Fb%2Fc u 1\n",
                "running w a%0Ab u 1\n",
                "crashed w default%2F%FF u 0 0\n",
                "crashed w a %C3 0 0\n",
                "crashed w a %1B[2J 0 0\n",
                "doubtful w %80 u 1 5 0\n",
                "doubtful w a u 0 5 0\n",
                "doubtful w a u 1000001 5 0\n",
                "crashed w a u 999999999999999999 0\n",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(damaged); i++)
                assert_is_no_line_of_ours(damaged[i], LASTING_DAMAGED);
}

static void test_crashes_have_a_bound(void **state)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        const struct lasting line = {.kind = LASTING_CRASH,
                                     .watch = (char[]){"w"},
                                     .key = (char[]){"a"},
                                     .uid = (char[]){"u"},
                                     .crashes = UINT64_MAX};

        (void)state;
        lasting_write(&text, &line);
        assert_string_equal(text.data, "crashed w a u 1000000 0\n");
}

/* Names of files are made of keys. */
static void test_names_have_bounds(void **state)
{
        const struct {
                size_t key, uid;
                enum lasting_kind kind;
        } size[] = {{IDENTITY_KEY_MAX, IDENTITY_UID_MAX, LASTING_RUN},
                    {IDENTITY_KEY_MAX + 1, 1, LASTING_DAMAGED},
                    {1, IDENTITY_UID_MAX + 1, LASTING_DAMAGED}};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(size); i++) {
                char text[3 * IDENTITY_KEY_MAX], name[2][IDENTITY_KEY_MAX + 2] = {"", ""};
                struct lasting line;

                memset(name[0], 'k', size[i].key);
                memset(name[1], 'u', size[i].uid);
                snprintf(text, sizeof(text), "running w %s %s 0\n", name[0], name[1]);
                line = read_one(text);
                assert_int_equal(line.kind, size[i].kind);
                lasting_done(&line);
        }
}

static void test_several(void **state)
{
        const char *at = "running w a u 0\nnews\nrunning w b u 1\n";
        static const enum lasting_kind kind[] = {LASTING_RUN, LASTING_OTHER, LASTING_RUN};
        struct lasting line;

        (void)state;
        for (size_t i = 0; i < ELEMENTS(kind); i++) {
                assert_true(lasting_next(&at, &line));
                assert_int_equal(line.kind, kind[i]);
                lasting_done(&line);
        }
        assert_false(lasting_next(&at, &line));
        at = "";
        assert_false(lasting_next(&at, &line));
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_lines_survive),     cmocka_unit_test(test_lines_of_other_releases),
                cmocka_unit_test(test_damaged_lines),     cmocka_unit_test(test_crashes_have_a_bound),
                cmocka_unit_test(test_names_have_bounds), cmocka_unit_test(test_several),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
