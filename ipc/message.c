/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One generic encoder and one generic decoder for all messages, driven by the schemas, over msgpack-c.
 *
 * msgpack-c believes the element counts that a packet claims and allocates for them, so a packet is walked
 * once before (packet_is_sound): no count above the bytes that are left, no type that no field has.
 */
#include "ipc/message.h"

#include <errno.h>
#include <msgpack.h>
#include <string.h>

#include "ipc/schema.h"

#define NESTING_MAX 6

/* ---- text */

static bool text_is_clean(const char *text, size_t size)
{
        for (size_t i = 0; i < size;) {
                size_t length = utf8_sequence(text + i, size - i);

                if (length == 0 || text[i] == '\0')
                        return false;
                i += length;
        }
        return true;
}

void utf8_clean(char *text)
{
        size_t size = strlen(text);

        for (size_t i = 0; i < size;) {
                size_t length = utf8_sequence(text + i, size - i);
                unsigned char byte = (unsigned char)text[i];

                if (length == 0 || (byte < 0x20 && byte != '\t') || byte == 0x7f) {
                        text[i] = '?';
                        length = 1;
                }
                i += length;
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

struct chunk {
        struct chunk *next;
        size_t size, used;
        char data[] __attribute__((aligned(8)));
};

static void *message_allocate(struct message *message, size_t size)
{
        struct chunk *chunk = message->memory;
        void *memory;

        size = (size + 7) & ~(size_t)7;
        if (!chunk || chunk->size - chunk->used < size) {
                size_t wanted = size > 1024 ? size : 1024;

                chunk = calloc(1, sizeof(*chunk) + wanted);
                if (!chunk)
                        return NULL;
                chunk->size = wanted;
                chunk->next = message->memory;
                message->memory = chunk;
        }
        memory = chunk->data + chunk->used;
        chunk->used += size;
        return memory;
}

void message_free(struct message *message)
{
        struct chunk *chunk;

        if (!message)
                return;
        chunk = message->memory;
        while (chunk) {
                struct chunk *next = chunk->next;

                explicit_bzero(chunk->data, chunk->used);
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

static bool walk_number(struct walk *walk, size_t bytes, size_t *ret)
{
        size_t number = 0;

        if (walk->left < bytes)
                return false;
        for (size_t i = 0; i < bytes; i++)
                number = number << 8 | walk->next[i];
        walk->next += bytes;
        walk->left -= bytes;
        *ret = number;
        return true;
}

static bool walk_skip(struct walk *walk, size_t bytes)
{
        if (walk->left < bytes)
                return false;
        walk->next += bytes;
        walk->left -= bytes;
        return true;
}

/* Size of a scalar's own bytes, or of its length field; -1 for a type that no field has. */
static bool walk_scalar(struct walk *walk, unsigned char head)
{
        size_t size;

        if (head <= 0x7f || head == 0xc2 || head == 0xc3)
                return true;
        if (head >= 0xcc && head <= 0xcf)
                return walk_skip(walk, (size_t)1 << (head - 0xcc));
        if (head >= 0xa0 && head <= 0xbf)
                return walk_skip(walk, head & 0x1f);
        if (head >= 0xd9 && head <= 0xdb)
                return walk_number(walk, (size_t)1 << (head - 0xd9), &size) && walk_skip(walk, size);
        if (head >= 0xc4 && head <= 0xc6)
                return walk_number(walk, (size_t)1 << (head - 0xc4), &size) && walk_skip(walk, size);
        return false;
}

static bool walk_value(struct walk *walk, unsigned depth)
{
        unsigned char head;
        size_t count;

        if (depth > NESTING_MAX || walk->left == 0)
                return false;
        head = *walk->next;
        walk_skip(walk, 1);
        if (head >= 0x90 && head <= 0x9f)
                count = head & 0x0f;
        else if (head == 0xdc || head == 0xdd) {
                if (!walk_number(walk, head == 0xdc ? 2 : 4, &count))
                        return false;
        } else
                return walk_scalar(walk, head);
        if (count > walk->left)
                return false;
        while (count-- > 0)
                if (!walk_value(walk, depth + 1))
                        return false;
        return true;
}

static bool packet_is_sound(const void *packet, size_t size)
{
        struct walk walk = {packet, size};

        return walk_value(&walk, 0) && walk.left == 0;
}

static int decode_fields(struct message *message, const struct schema *schema, const msgpack_object *object,
                         char *base);

static int decode_text(struct message *message, const msgpack_object *object, const char **ret)
{
        char *text;

        if (object->type != MSGPACK_OBJECT_STR || !text_is_clean(object->via.str.ptr, object->via.str.size))
                return -EBADMSG;
        text = message_allocate(message, (size_t)object->via.str.size + 1);
        if (!text)
                return -ENOMEM;
        if (object->via.str.size > 0)
                memcpy(text, object->via.str.ptr, object->via.str.size);
        text[object->via.str.size] = '\0';
        *ret = text;
        return 0;
}

static int decode_bytes(struct message *message, const msgpack_object *object, const void **ret,
                        size_t *ret_size)
{
        void *bytes;

        if (object->type != MSGPACK_OBJECT_BIN)
                return -EBADMSG;
        bytes = message_allocate(message, (size_t)object->via.bin.size + 1);
        if (!bytes)
                return -ENOMEM;
        if (object->via.bin.size > 0)
                memcpy(bytes, object->via.bin.ptr, object->via.bin.size);
        *ret = bytes;
        *ret_size = object->via.bin.size;
        return 0;
}

static int decode_list(struct message *message, const struct schema *record, const msgpack_object *object,
                       void **ret, size_t *ret_count)
{
        char *element;

        if (object->type != MSGPACK_OBJECT_ARRAY)
                return -EBADMSG;
        element = message_allocate(message, (size_t)object->via.array.size * record->size);
        if (!element)
                return -ENOMEM;
        for (size_t i = 0; i < object->via.array.size; i++) {
                const msgpack_object *item = &object->via.array.ptr[i];
                int r;

                if (item->type != MSGPACK_OBJECT_ARRAY || item->via.array.size != record->field_count)
                        return -EBADMSG;
                r = decode_fields(message, record, item->via.array.ptr, element + i * record->size);
                if (r < 0)
                        return r;
        }
        *ret = element;
        *ret_count = object->via.array.size;
        return 0;
}

static int decode_field(struct message *message, const struct schema_field *field,
                        const msgpack_object *object, char *base)
{
        void *value = base + field->offset;
        size_t *size = (size_t *)(void *)(base + field->size_offset);

        switch (field->kind) {
        case FIELD_KIND_U64:
                if (object->type != MSGPACK_OBJECT_POSITIVE_INTEGER)
                        return -EBADMSG;
                *(uint64_t *)value = object->via.u64;
                return 0;
        case FIELD_KIND_BOOL:
                if (object->type != MSGPACK_OBJECT_BOOLEAN)
                        return -EBADMSG;
                *(bool *)value = object->via.boolean;
                return 0;
        case FIELD_KIND_STR:
                return decode_text(message, object, value);
        case FIELD_KIND_BIN:
                return decode_bytes(message, object, value, size);
        case FIELD_KIND_LIST:
                return decode_list(message, field->record(), object, value, size);
        }
        return -EBADMSG;
}

static int decode_fields(struct message *message, const struct schema *schema, const msgpack_object *object,
                         char *base)
{
        for (size_t i = 0; i < schema->field_count; i++) {
                int r = decode_field(message, &schema->field[i], &object[i], base);

                if (r < 0)
                        return r;
        }
        return 0;
}

static int decode_object(const msgpack_object *object, size_t size, struct message *message)
{
        const msgpack_object *item;
        const struct schema *schema;

        if (object->type != MSGPACK_OBJECT_ARRAY || object->via.array.size == 0)
                return -EBADMSG;
        item = object->via.array.ptr;
        if (item[0].type != MSGPACK_OBJECT_POSITIVE_INTEGER || item[0].via.u64 >= MESSAGE_TYPE_COUNT)
                return -EBADMSG;
        message->type = (enum message_type)item[0].via.u64;
        schema = schema_of(message->type);
        if (!schema || object->via.array.size != schema->field_count + 1 ||
            size > message_size_cap(message->type))
                return -EBADMSG;
        return decode_fields(message, schema, item + 1, (char *)&message->hello);
}

int message_decode(const void *packet, size_t size, struct message **ret)
{
        _cleanup_message_ struct message *message = NULL;
        msgpack_unpacked unpacked;
        size_t offset = 0;
        int r;

        if (size > MESSAGE_SIZE_MAX || !packet_is_sound(packet, size))
                return -EBADMSG;
        message = calloc(1, sizeof(*message));
        if (!message)
                return -ENOMEM;
        msgpack_unpacked_init(&unpacked);
        switch (msgpack_unpack_next(&unpacked, packet, size, &offset)) {
        case MSGPACK_UNPACK_SUCCESS:
                r = offset == size ? decode_object(&unpacked.data, size, message) : -EBADMSG;
                break;
        case MSGPACK_UNPACK_NOMEM_ERROR:
                r = -ENOMEM;
                break;
        default:
                r = -EBADMSG;
        }
        msgpack_unpacked_destroy(&unpacked);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(message);
        return 0;
}
