/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/output/difference.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "json/json.h"

#define DEPTH_MAX 64

struct printer {
        const char *indent;
        struct text path;
        size_t lines;
        unsigned depth;
};

static bool has_colours(void)
{
        const char *no = getenv("NO_COLOR");

        return isatty(STDOUT_FILENO) && !(no && no[0]);
}

static void print_leaf(struct printer *printer, char sign, const cJSON *value)
{
        _cleanup_free_ char *json = cJSON_PrintUnformatted(value);
        const char *colour = !has_colours() ? "" : sign == '+' ? "\033[32m" : "\033[31m";

        printf("%s%s%c %s: %s%s\n", printer->indent, colour, sign,
               printer->path.data ? printer->path.data : "", json ? json : "?", colour[0] ? "\033[0m" : "");
        printer->lines++;
}

/* The server sets these with every write. */
static bool is_servers_own(const struct printer *printer, const char *name)
{
        static const char *const own[] = {"managedFields", "resourceVersion",   "uid",
                                          "generation",    "creationTimestamp", "selfLink"};

        if (!printer->path.data || strcmp(printer->path.data, "metadata") != 0)
                return false;
        for (size_t i = 0; i < ELEMENTS(own); i++)
                if (strcmp(own[i], name) == 0)
                        return true;
        return false;
}

static bool is_plain(const char *name)
{
        return name[0] && !name[strcspn(name, "./[]\" ")];
}

static size_t enter(struct printer *printer, const char *name)
{
        size_t size = printer->path.size;

        printer->depth++;
        if (is_plain(name)) {
                text_printf(&printer->path, "%s%s", size > 0 ? "." : "", name);
        } else {
                text_append_string(&printer->path, "[");
                text_json_string(&printer->path, name);
                text_append_string(&printer->path, "]");
        }
        return size;
}

static void leave_path(struct printer *printer, size_t size)
{
        printer->depth--;
        printer->path.size = size;
        if (printer->path.data)
                printer->path.data[size] = '\0';
}

static void print_difference(struct printer *printer, const cJSON *before, const cJSON *after);

static void compare_objects(struct printer *printer, const cJSON *before, const cJSON *after)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, before)
        {
                if (!is_servers_own(printer, member->string)) {
                        size_t size = enter(printer, member->string);

                        print_difference(printer, member,
                                         cJSON_GetObjectItemCaseSensitive(after, member->string));
                        leave_path(printer, size);
                }
        }
        cJSON_ArrayForEach(member, after)
        {
                if (!cJSON_GetObjectItemCaseSensitive(before, member->string) &&
                    !is_servers_own(printer, member->string)) {
                        size_t size = enter(printer, member->string);

                        print_difference(printer, NULL, member);
                        leave_path(printer, size);
                }
        }
}

static void compare_arrays(struct printer *printer, const cJSON *before, const cJSON *after)
{
        const cJSON *old = before ? before->child : NULL, *new = after ? after->child : NULL;

        for (size_t i = 0; old || new; i++) {
                size_t size = printer->path.size;

                printer->depth++;
                text_printf(&printer->path, "[%zu]", i);
                print_difference(printer, old, new);
                leave_path(printer, size);
                old = old ? old->next : NULL;
                new = new ? new->next : NULL;
        }
}

/* Both are of this type, or the other one is not there. Empty ones are leaves. */
static bool both(const cJSON *before, const cJSON *after, int type)
{
        return ((before && (before->type & 0xff) == type && (!after || (after->type & 0xff) == type)) ||
                (!before && after && (after->type & 0xff) == type)) &&
               ((before && before->child) || (after && after->child));
}

static void print_difference(struct printer *printer, const cJSON *before, const cJSON *after)
{
        if (before && after && json_equal(before, after))
                return;
        if (printer->depth < DEPTH_MAX && both(before, after, cJSON_Object)) {
                compare_objects(printer, before, after);
                return;
        }
        if (printer->depth < DEPTH_MAX && both(before, after, cJSON_Array)) {
                compare_arrays(printer, before, after);
                return;
        }
        if (before)
                print_leaf(printer, '-', before);
        if (after)
                print_leaf(printer, '+', after);
}

size_t difference_print(const cJSON *before, const cJSON *after, const char *indent)
{
        struct printer printer = {.indent = indent};

        print_difference(&printer, before, after);
        text_done(&printer.path);
        return printer.lines;
}
