/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The notes of watches on objects: finalizers, lists of children, conditions. Two watches of one kind may
 * both have an object, now or one after the other, so each uses names of its own: all but one of them have
 * an `id`. Their order in the file decides nothing.
 */
#include "config/watch-notes.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "config/config-watch.h"
#include "config/read/problem.h"
#include "object/bookkeeping.h"

#define ID_MAX 53 /* with ".finalizer" after it: the API server's limit for the part after the slash */

/* ---- checking */

static bool is_watch_id(const char *text)
{
        size_t length = strlen(text);

        if (length == 0 || length > ID_MAX || !isalnum((unsigned char)text[0]) ||
            !isalnum((unsigned char)text[length - 1]))
                return false;
        for (; *text; text++)
                if (!isalnum((unsigned char)*text) && !strchr("-_.", *text))
                        return false;
        return true;
}

static bool selects_the_same(const struct config_watch *a, const struct config_watch *b)
{
        return is_same_text(a->label_selector, b->label_selector) &&
               is_same_text(a->field_selector, b->field_selector) && is_same_text(a->filter, b->filter) &&
               a->namespace_count == 0 && b->namespace_count == 0;
}

/* true: a mistake was reported. */
static bool check_ids(struct reader *reader, yaml_node_t *node, const char *path,
                      const struct config_watch *watch, const struct config_watch *other)
{
        const char *id = text_or_empty(watch->id);
        char key[256];

        if (strcmp(id, text_or_empty(other->id)) != 0)
                return false;
        snprintf(key, sizeof(key), "%.200s.id", path);
        if (id[0])
                problem_add(reader, mapping_find(reader, node, "id"), false, key,
                            "\"%s\" is the id of watch %s (%s:%u), which watches the same kind: they would "
                            "share finalizers and lists of children",
                            id, other->name, other->file, other->line);
        else
                problem_add(
                        reader, node, false, key,
                        "is missing: watch %s (%s:%u) watches the same kind, and only one of them may be "
                        "without an id. Give one to the new watch, and never change it: its finalizers and "
                        "lists of children are named after it",
                        other->name, other->file, other->line);
        return true;
}

static void check_conditions(struct reader *reader, yaml_node_t *node, const char *path,
                             const struct config_watch *watch, const struct config_watch *other)
{
        char key[256];

        if (!text_or_empty(watch->ready_condition)[0] || !selects_the_same(watch, other) ||
            strcmp(watch->ready_condition, text_or_empty(other->ready_condition)) != 0)
                return;
        snprintf(key, sizeof(key), "%.200s.readyCondition", path);
        problem_add(
                reader, mapping_find(reader, node, "readyCondition"), true, key,
                "watch %s (%s:%u) reports on the same objects in the same condition %s: each overwrites the "
                "other's report; name two types",
                other->name, other->file, other->line, watch->ready_condition);
}

void check_id(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch)
{
        const struct config *config = reader->config;
        bool told = false;
        char key[256];

        snprintf(key, sizeof(key), "%.200s.id", path);
        if (watch->id && !is_watch_id(watch->id))
                problem_add(reader, mapping_find(reader, node, "id"), false, key,
                            "\"%s\" must be at most %d letters, digits, '-', '_' or '.', with a letter or "
                            "digit at both ends: it becomes part of the names of finalizers and annotations",
                            watch->id, ID_MAX);
        for (size_t i = 0; i + 1 < config->watch_count && watch->kind && watch->api_version; i++) {
                const struct config_watch *other = &config->watch[i];

                if (!other->name || !other->kind || !other->api_version || !config_is_of_kind(watch, other))
                        continue;
                told = told || check_ids(reader, node, path, watch, other);
                check_conditions(reader, node, path, watch, other);
        }
}

/* ---- naming */

static bool is_sibling(const struct config_watch *a, const struct config_watch *b)
{
        return !a->owner && !b->owner && !a->own && !b->own && config_is_of_kind(a, b);
}

/* The type that follows `last` in alphabetical order: the order of the file must not matter. */
static const char *next_condition(const struct config *config, const struct config_watch *watch,
                                  const char *last)
{
        const char *next = NULL;

        for (size_t i = 0; i < config->watch_count; i++) {
                const char *type = text_or_empty(config->watch[i].ready_condition);

                if (is_sibling(&config->watch[i], watch) && strcmp(type, last) > 0 &&
                    (!next || strcmp(type, next) < 0))
                        next = type;
        }
        return next;
}

static char *list_conditions(const struct config *config, const struct config_watch *watch)
{
        _cleanup_text_ struct text list = TEXT_EMPTY;
        const char *type = "";

        while (watch->shared && watch->trigger == TRIGGER_ANY &&
               (type = next_condition(config, watch, type)))
                text_printf(&list, "%s%s", list.size > 0 ? "," : "", type);
        if (list.failed)
                return NULL;
        return list.size > 0 ? text_take(&list) : strdup("");
}

static char *key_of(const struct config *config, const struct config_watch *watch, const char *name)
{
        return format_string("%s/%s%s%s", config->operator_name, watch->id, watch->id[0] ? "." : "", name);
}

static char *list_finalizers(const struct config *config, const struct config_watch *watch)
{
        _cleanup_text_ struct text list = TEXT_EMPTY;

        text_append_string(&list, watch->finalizer_key);
        for (size_t i = 0; i < config->former_count; i++)
                text_printf(&list, ",%s/%s%s" FINALIZER_NAME, config->former[i], watch->id,
                            watch->id[0] ? "." : "");
        return list.failed ? NULL : text_take(&list);
}

static char *list_former(const struct config *config)
{
        _cleanup_text_ struct text list = TEXT_EMPTY;

        text_append_string(&list, "");
        for (size_t i = 0; i < config->former_count; i++)
                text_printf(&list, "%s%s", i > 0 ? "," : "", config->former[i]);
        return list.failed ? NULL : list.size > 0 ? text_take(&list) : strdup("");
}

int config_name_notes(struct config *config)
{
        config->former_names = list_former(config);
        if (!config->former_names)
                return -ENOMEM;
        for (size_t i = 0; i < config->watch_count; i++) {
                struct config_watch *watch = &config->watch[i];

                if (!watch->id)
                        watch->id = strdup("");
                if (!watch->id)
                        return -ENOMEM;
                watch->shared = watch->id[0] && !watch->owner && !watch->own;
                for (size_t k = 0; k < config->watch_count; k++)
                        watch->shared = watch->shared || (k != i && is_sibling(watch, &config->watch[k]));
                watch->finalizer_key = key_of(config, watch, FINALIZER_NAME);
                watch->children_key = key_of(config, watch, CHILDREN_NAME);
                watch->patched_key = key_of(config, watch, PATCHED_NAME);
                watch->conditions = list_conditions(config, watch);
                watch->finalizers = watch->finalizer_key ? list_finalizers(config, watch) : NULL;
                if (!watch->finalizers || !watch->children_key || !watch->patched_key || !watch->conditions)
                        return -ENOMEM;
        }
        return 0;
}

void notes_done(struct config_watch *watch)
{
        free(watch->finalizer_key);
        free(watch->finalizers);
        free(watch->children_key);
        free(watch->patched_key);
        free(watch->conditions);
}
