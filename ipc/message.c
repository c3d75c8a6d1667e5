/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One generic encoder and one generic decoder for all messages, driven by the schemas. msgpack-c writes
 * them. It does not read them: it believes the element counts that a packet claims, and allocates for them,
 * and builds a tree that would be walked once. The decoder goes through the packet as the schema says, and
 * takes nothing that is not what the next field is.
 */
#include "ipc/message.h"

#include <errno.h>
#include <msgpack.h>
#include <string.h>

/*
 * What the encoder and the decoder know of a message: descriptors of its fields, generated from the table.
 */
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

/*
 * The tables that derive from ipc/message-table.h: descriptors, names, permissions. Each schema is a
 * function with a local typedef, because an X-macro cannot tell its field macros which struct they belong
 * to.
 */

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

static const struct message_description *message_describe(enum message_type type)
{
        return type > MESSAGE_INVALID && type < MESSAGE_TYPE_COUNT ? &description[type] : NULL;
}

static const struct schema *schema_of(enum message_type type)
{
        const struct message_description *d = message_describe(type);

        return d ? d->schema() : NULL;
}

/* ---- text */

#define EIGHT_ONES UINT64_C(0x0101010101010101)

/* Eight bytes of ASCII, and none of them zero: in each, nothing is borrowed and the highest bit is free. */
static bool are_plain(const char *text)
{
        uint64_t bytes;

        memcpy(&bytes, text, sizeof(bytes));
        return (((bytes - EIGHT_ONES) | bytes) & (EIGHT_ONES << 7)) == 0;
}

static bool text_is_clean(const char *text, size_t size)
{
        size_t i = 0;

        while (size - i >= sizeof(uint64_t) && are_plain(text + i))
                i += sizeof(uint64_t);
        while (i < size) {
                size_t length = (unsigned char)text[i] < 0x80 ? 1 : utf8_sequence(text + i, size - i);

                if (length == 0 || text[i] == '\0')
                        return false;
                i += length;
        }
        return true;
}

/* What a terminal obeys or what shows text in another order than it has: controls, also those above 0x7f,
 * separators of lines, marks and overrides of the direction of writing. */
bool utf8_is_printable(const char *character, size_t length)
{
        const unsigned char *at = (const unsigned char *)character;

        switch (length) {
        case 1:
                return at[0] == '\t' || (at[0] >= 0x20 && at[0] != 0x7f);
        case 2: /* U+0080 to U+009F; U+061C */
                return !(at[0] == 0xc2 && at[1] < 0xa0) && !(at[0] == 0xd8 && at[1] == 0x9c);
        case 3: /* U+200E, U+200F, U+2028 to U+202E; U+2066 to U+2069 */
                return at[0] != 0xe2 || !((at[1] == 0x80 && (at[2] == 0x8e || at[2] == 0x8f ||
                                                             (at[2] >= 0xa8 && at[2] <= 0xae))) ||
                                          (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9));
        default:
                return length > 0;
        }
}

void utf8_clean(char *text)
{
        size_t size = strlen(text);

        for (size_t i = 0; i < size;) {
                size_t length = utf8_sequence(text + i, size - i), bytes = length > 0 ? length : 1;

                if (!utf8_is_printable(text + i, length))
                        memset(text + i, '?', bytes);
                i += bytes;
        }
}

/* ---- encoder */

static int write_packet(void *userdata, const char *bytes, size_t size)
{
        return text_append(userdata, bytes, size);
}

static int encode_fields(msgpack_packer *packer, const struct schema *schema, const char *base);

static int encode_text(msgpack_packer *packer, const char *text)
{
        size_t size;

        if (!text)
                text = "";
        size = strlen(text);
        if (!text_is_clean(text, size))
                return -EINVAL;
        msgpack_pack_str(packer, size);
        return msgpack_pack_str_body(packer, text, size);
}

/* All enums of messages count from 0, so they are as large as this. */
_Static_assert(sizeof(enum run_result) == sizeof(unsigned), "decode_enum");

static int encode_enum(msgpack_packer *packer, const struct schema_field *field, unsigned number)
{
        return number >= field->limit ? -EINVAL : msgpack_pack_uint64(packer, number);
}

static int encode_list(msgpack_packer *packer, const struct schema *record, const char *element,
                       size_t count)
{
        msgpack_pack_array(packer, count);
        for (size_t i = 0; i < count; i++) {
                int r;

                msgpack_pack_array(packer, record->field_count);
                r = encode_fields(packer, record, element + i * record->size);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int encode_field(msgpack_packer *packer, const struct schema_field *field, const char *base)
{
        const void *value = base + field->offset;
        size_t size = 0;

        if (field->kind == FIELD_KIND_BIN || field->kind == FIELD_KIND_LIST)
                memcpy(&size, base + field->size_offset, sizeof(size));
        switch (field->kind) {
        case FIELD_KIND_U64:
                return msgpack_pack_uint64(packer, *(const uint64_t *)value);
        case FIELD_KIND_ENUM:
                return encode_enum(packer, field, *(const unsigned *)value);
        case FIELD_KIND_BOOL:
                return *(const bool *)value ? msgpack_pack_true(packer) : msgpack_pack_false(packer);
        case FIELD_KIND_STR:
                return encode_text(packer, *(const char *const *)value);
        case FIELD_KIND_BIN:
                msgpack_pack_bin(packer, size);
                return msgpack_pack_bin_body(packer, *(const void *const *)value, size);
        case FIELD_KIND_LIST:
                return encode_list(packer, field->record(), *(const char *const *)value, size);
        }
        return -EINVAL;
}

static int encode_fields(msgpack_packer *packer, const struct schema *schema, const char *base)
{
        for (size_t i = 0; i < schema->field_count; i++) {
                int r = encode_field(packer, &schema->field[i], base);

                if (r < 0)
                        return r;
        }
        return 0;
}

int message_encode(enum message_type type, const void *fields, struct text *packet)
{
        const struct schema *schema = schema_of(type);
        msgpack_packer packer;
        int r;

        if (!schema)
                return -EINVAL;
        text_clear(packet);
        msgpack_packer_init(&packer, packet, write_packet);
        msgpack_pack_array(&packer, schema->field_count + 1);
        msgpack_pack_uint64(&packer, (uint64_t)type);
        r = encode_fields(&packer, schema, fields);
        if (packet->failed)
                return -ENOMEM;
        if (r < 0)
                return r;
        return packet->size > message_size_cap(type) ? -EMSGSIZE : 0;
}

/* ---- memory of a decoded message: chunks that are wiped when they go */

#define CHUNK_SIZE ((size_t)1024)
#define FIRST_SIZE                                                                                          \
        ((size_t)448) /* with it most messages are one allocation, of a size that malloc has at hand */

struct chunk {
        struct chunk *next;
        size_t size, used;
        char data[] __attribute__((aligned(8)));
};

/* The message and its first chunk. */
struct message_block {
        struct message message;
        struct chunk first;
};

static struct message *message_new(enum message_type type)
{
        struct message_block *block = malloc(sizeof(*block) + FIRST_SIZE);

        if (!block)
                return NULL;
        memset(block, 0, sizeof(*block));
        block->first.size = FIRST_SIZE;
        block->message.type = type;
        block->message.memory = &block->first;
        return &block->message;
}

static void *message_allocate(struct message *message, size_t size)
{
        struct chunk *chunk = message->memory;
        void *memory;

        size = (size + 7) & ~(size_t)7;
        if (!chunk || chunk->size - chunk->used < size) {
                size_t wanted = size > CHUNK_SIZE ? size : CHUNK_SIZE;

                chunk = malloc(sizeof(*chunk) + wanted);
                if (!chunk)
                        return NULL;
                *chunk = (struct chunk){.next = message->memory, .size = wanted};
                message->memory = chunk;
        }
        memory = chunk->data + chunk->used;
        chunk->used += size;
        return memory;
}

void message_free(struct message *message)
{
        struct chunk *chunk = message ? message->memory : NULL;

        while (chunk) {
                struct chunk *next = chunk->next;

                explicit_bzero(chunk->data, chunk->used);
                if (next) /* the last one is the message's own */
                        free(chunk);
                chunk = next;
        }
        free(message);
}

/* ---- decoder */

struct walk {
        const unsigned char *next;
        size_t left;
};

static bool walk_byte(struct walk *walk, unsigned char *ret)
{
        if (walk->left == 0)
                return false;
        *ret = *walk->next++;
        walk->left--;
        return true;
}

static bool walk_number(struct walk *walk, size_t bytes, uint64_t *ret)
{
        uint64_t number = 0;

        if (walk->left < bytes)
                return false;
        for (size_t i = 0; i < bytes; i++)
                number = number << 8 | walk->next[i];
        walk->next += bytes;
        walk->left -= bytes;
        *ret = number;
        return true;
}

static bool walk_unsigned(struct walk *walk, uint64_t *ret)
{
        unsigned char head;

        if (!walk_byte(walk, &head))
                return false;
        if (head >= 0xcc && head <= 0xcf)
                return walk_number(walk, (size_t)1 << (head - 0xcc), ret);
        *ret = head;
        return head <= 0x7f;
}

/* The header of something that has a size: a text (first 0xd9), bytes (0xc4), a list (0xdc). Small sizes of
 * texts and lists are in the header itself. */
static bool walk_size(struct walk *walk, unsigned char first, unsigned char last, unsigned char fixed,
                      unsigned char fixed_mask, uint64_t *ret)
{
        unsigned char head;

        if (!walk_byte(walk, &head))
                return false;
        if (fixed && (head & ~fixed_mask) == fixed) {
                *ret = head & fixed_mask;
                return true;
        }
        if (head < first || head > last)
                return false;
        return walk_number(walk, (size_t)(first == 0xdc ? 2 : 1) << (head - first), ret);
}

static bool walk_list(struct walk *walk, uint64_t *ret)
{
        return walk_size(walk, 0xdc, 0xdd, 0x90, 0x0f, ret);
}

static const char *walk_take(struct walk *walk, uint64_t bytes)
{
        const unsigned char *taken = walk->next;

        if (bytes > walk->left)
                return NULL;
        walk->next += bytes;
        walk->left -= bytes;
        return (const char *)taken;
}

static int decode_fields(struct message *message, const struct schema *schema, struct walk *walk,
                         char *base);

static int decode_text(struct message *message, struct walk *walk, const char **ret)
{
        const char *bytes = NULL;
        uint64_t size;
        char *text;

        if (walk_size(walk, 0xd9, 0xdb, 0xa0, 0x1f, &size))
                bytes = walk_take(walk, size);
        if (!bytes || !text_is_clean(bytes, size))
                return -EBADMSG;
        text = message_allocate(message, size + 1);
        if (!text)
                return -ENOMEM;
        memcpy(text, bytes, size);
        text[size] = '\0';
        *ret = text;
        return 0;
}

static int decode_bytes(struct message *message, struct walk *walk, const void **ret, size_t *ret_size)
{
        const char *bytes = NULL;
        uint64_t size;
        char *copy;

        if (walk_size(walk, 0xc4, 0xc6, 0, 0, &size))
                bytes = walk_take(walk, size);
        if (!bytes)
                return -EBADMSG;
        copy = message_allocate(message, size + 1);
        if (!copy)
                return -ENOMEM;
        memcpy(copy, bytes, size);
        copy[size] = '\0';
        *ret = copy;
        *ret_size = size;
        return 0;
}

/* A record takes a byte for itself and one for each of its fields at least: a count that the packet cannot
 * hold allocates nothing. */
static int decode_list(struct message *message, const struct schema *record, struct walk *walk, void **ret,
                       size_t *ret_count)
{
        uint64_t count;
        char *element;

        if (!walk_list(walk, &count) || count > walk->left / (1 + record->field_count))
                return -EBADMSG;
        element = message_allocate(message, count * record->size);
        if (!element)
                return -ENOMEM;
        for (uint64_t i = 0; i < count; i++) {
                uint64_t fields;
                int r;

                if (!walk_list(walk, &fields) || fields != record->field_count)
                        return -EBADMSG;
                r = decode_fields(message, record, walk, element + i * record->size);
                if (r < 0)
                        return r;
        }
        *ret = element;
        *ret_count = count;
        return 0;
}

static int decode_enum(struct walk *walk, const struct schema_field *field, unsigned *ret)
{
        uint64_t number;

        if (!walk_unsigned(walk, &number) || number >= field->limit)
                return -EBADMSG;
        *ret = (unsigned)number;
        return 0;
}

static int decode_bool(struct walk *walk, bool *ret)
{
        unsigned char head;

        if (!walk_byte(walk, &head) || (head != 0xc2 && head != 0xc3))
                return -EBADMSG;
        *ret = head == 0xc3;
        return 0;
}

static int decode_field(struct message *message, const struct schema_field *field, struct walk *walk,
                        char *base)
{
        void *value = base + field->offset;
        size_t *size = (size_t *)(void *)(base + field->size_offset);

        switch (field->kind) {
        case FIELD_KIND_U64:
                return walk_unsigned(walk, value) ? 0 : -EBADMSG;
        case FIELD_KIND_ENUM:
                return decode_enum(walk, field, value);
        case FIELD_KIND_BOOL:
                return decode_bool(walk, value);
        case FIELD_KIND_STR:
                return decode_text(message, walk, value);
        case FIELD_KIND_BIN:
                return decode_bytes(message, walk, value, size);
        case FIELD_KIND_LIST:
                return decode_list(message, field->record(), walk, value, size);
        }
        return -EBADMSG;
}

static int decode_fields(struct message *message, const struct schema *schema, struct walk *walk, char *base)
{
        for (size_t i = 0; i < schema->field_count; i++) {
                int r = decode_field(message, &schema->field[i], walk, base);

                if (r < 0)
                        return r;
        }
        return 0;
}

int message_decode_first(const void *packet, size_t size, size_t *ret_used, struct message **ret)
{
        _cleanup_message_ struct message *message = NULL;
        struct walk walk = {packet, size};
        const struct schema *schema;
        uint64_t fields, type;
        size_t used;
        int r;

        if (size > MESSAGE_SIZE_MAX || !walk_list(&walk, &fields) || !walk_unsigned(&walk, &type) ||
            type >= MESSAGE_TYPE_COUNT)
                return -EBADMSG;
        schema = schema_of((enum message_type)type);
        if (!schema || fields != schema->field_count + 1)
                return -EBADMSG;
        message = message_new((enum message_type)type);
        if (!message)
                return -ENOMEM;
        r = decode_fields(message, schema, &walk, (char *)&message->hello);
        if (r < 0)
                return r;
        used = size - walk.left;
        if (used > message_size_cap(message->type))
                return -EBADMSG;
        *ret_used = used;
        *ret = TAKE_PTR(message);
        return 0;
}

int message_decode(const void *packet, size_t size, struct message **ret)
{
        _cleanup_message_ struct message *message = NULL;
        size_t used;
        int r = message_decode_first(packet, size, &used, &message);

        if (r < 0)
                return r;
        if (used != size)
                return -EBADMSG;
        *ret = TAKE_PTR(message);
        return 0;
}

/* ---- what the table says */

const char *message_name(enum message_type type)
{
        const struct message_description *d = message_describe(type);

        return d ? d->name : "INVALID";
}

size_t message_size_cap(enum message_type type)
{
        const struct message_description *d = message_describe(type);

        return d ? d->size_cap : 0;
}

bool message_permitted(enum message_type type, enum role sender, enum role receiver, enum child_state state)
{
        const struct message_description *d = message_describe(type);

        return d && (d->senders & sender) && (d->receivers & receiver) && (d->states & state);
}

#define NAME_OF(function, type, count, ...)                                                                 \
        const char *function(enum type value)                                                               \
        {                                                                                                   \
                static const char *const name[count] = {__VA_ARGS__};                                       \
                return (unsigned)value < count ? name[value] : "invalid";                                   \
        }

NAME_OF(change_kind_name, change_kind, CHANGE_KIND_COUNT, "updated", "deleted", "unselected")
NAME_OF(run_action_name, run_action, ACTION_COUNT, "reconcile", "finalize", "deleted", "unselected",
        "release", "finalizer")
NAME_OF(child_write_name, child_write, CHILD_WRITE_COUNT, "created", "changed", "deleted", "adopted",
        "released", "patched", "given up", "perhaps changed")
NAME_OF(run_result_name, run_result, RESULT_COUNT, "success", "retry", "permanent", "stale", "conflict",
        "cancelled", "settling", "unrecoverable", "behind", "unneeded", "stop", "returned", "unavailable",
        "forbidden")

NAME_OF(metric_action_name, metric_action, METRIC_ACTION_COUNT, "set", "add", "observe", "remove")

bool run_result_is_run(enum run_result result)
{
        return result != RESULT_RETURNED;
}

NAME_OF(lead_state_name, lead_state, LEAD_STATE_COUNT, "unknown", "following", "leading", "lost")
NAME_OF(watch_health_name, watch_health, WATCH_HEALTH_COUNT, "healthy", "degraded", "absent", "failed")
NAME_OF(trigger_name, trigger, TRIGGER_COUNT, "essence", "any", "jq", "generation")

const char *run_told_action(enum run_action action, const char *own)
{
        return action == ACTION_RECONCILE && own[0] ? own : run_action_name(action);
}
