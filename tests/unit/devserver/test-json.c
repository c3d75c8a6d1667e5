/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers stay as they were written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "devserver/json.h"

static void test_what_comes_back(void **state)
{
        static const struct {
                const char *in, *out; /* NULL: as it came */
        } row[] = {
                {"{\"a\":1,\"b\":[1.5,true,null,\"x\"]}", NULL},
                {"{\"n\":9007199254740993}", NULL},
                {"[9223372036854775807,-9223372036854775808,18446744073709551615]", NULL},
                {"{\"usec\":1700000000123456}", NULL},
                {"[1000000000000000]", NULL},
                {"[0.12345678901234567890]", NULL},
                {"123456789012345678", NULL},
                {"{\"s\":\"9007199254740993\",\"n\":9007199254740993}", NULL},
                {"{\"q\":\"\\\"1234567890123456789\\\"\",\"n\":9007199254740993}", NULL},
                {"{\"9007199254740993\":9007199254740993}", NULL},
                /* A text with the mark in it is not taken for a number. */
                {"{\"s\":\"\\u0001foo\",\"n\":1234567890123456}", NULL},
        };

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *value = json_parse(row[i].in, strlen(row[i].in));
                char *json;

                if (!value)
                        fail_msg("%s is refused", row[i].in);
                json = cJSON_PrintUnformatted(value);
                assert_string_equal(json, row[i].out ? row[i].out : row[i].in);
                free(json);
                cJSON_Delete(value);
        }
        (void)state;
}

static void test_neighbours_differ(void **state)
{
        cJSON *a = json_parse("9007199254740993", 16), *b = json_parse("9007199254740992", 16),
              *c = json_parse("9007199254740993", 16);

        assert_false(cJSON_Compare(a, b, true));
        assert_true(cJSON_Compare(a, c, true));
        cJSON_Delete(a);
        cJSON_Delete(b);
        cJSON_Delete(c);
        (void)state;
}

static void test_what_is_no_json(void **state)
{
        static const char *const row[] = {"",
                                          "{",
                                          "[12345678901234567",
                                          "[1-2-3-4-5-6-7-8-9-1-2-3-4-5-6-7]",
                                          "[1234567890123456e]",
                                          "\"",
                                          "{\"a\\",
                                          "--1234567890123456789"};

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *value = json_parse(row[i], strlen(row[i]));

                if (value)
                        fail_msg("%s is accepted as %s", row[i], cJSON_PrintUnformatted(value));
        }
        assert_null(json_parse(NULL, 0));
        (void)state;
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_what_comes_back),
                cmocka_unit_test(test_neighbours_differ),
                cmocka_unit_test(test_what_is_no_json),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
