/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker remembers of the dependents that it has applied. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "object/keyed-hash.h"
#include "worker/dependents/applied.h"

static struct applied_text text_of(const char *owner, const char *name, char *body)
{
        struct dependent_owner of = {.uid = owner};
        struct dependent dependent = {.api_version = (char[]){"v1"},
                                      .kind = (char[]){"ConfigMap"},
                                      .namespace_name = (char[]){"default"},
                                      .name = strdup(name)};
        struct text text = {.data = body, .size = strlen(body)};
        struct applied_text result;

        assert_non_null(dependent.name);
        result = applied_text_of(&of, &dependent, &text);
        free(dependent.name);
        return result;
}

static uint64_t state_of(const char *uid, const char *version, const char *value)
{
        char json[200];
        uint64_t state;

        snprintf(json, sizeof(json),
                 "{\"metadata\":{\"name\":\"a\",\"uid\":\"%s\",\"resourceVersion\":\"%s\"},"
                 "\"data\":{\"a\":\"%s\"}}",
                 uid, version, value);
        assert_int_equal(applied_state_of(json, strlen(json), &state), 0);
        return state;
}

static void test_what_a_state_is(void **state)
{
        uint64_t listed, watched;
        const char *item = "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"7\"},\"data\":{\"a\":\"1\"}}";
        const char *whole = "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"data\":{\"a\":\"1\"},"
                            "\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"u\"}}";

        (void)state;
        assert_int_not_equal(state_of("u", "7", "1"), state_of("u", "8", "1"));
        assert_int_not_equal(state_of("u", "7", "1"), state_of("v", "7", "1"));
        assert_int_not_equal(state_of("u", "7", "1"), state_of("u", "7", "2"));
        assert_int_equal(applied_state_of(item, strlen(item), &listed), 0);
        assert_int_equal(applied_state_of(whole, strlen(whole), &watched), 0);
        assert_int_equal(listed, watched);
        assert_true(applied_state_of("[]", 2, &listed) < 0);
}

static void test_the_same_text_and_nothing_else(void **state)
{
        _cleanup_(applied_free_pointer) struct applied *applied = NULL;
        struct applied_text first = text_of("o", "a", (char[]){"{1}"});
        struct applied_text second = text_of("o", "a", (char[]){"{2}"});
        struct applied_text others = text_of("p", "a", (char[]){"{1}"});
        struct applied_text another = text_of("o", "b", (char[]){"{1}"});

        (void)state;
        assert_int_equal(applied_new(&applied), 0);
        assert_false(applied_made(applied, &first, 7));
        applied_keep(applied, &first, 7);
        assert_true(applied_made(applied, &first, 7));
        assert_false(applied_made(applied, &first, 8)); /* somebody has changed it */
        assert_false(applied_made(applied, &second, 7));
        assert_false(applied_made(applied, &others, 7));
        assert_false(applied_made(applied, &another, 7));
        applied_keep(applied, &second, 8);
        assert_true(applied_made(applied, &second, 8));
        assert_false(applied_made(applied, &first, 7)); /* not what it is now */
        assert_false(applied_made(applied, &first, 8));
}

static uint64_t held_for(struct applied *applied, const struct applied_text *text, uint64_t now,
                         unsigned repairs)
{
        uint64_t until;

        assert_int_equal(applied_repairs(applied, text, now, &until), repairs);
        return until == 0 ? 0 : until - now;
}

static void test_what_is_set_back_is_held_longer_and_longer(void **state)
{
        _cleanup_(applied_free_pointer) struct applied *applied = NULL;
        struct applied_text text = text_of("o", "a", (char[]){"{1}"}),
                            other = text_of("o", "a", (char[]){"{2}"});
        uint64_t now = USEC_PER_HOUR, held = 0;

        (void)state;
        assert_int_equal(applied_new(&applied), 0);
        applied_count_repair(applied, &text,
                             now); /* what was never applied has changed for the first time */
        assert_int_equal(held_for(applied, &text, now, 0), 0);
        for (unsigned i = 1; i <= 40; i++) {
                applied_keep(applied, &text, i);
                applied_count_repair(applied, &text, now);
                held = held_for(applied, &text, now, i);
                assert_int_equal(held, i < 3    ? 0
                                       : i < 11 ? (4 * USEC_PER_SEC) << (i - 3)
                                                : 10 * USEC_PER_MINUTE);
                now += held;
                assert_int_equal(held_for(applied, &text, now, i), 0);
        }
        assert_int_equal(held_for(applied, &text, now + 10 * USEC_PER_MINUTE, 0), 0); /* it was quiet */
        applied_keep(applied, &other, 1);
        assert_int_equal(held_for(applied, &other, now, 0), 0); /* another text is another wish */
        applied_keep(applied, &text, 1);
        assert_int_equal(held_for(applied, &text, now, 0), 0);
}

/* What is forgotten is forgotten, and never taken for something else. */
static void test_more_than_it_holds(void **state)
{
        _cleanup_(applied_free_pointer) struct applied *applied = NULL;
        struct applied_text last = {0};
        size_t known = 0;

        (void)state;
        assert_int_equal(applied_new(&applied), 0);
        for (unsigned pass = 0; pass < 2; pass++)
                for (unsigned i = 0; i < 2 * APPLIED_MAX; i++) {
                        char name[32];

                        snprintf(name, sizeof(name), "%u", i);
                        last = text_of("o", name, (char[]){"{}"});
                        if (pass == 1) {
                                known += applied_made(applied, &last, i);
                                continue;
                        }
                        applied_keep(applied, &last, i);
                        assert_true(applied_made(applied, &last, i));
                }
        assert_true(applied_made(applied, &last, 2 * APPLIED_MAX - 1));
        assert_in_range(known, APPLIED_MAX / 2, APPLIED_MAX);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_a_state_is),
                cmocka_unit_test(test_the_same_text_and_nothing_else),
                cmocka_unit_test(test_what_is_set_back_is_held_longer_and_longer),
                cmocka_unit_test(test_more_than_it_holds),
        };

        if (keyed_hash_begin("0123456789abcdef", SIPHASH_KEY_SIZE) < 0)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
