/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a selector demands of an object: a list of requirements, all of which must hold. */
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

enum selector_operation {
        SELECTOR_EQUALS,
        SELECTOR_NOT_EQUALS, /* the last one that fields know */
        SELECTOR_IN,
        SELECTOR_NOT_IN,
        SELECTOR_EXISTS,
        SELECTOR_ABSENT,
        SELECTOR_GREATER,
        SELECTOR_LESS,
};

struct requirement {
        struct requirement *next;
        enum selector_operation operation;
        char *key;    /* of a label, or the path of a field */
        char **value; /* none of EXISTS and ABSENT, one or more of IN and NOT_IN, else one */
        size_t count;
};

/* An empty requirement at the head of the list. NULL: no memory. */
struct requirement *requirement_add(struct requirement **list);

/* Takes the value over, also when this fails; a NULL is no memory. 0 or -ENOMEM. */
int requirement_add_value(struct requirement *requirement, char *value);

/* Whether the value of its key meets it; NULL: the object has no such key. */
bool requirement_matches(const struct requirement *requirement, const char *value);

void requirements_free(struct requirement *list);
void requirements_free_pointer(struct requirement **list);
