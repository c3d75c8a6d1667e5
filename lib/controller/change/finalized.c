/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With a successful `finalize` our finalizer is off, and the row goes. Until the watch sees the end it may
 * still announce what others changed before, and by then nothing else would tell that the object is over: it
 * would be finalized twice. Objects that somebody else's finalizer holds stay here for as long.
 *
 * There may be as many as objects, so they are a set: a table with room for twice as many, in which each hash
 * stands at its place or in the next free one behind it.
 */
#include "controller/change/finalized.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define ROOM_FIRST 16

/* 0 is a free place. */
static uint64_t hash_of(const char *key, const char *uid)
{
        uint64_t hash = XXH3_64bits_withSeed(uid, strlen(uid), XXH3_64bits(key, strlen(key)));

        return hash ? hash : 1;
}

static size_t behind(size_t place, size_t room)
{
        return (place + 1) & (room - 1);
}

/* Where it stands, or where it would. There is always a free place. */
static size_t find(const uint64_t *table, size_t room, uint64_t hash)
{
        size_t place = hash & (room - 1);

        while (table[place] && table[place] != hash)
                place = behind(place, room);
        return place;
}

static int grow(struct watch *watch)
{
        size_t room = watch->finalized_room ? 2 * watch->finalized_room : ROOM_FIRST;
        uint64_t *grown = calloc(room, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        for (size_t i = 0; i < watch->finalized_room; i++)
                if (watch->finalized[i])
                        grown[find(grown, room, watch->finalized[i])] = watch->finalized[i];
        free(watch->finalized);
        watch->finalized = grown;
        watch->finalized_room = room;
        return 0;
}

int finalized_note(struct watch *watch, const char *key, const char *uid)
{
        uint64_t hash = hash_of(key, uid);
        size_t place;

        if (2 * (watch->finalized_count + 1) > watch->finalized_room && grow(watch) < 0)
                return -ENOMEM;
        place = find(watch->finalized, watch->finalized_room, hash);
        watch->finalized_count += watch->finalized[place] == 0;
        watch->finalized[place] = hash;
        return 0;
}

bool finalized_is(const struct watch *watch, const char *key, const char *uid)
{
        return watch->finalized_count > 0 &&
               watch->finalized[find(watch->finalized, watch->finalized_room, hash_of(key, uid))] != 0;
}

/* Those behind a place that became free are put again: they may have wanted to stand there. */
static void close_gap(uint64_t *table, size_t room, size_t place)
{
        for (place = behind(place, room); table[place]; place = behind(place, room)) {
                uint64_t hash = table[place];

                table[place] = 0;
                table[find(table, room, hash)] = hash;
        }
}

void finalized_drop(struct watch *watch, const char *key, const char *uid)
{
        size_t place;

        if (watch->finalized_count == 0)
                return;
        place = find(watch->finalized, watch->finalized_room, hash_of(key, uid));
        if (watch->finalized[place] == 0)
                return;
        watch->finalized[place] = 0;
        close_gap(watch->finalized, watch->finalized_room, place);
        if (--watch->finalized_count == 0)
                finalized_forget(watch);
}

void finalized_forget(struct watch *watch)
{
        free(watch->finalized);
        watch->finalized = NULL;
        watch->finalized_count = watch->finalized_room = 0;
}
