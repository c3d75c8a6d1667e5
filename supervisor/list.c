/* SPDX-License-Identifier: Apache-2.0 */
/* Objects in trouble, for `reconciledctl get`: at most a page, found by the ledger's indexes. */
#include <errno.h>
#include <string.h>

#include "supervisor/json.h"
#include "supervisor/supervisor.h"

#define LISTED_MAX 1000

struct list {
        const struct supervisor *supervisor;
        struct text *json;
};

static int write_row(const char *watch, const struct ledger_row *row, void *userdata)
{
        const struct list *list = userdata;
        struct text *json = list->json;

        text_append_string(json, "{");
        json_string(json, "watch", watch);
        json_string(json, "key", row->key);
        json_string(json, "uid", row->uid);
        json_number(json, "attempts", row->attempts);
        json_bool(json, "permanent", row->permanent);
        json_number(json, "throttled", row->throttled);
        json_bool(json, "deleting", row->deleting);
        json_number(json, "next", ledger_to_realtime(list->supervisor, row->next_realtime));
        json_string(json, "nextReason", row->next_realtime > 0 ? row->next_reason : "");
        json_number(json, "crashes", row->crashes);
        json_number(json, "quarantinedUntil", ledger_to_realtime(list->supervisor, row->quarantined_until));
        json_string(json, "firstError", row->first_error);
        json_string(json, "lastError", row->last_error);
        json_close(json, "},");
        return 0;
}

int list_write(struct supervisor *supervisor, const char *state, const char *watch, const char *namespace,
               struct text *json)
{
        struct list list = {supervisor, json};
        int r;

        text_append_string(json, "{\"objects\":[");
        r = ledger_visit_state(supervisor->ledger, state, watch, namespace, LISTED_MAX, write_row, &list);
        json_close(json, "],");
        json_bool(json, "more", r == LISTED_MAX);
        json_close(json, "}");
        return r < 0 ? r : json->failed ? -ENOMEM : 0;
}
