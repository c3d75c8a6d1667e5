/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An object as the store has it. How it lies in the database: internal.h. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ipc/message.h"

/* One record. On writes everything is borrowed from the caller; the caller owns what store_read returns
 * (store_object_done). */
struct store_object {
        char *key; /* "namespace/name" */
        char *uid;
        char *resource_version;
        uint64_t fingerprint;
        uint64_t mark; /* number of the LIST that last saw it: what a finished LIST did not mark is gone */
        char *json;    /* as it came, unparsed; NUL-terminated; may be empty for a tombstone without a last
                          state */
        size_t json_size;
        bool held;   /* since it is being deleted, a watch that wanted our finalizer has seen that on it */
        bool free;   /* of finalizers: nobody has to read it to look for ours; false: it may have some */
        bool unheld; /* store_bury: how it ended says nothing of our finalizer, whatever was seen before */
        enum finalizer_state finalizer; /* as announced; not stored with it */
};

void store_object_done(struct store_object *object);

/* The object is borrowed, and valid until the visitor returns. 0 goes on; a negative return ends the
 * walk, which returns it. */
typedef int (*store_visit_t)(const struct store_object *object, void *userdata);
