/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What the encoder and the decoder know of a message: descriptors of its fields, generated from the table.
 * Private to ipc/.
 */
#include "ipc/message.h"

enum field_kind {
        FIELD_KIND_U64,
        FIELD_KIND_ENUM,
        FIELD_KIND_BOOL,
        FIELD_KIND_STR,
        FIELD_KIND_BIN,
        FIELD_KIND_LIST
};

struct schema {
        const struct schema_field *field;
        size_t field_count;
        size_t size; /* size of the struct */
};

struct schema_field {
        enum field_kind kind;
        uint64_t limit;                       /* of an ENUM: a number from here on is refused */
        size_t offset;                        /* offset of the value */
        size_t size_offset;                   /* offset of *_size or *_count, for BIN and LIST */
        const struct schema *(*record)(void); /* schema of a LIST's elements */
};

/* What the table says of one message. */
struct message_description {
        const char *name;                     /* "HELLO" */
        const struct schema *(*schema)(void); /* schema of its struct */
        unsigned senders, receivers;          /* enum role, as bits */
        size_t size_cap;
        unsigned states; /* enum child_state, as bits: in which it may be sent */
};

/* NULL for MESSAGE_INVALID and anything out of range. */
const struct message_description *message_describe(enum message_type type);
const struct schema *schema_of(enum message_type type);
