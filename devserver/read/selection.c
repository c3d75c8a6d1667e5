/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/read/selection.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/storage/selector.h"
#include "devserver/storage/served-resource.h"

struct selector *list_selector(struct request *request)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct selector *selector = NULL;

        if (selector_parse(request_argument(request, "labelSelector"),
                           request_argument(request, "fieldSelector"), request->resource, &selector,
                           &error) < 0)
                answer_status(request, 400, "BadRequest", "%s", error_message(&error));
        return selector;
}

void list_collect_keys(struct request *request, struct text *keys)
{
        const struct resource *table = request->resource->table;
        struct selector *selector = list_selector(request);
        size_t begin, end;

        if (!selector)
                return;
        object_range(table, request->namespace_name, &begin, &end);
        for (; begin < end; begin++)
                if (selector_matches(selector, table->object[begin]))
                        text_append(keys, table->object[begin]->key, strlen(table->object[begin]->key) + 1);
        selector_free(selector);
}
