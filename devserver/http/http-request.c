/* SPDX-License-Identifier: Apache-2.0 */
#include "devserver/http/http-request.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "http/http-loop.h"

const char *request_argument(const struct request *request, const char *name)
{
        return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

bool request_flag(const struct request *request, const char *name)
{
        const char *value = request_argument(request, name);

        return value && strcmp(value, "false") != 0 && strcmp(value, "0") != 0;
}

bool request_is_dry_run(const struct request *request)
{
        const char *value = request_argument(request, "dryRun");

        return value && strcmp(value, "All") == 0;
}

bool request_is_for_status(const struct request *request)
{
        return request->subresource && strcmp(request->subresource, "status") == 0;
}

/* The default field manager is the client's name: "kubectl" of "kubectl/v1.30 (linux/amd64)". */
char *request_field_manager(const struct request *request)
{
        const char *given = request_argument(request, "fieldManager");
        const char *agent = http_header(request->connection, "User-Agent");

        if (given && given[0])
                return strdup(given);
        return agent && agent[0] ? strndup(agent, strcspn(agent, "/ ")) : strdup("unknown");
}

void request_free(struct request *request)
{
        text_done(&request->body);
        text_done(&request->answer);
        cJSON_Delete(request->warning);
        free(request->group);
        free(request->version);
        free(request->namespace_name);
        free(request->plural);
        free(request->name);
        free(request->subresource);
        free(request);
}
