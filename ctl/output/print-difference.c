/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output/print-difference.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/output/output.h"
#include "json/difference.h"

static bool has_colours(void)
{
        const char *no = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && !(no && no[0]);
}

static void print_leaf(const char *indent, char sign, const char *path, const cJSON *value)
{
        _cleanup_free_ char *json = cJSON_PrintUnformatted(value);
        const char *colour = !has_colours() ? "" : sign == '+' ? "\033[32m" : "\033[31m";

        fputs(colour, stdout);
        ctl_line("%s%c %s: %s", indent, sign, path, json ? json : "?");
        fputs(colour[0] ? "\033[0m" : "", stdout);
}

static void print_both(const char *path, const cJSON *before, const cJSON *after, void *userdata)
{
        if (before)
                print_leaf(userdata, '-', path, before);
        if (after)
                print_leaf(userdata, '+', path, after);
}

size_t difference_print(const cJSON *before, const cJSON *after, const char *indent)
{
        return difference_visit(before, after, print_both, (void *)(uintptr_t)indent);
}
