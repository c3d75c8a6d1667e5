/* SPDX-License-Identifier: Apache-2.0 */
/* {"schema": ..., "value": ..., "before": ...}: what passes as a schema can be held against any value. What fits is the same
 * when it is fitted again, and has nothing that is unknown. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "devserver/schema/schema-check.h"
#include "devserver/schema/schema-elements.h"
#include "devserver/schema/schema-fit.h"
#include "devserver/schema/schema-mistakes.h"
#include "devserver/schema/schema-pattern.h"
#include "devserver/schema/schema-typed.h"
#include "devserver/schema/schema-validate.h"
#include "yaml/json-number.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_fit(cJSON *value, const cJSON *schema)
{
        cJSON *unknown = cJSON_CreateArray(), *again;

        schema_fit(value, schema, NULL);
        again = cJSON_Duplicate(value, true);
        schema_fit(again, schema, unknown);
        assert(json_equal(value, again) && cJSON_GetArraySize(unknown) == 0);
        cJSON_Delete(unknown);
        cJSON_Delete(again);
}

static void check_value(cJSON *value, const cJSON *before, const cJSON *schema)
{
        struct mistakes mistakes = {0};

        schema_validate(value, before, schema, NULL, &mistakes);
        schema_validate(value, NULL, schema, "status", &mistakes);
        schema_check_lists(value, before, schema, &mistakes);
        schema_check_embedded(value, schema, &mistakes);
        assert(mistakes.count <= MISTAKES_MAX);
        free(mistakes_describe(&mistakes));
        mistakes_done(&mistakes);
        free(schema_typed_mistake(value, schema));
        schema_complete_keys(value, schema);
        check_fit(value, schema);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        cJSON *input = number_parse((const char *)data, size);
        cJSON *schema = cJSON_GetObjectItemCaseSensitive(input, "schema");
        cJSON *value = cJSON_GetObjectItemCaseSensitive(input, "value");
        struct mistakes mistakes = {0};
        struct schema_report report = {.mistakes = &mistakes, .unknown = cJSON_CreateArray()};

        if (cJSON_IsObject(schema)) {
                schema_check(schema, "spec", "sent", true, &report);
                if (mistakes.count == 0 && !report.undecodable[0] && cJSON_IsObject(value))
                        check_value(value, cJSON_GetObjectItemCaseSensitive(input, "before"), schema);
        }
        mistakes_done(&mistakes);
        cJSON_Delete(report.unknown);
        cJSON_Delete(input);
        patterns_done();
        return 0;
}
