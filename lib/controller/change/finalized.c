/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With a successful `finalize` our finalizer is off, and the row goes. Until the watch sees the end it may
 * still announce what others changed before, and by then nothing else would tell that the object is over: it
 * would be finalized twice. Objects that somebody else's finalizer holds stay here for as long.
 */
#include "controller/change/finalized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t hash_of(const char *key, const char *uid)
{
        return XXH3_64bits_withSeed(uid, strlen(uid), XXH3_64bits(key, strlen(key)));
}

/* Its place; finalized_count: it is not among them. */
static size_t find(const struct watch *watch, uint64_t hash)
{
        size_t i = 0;

        while (i < watch->finalized_count && watch->finalized[i] != hash)
                i++;
        return i;
}

int finalized_note(struct watch *watch, const char *key, const char *uid)
{
        uint64_t hash = hash_of(key, uid);

        if (find(watch, hash) < watch->finalized_count)
                return 0;
        if (watch->finalized_count == watch->finalized_room) {
                size_t room = watch->finalized_room ? 2 * watch->finalized_room : 16;
                uint64_t *grown = reallocarray(watch->finalized, room, sizeof(*grown));

                if (!grown)
                        return -ENOMEM;
                watch->finalized = grown;
                watch->finalized_room = room;
        }
        watch->finalized[watch->finalized_count++] = hash;
        return 0;
}

bool finalized_is(const struct watch *watch, const char *key, const char *uid)
{
        return watch->finalized_count > 0 && find(watch, hash_of(key, uid)) < watch->finalized_count;
}

void finalized_drop(struct watch *watch, const char *key, const char *uid)
{
        size_t place = watch->finalized_count > 0 ? find(watch, hash_of(key, uid)) : 0;

        if (place < watch->finalized_count)
                watch->finalized[place] = watch->finalized[--watch->finalized_count];
        if (watch->finalized_count == 0)
                finalized_forget(watch);
}

void finalized_forget(struct watch *watch)
{
        free(watch->finalized);
        watch->finalized = NULL;
        watch->finalized_count = watch->finalized_room = 0;
}
