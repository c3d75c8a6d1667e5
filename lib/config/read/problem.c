/* SPDX-License-Identifier: Apache-2.0 */
#include "config/read/problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit-code.h"

#define PROBLEMS_MAX 200

const struct place *place_find(const struct reader *reader, const char *key)
{
        for (size_t i = 0; i < reader->place_count; i++)
                if (reader->place[i].key && strcmp(reader->place[i].key, key) == 0)
                        return &reader->place[i];
        return NULL;
}

void problem_add(struct reader *reader, const yaml_node_t *node, bool warning, const char *key,
                 const char *format, ...)
{
        struct config_problems *problems = reader->problems;
        const struct place *place = node ? NULL : place_find(reader, key);
        struct config_problem *grown, *problem;
        va_list arguments;

        if (problems->count == PROBLEMS_MAX)
                return;
        grown = reallocarray(problems->problem, problems->count + 1, sizeof(*grown));
        if (!grown) {
                reader->out_of_memory = true;
                return;
        }
        problems->problem = grown;
        problem = &grown[problems->count++];
        *problem = (struct config_problem){
                .file = strdup(place && place->file ? place->file : reader->file),
                .line = node    ? (unsigned)node->start_mark.line + 1
                        : place ? place->line
                                : 0,
                .key = strdup(key),
                .warning = warning,
        };
        va_start(arguments, format);
        if (vasprintf(&problem->text, format, arguments) < 0)
                problem->text = NULL;
        va_end(arguments);
        if (!problem->file || !problem->key || !problem->text)
                reader->out_of_memory = true;
}

void note_system_error(struct reader *reader, int error)
{
        if (error == -ETIMEDOUT || error == -ECONNRESET) /* of a process that was asked */
                error = -EAGAIN;
        if (exit_code_for(error, EXIT_CODE_CONFIGURATION) != EXIT_CODE_CONFIGURATION)
                reader->system_error = error;
}

const char *node_text(const yaml_node_t *node)
{
        return node && node->type == YAML_SCALAR_NODE ? (const char *)node->data.scalar.value : NULL;
}

yaml_node_t *mapping_find(struct reader *reader, yaml_node_t *mapping, const char *name)
{
        if (!mapping || mapping->type != YAML_MAPPING_NODE)
                return NULL;
        for (yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
             pair < mapping->data.mapping.pairs.top; pair++) {
                const char *text = node_text(yaml_document_get_node(reader->document, pair->key));

                if (text && strcmp(text, name) == 0)
                        return yaml_document_get_node(reader->document, pair->value);
        }
        return NULL;
}

yaml_node_t *sequence_item(struct reader *reader, yaml_node_t *list, size_t number)
{
        yaml_node_item_t *start;

        if (!list || list->type != YAML_SEQUENCE_NODE)
                return NULL;
        start = list->data.sequence.items.start;
        return number < (size_t)(list->data.sequence.items.top - start)
                       ? yaml_document_get_node(reader->document, start[number])
                       : NULL;
}
