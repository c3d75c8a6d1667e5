/* SPDX-License-Identifier: Apache-2.0 */
#include "json/difference.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "json/json.h"

#define DEPTH_MAX 64

struct walk {
        struct text path;
        size_t leaves;
        unsigned depth;
        difference_t visit;
        void *userdata;
};

/* The server sets these with every write. */
static bool is_servers_own(const struct walk *walk, const char *name)
{
        static const char *const own[] = {"managedFields", "resourceVersion",   "uid",
                                          "generation",    "creationTimestamp", "selfLink"};

        if (!walk->path.data || strcmp(walk->path.data, "metadata") != 0)
                return false;
        for (size_t i = 0; i < ELEMENTS(own); i++)
                if (strcmp(own[i], name) == 0)
                        return true;
        return false;
}

static bool is_plain_name(const char *name)
{
        return name[0] && !name[strcspn(name, "./[]\" ")];
}

static size_t path_enter(struct walk *walk, const char *name)
{
        size_t size = walk->path.size;

        walk->depth++;
        if (is_plain_name(name)) {
                text_printf(&walk->path, "%s%s", size > 0 ? "." : "", name);
        } else {
                text_json(&walk->path, "[?]", name);
        }
        return size;
}

static void leave_path(struct walk *walk, size_t size)
{
        walk->depth--;
        walk->path.size = size;
        if (walk->path.data)
                walk->path.data[size] = '\0';
}

static void compare_values(struct walk *walk, const cJSON *before, const cJSON *after);

static void visit_leaf(struct walk *walk, const cJSON *before, const cJSON *after)
{
        walk->visit(walk->path.data ? walk->path.data : "", before, after, walk->userdata);
        walk->leaves++;
}

static void compare_member(struct walk *walk, const char *name, const cJSON *before, const cJSON *after)
{
        size_t size;

        if (is_servers_own(walk, name))
                return;
        size = path_enter(walk, name);
        compare_values(walk, before, after);
        leave_path(walk, size);
}

static void difference_of_objects(struct walk *walk, const cJSON *before, const cJSON *after)
{
        struct json_names old, new;
        const cJSON *member;
        int r = json_names_sort(before, &old), s = json_names_sort(after, &new);

        if (r < 0 || s < 0) {
                visit_leaf(walk, before, after);
        } else {
                cJSON_ArrayForEach(member, before)
                        compare_member(walk, member->string, member, json_names_find(&new, member->string));
                cJSON_ArrayForEach(member, after) if (!json_names_find(&old, member->string))
                        compare_member(walk, member->string, NULL, member);
        }
        json_names_done(&old);
        json_names_done(&new);
}

static void difference_of_arrays(struct walk *walk, const cJSON *before, const cJSON *after)
{
        const cJSON *old = before ? before->child : NULL, *new = after ? after->child : NULL;

        for (size_t i = 0; old || new; i++) {
                size_t size = walk->path.size;

                walk->depth++;
                text_printf(&walk->path, "[%zu]", i);
                compare_values(walk, old, new);
                leave_path(walk, size);
                old = old ? old->next : NULL;
                new = new ? new->next : NULL;
        }
}

/* Both are of this type, or one is missing. Empty ones are leaves. */
static bool both_have_type(const cJSON *before, const cJSON *after, int type)
{
        return ((before && (before->type & 0xff) == type && (!after || (after->type & 0xff) == type)) ||
                (!before && after && (after->type & 0xff) == type)) &&
               ((before && before->child) || (after && after->child));
}

static void compare_values(struct walk *walk, const cJSON *before, const cJSON *after)
{
        if (before && after && json_equal(before, after))
                return;
        if (walk->depth < DEPTH_MAX && both_have_type(before, after, cJSON_Object)) {
                difference_of_objects(walk, before, after);
                return;
        }
        if (walk->depth < DEPTH_MAX && both_have_type(before, after, cJSON_Array)) {
                difference_of_arrays(walk, before, after);
                return;
        }
        visit_leaf(walk, before, after);
}

size_t difference_visit(const cJSON *before, const cJSON *after, difference_t visit, void *userdata)
{
        struct walk walk = {.visit = visit, .userdata = userdata};

        compare_values(&walk, before, after);
        text_done(&walk.path);
        return walk.leaves;
}
