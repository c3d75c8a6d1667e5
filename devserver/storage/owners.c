/* SPDX-License-Identifier: Apache-2.0 */
/* The index of owner references: a hash table from the owner's UID to the objects that name it. Entries live
 * in the versions; one is linked exactly as long as its version is in its resource's table. */
#include "devserver/storage/owners.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "devserver/storage/served-resource.h"
#include "devserver/storage/version.h"

#define BUCKETS_MIN 64

static uint64_t hash_of(const char *uid)
{
        uint64_t hash = 14695981039346656037U; /* FNV-1a */

        for (; *uid; uid++)
                hash = (hash ^ (unsigned char)*uid) * 1099511628211U;
        return hash ^ hash >> 32;
}

static void link_reference(struct owner_index *index, struct owner_reference *reference)
{
        struct owner_reference **place = &index->bucket[hash_of(reference->uid) & (index->size - 1)];

        reference->next = *place;
        if (reference->next)
                reference->next->place = &reference->next;
        reference->place = place;
        *place = reference;
}

static int grow(struct owner_index *index)
{
        struct owner_index grown = {.size = index->size ? index->size * 2 : BUCKETS_MIN,
                                    .count = index->count};

        if (index->count < index->size)
                return 0;
        grown.bucket = calloc(grown.size, sizeof(struct owner_reference *));
        if (!grown.bucket)
                return -ENOMEM;
        for (size_t i = 0; i < index->size; i++)
                while (index->bucket[i]) {
                        struct owner_reference *reference = index->bucket[i];

                        index->bucket[i] = reference->next;
                        link_reference(&grown, reference);
                }
        free(index->bucket);
        *index = grown;
        return 0;
}

int owner_index_add(struct owner_index *index, struct resource *resource, struct version *version)
{
        for (size_t i = 0; i < version->owner_count; i++) {
                if (grow(index) < 0) {
                        owner_index_remove(index, version);
                        return -ENOMEM;
                }
                version->owner[i].resource = resource;
                version->owner[i].version = version;
                link_reference(index, &version->owner[i]);
                index->count++;
        }
        return 0;
}

void owner_index_remove(struct owner_index *index, struct version *version)
{
        for (size_t i = 0; i < version->owner_count; i++) {
                struct owner_reference *reference = &version->owner[i];

                if (!reference->place)
                        continue;
                *reference->place = reference->next;
                if (reference->next)
                        reference->next->place = reference->place;
                reference->next = NULL;
                reference->place = NULL;
                index->count--;
        }
}

const struct owner_reference *owner_index_find(const struct owner_index *index, const char *uid,
                                               const struct owner_reference *after)
{
        const struct owner_reference *reference;

        if (index->size == 0)
                return NULL;
        reference = after ? after->next : index->bucket[hash_of(uid) & (index->size - 1)];
        while (reference && strcmp(reference->uid, uid) != 0)
                reference = reference->next;
        return reference;
}

void owner_index_done(struct owner_index *index)
{
        free(index->bucket);
        *index = (struct owner_index){0};
}
