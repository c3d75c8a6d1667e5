/* SPDX-License-Identifier: Apache-2.0 */
#include "selector/requirement.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- matching */

static bool has_value(const struct requirement *requirement, const char *value)
{
        for (size_t i = 0; i < requirement->count; i++)
                if (strcmp(requirement->value[i], value) == 0)
                        return true;
        return false;
}

/* Both must be integers. */
static int compare_integers(const char *a, const char *b, bool *ret_valid)
{
        char *a_end, *b_end;
        long long x = strtoll(a, &a_end, 10), y = strtoll(b, &b_end, 10);

        *ret_valid = *a && *b && !*a_end && !*b_end;
        return x < y ? -1 : x > y;
}

bool requirement_matches(const struct requirement *requirement, const char *value)
{
        bool valid = false;
        int order;

        switch (requirement->operation) {
        case SELECTOR_EXISTS:
                return value != NULL;
        case SELECTOR_ABSENT:
                return value == NULL;
        case SELECTOR_EQUALS:
        case SELECTOR_IN:
                return value && has_value(requirement, value);
        case SELECTOR_NOT_EQUALS:
        case SELECTOR_NOT_IN:
                return !value || !has_value(requirement, value);
        case SELECTOR_GREATER:
        case SELECTOR_LESS:
                order = value ? compare_integers(value, requirement->value[0], &valid) : 0;
                return valid && (requirement->operation == SELECTOR_GREATER ? order > 0 : order < 0);
        }
        return false;
}
