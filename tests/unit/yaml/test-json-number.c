/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers come back as a real API server gives them (Go's int64 and float64). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "yaml/json-number.h"

static void test_as_go_writes_them(void **state)
{
        static const struct {
                const char *in, *out; /* NULL: as it came */
        } row[] = {
                {"9007199254740993", NULL},
                {"9223372036854775807", NULL},
                {"-9223372036854775808", NULL},
                {"9223372036854775808", "9223372036854776000"},
                {"18446744073709551615", "18446744073709552000"},
                {"1.0", "1"},
                {"1", NULL},
                {"0", NULL},
                {"-0", "0"},
                {"-0.0", "-0"},
                {"0.10", "0.1"},
                {"1e2", "100"},
                {"1.5e300", "1.5e+300"},
                {"1e20", "100000000000000000000"},
                {"1.2345678901234568e20", "123456789012345680000"},
                {"1e21", "1e+21"},
                {"0.000001", NULL},
                {"1e-7", NULL},
                {"1.25E-10", "1.25e-10"},
                {"0.12345678901234567890", "0.12345678901234568"},
                {"123.456", NULL},
                {"3.141592653589793", NULL},
                {"1e-400", "0"},
        };

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                cJSON *value = number_parse(row[i].in, strlen(row[i].in));
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

static void test_too_large(void **state)
{
        assert_null(number_parse("[1e400]", 7));
        assert_null(number_parse("[", 1));
        (void)state;
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_as_go_writes_them),
                cmocka_unit_test(test_too_large),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
