/* SPDX-License-Identifier: Apache-2.0 */
/* Applies the tables to YAML: every mistake becomes a problem with its place, and reading goes on. */
#include "config/yaml-reader.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "config/check/check-own.h"
#include "config/check/check.h"
#include "config/read/expand.h"
#include "config/read/problem.h"
#include "config/table.h"

#define PATH_MAX_LENGTH     256
#define SUGGESTION_DISTANCE 3

/* ---- nearest key */

static const char *nearest(const struct key_table *table, const char *name)
{
        const char *best = NULL;
        size_t best_distance = SUGGESTION_DISTANCE + 1;

        for (size_t i = 0; i < table->count; i++) {
                size_t d = word_distance(name, table->key[i].name);

                if (d < best_distance && 2 * d <= strlen(name)) {
                        best_distance = d;
                        best = table->key[i].name;
                }
        }
        return best;
}

static const struct key *find_key(const struct key_table *table, const char *name)
{
        for (size_t i = 0; i < table->count; i++)
                if (strcmp(table->key[i].name, name) == 0)
                        return &table->key[i];
        return NULL;
}

/* ---- values */

/* True if there is a NUL ("a\\0b"), which is reported: it would hide the rest of the text. */
static bool holds_nul(struct reader *reader, const yaml_node_t *node, const char *path)
{
        const char *text = node_text(node);

        if (!text || strlen(text) == node->data.scalar.length)
                return false;
        problem_add(reader, node, false, path, "holds a NUL character (\\0), which is not allowed");
        return true;
}

static void read_scalar_text(struct reader *reader, const yaml_node_t *node, const char *path, char **place)
{
        const char *text = node_text(node);

        if (!text)
                problem_add(reader, node, false, path, "a text is expected");
        else if (!text[0])
                problem_add(reader, node, false, path, "is empty; give a text, or leave the key out");
        else
                (void)keep_text(reader, place, text);
}

static void read_duration(struct reader *reader, const yaml_node_t *node, const char *path,
                          const struct key *key, uint64_t *place)
{
        const char *text = node_text(node);
        uint64_t usec;
        char min[64], max[64];

        if (!text || duration_parse(text, &usec) < 0)
                problem_add(reader, node, false, path,
                            "\"%s\" is not a duration; write for example 500ms, 30s, 2m, 1h30m",
                            text ? text : "");
        else if (usec < key->min || usec > key->max)
                problem_add(reader, node, false, path, "%s is out of range (%s to %s)", text,
                            duration_format(key->min, min, sizeof(min)),
                            duration_format(key->max, max, sizeof(max)));
        else
                *place = usec;
}

static void read_unsigned(struct reader *reader, const yaml_node_t *node, const char *path,
                          const struct key *key, unsigned *place)
{
        const char *text = node_text(node);
        char *end = NULL;
        unsigned long value = text ? strtoul(text, &end, 10) : 0;

        if (!text || text[0] < '0' || text[0] > '9' || *end != '\0' || value < key->min || value > key->max)
                problem_add(reader, node, false, path, "\"%s\" is not a number from %llu to %llu",
                            text ? text : "", (unsigned long long)key->min, (unsigned long long)key->max);
        else
                *place = (unsigned)value;
}

static const char *const size_unit[] = {"", "Ki", "Mi", "Gi", "Ti"};

static const char *format_bytes(uint64_t bytes, char *text, size_t size)
{
        size_t i = 0;

        while (i + 1 < ELEMENTS(size_unit) && bytes > 0 && bytes % 1024 == 0) {
                bytes /= 1024;
                i++;
        }
        snprintf(text, size, "%" PRIu64 "%s", bytes, size_unit[i]);
        return text;
}

/* 512, 64KiB, 256Mi: powers of 1024. */
static void read_size(struct reader *reader, const yaml_node_t *node, const char *path,
                      const struct key *key, uint64_t *place)
{
        const char *text = node_text(node);
        char *end = NULL;
        bool is_number = text && text[0] >= '0' && text[0] <= '9', is_size = false;
        unsigned long long value = is_number ? strtoull(text, &end, 10) : 0;
        char min[24], max[24];

        for (size_t i = 0; end && i < ELEMENTS(size_unit); i++) {
                size_t length = strlen(size_unit[i]);
                bool same = strncmp(end, size_unit[i], length) == 0 &&
                            (end[length] == '\0' || (i > 0 && strcmp(end + length, "B") == 0));

                is_size = is_size || same;
                if (!same || value > key->max >> (10 * i) || value << (10 * i) < key->min)
                        continue;
                *place = (uint64_t)value << (10 * i);
                return;
        }
        if (is_size)
                problem_add(reader, node, false, path, "%s is out of range (%s to %s)", text,
                            format_bytes(key->min, min, sizeof(min)),
                            format_bytes(key->max, max, sizeof(max)));
        else
                problem_add(reader, node, false, path,
                            "\"%s\" is not a size; write for example 512Ki, 256Mi, 2Gi", text ? text : "");
}

/* 2, 0.5, 500m: as Kubernetes counts CPUs. */
static void read_milli(struct reader *reader, const yaml_node_t *node, const char *path,
                       const struct key *key, unsigned *place)
{
        const char *text = node_text(node);
        unsigned whole = 0, fraction = 0;
        char dot = '\0', unit = '\0', rest = '\0';
        uint64_t milli = 0;

        if (text && strspn(text, "0123456789.m") == strlen(text)) {
                int digits = 0;

                if (sscanf(text, "%7u%c%c", &whole, &unit, &rest) == 2 && unit == 'm')
                        milli = whole;
                else if (sscanf(text, "%7u%c%n%3u%c", &whole, &dot, &digits, &fraction, &rest) == 3 &&
                         dot == '.')
                        milli = whole * UINT64_C(1000) + fraction * (strlen(text + digits) == 1   ? 100
                                                                     : strlen(text + digits) == 2 ? 10
                                                                                                  : 1);
                else if (sscanf(text, "%7u%c", &whole, &rest) == 1)
                        milli = whole * UINT64_C(1000);
        }
        if (milli < key->min || milli > key->max)
                problem_add(reader, node, false, path,
                            "\"%s\" is not a number of %s from %g to %g; write for example 500m, 0.5, 2",
                            text ? text : "", key->choice[0], (double)key->min / 1000,
                            (double)key->max / 1000);
        else
                *place = (unsigned)milli;
}

static void read_config_texts(struct reader *reader, const yaml_node_t *node, const char *path,
                              char ***place)
{
        size_t *count = (size_t *)(void *)(place + 1), wanted;

        if (node->type != YAML_SEQUENCE_NODE ||
            node->data.sequence.items.top == node->data.sequence.items.start) {
                problem_add(reader, node, false, path, "a list of texts is expected, for example [a, b]");
                return;
        }
        wanted = (size_t)(node->data.sequence.items.top - node->data.sequence.items.start);
        *place = calloc(wanted + 1, sizeof(char *));
        if (!*place) {
                reader->out_of_memory = true;
                return;
        }
        for (size_t i = 0; i < wanted; i++) {
                const yaml_node_t *item =
                        yaml_document_get_node(reader->document, node->data.sequence.items.start[i]);
                const char *text = node_text(item);

                if (!text)
                        problem_add(reader, item, false, path, "element %zu is not a text", i);
                else if (!holds_nul(reader, item, path) && keep_text(reader, &(*place)[*count], text) >= 0)
                        ++*count;
        }
}

static void read_trigger(struct reader *reader, const yaml_node_t *node, const char *path,
                         enum trigger *place)
{
        const char *text = node_text(node);

        for (int i = 0; i < TRIGGER_JQ; i++)
                if (text && strcmp(text, trigger_name((enum trigger)i)) == 0) {
                        *place = (enum trigger)i;
                        return;
                }
        problem_add(reader, node, false, path, "\"%s\" is neither essence nor any nor a mapping with jq",
                    text ? text : "");
}

static void read_bool(struct reader *reader, const yaml_node_t *node, const char *path, bool *place)
{
        const char *text = node_text(node);

        if (text && strcmp(text, "true") == 0)
                *place = true;
        else if (text && strcmp(text, "false") == 0)
                *place = false;
        else
                problem_add(reader, node, false, path, "\"%s\" is neither true nor false", text ? text : "");
}

static void read_choice(struct reader *reader, const yaml_node_t *node, const char *path,
                        const struct key *key, unsigned *place)
{
        const char *text = node_text(node);
        char words[128] = "";
        size_t used = 0;

        for (unsigned i = 0; key->choice[i]; i++) {
                if (text && strcmp(text, key->choice[i]) == 0) {
                        *place = i;
                        return;
                }
                used += (size_t)snprintf(words + used, sizeof(words) - used, "%s%s", i > 0 ? ", " : "",
                                         key->choice[i]);
        }
        problem_add(reader, node, false, path, "\"%s\" is none of: %s", text ? text : "", words);
}

/* place: a list of struct config_owned, its length after it. */
static void read_kinds(struct reader *reader, yaml_node_t *node, const char *path,
                       const struct key_table *keys, struct config_owned **place)
{
        size_t *count = (size_t *)(void *)(place + 1);

        if (node->type != YAML_SEQUENCE_NODE) {
                problem_add(reader, node, false, path, "a list of kinds is expected");
                return;
        }
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
                yaml_node_t *entry = yaml_document_get_node(reader->document, *item);
                struct config_owned *grown = reallocarray(*place, *count + 1, sizeof(*grown));
                char inner[PATH_MAX_LENGTH];

                if (!grown) {
                        reader->out_of_memory = true;
                        return;
                }
                *place = grown;
                grown[*count] = (struct config_owned){.line = (unsigned)entry->start_mark.line + 1};
                snprintf(inner, sizeof(inner), "%.200s[%td]", path, item - node->data.sequence.items.start);
                read_mapping(reader, entry, inner, keys, &grown[(*count)++]);
        }
}

static bool is_duplicate(struct reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *here,
                         const char *name)
{
        for (const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start; pair < here; pair++) {
                const char *text = node_text(yaml_document_get_node(reader->document, pair->key));

                if (text && strcmp(text, name) == 0)
                        return true;
        }
        return false;
}

/* place: a list of struct config_pair, its length after it. A duplicate name is reported; "" and a missing
 * value are empty values. */
static void read_pairs(struct reader *reader, yaml_node_t *node, const char *path,
                       struct config_pair **place)
{
        size_t *count = (size_t *)(void *)(place + 1);

        if (node->type != YAML_MAPPING_NODE) {
                problem_add(reader, node, false, path, "a mapping (NAME: value) is expected");
                return;
        }
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++) {
                yaml_node_t *key = yaml_document_get_node(reader->document, pair->key);
                yaml_node_t *value_node = yaml_document_get_node(reader->document, pair->value);
                const char *name = node_text(key), *value = node_text(value_node);
                struct config_pair *grown = reallocarray(*place, *count + 1, sizeof(*grown));
                char inner[PATH_MAX_LENGTH];

                if (!grown) {
                        reader->out_of_memory = true;
                        return;
                }
                *place = grown;
                snprintf(inner, sizeof(inner), "%.160s.%.90s", path, name ? name : "?");
                if (!name || !value) {
                        problem_add(reader, key, false, inner, "a text is expected");
                } else if (holds_nul(reader, key, inner) || holds_nul(reader, value_node, inner)) {
                        continue;
                } else if (is_duplicate(reader, node, pair, name)) {
                        problem_add(reader, key, false, inner, "is given twice");
                } else {
                        grown[*count] = (struct config_pair){0};
                        (void)keep_text(reader, &grown[*count].name, name);
                        (void)keep_text(reader, &grown[(*count)++].value, value);
                }
        }
}

static void read_watch(struct reader *reader, yaml_node_t *entry, const char *path,
                       const struct key_table *table)
{
        struct config *config = reader->config;
        struct config_watch *grown = reallocarray(config->watch, config->watch_count + 1, sizeof(*grown)),
                            *watch;

        if (!grown) {
                reader->out_of_memory = true;
                return;
        }
        config->watch = grown;
        watch = &grown[config->watch_count++];
        watch_defaults(watch);
        watch->line = (unsigned)entry->start_mark.line + 1;
        (void)keep_text(reader, &watch->file, reader->file);
        (void)keep_text(reader, &watch->place, path);
        read_mapping(reader, entry, path, table, watch);
        if (table != &watch_table)
                own_watch_complete(reader, entry, path, table == &startup_table, watch);
        check_watch(reader, entry, path, watch);
}

static void read_watches(struct reader *reader, yaml_node_t *node, const char *path,
                         const struct key_table *table)
{
        if (node->type != YAML_SEQUENCE_NODE) {
                problem_add(reader, node, false, path, "a list of %s is expected", path);
                return;
        }
        for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
             item++) {
                char inner[PATH_MAX_LENGTH];

                snprintf(inner, sizeof(inner), "%.200s[%td]", path, item - node->data.sequence.items.start);
                read_watch(reader, yaml_document_get_node(reader->document, *item), inner, table);
        }
}

static void read_config_value(struct reader *reader, yaml_node_t *node, const char *path,
                              const struct key *key, void *target)
{
        void *place = (char *)target + key->offset;

        if (holds_nul(reader, node, path))
                return;
        switch (key->kind) {
        case KEY_TEXT:
                read_scalar_text(reader, node, path, place);
                return;
        case KEY_DURATION:
                read_duration(reader, node, path, key, place);
                return;
        case KEY_UNSIGNED:
                read_unsigned(reader, node, path, key, place);
                return;
        case KEY_TEXTS:
                read_config_texts(reader, node, path, place);
                return;
        case KEY_TRIGGER:
                if (node->type == YAML_MAPPING_NODE) {
                        *(enum trigger *)place = TRIGGER_JQ;
                        read_mapping(reader, node, path, key->keys, target);
                } else {
                        read_trigger(reader, node, path, place);
                }
                return;
        case KEY_MILLI:
                read_milli(reader, node, path, key, place);
                return;
        case KEY_SIZE:
                read_size(reader, node, path, key, place);
                return;
        case KEY_BOOL:
                read_bool(reader, node, path, place);
                return;
        case KEY_CHOICE:
                read_choice(reader, node, path, key, place);
                return;
        case KEY_MAPPING:
                if (key->offset > 0)
                        *(bool *)place = true;
                read_mapping(reader, node, path, key->keys, target);
                return;
        case KEY_KINDS:
                read_kinds(reader, node, path, key->keys, place);
                return;
        case KEY_PAIRS:
                read_pairs(reader, node, path, place);
                return;
        case KEY_WATCHES:
                read_watches(reader, node, path, key->keys);
                return;
        case KEY_WATCH:
                read_watch(reader, node, path, key->keys);
                return;
        }
}

/* ---- mappings */

static void join_path(char *out, size_t size, const char *path, const char *name)
{
        snprintf(out, size, "%s%s%s", path, path[0] ? "." : "", name);
}

/* ---- scalars of the document itself, over several files */

void places_done(struct reader *reader)
{
        for (size_t i = 0; i < reader->place_count; i++) {
                free(reader->place[i].key);
                free(reader->place[i].file);
        }
        free(reader->place);
        reader->place = NULL;
        reader->place_count = 0;
}

static void place_add(struct reader *reader, const yaml_node_t *node, const char *path)
{
        struct place *grown = reallocarray(reader->place, reader->place_count + 1, sizeof(*grown)), *place;

        if (!grown) {
                reader->out_of_memory = true;
                return;
        }
        reader->place = grown;
        place = &grown[reader->place_count++];
        *place = (struct place){strdup(path), strdup(reader->file), (unsigned)node->start_mark.line + 1};
        if (!place->key || !place->file)
                reader->out_of_memory = true;
}

/* false: another file sets the key as well, and nothing tells which one counts. Lists of watches and mappings
 * add up; their first place is kept. */
static bool take_place(struct reader *reader, const yaml_node_t *node, const char *path,
                       const struct key *key)
{
        const struct place *place = place_find(reader, path);

        if (!place)
                place_add(reader, node, path);
        if (!place || key->kind == KEY_MAPPING || key->kind == KEY_WATCHES)
                return true;
        problem_add(reader, node, false, path, "is set at %s:%u already; keep one of them",
                    place->file ? place->file : "", place->line);
        return false;
}

static void read_config_pair(struct reader *reader, const yaml_node_t *mapping, const yaml_node_pair_t *pair,
                             const char *path, const struct key_table *table, void *target)
{
        yaml_node_t *key_node = yaml_document_get_node(reader->document, pair->key);
        yaml_node_t *value = yaml_document_get_node(reader->document, pair->value);
        const char *name = node_text(key_node);
        const struct key *key = name ? find_key(table, name) : NULL;
        char inner[PATH_MAX_LENGTH];

        join_path(inner, sizeof(inner), path, name ? name : "?");
        if (holds_nul(reader, key_node, inner))
                return;
        if (!key) {
                const char *suggestion = name ? nearest(table, name) : NULL;

                problem_add(reader, key_node, false, inner,
                            suggestion ? "is unknown; did you mean \"%s\"?" : "is unknown%s",
                            suggestion ? suggestion : "");
        } else if (is_duplicate(reader, mapping, pair, name)) {
                problem_add(reader, key_node, false, inner, "is given twice");
        } else if (target != reader->config || take_place(reader, key_node, inner, key)) {
                read_config_value(reader, value, inner, key, target);
        }
}

void read_mapping(struct reader *reader, yaml_node_t *node, const char *path, const struct key_table *table,
                  void *target)
{
        if (node->type != YAML_MAPPING_NODE) {
                problem_add(reader, node, false, path, "a mapping (key: value) is expected");
                return;
        }
        for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
             pair++)
                read_config_pair(reader, node, pair, path, table, target);
        for (size_t i = 0; i < table->count; i++) {
                char inner[PATH_MAX_LENGTH];

                if (!table->key[i].required || mapping_find(reader, node, table->key[i].name))
                        continue;
                join_path(inner, sizeof(inner), path, table->key[i].name);
                problem_add(reader, node, false, inner, "is missing");
        }
}
