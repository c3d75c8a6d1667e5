/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dirty index: keys that are not announced yet. It is the overflow of the supervisor's queue, so it is
 * on disk and of any length. An entry is found by its place (the order) and by key (coalescing): one for
 * the update of a key, one for each UID of it that was deleted, or of what it owns something has changed:
 * two owners of one name are two owners.
 */
#include "store/dirty.h"

#include <errno.h>
#include <string.h>

#include "store/disk/entry.h"
#include "store/disk/generation.h"
#include "store/internal.h"

struct dirty_header {
        uint64_t checksum; /* over the sequence and everything after this field */
        uint64_t fingerprint;
        uint32_t kind;
        uint32_t first; /* a bit, and above it enum finalizer_state */
};

#define FINALIZER_SHIFT 8

static uint64_t dirty_checksum(uint64_t sequence, const void *record, size_t size)
{
        return XXH3_64bits_withSeed((const char *)record + sizeof(uint64_t), size - sizeof(uint64_t),
                                    sequence);
}

static void sequence_bytes(uint64_t sequence, unsigned char bytes[8])
{
        for (size_t i = 0; i < 8; i++)
                bytes[i] = (unsigned char)(sequence >> (56 - 8 * i));
}

/* ---- places: namespace NUL sequence. Namespaces take turns, and the next one is found by its name: however
 * many there are, that takes one look, and no memory. */

static size_t turn_length(const char *key)
{
        const char *slash = strchr(key, '/');
        size_t length = slash ? (size_t)(slash - key) : 0;

        return length < DIRTY_NAMESPACE_MAX ? length
                                            : DIRTY_NAMESPACE_MAX; /* longer ones share their turns */
}

static MDB_val dirty_place(const char *key, const unsigned char sequence[8], char buffer[PLACE_MAX])
{
        size_t length = turn_length(key);

        memcpy(buffer, key, length);
        buffer[length] = '\0';
        memcpy(buffer + length + 1, sequence, 8);
        return (MDB_val){length + 1 + 8, buffer};
}

uint64_t dirty_sequence(const MDB_val *place)
{
        const unsigned char *bytes = place->mv_data;
        uint64_t sequence = 0;

        for (size_t i = place->mv_size < 8 ? 0 : place->mv_size - 8; i < place->mv_size; i++)
                sequence = sequence << 8 | bytes[i];
        return sequence;
}

/* The oldest entry of the namespace after the one that had the last turn. */
static int next_turn(const struct store *store, MDB_cursor *cursor, MDB_val *ret_place, MDB_val *ret_value)
{
        char behind[DIRTY_NAMESPACE_MAX + 1];
        size_t length = strlen(store->turn);
        int r;

        memcpy(behind, store->turn, length);
        behind[length] = '\1'; /* all its places have a NUL there */
        *ret_place = (MDB_val){length + 1, behind};
        r = store_errno(mdb_cursor_get(cursor, ret_place, ret_value, MDB_SET_RANGE));
        return r == -ENOENT ? store_errno(mdb_cursor_get(cursor, ret_place, ret_value, MDB_FIRST)) : r;
}

static bool is_same_turn(const struct store *store, const MDB_val *place)
{
        size_t length = strlen(store->turn);

        return place->mv_size == length + 1 + 8 && memcmp(place->mv_data, store->turn, length + 1) == 0;
}

static void note_turn(struct store *store, const char *key)
{
        size_t length = turn_length(key);

        memcpy(store->turn, key, length);
        store->turn[length] = '\0';
}

static int index_key(const struct record_change *change, char buffer[KEY_MAX], MDB_val *ret)
{
        return tombstone_key(change->key, change->kind == CHANGE_UPDATED ? "" : change->uid, buffer, ret);
}

static int encode(uint64_t sequence, const struct record_change *change, struct text *out)
{
        struct dirty_header header = {0, change->fingerprint, (uint32_t)change->kind,
                                      change->first | (uint32_t)change->finalizer << FINALIZER_SHIFT};
        uint64_t sum;

        text_append(out, &header, sizeof(header));
        text_append(out, change->key, strlen(change->key) + 1);
        text_append(out, change->uid, strlen(change->uid) + 1);
        if (text_append(out, change->resource_version, strlen(change->resource_version) + 1) < 0)
                return -ENOMEM;
        sum = dirty_checksum(sequence, out->data, out->size);
        memcpy(out->data, &sum, sizeof(sum));
        return 0;
}

/* Borrows from the value. */
static int decode_change(const MDB_val *place, const MDB_val *value, struct record_change *ret)
{
        const char *data = value->mv_data, *end = data + value->mv_size;
        struct dirty_header header;
        const char *string[3];

        if (value->mv_size < sizeof(header))
                return -EBADMSG;
        memcpy(&header, data, sizeof(header));
        if (dirty_checksum(dirty_sequence(place), data, value->mv_size) != header.checksum)
                return -EBADMSG;
        data += sizeof(header);
        for (size_t i = 0; i < ELEMENTS(string); i++) {
                const char *zero = data < end ? memchr(data, '\0', (size_t)(end - data)) : NULL;

                if (!zero)
                        return -EBADMSG;
                string[i] = data;
                data = zero + 1;
        }
        *ret = (struct record_change){
                .sequence = dirty_sequence(place),
                .kind = header.kind,
                .key = string[0],
                .uid = string[1],
                .resource_version = string[2],
                .fingerprint = header.fingerprint,
                .first = (header.first & 1) != 0,
                .finalizer = header.first >> FINALIZER_SHIFT,
        };
        return 0;
}

struct pending {
        unsigned char bytes[8]; /* its sequence */
        struct record_change change;
        struct text record; /* what `change` borrows from */
};

static void pending_done(struct pending *pending)
{
        text_done(&pending->record);
}

/* The key's pending update, as a copy. -ENOENT: there is none. */
static int pending_update(struct store *store, const char *key, struct pending *ret)
{
        char buffer[KEY_MAX], place_buffer[PLACE_MAX];
        MDB_val index, sequence, place, value, copy;
        int r = tombstone_key(key, "", buffer, &index);

        if (r >= 0)
                r = store_errno(
                        mdb_get(store->transaction, store->table[TABLE_DIRTY_INDEX], &index, &sequence));
        if (r >= 0 && sequence.mv_size != sizeof(ret->bytes))
                r = -EBADMSG;
        if (r < 0)
                return r;
        memcpy(ret->bytes, sequence.mv_data, sizeof(ret->bytes));
        place = dirty_place(key, ret->bytes, place_buffer);
        r = store_errno(mdb_get(store->transaction, store->table[TABLE_DIRTY], &place, &value));
        if (r < 0)
                return r;
        r = text_append(&ret->record, value.mv_data, value.mv_size);
        copy = (MDB_val){ret->record.size, ret->record.data};
        return r < 0 ? r : decode_change(&place, &copy, &ret->change);
}

static int drop_update(struct store *store, struct pending *pending)
{
        char buffer[KEY_MAX], place_buffer[PLACE_MAX];
        MDB_val index, place = dirty_place(pending->change.key, pending->bytes, place_buffer);
        int r = tombstone_key(pending->change.key, "", buffer, &index);

        if (r >= 0)
                r = entry_remove(store, TABLE_DIRTY, &place);
        return r < 0 ? r : entry_remove(store, TABLE_DIRTY_INDEX, &index);
}

/* The place in its namespace: the one that the key has already, or a new one at the end. */
static int find_sequence(struct store *store, MDB_val *index, unsigned char bytes[8])
{
        MDB_val found;
        int r = store_errno(mdb_get(store->transaction, store->table[TABLE_DIRTY_INDEX], index, &found));

        if (r >= 0 && found.mv_size == 8) {
                memcpy(bytes, found.mv_data, 8);
                return 0;
        }
        if (r < 0 && r != -ENOENT)
                return r;
        sequence_bytes(++store->sequence, bytes);
        return 0;
}

/* If several children have changed, the change has all their versions, so that our own writes are recognized.
 * "" if there are too many, or one is unknown. */
static int add_versions(struct store *store, MDB_val *place, const char *version, struct text *out)
{
        struct record_change old;
        MDB_val value;

        if (mdb_get(store->transaction, store->table[TABLE_DIRTY], place, &value) == 0 &&
            decode_change(place, &value, &old) >= 0) {
                if (!version[0] || !old.resource_version[0] ||
                    strlen(old.resource_version) + 1 + strlen(version) > DIRTY_VERSIONS_MAX)
                        return text_append_string(out, "");
                text_printf(out, "%s.", old.resource_version);
        }
        return text_append_string(out, version);
}

/* An event outranks a first sync: what changed since must not wait behind everything that only exists. */
static bool was_event(struct store *store, MDB_val *place)
{
        struct record_change old;
        MDB_val value;

        return mdb_get(store->transaction, store->table[TABLE_DIRTY], place, &value) == 0 &&
               decode_change(place, &value, &old) >= 0 && !old.first;
}

static int put_change(struct store *store, const struct record_change *change)
{
        _cleanup_text_ struct text record = TEXT_EMPTY, versions = TEXT_EMPTY;
        struct record_change merged = *change;
        unsigned char bytes[8];
        char buffer[KEY_MAX], place_buffer[PLACE_MAX];
        MDB_val index, sequence = {sizeof(bytes), bytes}, place, value;
        int r = index_key(change, buffer, &index);

        if (r >= 0)
                r = find_sequence(store, &index, bytes);
        if (r < 0)
                return r;
        place = dirty_place(change->key, bytes, place_buffer);
        if (merged.first && was_event(store, &place))
                merged.first = false;
        if (change->kind == CHANGE_CHILD) {
                r = add_versions(store, &place, change->resource_version, &versions);
                if (r < 0)
                        return r;
                merged.resource_version = versions.data ? versions.data : "";
        }
        r = encode(dirty_sequence(&place), &merged, &record);
        if (r < 0)
                return r;
        value = (MDB_val){record.size, record.data};
        store->batch_objects++;
        r = entry_put(store, TABLE_DIRTY, &place, &value, 0);
        return r < 0 ? r : entry_put(store, TABLE_DIRTY_INDEX, &index, &sequence, 0);
}

/* The end of an object must not come after the beginning of the next one of that name: its own update need not
 * be announced any more, and an update of the next object goes to the end. */
int store_dirty_add(struct store *store, const struct record_change *change)
{
        _cleanup_(pending_done) struct pending pending = {.record = TEXT_EMPTY};
        bool is_update = change->kind == CHANGE_UPDATED, same = false, found;
        int r = store_begin(store);

        if (r >= 0 && change->kind == CHANGE_CHILD)
                return put_change(store, change); /* no object begins or ends with it */
        if (r >= 0)
                r = pending_update(store, change->key, &pending);
        found = r >= 0;
        if (found)
                same = strcmp(pending.change.uid, change->uid) == 0;
        if (found && !(is_update && same))
                r = drop_update(store, &pending);
        if (r >= 0 || r == -ENOENT)
                r = put_change(store, change);
        if (r >= 0 && found && !is_update && !same)
                r = put_change(store, &pending.change);
        return r;
}

/* Takes the entry under the cursor. The visitor is called first, since the entry's memory goes with the page. */
static int take_one(struct store *store, const MDB_val *key, const MDB_val *value, store_dirty_t visit,
                    void *userdata)
{
        struct record_change change;
        char buffer[KEY_MAX], bytes[PLACE_MAX];
        MDB_val index, place = {key->mv_size, bytes};
        int r = key->mv_size > 8 && key->mv_size <= sizeof(bytes) ? decode_change(key, value, &change)
                                                                  : -EBADMSG;

        if (r >= 0)
                r = index_key(&change, buffer, &index);
        if (r >= 0)
                r = visit(&change, userdata);
        if (r < 0)
                return r;
        note_turn(store, change.key);
        memcpy(bytes, key->mv_data, key->mv_size);
        r = entry_remove(store, TABLE_DIRTY_INDEX, &index);
        if (r >= 0 || r == -ENOENT)
                r = entry_remove(store, TABLE_DIRTY, &place);
        store->batch_objects++;
        return r;
}

static int open_dirty_cursor(struct store *store, MDB_cursor **ret)
{
        int r = store_begin(store);

        return r < 0 ? r : store_errno(mdb_cursor_open(store->transaction, store->table[TABLE_DIRTY], ret));
}

bool store_dirty_turns(struct store *store)
{
        MDB_cursor *cursor;
        MDB_val place, value;
        bool turns;

        if (store_dirty_count(store) == 0 || open_dirty_cursor(store, &cursor) < 0)
                return false;
        turns = next_turn(store, cursor, &place, &value) >= 0 && !is_same_turn(store, &place);
        mdb_cursor_close(cursor);
        return turns;
}

int store_dirty_take(struct store *store, size_t max, size_t spare, store_dirty_t visit, void *userdata)
{
        MDB_cursor *cursor;
        MDB_val place, value;
        int r = open_dirty_cursor(store, &cursor);

        if (r < 0)
                return r;
        for (size_t i = 0; i < max && r >= 0; i++) {
                r = next_turn(store, cursor, &place, &value);
                if (r >= 0 && i + spare >= max && is_same_turn(store, &place))
                        break;
                if (r >= 0)
                        r = take_one(store, &place, &value, visit, userdata);
        }
        mdb_cursor_close(cursor);
        return r == -ENOENT ? 0 : r;
}

uint64_t store_dirty_count(const struct store *store)
{
        return store->sum[TABLE_DIRTY].entries;
}
