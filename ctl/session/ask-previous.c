/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `previous` for a handler that runs without its operator: the operator that runs says which version counts, and the session's
 * worker reads it where the operator keeps it. Without an operator, or with one that does not know, it is absent.
 */
#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/session/internal.h"
#include "ctl/session/session.h"
#include "json/json.h"

/* NULL if the operator does not know. */
static cJSON *ask_operator_of(const struct session *session, const char *key)
{
        const struct session_options *options = &session->options;
        char *argument[] = {(char *)(uintptr_t)options->watch->name, (char *)(uintptr_t)key, NULL};
        _cleanup_error_ struct error unused = ERROR_NONE;
        _cleanup_json_ cJSON *answer = NULL;

        if (ctl_query(options->runtime_directory, "previous", argument, &answer, &unused) < 0 ||
            strcmp(json_text(answer, "operator"), options->config->operator_name) != 0)
                return NULL;
        return TAKE_PTR(answer);
}

int session_find_previous(struct session *session, char **ret_folder)
{
        const struct session_options *options = &session->options;
        bool is_wanted = options->runtime_directory && options->watch && options->watch->previous;
        _cleanup_json_ cJSON *answer = is_wanted ? ask_operator_of(session, "") : NULL;
        const char *store = json_text(answer, "store");

        session->knows_previous = store[0] != '\0';
        *ret_folder = session->knows_previous ? format_string("%s/previous", store) : strdup("");
        return *ret_folder ? 0 : -ENOMEM;
}

int session_ask_previous(struct session *session, const char *key, const char *uid)
{
        _cleanup_json_ cJSON *answer = session->knows_previous ? ask_operator_of(session, key) : NULL;
        const char *version = "";
        const cJSON *object;

        cJSON_ArrayForEach(object,
                           json_member(answer, "objects")) if (strcmp(json_text(object, "uid"), uid) == 0)
                version = json_text(object, "version");
        return text_replace(&session->previous_version, version);
}
