/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/objects/object-request.h"

#include <string.h>

#include "base/cleanup.h"
#include "devserver/http/http-answer.h"
#include "devserver/http/http-request.h"
#include "devserver/objects/delete.h"
#include "devserver/objects/modify.h"
#include "devserver/objects/update.h"
#include "devserver/read/forms.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"

void object_handle(struct request *request)
{
        _cleanup_free_ char *key = object_key(request->namespace_name, request->name);
        const struct version *version;

        if (strcmp(request->method, "GET") == 0) {
                version = object_find(request->resource, key);
                if (version)
                        answer_version(request, 200, version);
                else
                        answer_not_found(request);
        } else if (strcmp(request->method, "PUT") == 0) {
                object_replace(request, key);
        } else if (strcmp(request->method, "PATCH") == 0) {
                object_patch(request, key);
        } else if (strcmp(request->method, "DELETE") == 0 && !request->subresource) {
                object_delete(request, key);
        } else {
                answer_status(request, 405, "MethodNotAllowed",
                              "the server does not allow this method on the requested resource");
        }
}
