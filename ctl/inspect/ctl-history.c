/* SPDX-License-Identifier: Apache-2.0 */
/* `reconciledctl history`: the last runs of an object, and what they did. */
#include "ctl/inspect/ctl-history.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/exit-code.h"
#include "ctl/output/output.h"
#include "json/json.h"

#define INDENT 4

void ctl_print_writes(const cJSON *run, int indent)
{
        const cJSON *write;

        cJSON_ArrayForEach(write, json_member(run, "writes"))
                printf("%*s%s %s%s%s\n", indent, "", json_text(write, "what"), json_text(write, "object"),
                       json_text(write, "fields")[0] ? ": " : "", json_text(write, "fields"));
        if (ctl_number(run, "writesLeftOut") > 0)
                printf("%*s... and %" PRIu64 " more; the log has all\n", indent, "",
                       ctl_number(run, "writesLeftOut"));
}

static void print_run(const cJSON *run)
{
        char ago[64], took[64], attempt[24] = "-";

        if (cJSON_HasObjectItem(run, "attempt"))
                snprintf(attempt, sizeof(attempt), "%" PRIu64, ctl_number(run, "attempt"));
        printf("%-10s %-32s %-10s %-16s %7s %8s %s", ctl_since(run, "endedAt", ago, sizeof(ago)),
               json_text(run, "key"), json_text(run, "action"), json_text(run, "reason"), attempt,
               ctl_duration(ctl_number(run, "took"), took, sizeof(took)), json_text(run, "result"));
        if (ctl_number(run, "times") > 1)
                printf(" (%" PRIu64 " times)", ctl_number(run, "times"));
        if (json_text(run, "error")[0])
                printf(": %s", json_text(run, "error"));
        puts("");
        ctl_print_writes(run, INDENT);
}

static void print_history(const cJSON *answer, const void *userdata)
{
        const char *key = userdata;
        const cJSON *run, *runs = json_member(answer, "runs");

        if (!runs || !runs->child) {
                printf("no run of %s is known%s\n", key[0] ? key : "the watch",
                       !key[0] || strchr(key, '/') ? "" : "; " CTL_KEY_HINT);
                return;
        }
        ctl_colour(COLOUR_BOLD);
        printf("%-10s %-32s %-10s %-16s %7s %8s %s\n", "AGO", "KEY", "ACTION", "REASON", "ATTEMPT", "TOOK",
               "RESULT");
        ctl_colour(COLOUR_NONE);
        cJSON_ArrayForEach(run, runs) print_run(run);
}

int ctl_history(const char *runtime_directory, const char *watch, const char *key, enum form form)
{
        const char *const argument[] = {watch, key, NULL};
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_json_ cJSON *answer = NULL;
        int r = ctl_query(runtime_directory, "history", (char **)(uintptr_t)argument, &answer, &error);
        bool known;

        if (r < 0)
                return ctl_failed(r, &error);
        known = !key[0] || cJSON_GetArraySize(json_member(answer, "runs")) > 0;
        ctl_show_answer(answer, form, print_history, key);
        return known ? EXIT_CODE_OK : EXIT_CODE_SOFTWARE;
}
