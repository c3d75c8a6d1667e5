/* SPDX-License-Identifier: Apache-2.0 */
/* YAML of others: brackets that are nested without end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "yaml/yaml-tree.h"
#include "json/json.h"

#define MANY 20000

static struct text nested(size_t depth)
{
        struct text text = TEXT_EMPTY;

        text_append_string(&text, "kind: Widget\na: ");
        for (size_t i = 0; i < depth; i++)
                text_append_string(&text, "[");
        for (size_t i = 0; i < depth; i++)
                text_append_string(&text, "]");
        return text;
}

static int count_object(cJSON *document, void *userdata, struct error *error)
{
        (void)error;
        assert_string_equal(json_text(document, "kind"), "Widget");
        ++*(unsigned *)userdata;
        return 0;
}

static int visit(size_t depth, unsigned *count, struct error *error)
{
        char path[] = "/tmp/yaml-XXXXXX";
        int fd = mkstemp(path), r;
        _cleanup_text_ struct text text = nested(depth);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text.data, text.size), text.size);
        close(fd);
        r = yaml_each_document(path, count_object, count, error);
        assert_int_equal(unlink(path), 0);
        return r;
}

static void test_nested_brackets_of_a_file(void **state)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        unsigned count = 0;

        (void)state;
        assert_int_equal(visit(99, &count, &error), 0);
        assert_int_equal(count, 1);
        assert_int_equal(visit(MANY, &count, &error), -EINVAL);
        assert_non_null(strstr(error_message(&error), ":2: too many nested brackets"));
        assert_int_equal(count, 1);
}

static void test_nested_brackets_of_a_text(void **state)
{
        _cleanup_text_ struct text shallow = nested(99), deep = nested(MANY);
        _cleanup_json_ cJSON *object = yaml_parse_object(&shallow);

        (void)state;
        assert_non_null(object);
        assert_null(yaml_parse_object(&deep));
}

/* As in a script that colours its words. */
static void test_brackets_that_are_none(void **state)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        _cleanup_json_ cJSON *object = NULL;

        (void)state;
        text_append_string(&text, "a: |\n");
        for (size_t i = 0; i < MANY; i++)
                text_append_string(&text, "  printf '\\033[1m'\n");
        object = yaml_parse_object(&text);
        assert_int_equal(strlen(json_text(object, "a")), MANY * strlen("printf '\\033[1m'\n"));
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_nested_brackets_of_a_file),
                cmocka_unit_test(test_nested_brackets_of_a_text),
                cmocka_unit_test(test_brackets_that_are_none),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
