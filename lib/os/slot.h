/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Slots: who was doing what. One mapped file, made by the supervisor; each watcher writes the one slot that
 * is its own, around whatever it does with the content of an object, with plain stores and no system call.
 * When it dies or hangs in there, the slot says over which object.
 *
 * A slot is only looked at by the supervisor that saw its writer fail first; a new supervisor makes the file
 * again. So objects that were only in work when everything was killed are never suspected.
 */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"

#define SLOT_KEY_MAX 320
#define SLOT_UID_MAX 68

enum slot_stage {
        SLOT_IDLE,
        SLOT_READING, /* our own code reads the object */
        SLOT_PROGRAM, /* a jq program of the configuration is run on it */
        SLOT_STAGE_COUNT
};

#define SLOT_VERSION UINT32_C(0x736c3100) /* in the upper bits of state; the stage is in the lowest byte */

/* The state is written last and taken back first: what is torn is idle. */
struct slot {
        _Atomic uint32_t state;
        uint32_t key_size, uid_size; /* with their NUL */
        char key[SLOT_KEY_MAX], uid[SLOT_UID_MAX];
};

struct slots;

/* The supervisor's side: the file is made again, its space taken, all slots idle. */
int slots_new(const char *path, size_t count, struct slots **ret);
void slots_free(struct slots *slots); /* the file goes, too */
DEFINE_CLEANUP(struct slots *, slots_free);

struct slot_view {
        enum slot_stage stage;
        char key[SLOT_KEY_MAX], uid[SLOT_UID_MAX];
};

/* Clears a slot for its next writer: what the last one has left in it is gone. */
int slots_clear(const struct slots *slots, size_t index);
/* -ENOENT: the writer works on no object, or the slot's content is invalid. */
int slots_look(const struct slots *slots, size_t index, struct slot_view *ret);

/* The writer's side. slot may be NULL everywhere: then nothing is noted. */
int slot_open(const char *path, size_t index, struct slot **ret);
void slot_close(struct slot *slot);

static inline void slot_clear(struct slot *slot)
{
        if (slot)
                atomic_store_explicit(&slot->state, SLOT_VERSION | SLOT_IDLE, memory_order_release);
}

static inline void slot_set(struct slot *slot, enum slot_stage stage, const char *key, const char *uid)
{
        size_t key_size = strlen(key) + 1, uid_size = strlen(uid) + 1;

        if (!slot || key_size > SLOT_KEY_MAX || uid_size > SLOT_UID_MAX)
                return;
        slot_clear(slot);
        /* The slot must be seen idle before anything below is seen. */
        atomic_thread_fence(memory_order_release);
        memcpy(slot->key, key, key_size);
        memcpy(slot->uid, uid, uid_size);
        slot->key_size = (uint32_t)key_size;
        slot->uid_size = (uint32_t)uid_size;
        atomic_store_explicit(&slot->state, SLOT_VERSION | stage, memory_order_release);
        /* The slot must be set before anything that follows is done. */
        atomic_signal_fence(memory_order_seq_cst);
}
