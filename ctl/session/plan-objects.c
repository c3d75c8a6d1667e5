/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/plan-objects.h"

#include <dirent.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/session/session.h"
#include "os/file.h"
#include "json/json.h"

#define RECORD_MAX ((size_t)64 * 1024 * 1024)

/* ---- objects of records */

struct known_object {
        char *identity;
        char *json; /* NULL: it is gone */
};

struct known_objects {
        void *tree; /* of struct known_object, by identity */
        FILE *file;
        bool failed;
        size_t left_out;
};

static int compare_known(const void *a, const void *b)
{
        const struct known_object *one = a, *other = b;

        return strcmp(one->identity, other->identity);
}

static void known_object_free(void *known)
{
        struct known_object *object = known;

        free(object->identity);
        free(object->json);
        free(object);
}

static char *known_identity(const cJSON *object)
{
        const cJSON *metadata = json_member(object, "metadata");

        return format_string("%s %s %s/%s", json_text(object, "apiVersion"), json_text(object, "kind"),
                             json_text(metadata, "namespace"), json_text(metadata, "name"));
}

/* In the place of what was known before. */
static int note_object(struct known_objects *objects, const cJSON *object, bool is_gone)
{
        struct known_object *known = calloc(1, sizeof(*known)), **place;

        if (!known)
                return -ENOMEM;
        known->identity = known_identity(object);
        known->json = is_gone ? NULL : cJSON_PrintUnformatted(object);
        place = known->identity && (is_gone || known->json) ? tsearch(known, &objects->tree, compare_known)
                                                            : NULL;
        if (!place) {
                known_object_free(known);
                return -ENOMEM;
        }
        if (*place != known) {
                free((*place)->json);
                (*place)->json = TAKE_PTR(known->json);
                known_object_free(known);
        }
        return 0;
}

static int take_recorded_line(const cJSON *line, const char *type, void *userdata)
{
        static const char *const lists[] = {"children", "related"};
        struct known_objects *objects = userdata;
        const cJSON *body = json_member(line, "body"), *object = json_member(body, "object"), *each;
        const char *action = json_text(body, "action");
        int r;

        if (strcmp(type, "request") != 0 || !cJSON_IsObject(object))
                return 0;
        if (ctl_is(line, "redacted")) {
                objects->left_out++;
                return 0;
        }
        r = note_object(objects, object, strcmp(action, "deleted") == 0 || strcmp(action, "finalize") == 0);
        for (size_t i = 0; i < ELEMENTS(lists); i++)
                cJSON_ArrayForEach(each, json_member(body, lists[i])) if (r >= 0) r =
                        note_object(objects, each, false);
        return r;
}

static void write_known(const void *node, VISIT visit, void *userdata)
{
        struct known_objects *objects = userdata;
        const struct known_object *known = *(struct known_object *const *)node;

        if ((visit == postorder || visit == leaf) && known->json)
                objects->failed = fprintf(objects->file, "---\n%s\n", known->json) < 0 || objects->failed;
}

static int write_recorded_objects(struct known_objects *objects, const char *path)
{
        objects->file = fopen(path, "wxe");
        if (!objects->file)
                return -errno;
        twalk_r(objects->tree, write_known, objects);
        return fclose(objects->file) == 0 && !objects->failed ? 0 : -EIO;
}

static int take_record_file(struct known_objects *objects, const char *path, struct error *error)
{
        _cleanup_free_ char *content = NULL;
        size_t size;
        int r = file_read(path, RECORD_MAX, &content, &size);

        if (r >= 0)
                r = trace_visit(content, take_recorded_line, objects);
        return r < 0 ? error_set(error, r, "%s: %s", path,
                                 r == -EBADMSG ? "is not a record (lines of JSON)" : strerror(-r))
                     : 0;
}

/* ---- files */

static int add_file(struct plan_objects *ret, const char *path)
{
        char **grown = reallocarray(ret->file, ret->count + 2, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        ret->file = grown;
        ret->file[ret->count] = strdup(path);
        ret->file[ret->count + 1] = NULL;
        return ret->file[ret->count++] ? 0 : -ENOMEM;
}

static int is_of_objects(const struct dirent *entry)
{
        static const char *const ending[] = {".yaml", ".yml", ".json", ".jsonl"};

        for (size_t i = 0; i < ELEMENTS(ending); i++)
                if (entry->d_name[0] != '.' && ends_with(entry->d_name, ending[i]))
                        return 1;
        return 0;
}

static int take_objects_path(struct plan_objects *ret, struct known_objects *objects, const char *path,
                             struct error *error)
{
        return ends_with(path, ".jsonl") ? take_record_file(objects, path, error) : add_file(ret, path);
}

/* Records are read in the order of their names, which is that of their runs. */
static int take_objects_folder(struct plan_objects *ret, struct known_objects *objects, const char *path,
                               struct error *error)
{
        struct dirent **entry = NULL;
        int count = scandir(path, &entry, is_of_objects, alphasort), r = 0;

        if (count < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        for (int i = 0; i < count; i++) {
                _cleanup_free_ char *file = format_string("%s/%s", path, entry[i]->d_name);

                if (r >= 0)
                        r = file ? take_objects_path(ret, objects, file, error) : -ENOMEM;
                free(entry[i]);
        }
        free(entry);
        return r;
}

int plan_objects_find(const char *path, const char *folder, struct plan_objects *ret, struct error *error)
{
        _cleanup_free_ char *recorded = format_string("%s/recorded.yaml", folder);
        struct known_objects objects = {0};
        struct stat st;
        int r = !recorded ? -ENOMEM : stat(path, &st) < 0 ? -errno : 0;

        *ret = (struct plan_objects){0};
        if (r < 0)
                return error_set(error, r, "%s: %s", path, strerror(-r));
        r = S_ISDIR(st.st_mode) ? take_objects_folder(ret, &objects, path, error)
                                : take_objects_path(ret, &objects, path, error);
        if (r >= 0 && objects.tree) {
                r = write_recorded_objects(&objects, recorded);
                if (r >= 0)
                        r = add_file(ret, recorded);
        }
        ret->left_out = objects.left_out;
        tdestroy(objects.tree, known_object_free);
        if (r >= 0 && ret->count == 0)
                return error_set(error, -ENOENT,
                                 "%s: has no manifest (.yaml, .yml, .json) and no record (.jsonl)", path);
        return r < 0 ? error_set(error, r, "%s: %s", path, strerror(-r)) : 0;
}

void plan_objects_done(struct plan_objects *objects)
{
        for (size_t i = 0; i < objects->count; i++)
                free(objects->file[i]);
        free(objects->file);
        *objects = (struct plan_objects){0};
}
