/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables that derive from ipc/message-table.h: descriptors, names, permissions. Each schema is a
 * function with a local typedef, because an X-macro cannot tell its field macros which struct they belong
 * to.
 */
#include "ipc/message-schema.h"

#define DESCRIBE_U64(name)               {FIELD_KIND_U64, 0, offsetof(subject, name), 0, NULL},
#define DESCRIBE_ENUM(type, count, name) {FIELD_KIND_ENUM, (count), offsetof(subject, name), 0, NULL},
#define DESCRIBE_BOOL(name)              {FIELD_KIND_BOOL, 0, offsetof(subject, name), 0, NULL},
#define DESCRIBE_STR(name)               {FIELD_KIND_STR, 0, offsetof(subject, name), 0, NULL},
#define DESCRIBE_BIN(name)                                                                                  \
        {FIELD_KIND_BIN, 0, offsetof(subject, name), offsetof(subject, name##_size), NULL},
#define DESCRIBE_LIST(record, name)                                                                         \
        {FIELD_KIND_LIST, 0, offsetof(subject, name), offsetof(subject, name##_count),                      \
         schema_record_##record},

#define SCHEMA_FUNCTION(function, type, fields)                                                             \
        static const struct schema *function(void)                                                          \
        {                                                                                                   \
                typedef struct type subject;                                                                \
                static const struct schema_field field[] = {fields(DESCRIBE_U64, DESCRIBE_ENUM,             \
                                                                   DESCRIBE_BOOL, DESCRIBE_STR,             \
                                                                   DESCRIBE_BIN, DESCRIBE_LIST)};           \
                static const struct schema schema = {field, ELEMENTS(field), sizeof(subject)};              \
                                                                                                            \
                return &schema;                                                                             \
        }

#define R(record) SCHEMA_FUNCTION(schema_record_##record, record_##record, RECORD_##record##_FIELDS)
RECORD_TABLE(R)
#undef R

#define M(NAME, name, senders, receivers, cap, states)                                                      \
        SCHEMA_FUNCTION(schema_message_##name, message_##name, MESSAGE_##name##_FIELDS)
MESSAGE_TABLE(M)
#undef M

static const struct message_description description[MESSAGE_TYPE_COUNT] = {
#define M(NAME, name, senders, receivers, cap, states)                                                      \
        [MESSAGE_##NAME] = {#NAME, schema_message_##name, senders, receivers, cap, states},
        MESSAGE_TABLE(M)
#undef M
};

const struct message_description *message_describe(enum message_type type)
{
        return type > MESSAGE_INVALID && type < MESSAGE_TYPE_COUNT ? &description[type] : NULL;
}

const struct schema *schema_of(enum message_type type)
{
        const struct message_description *d = message_describe(type);

        return d ? d->schema() : NULL;
}
