/* SPDX-License-Identifier: Apache-2.0 */
#include "selector/requirement.h"

#include <errno.h>
#include <stdlib.h>

struct requirement *requirement_add(struct requirement **list)
{
        struct requirement *requirement = calloc(1, sizeof(*requirement));

        if (!requirement)
                return NULL;
        requirement->next = *list;
        *list = requirement;
        return requirement;
}

int requirement_add_value(struct requirement *requirement, char *value)
{
        char **grown =
                value ? reallocarray(requirement->value, requirement->count + 1, sizeof(char *)) : NULL;

        if (!grown) {
                free(value);
                return -ENOMEM;
        }
        requirement->value = grown;
        requirement->value[requirement->count++] = value;
        return 0;
}

void requirements_free(struct requirement *list)
{
        while (list) {
                struct requirement *next = list->next;

                for (size_t i = 0; i < list->count; i++)
                        free(list->value[i]);
                free(list->value);
                free(list->key);
                free(list);
                list = next;
        }
}

void requirements_free_pointer(struct requirement **list)
{
        requirements_free(*list);
}
