/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is wrong with an object: a list of causes, in the words of the real server. */
#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/cleanup.h"

/* A way into a value: its steps are linked from the last one up to the root, which is NULL. */
struct step {
        const struct step *parent;
        const char *name; /* of a member; NULL: an element of a list */
        size_t index;
        bool is_key; /* a member that is written as map[name] */
};

static inline struct step step_member(const struct step *parent, const char *name)
{
        return (struct step){.parent = parent, .name = name};
}

static inline struct step step_key(const struct step *parent, const char *name)
{
        return (struct step){.parent = parent, .name = name, .is_key = true};
}

static inline struct step step_element(const struct step *parent, size_t index)
{
        return (struct step){.parent = parent, .index = index};
}

/* "spec.list[0].name"; "" is the root. prefix: a way that comes before it, or NULL. The caller's; NULL: no
 * memory. */
char *step_describe(const char *prefix, const struct step *step);

enum mistake_type {
        MISTAKE_INVALID,
        MISTAKE_TYPE_INVALID,
        MISTAKE_REQUIRED,
        MISTAKE_NOT_SUPPORTED,
        MISTAKE_DUPLICATE,
        MISTAKE_FORBIDDEN,
        MISTAKE_TOO_LONG,
        MISTAKE_TOO_MANY,
};

/* How many are kept; a list that is full is one of an object that is wrong. */
#define MISTAKES_MAX 200

struct mistakes {
        cJSON *cause; /* of a Status: a list of {reason, message, field}; NULL: nothing is wrong */
        size_t count;
};

/* One that is there already is not added again. value: as text, or NULL; detail: after it, or "". */
void mistake_add(struct mistakes *mistakes, enum mistake_type type, const char *field, const char *value,
                 const char *detail, ...) _printf_(5, 6);
void mistakes_merge(struct mistakes *mistakes, struct mistakes *more); /* takes what is in `more` */
void mistakes_done(struct mistakes *mistakes);
/* "field: message", or "[field: message, field: message]". The caller's; NULL: no memory. */
char *mistakes_describe(const struct mistakes *mistakes);

/* As Go's %q. The caller's; NULL: no memory. */
char *text_quote(const char *text);
/* As a mistake names a value: text in quotes, a number as it is, all else as JSON. The caller's; NULL: no
 * memory. */
char *value_describe(const cJSON *value);
