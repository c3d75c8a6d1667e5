/* SPDX-License-Identifier: Apache-2.0 */
/* `reconciledctl get`: the objects that are in trouble, one a line. */
#include "ctl/inspect/get.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ctl/answer/members.h"
#include "ctl/answer/show.h"
#include "ctl/output/output.h"

static void print_line(const cJSON *item, const char *state)
{
        bool quarantined = strcmp(state, "quarantined") == 0;
        const char *error = ctl_text(item, "lastError");
        const char *then = quarantined ? "quarantinedUntil" : "next";
        char buffer[64];

        printf("%-20s %-32s %8" PRIu64 " %-10s %-12s %s\n", ctl_text(item, "watch"), ctl_text(item, "key"),
               ctl_number(item, quarantined ? "crashes" : "attempts"),
               ctl_is(item, "permanent")     ? "a change"
               : ctl_number(item, then) == 0 ? "-"
                                             : ctl_until(item, then, buffer, sizeof(buffer)),
               ctl_text(item, "nextReason")[0] ? ctl_text(item, "nextReason") : "-", error[0] ? error : "-");
}

static void print(const cJSON *answer, const void *userdata)
{
        const char *state = userdata;
        const cJSON *item, *objects = cJSON_GetObjectItemCaseSensitive(answer, "objects");

        if (!objects || !objects->child) {
                printf("no object is %s\n", state);
                return;
        }
        ctl_colour(COLOUR_BOLD);
        printf("%-20s %-32s %8s %-10s %-12s %s\n", "WATCH", "KEY",
               strcmp(state, "quarantined") == 0 ? "CRASHES" : "ATTEMPTS", "NEXT IN", "WHY", "LAST ERROR");
        ctl_colour(COLOUR_NONE);
        cJSON_ArrayForEach(item, objects) print_line(item, state);
        if (ctl_is(answer, "more"))
                puts("... and more; a watch, or -n NAMESPACE, narrows it down");
}

int ctl_get(const char *runtime_directory, const struct get_options *options)
{
        const char *const argument[] = {options->state, options->watch, options->namespace, NULL};

        return ctl_show(runtime_directory, "list", argument, options->form, print, options->state);
}
