/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a selector demands of an object: a list of requirements, all of which must hold. */
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"
#include "base/error.h"

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

/* Whether the value of its key meets it; NULL: the object has no such key. */
bool requirement_matches(const struct requirement *requirement, const char *value);

void requirements_free(struct requirement *list);
void requirements_free_pointer(struct requirement **list);

/* Label selectors as the API server reads them: "app=web,tier in (a,b),!old,size>3". 0; -ENOMEM; -EINVAL with what is wrong and where. "" selects everything: *ret is NULL. The list is the
 * caller's. */
int label_selector_parse(const char *text, struct requirement **ret, struct error *error);

/* Field selectors as the API server reads them: "metadata.name=a,status.phase!=Failed". 0; -ENOMEM; -EINVAL with what is wrong. "" selects everything: *ret is NULL. Which fields a kind offers is
 * for the server to say. The list is the caller's. */
int field_selector_parse(const char *text, struct requirement **ret, struct error *error);
