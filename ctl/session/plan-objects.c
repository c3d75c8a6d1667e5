/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/plan-objects.h"

#include <dirent.h>
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/session/session.h"
#include "os/file.h"
#include "yaml/yaml-tree.h"
#include "json/json.h"

#define RECORD_MAX ((size_t)64 * 1024 * 1024)

struct known_object {
        char *identity; /* in the order in which a server is given them */
        char *json;     /* NULL: it is gone */
};

struct plan_objects {
        void *tree; /* of struct known_object, by identity */
        size_t count;
        size_t confidential, unreadable; /* left out of records */
        FILE *file;                      /* while it is written */
        bool failed;
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
        const char *kind = json_text(object, "kind");
        int rank = strcmp(kind, "CustomResourceDefinition") == 0 ? 0
                   : strcmp(kind, "Namespace") == 0              ? 1
                                                                 : 2;

        return format_string("%d %s %s %s/%s", rank, json_text(object, "apiVersion"), kind,
                             json_text(metadata, "namespace"), json_text(metadata, "name"));
}

static bool has_identity(const cJSON *object)
{
        return json_text(object, "apiVersion")[0] && json_text(object, "kind")[0] &&
               json_text(json_member(object, "metadata"), "name")[0];
}

/* Replaces what was known about the object before. */
static int note_object(struct plan_objects *objects, const cJSON *object, bool is_gone)
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
        objects->count++;
        if (*place != known) {
                free((*place)->json);
                (*place)->json = TAKE_PTR(known->json);
                known_object_free(known);
        }
        return 0;
}

/* ---- manifests */

static int take_plan_manifest(cJSON *document, void *userdata, struct error *error)
{
        const cJSON *items = json_member(document, "items"), *item;
        int r = 0;

        if (cJSON_IsArray(items)) {
                cJSON_ArrayForEach(item, items) if (r >= 0) r =
                        take_plan_manifest((cJSON *)(uintptr_t)item, userdata, error);
                return r;
        }
        if (!has_identity(document))
                return error_set(error, -EINVAL, "an object needs apiVersion, kind and metadata.name");
        r = note_object(userdata, document, false);
        return r < 0 ? error_set(error, r, "no memory") : 0;
}

/* ---- records */

static int take_recorded_line(const cJSON *line, const char *type, void *userdata)
{
        static const char *const lists[] = {"children", "related"};
        struct plan_objects *objects = userdata;
        const cJSON *body = json_member(line, "body"), *object = json_member(body, "object"), *each;
        const char *action = json_text(body, "action");
        bool is_gone = strcmp(action, "deleted") == 0 || strcmp(action, "finalize") == 0;
        int r;

        if (strcmp(type, "request") != 0)
                return 0;
        if (ctl_is(line, "redacted")) {
                objects->confidential++;
                return 0;
        }
        r = has_identity(object) ? note_object(objects, object, is_gone) : 0;
        for (size_t i = 0; i < ELEMENTS(lists); i++)
                cJSON_ArrayForEach(each, json_member(body, lists[i])) if (r >= 0 && has_identity(each)) r =
                        note_object(objects, each, false);
        return r;
}

/* An operator that was killed leaves a record without its end. */
static int take_record_file(struct plan_objects *objects, const char *path, struct error *error)
{
        _cleanup_free_ char *content = NULL;
        size_t size;
        int r = file_read(path, RECORD_MAX, &content, &size);

        if (r >= 0)
                r = trace_visit(content, take_recorded_line, objects);
        if (r == -EBADMSG) {
                objects->unreadable++;
                return 0;
        }
        return r < 0 ? error_set(error, r, "%s: %s", path, strerror(-r)) : 0;
}

/* ---- files */

static int is_of_objects(const struct dirent *entry)
{
        static const char *const ending[] = {".yaml", ".yml", ".json", ".jsonl"};

        for (size_t i = 0; i < ELEMENTS(ending); i++)
                if (entry->d_name[0] != '.' && ends_with(entry->d_name, ending[i]))
                        return 1;
        return 0;
}

static int take_objects_file(struct plan_objects *objects, const char *path, struct error *error)
{
        struct stat st;

        if (stat(path, &st) < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        if (!S_ISREG(st.st_mode))
                return error_set(error, -EINVAL, "%s: is not a regular file", path);
        return ends_with(path, ".jsonl") ? take_record_file(objects, path, error)
                                         : yaml_each_document(path, take_plan_manifest, objects, error);
}

/* Records are read in the order of their names, which is that of their runs. */
static int take_objects_folder(struct plan_objects *objects, const char *path, struct error *error)
{
        struct dirent **entry = NULL;
        int count = scandir(path, &entry, is_of_objects, alphasort), r = 0;

        if (count < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        for (int i = 0; i < count; i++) {
                _cleanup_free_ char *file = format_string("%s/%s", path, entry[i]->d_name);

                if (r >= 0)
                        r = file ? take_objects_file(objects, file, error) : -ENOMEM;
                free(entry[i]);
        }
        free(entry);
        return r;
}

static void tell_records_left_out(const struct plan_objects *objects)
{
        if (objects->confidential > 0)
                fprintf(stderr, "reconciledctl: note: %zu records of confidential objects are left out\n",
                        objects->confidential);
        if (objects->unreadable > 0)
                fprintf(stderr, "reconciledctl: note: %zu records are read up to a line that is no JSON\n",
                        objects->unreadable);
}

int plan_objects_read(const char *path, struct plan_objects **ret, struct error *error)
{
        _cleanup_(plan_objects_free_pointer) struct plan_objects *objects = calloc(1, sizeof(*objects));
        struct stat st;
        int r = objects ? 0 : -ENOMEM;

        if (r >= 0)
                r = stat(path, &st) >= 0 && S_ISDIR(st.st_mode) ? take_objects_folder(objects, path, error)
                                                                : take_objects_file(objects, path, error);
        if (r < 0)
                return error_set(error, r, "%s: %s", path, strerror(-r));
        tell_records_left_out(objects);
        if (objects->count == 0)
                return error_set(error, -ENOENT, "%s: there is no object in it (.yaml, .yml, .json, .jsonl)",
                                 path);
        *ret = TAKE_PTR(objects);
        return 0;
}

/* ---- writing */

static void write_known(const void *node, VISIT visit, void *userdata)
{
        struct plan_objects *objects = userdata;
        const struct known_object *known = *(struct known_object *const *)node;

        if ((visit == postorder || visit == leaf) && known->json)
                objects->failed = fprintf(objects->file, "---\n%s\n", known->json) < 0 || objects->failed;
}

int plan_objects_write(struct plan_objects *objects, const char *path)
{
        objects->file = fopen(path, "wxe");
        if (!objects->file)
                return -errno;
        twalk_r(objects->tree, write_known, objects);
        return fclose(objects->file) == 0 && !objects->failed ? 0 : -EIO;
}

void plan_objects_free(struct plan_objects *objects)
{
        if (!objects)
                return;
        tdestroy(objects->tree, known_object_free);
        free(objects);
}
