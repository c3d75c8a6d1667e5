/* SPDX-License-Identifier: Apache-2.0 */
/* Label selectors as users write them, field selectors as the real server supports them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "devserver/storage/selector.h"
#include "devserver/storage/storage.h"
#include "json/json.h"

static struct storage storage;
static struct resource *pods, *widgets;

static const struct version *put(struct resource *resource, const char *key, const char *json)
{
        cJSON *object = json_parse(json, strlen(json));
        const struct version *version = object ? object_put(&storage, resource, key, object) : NULL;

        cJSON_Delete(object);
        assert_non_null(version);
        return version;
}

static void assert_labels(const struct version *version, const char *labels, bool expected)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct selector *selector;

        if (selector_parse(labels, NULL, widgets, &selector, &error) < 0)
                fail_msg("\"%s\" is refused: %s", labels, error_message(&error));
        if (selector_matches(selector, version) != expected)
                fail_msg("\"%s\" selects %s", labels,
                         expected ? "not what it should" : "what it should not");
        selector_free(selector);
}

static void test_labels(void **state)
{
        static const struct {
                const char *labels;
                bool expected;
        } row[] = {
                {"", true},
                {"tier=gold", true},
                {"tier==gold", true},
                {" tier = gold ", true},
                {"tier=silver", false},
                {"tier!=silver", true},
                {"tier!=gold", false},
                {"absent!=x", true},
                {"absent=x", false},
                {"tier", true},
                {"!tier", false},
                {"! tier", false},
                {"!absent", true},
                {"absent", false},
                {"empty=", true},
                {"empty", true},
                {"tier=", false},
                {"tier in (gold,silver)", true},
                {"tier in ( silver , gold )", true},
                {"tier in (silver)", false},
                {"tier notin (silver)", true},
                {"tier notin (gold)", false},
                {"absent notin (x)", true},
                {"absent in (x)", false},
                {"empty in (,x)", true},
                {"tier=gold,zone=a", true},
                {"tier=gold,zone=b", false},
                {"tier in (gold),zone notin (b),!absent", true},
                {"example.com/owner=me", true},
                {"in=side", true},
                {"notin", true},
                {"size>1", true},
                {"size > 2", false},
                {"size<10", true},
                {"tier>1", false},
                {"absent>1", false},
        };
        const struct version *version =
                put(widgets, "n/a",
                    "{\"apiVersion\":\"example.com/"
                    "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"namespace\":"
                    "\"n\",\"labels\":{\"tier\":\"gold\",\"zone\":\"a\",\"empty\":\"\",\"example.com/"
                    "owner\":\"me\","
                    "\"size\":\"2\",\"in\":\"side\",\"notin\":\"x\"}}}");

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
                assert_labels(version, row[i].labels, row[i].expected);
        (void)state;
}

static void test_an_object_without_labels(void **state)
{
        const struct version *version =
                put(widgets, "n/b", "{\"metadata\":{\"name\":\"b\",\"namespace\":\"n\"}}");

        assert_labels(version, "a=b", false);
        assert_labels(version, "a!=b,!a,a notin (b)", true);
        (void)state;
}

static void test_wrong_labels(void **state)
{
        static const char *const row[] = {"=x", "a=b=c", "a in b",  "a in (b", "a in", "a b",
                                          ",",  "a=b,=", "a notin", "(a)",     "a=b<c"};

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                struct selector *selector = NULL;

                if (selector_parse(row[i], NULL, widgets, &selector, &error) != -EINVAL)
                        fail_msg("\"%s\" is accepted", row[i]);
                assert_null(selector);
                assert_string_not_equal(error_message(&error), "");
        }
        (void)state;
}

static void test_fields(void **state)
{
        static const struct {
                const char *fields;
                bool expected;
        } row[] = {
                {"metadata.name=p", true},
                {"metadata.name=q", false},
                {"metadata.name!=q", true},
                {"metadata.namespace=n", true},
                {"metadata.namespace=m", false},
                {"spec.nodeName=node", true},
                {"spec.nodeName=", false},
                {"status.phase!=Running", true},
                {"status.phase=", true},
                {"metadata.name=p,spec.nodeName=node", true},
                {"metadata.name=p,spec.nodeName=other", false},
        };
        const struct version *version =
                put(pods, "n/p",
                    "{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"spec\":{\"nodeName\":\"node\"}}");

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                struct selector *selector;

                assert_int_equal(selector_parse(NULL, row[i].fields, pods, &selector, &error), 0);
                if (selector_matches(selector, version) != row[i].expected)
                        fail_msg("%s", row[i].fields);
                selector_free(selector);
        }
        (void)state;
}

static void test_fields_that_are_not_supported(void **state)
{
        static const char *const row[] = {"spec.size=1", "spec.nodeName=x", "metadata.labels=x",
                                          "metadata.name", "metadata.name in (a)"};

        for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
                _cleanup_error_ struct error error = ERROR_NONE;
                struct selector *selector = NULL;

                assert_int_equal(selector_parse(NULL, row[i], widgets, &selector, &error), -EINVAL);
                assert_null(selector);
        }
        (void)state;
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_labels),
                cmocka_unit_test(test_an_object_without_labels),
                cmocka_unit_test(test_wrong_labels),
                cmocka_unit_test(test_fields),
                cmocka_unit_test(test_fields_that_are_not_supported),
        };
        int r;

        if (storage_init(&storage, 10) < 0)
                return 1;
        pods = resource_add(&storage, "", "v1", "Pod", "pods", true, true, true);
        widgets = resource_add(&storage, "example.com", "v1", "Widget", "widgets", true, true, false);
        r = cmocka_run_group_tests(test, NULL, NULL);
        storage_done(&storage);
        return r;
}
