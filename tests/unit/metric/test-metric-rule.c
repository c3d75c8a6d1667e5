/* SPDX-License-Identifier: Apache-2.0 */
/* Names, labels and bounds of handlers' metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "metric/metric-rule.h"

static void test_names(void **state)
{
        static const struct {
                const char *name;
                enum metric_action action;
                const char *says; /* NULL: it may be called so */
        } row[] = {
                {"widgets", METRIC_SET, NULL},
                {"_Widgets_9", METRIC_OBSERVE, NULL},
                {"widgets_count", METRIC_SET, NULL},
                {"widgets_total", METRIC_ADD, NULL},
                {"widgets_total", METRIC_REMOVE, NULL},
                {"processes", METRIC_SET, NULL},
                {"", METRIC_SET, "must be a name"},
                {"9widgets", METRIC_SET, "must be a name"},
                {"wid-gets", METRIC_SET, "must be a name"},
                {"wid:gets", METRIC_SET, "must be a name"},
                {"widgets\n", METRIC_SET, "must be a name"},
                {"w\303\274", METRIC_SET, "must be a name"},
                {"widgets_total", METRIC_SET, "for `add`"},
                {"_total", METRIC_ADD, "for `add`"},
                {"reconciled_starts", METRIC_ADD, "choose another name"},
                {"workqueue_depth", METRIC_SET, "choose another name"},
                {"process_cpu", METRIC_SET, "choose another name"},
                {"target_info", METRIC_SET, "choose another name"},
                {"x_bucket", METRIC_SET, "a meaning of their own"},
                {"x_created_total", METRIC_ADD, "a meaning of their own"},
        };
        char longest[METRIC_NAME_MAX + 2] = {0};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                const char *problem = metric_name_problem(row[i].name, row[i].action);

                if (!row[i].says != !problem || (problem && !strstr(problem, row[i].says)))
                        fail_msg("%s: %s", row[i].name, problem ? problem : "(no problem)");
        }
        memset(longest, 'x', METRIC_NAME_MAX);
        assert_null(metric_name_problem(longest, METRIC_SET));
        longest[METRIC_NAME_MAX] = 'x';
        assert_non_null(metric_name_problem(longest, METRIC_SET));
}

static void test_labels(void **state)
{
        static const char *const right[] = {
                "",
                "a=\"\"",
                "a=\"b\",c=\"d\"",
                "a=\"\\\"\\\\\\n\"",
                "a=\"},{=,\"",
                "a=\"\303\274\t\"",
                "a=\"1\",b=\"1\",c=\"1\",d=\"1\",e=\"1\",f=\"1\",g=\"1\",h=\"1\"",
        };
        static const char *const wrong[] = {
                "a",
                "a=",
                "a=b",
                "a=\"",
                "a=\"b",
                "a=\"b\",",
                ",a=\"b\"",
                "=\"b\"",
                "9=\"b\"",
                "a=\"\n\"",
                "a=\"\\",
                "a=\"\\t\"",
                "a=\"b\"c=\"d\"",
                "a=\"b\" ",
                "__a=\"b\"",
                "le=\"1\"",
                "watch=\"w\"",
                "a=\"b\"} 1\nx{b=\"c\"",
                "a=\"1\",b=\"1\",c=\"1\",d=\"1\",e=\"1\",f=\"1\",g=\"1\",h=\"1\",i=\"1\"",
        };
        struct text text = TEXT_EMPTY;

        (void)state;
        for (size_t i = 0; i < ELEMENTS(right); i++)
                if (!metric_labels_are_right(right[i]))
                        fail_msg("%s was refused", right[i]);
        for (size_t i = 0; i < ELEMENTS(wrong); i++)
                if (metric_labels_are_right(wrong[i]))
                        fail_msg("%s was taken", wrong[i]);
        metric_label_write(&text, "a", "x\ny\"z\\");
        metric_label_write(&text, "b", "} 1\n");
        assert_string_equal(text.data, "a=\"x\\ny\\\"z\\\\\",b=\"} 1\\n\"");
        assert_true(metric_labels_are_right(text.data));
        text_clear(&text);
        text_append_string(&text, "a=\"");
        while (text.size < METRIC_LABELS_SIZE - 1)
                text_append_string(&text, "x");
        text_append_string(&text, "\"");
        assert_true(metric_labels_are_right(text.data));
        text.data[text.size - 1] = 'x';
        text_append_string(&text, "\"");
        assert_false(metric_labels_are_right(text.data));
        text_done(&text);
        assert_null(metric_label_problem("name"));
        assert_non_null(metric_label_problem(""));
        assert_non_null(metric_label_problem("le"));
        assert_non_null(metric_label_problem("na me"));
}

static void test_buckets_and_numbers(void **state)
{
        static const char *const wrong[] = {"",    "x",   "1 x", "2 1",    "1 1",
                                            "inf", "nan", "1,2", "-inf 1", "1e999"};
        static const struct {
                double value;
                const char *text;
        } number[] = {{0.1, "0.1"},
                      {1, "1"},
                      {-2.5, "-2.5"},
                      {1e300, "1e+300"},
                      {1.0 / 3, "0.33333333333333331"},
                      {9007199254740993.0, "9007199254740992"}};
        double bound[3];

        (void)state;
        assert_int_equal(metric_buckets_read("0 0.5 10", bound, 3), 3);
        assert_true(bound[0] < 0.1 && bound[1] > 0.4 && bound[2] > 9);
        assert_int_equal(metric_buckets_read("1 2 3 4", bound, 3), 0);
        for (size_t i = 0; i < ELEMENTS(wrong); i++)
                if (metric_buckets_read(wrong[i], bound, 3) != 0)
                        fail_msg("%s was taken", wrong[i]);
        for (size_t i = 0; i < ELEMENTS(number); i++) {
                struct text text = TEXT_EMPTY;

                metric_number_write(&text, number[i].value);
                assert_string_equal(text.data, number[i].text);
                text_done(&text);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_names),
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_buckets_and_numbers),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
