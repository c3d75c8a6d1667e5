/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar alone: which fields a kind can be selected by is for the API server to say. */
#include "config/check/check-selector.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "config/read/expand.h"
#include "config/read/node.h"
#include "config/read/problem.h"
#include "selector/requirement.h"

typedef int (*parse_t)(const char *text, struct requirement **ret, struct error *error);

static void check_selector(struct reader *reader, const yaml_node_t *node, const char *key, const char *text,
                           parse_t parse)
{
        _cleanup_(requirements_free_pointer) struct requirement *list = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        int r;

        if (!text)
                return;
        if (strpbrk(text, "\n\t")) {
                problem_add(reader, node, false, key, "must be on one line");
                return;
        }
        r = parse(text, &list, &error);
        if (r == -EINVAL)
                problem_add(reader, node, false, key, "%s", error_message(&error));
        else if (r < 0)
                reader->out_of_memory = true;
}

static void check_own(struct reader *reader, yaml_node_t *node, const char *path, const char *name,
                      char **value, parse_t parse)
{
        yaml_node_t *place = mapping_find(reader, node, name);
        char key[256];

        snprintf(key, sizeof(key), "%s.%s", path, name);
        if (*value && expand_text(reader, place, key, value))
                check_selector(reader, place, key, *value, parse);
}

static void check_kinds(struct reader *reader, yaml_node_t *node, const char *path, const char *name,
                        const struct config_owned *kind, size_t count)
{
        yaml_node_t *list = mapping_find(reader, node, name);

        for (size_t i = 0; i < count; i++) {
                yaml_node_t *entry = sequence_item(reader, list, i);
                char key[256];

                snprintf(key, sizeof(key), "%s.%s[%zu].labelSelector", path, name, i);
                check_selector(reader, mapping_find(reader, entry, "labelSelector"), key,
                               kind[i].label_selector, label_selector_parse);
        }
}

void check_selectors(struct reader *reader, yaml_node_t *node, const char *path, struct config_watch *watch)
{
        check_own(reader, node, path, "labelSelector", &watch->label_selector, label_selector_parse);
        check_own(reader, node, path, "fieldSelector", &watch->field_selector, field_selector_parse);
        check_kinds(reader, node, path, "owns", watch->owns, watch->owns_count);
        check_kinds(reader, node, path, "related", watch->related, watch->related_count);
}
