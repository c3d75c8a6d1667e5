/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/applied.h"

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "object/fingerprint.h"
#include "object/keyed-hash.h"

struct entry {
        struct applied_text text; /* dependent 0: the entry is free */
        uint64_t state;           /* after that text was applied */
        uint64_t repaired;        /* when it was applied once more, because others had set it back */
        unsigned repairs;         /* in a row */
};

#define HELD_AFTER 3
#define HOLD_USEC  (4 * USEC_PER_SEC)
#define QUIET_USEC (10 * USEC_PER_MINUTE)

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

static void add_string(struct siphash *hash, const char *string)
{
        keyed_hash_add(hash, string, strlen(string));
}

struct applied_text applied_text_of(const struct dependent_owner *owner, const struct dependent *dependent,
                                    const struct text *body)
{
        struct siphash hash = keyed_hash_of(HASHED_CHILD);

        add_string(&hash, owner->uid);
        add_string(&hash, dependent->api_version);
        add_string(&hash, dependent->kind);
        add_string(&hash, dependent->namespace_name);
        return (struct applied_text){
                .dependent = keyed_hash_end(hash, dependent->name, strlen(dependent->name)),
                .text = keyed_hash_end(keyed_hash_of(HASHED_BODY), body->data, body->size),
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
        *ret = keyed_hash_end(keyed_hash_of(HASHED_STATE), part, sizeof(part));
        return 0;
}

static bool is_of(const struct entry *entry, const struct applied_text *text)
{
        return entry->text.dependent == text->dependent && entry->text.text == text->text;
}

void applied_keep(struct applied *applied, const struct applied_text *text, uint64_t state)
{
        struct entry *entry = &applied->entry[place_of(text)];

        if (!is_of(entry, text))
                *entry = (struct entry){.text = *text};
        entry->state = state;
}

bool applied_made(const struct applied *applied, const struct applied_text *text, uint64_t state)
{
        const struct entry *entry = &applied->entry[place_of(text)];

        return is_of(entry, text) && entry->state == state;
}

void applied_count_repair(struct applied *applied, const struct applied_text *text, uint64_t now)
{
        struct entry *entry = &applied->entry[place_of(text)];
        uint64_t until;

        if (!is_of(entry, text))
                return;
        entry->repairs = applied_repairs(applied, text, now, &until) + 1;
        entry->repaired = now;
}

unsigned applied_repairs(const struct applied *applied, const struct applied_text *text, uint64_t now,
                         uint64_t *ret_until)
{
        const struct entry *entry = &applied->entry[place_of(text)];
        uint64_t hold = 0;

        *ret_until = 0;
        if (!is_of(entry, text) || entry->repairs == 0)
                return 0;
        if (entry->repairs >= HELD_AFTER)
                hold = entry->repairs - HELD_AFTER < 16 ? HOLD_USEC << (entry->repairs - HELD_AFTER)
                                                        : QUIET_USEC;
        hold = hold < QUIET_USEC ? hold : QUIET_USEC;
        if (now >= entry->repaired + hold + QUIET_USEC)
                return 0;
        *ret_until = hold > 0 && now < entry->repaired + hold ? entry->repaired + hold : 0;
        return entry->repairs;
}
