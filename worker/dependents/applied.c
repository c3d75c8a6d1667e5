/* SPDX-License-Identifier: Apache-2.0 */
/* See applied.h. */
#include "worker/dependents/applied.h"

#include <errno.h>
#include <string.h>
#include <xxhash.h>

#include "object/fingerprint.h"

struct entry {
        struct applied_text text; /* dependent 0: the entry is free */
        uint64_t state;           /* after that text was applied */
};

struct applied {
        struct entry entry[APPLIED_MAX];
};

int applied_new(struct applied **ret)
{
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

void applied_free(struct applied *applied)
{
        free(applied);
}

/* The terminating byte is hashed as well, so that no two lists of strings are the same. */
static uint64_t chain(uint64_t seed, const char *text)
{
        return XXH3_64bits_withSeed(text, strlen(text) + 1, seed);
}

struct applied_text applied_text_of(const struct dependent_owner *owner, const struct dependent *dependent,
                                    const struct text *body)
{
        uint64_t hash = chain(0, owner->uid);

        hash = chain(hash, dependent->api_version);
        hash = chain(hash, dependent->kind);
        hash = chain(hash, dependent->namespace_name);
        hash = chain(hash, dependent->name);
        return (struct applied_text){
                .dependent = hash ? hash : 1,
                .text = XXH3_64bits(body->data, body->size),
        };
}

static size_t place_of(const struct applied_text *text)
{
        return text->dependent & (APPLIED_MAX - 1);
}

int applied_state_of(const char *json, size_t size, uint64_t *ret)
{
        uint64_t part[2];
        int r = fingerprint_object(TRIGGER_ANY, NULL, json, size, &part[0]);

        if (r >= 0)
                r = fingerprint_object(TRIGGER_ESSENCE, NULL, json, size, &part[1]);
        if (r < 0)
                return r;
        *ret = XXH3_64bits(part, sizeof(part));
        return 0;
}

void applied_keep(struct applied *applied, const struct applied_text *text, uint64_t state)
{
        applied->entry[place_of(text)] = (struct entry){.text = *text, .state = state};
}

bool applied_made(const struct applied *applied, const struct applied_text *text, uint64_t state)
{
        const struct entry *entry = &applied->entry[place_of(text)];

        return entry->text.dependent == text->dependent && entry->text.text == text->text &&
               entry->state == state;
}
