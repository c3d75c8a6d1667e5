/* SPDX-License-Identifier: Apache-2.0 */
/* Who owns which field, for custom resources with and without a schema and for built-in kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "devserver/tree/tree-apply.h"
#include "json/json.h"

static const char list_schema[] =
        "{\"properties\":{\"spec\":{\"properties\":{"
        "\"map\":{\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"host\",\"port\"]},"
        "\"set\":{\"x-kubernetes-list-type\":\"set\"},"
        "\"atomic\":{\"x-kubernetes-list-type\":\"atomic\"},"
        "\"whole\":{\"x-kubernetes-map-type\":\"atomic\"}}}}}";

static cJSON *schema;

static cJSON *parse(const char *json)
{
        cJSON *value = json_parse(json, strlen(json));

        if (!value)
                fail_msg("the test's own JSON is wrong: %s", json);
        return value;
}

static void assert_is(const cJSON *value, const char *expected_json)
{
        cJSON *expected = parse(expected_json);

        if (!cJSON_Compare(value, expected, true))
                fail_msg("%s is not %s", cJSON_PrintUnformatted(value), expected_json);
        cJSON_Delete(expected);
}

/* Applies to *object; the conflicting fields, "" for none. */
static const char *apply(cJSON **object, const char *config_json, const char *manager, bool force,
                         struct place root)
{
        static char field[256];
        cJSON *config = parse(config_json), *conflicts = NULL, *conflict, *result;

        field[0] = '\0';
        result = apply_config(*object, config, manager, "example.com/v1", "", force, root, &conflicts);
        cJSON_Delete(config);
        if (result) {
                assert_null(conflicts);
                cJSON_Delete(*object);
                *object = result;
                return field;
        }
        cJSON_ArrayForEach(conflict, conflicts)
        {
                size_t used = strlen(field);

                snprintf(field + used, sizeof(field) - used, "%s%s=%s", used ? " " : "",
                         cJSON_GetObjectItem(conflict, "manager")->valuestring,
                         cJSON_GetObjectItem(conflict, "field")->valuestring);
        }
        cJSON_Delete(conflicts);
        return field;
}

static void assert_owns(const cJSON *object, const char *manager, const char *expected)
{
        const cJSON *entry,
                *list = cJSON_GetObjectItem(cJSON_GetObjectItem(object, "metadata"), "managedFields");

        cJSON_ArrayForEach(entry, list)
        {
                if (strcmp(cJSON_GetObjectItem(entry, "manager")->valuestring, manager) == 0) {
                        assert_is(cJSON_GetObjectItem(entry, "fieldsV1"), expected);
                        return;
                }
        }
        assert_string_equal(expected, "");
}

static void assert_spec(const cJSON *object, const char *expected)
{
        assert_is(cJSON_GetObjectItem(object, "spec"), expected);
}

#define OBJECT(spec) "{\"metadata\":{\"name\":\"a\"},\"spec\":" spec "}"

static void test_members(void **state)
{
        struct place root = place_root(NULL, false);
        cJSON *object = NULL;

        apply(&object, OBJECT("{\"a\":1,\"m\":{\"x\":1}}"), "one", false, root);
        assert_owns(object, "one", "{\"f:spec\":{\"f:a\":{},\"f:m\":{\"f:x\":{}}}}");
        assert_string_equal(apply(&object, OBJECT("{\"m\":{\"y\":2}}"), "two", false, root), "");
        assert_spec(object, "{\"a\":1,\"m\":{\"x\":1,\"y\":2}}");
        assert_string_equal(apply(&object, OBJECT("{\"a\":2,\"m\":{\"x\":2}}"), "two", false, root),
                            "\"one\"=.spec.a \"one\"=.spec.m.x");
        assert_string_equal(apply(&object, OBJECT("{\"m\":{}}"), "one", false, root), "");
        assert_spec(object, "{\"m\":{\"y\":2}}");
        cJSON_Delete(object);
        (void)state;
}

static void test_force(void **state)
{
        struct place root = place_root(NULL, false);
        cJSON *object = NULL;

        apply(&object, OBJECT("{\"a\":1,\"b\":1}"), "one", false, root);
        assert_string_equal(apply(&object, OBJECT("{\"a\":2,\"b\":1}"), "two", true, root), "");
        assert_owns(object, "one", "{\"f:spec\":{\"f:b\":{}}}");
        assert_owns(object, "two", "{\"f:spec\":{\"f:a\":{},\"f:b\":{}}}");
        cJSON_Delete(object);
        (void)state;
}

static void test_lists_without_a_schema(void **state)
{
        struct place root = place_root(NULL, false);
        cJSON *object = NULL;

        apply(&object, OBJECT("{\"conditions\":[{\"type\":\"A\"}],\"containers\":[{\"x\":1}]}"), "one",
              false, root);
        assert_owns(object, "one", "{\"f:spec\":{\"f:conditions\":{},\"f:containers\":{}}}");
        assert_string_equal(
                apply(&object, OBJECT("{\"conditions\":[{\"type\":\"B\"}]}"), "two", false, root),
                "\"one\"=.spec.conditions");
        cJSON_Delete(object);
        (void)state;
}

static void test_lists_with_a_schema(void **state)
{
        struct place root = place_root(schema, false);
        cJSON *object = NULL;

        apply(&object,
              OBJECT("{\"map\":[{\"host\":\"h\",\"port\":1,\"v\":1}],\"set\":[\"a\"],\"atomic\":[1],"
                     "\"whole\":{\"x\":1}}"),
              "one", false, root);
        assert_owns(object, "one",
                    "{\"f:spec\":{\"f:map\":{\"k:{\\\"host\\\":\\\"h\\\",\\\"port\\\":1}\":{\".\":{},\"f:"
                    "host\":{},"
                    "\"f:port\":{},\"f:v\":{}}},\"f:set\":{\"v:\\\"a\\\"\":{}},\"f:atomic\":{},\"f:whole\":{"
                    "}}}");
        assert_string_equal(apply(&object,
                                  OBJECT("{\"map\":[{\"host\":\"h\",\"port\":2,\"v\":2}],\"set\":[\"b\"]}"),
                                  "two", false, root),
                            "");
        assert_spec(object,
                    "{\"map\":[{\"host\":\"h\",\"port\":1,\"v\":1},{\"host\":\"h\",\"port\":2,\"v\":2}],"
                    "\"set\":[\"a\",\"b\"],\"atomic\":[1],\"whole\":{\"x\":1}}");
        assert_string_equal(
                apply(&object, OBJECT("{\"map\":[{\"host\":\"h\",\"port\":1,\"v\":9}],\"whole\":{\"y\":1}}"),
                      "two", false, root),
                "\"one\"=.spec.map[host=\"h\",port=1].v \"one\"=.spec.whole");
        apply(&object, OBJECT("{\"atomic\":[2],\"whole\":{\"z\":1}}"), "one", false, root);
        assert_spec(object, "{\"map\":[{\"host\":\"h\",\"port\":2,\"v\":2}],\"set\":[\"b\"],\"atomic\":[2],"
                            "\"whole\":{\"z\":1}}");
        cJSON_Delete(object);
        (void)state;
}

/* An element without its keys makes the list one value, no crash and no element called null. */
static void test_elements_without_keys(void **state)
{
        cJSON *object = NULL;

        apply(&object, OBJECT("{\"map\":[{\"host\":\"h\"}],\"set\":[{}]}"), "one", false,
              place_root(schema, false));
        assert_owns(object, "one", "{\"f:spec\":{\"f:map\":{},\"f:set\":{}}}");
        cJSON_Delete(object);
        object = NULL;
        apply(&object, OBJECT("{\"containers\":[1,{\"name\":\"x\"}],\"env\":\"text\"}"), "one", false,
              place_root(NULL, true));
        assert_owns(object, "one", "{\"f:spec\":{\"f:containers\":{},\"f:env\":{}}}");
        cJSON_Delete(object);
        (void)state;
}

static void test_built_in_lists(void **state)
{
        struct place root = place_root(NULL, true);
        cJSON *object = NULL;

        apply(&object,
              OBJECT("{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"ports\":[{\"containerPort\":80}]}]"
                     "}"),
              "one", false, root);
        assert_owns(object, "one",
                    "{\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"a\\\"}\":{\".\":{},\"f:name\":{},"
                    "\"f:image\":{},"
                    "\"f:ports\":{\"k:{\\\"containerPort\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},"
                    "\"f:containerPort\":{}}}}}}}");
        assert_string_equal(apply(&object,
                                  OBJECT("{\"containers\":[{\"name\":\"a\",\"ports\":[{\"containerPort\":80,"
                                         "\"protocol\":\"UDP\"}]}]}"),
                                  "two", false, root),
                            "");
        assert_spec(object,
                    "{\"containers\":[{\"name\":\"a\",\"image\":\"1\",\"ports\":[{\"containerPort\":80},"
                    "{\"containerPort\":80,\"protocol\":\"UDP\"}]}]}");
        assert_string_equal(apply(&object, OBJECT("{\"containers\":[{\"name\":\"a\",\"image\":\"2\"}]}"),
                                  "two", false, root),
                            "\"one\"=.spec.containers[name=\"a\"].image");
        cJSON_Delete(object);
        (void)state;
}

static void test_metadata_is_the_same_everywhere(void **state)
{
        struct place root = place_root(NULL, false);
        cJSON *object = NULL;

        apply(&object, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x/a\"],\"labels\":{\"l\":\"1\"}}}",
              "one", false, root);
        assert_owns(object, "one",
                    "{\"f:metadata\":{\"f:finalizers\":{\"v:\\\"x/a\\\"\":{}},\"f:labels\":{\"f:l\":{}}}}");
        apply(&object, "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"x/b\"]}}", "two", false, root);
        apply(&object, "{\"metadata\":{\"name\":\"a\"}}", "one", false, root);
        assert_is(cJSON_GetObjectItem(cJSON_GetObjectItem(object, "metadata"), "finalizers"), "[\"x/b\"]");
        cJSON_Delete(object);
        (void)state;
}

static void test_update_takes_over(void **state)
{
        struct place root = place_root(NULL, false);
        cJSON *object = NULL, *after;

        apply(&object, OBJECT("{\"a\":1,\"b\":1,\"c\":1}"), "one", false, root);
        after = cJSON_Duplicate(object, true);
        cJSON_ReplaceItemInObject(cJSON_GetObjectItem(after, "spec"), "a", cJSON_CreateNumber(2));
        cJSON_DeleteItemFromObject(cJSON_GetObjectItem(after, "spec"), "c");
        manage_update(object, after, "editor", "example.com/v1", "", root);
        assert_owns(after, "one", "{\"f:spec\":{\"f:b\":{}}}");
        assert_owns(after, "editor", "{\"f:spec\":{\"f:a\":{}}}");
        cJSON_Delete(object);
        assert_string_equal(apply(&after, OBJECT("{\"a\":1,\"b\":1}"), "one", false, root),
                            "\"editor\" using example.com/v1=.spec.a");
        cJSON_Delete(after);
        (void)state;
}

/* Clients may send managedFields with an update; what is no field set is dropped. */
static void test_managed_fields_of_a_liar(void **state)
{
        static const char *const fields[] = {"[1]", "{\"f\":{}}",          "{\"\":{}}", "{\"f:a\":[{}]}",
                                             "7",   "{\"f:a\":{\"k\":{}}}"};
        struct place root = place_root(NULL, false);

        for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
                char json[512];
                cJSON *object, *before = parse(OBJECT("{\"a\":1}"));

                snprintf(json, sizeof(json),
                         "{\"metadata\":{\"name\":\"a\",\"managedFields\":[3,{\"manager\":\"liar\","
                         "\"fieldsV1\":%s}]},"
                         "\"spec\":{\"a\":2}}",
                         fields[i]);
                object = parse(json);
                manage_update(before, object, "editor", "example.com/v1", "", root);
                assert_owns(object, "editor", "{\"f:spec\":{\"f:a\":{}}}");
                assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(
                                         cJSON_GetObjectItem(object, "metadata"), "managedFields")),
                                 1);
                cJSON_Delete(before);
                cJSON_Delete(object);
        }
        (void)state;
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_members),
                cmocka_unit_test(test_force),
                cmocka_unit_test(test_lists_without_a_schema),
                cmocka_unit_test(test_lists_with_a_schema),
                cmocka_unit_test(test_elements_without_keys),
                cmocka_unit_test(test_built_in_lists),
                cmocka_unit_test(test_metadata_is_the_same_everywhere),
                cmocka_unit_test(test_update_takes_over),
                cmocka_unit_test(test_managed_fields_of_a_liar),
        };
        int r;

        schema = json_parse(list_schema, strlen(list_schema));
        r = cmocka_run_group_tests(test, NULL, NULL);
        cJSON_Delete(schema);
        return r;
}
