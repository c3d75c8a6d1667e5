/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/apply/scope.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

#include "base/duration.h"
#include "base/text.h"
#include "object/confined.h"
#include "object/fingerprint.h"
#include "object/keyed-hash.h"
#include "store/meta.h"

#define HASH_DIGITS 16

static void append_word(struct text *text, const char *string)
{
        text_append(text, string, strlen(string) + 1);
}

/* All versions of a group show the same objects, so the version does not count. */
static int hash_resource(const struct message_config_watcher *config, uint64_t *ret)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        const char *slash = strchr(config->api_version, '/');

        text_append(&text, config->api_version, slash ? (size_t)(slash - config->api_version) : 0);
        text_append(&text, "", 1);
        append_word(&text, config->kind);
        if (text.failed)
                return -ENOMEM;
        *ret = XXH3_64bits(text.data, text.size);
        return 0;
}

static int hash_selection(const struct message_config_watcher *config, uint64_t *ret)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;

        append_word(&text, config->api_version);
        append_word(&text, config->kind);
        append_word(&text, config->label_selector);
        append_word(&text, config->field_selector);
        for (size_t i = 0; i < config->namespace_count; i++)
                append_word(&text, config->namespace[i].value);
        if (config->owner_kind[0]) {
                append_word(&text, config->related ? "/related" : "/owner");
                append_word(&text, config->owner_api_version);
                append_word(&text, config->owner_kind);
        }
        if (config->filter[0]) {
                append_word(&text, "/filter");
                append_word(&text, config->filter);
        }
        if (config->metadata_only)
                append_word(&text, "/metadata"); /* no namespace can have this name */
        if (text.failed)
                return -ENOMEM;
        *ret = XXH3_64bits(text.data, text.size);
        return 0;
}

/* Stored objects are as good as listed ones only where they were fingerprinted in the same way. */
char *basis_new(const struct message_config_watcher *config, const char *scope)
{
        return format_string("%s %s %s " FINGERPRINT_VERSION ":%" PRIx64 "%s%s%s%s", scope,
                             trigger_name(config->trigger), config->finalizers, keyed_hash_key_name(),
                             config->shared[0] ? " shared " : "", config->conditions,
                             config->trigger_jq[0] ? " " : "", config->trigger_jq);
}

char *scope_new(const struct message_config_watcher *config)
{
        uint64_t resource, selection;

        if (hash_resource(config, &resource) < 0 || hash_selection(config, &selection) < 0)
                return NULL;
        return format_string("%016" PRIx64 "%016" PRIx64, resource, selection);
}

bool scope_is_other_resource(const char *known, const char *scope)
{
        return strlen(known) == strlen(scope) && strncmp(known, scope, HASH_DIGITS) != 0;
}

static bool scope_text_differs(const char *known, const char *now)
{
        return known[0] != '\0' && strcmp(known, now) != 0;
}

bool absence_is_deletion(const struct watcher *watcher)
{
        const struct message_config_watcher *config = watcher->config;

        return config->label_selector[0] == '\0' && config->field_selector[0] == '\0' &&
               !scope_text_differs(watcher->meta.scope, watcher->scope) &&
               !scope_text_differs(config->known_scope, watcher->scope);
}

/* If namespaces are named, or no limit is given, the server chooses. */
bool scope_chooses(const struct watcher *watcher, const char *key)
{
        const char *slash = strchr(key, '/');

        return !watcher->patterns ||
               namespace_match(watcher->config->namespace, watcher->config->namespace_count, key,
                               slash ? (size_t)(slash - key) : 0);
}

/* All versions of a group show the same objects. */
static bool is_in_group_of(struct span api_version, const char *expected)
{
        const char *slash = strchr(expected, '/');
        size_t size = slash ? (size_t)(slash + 1 - expected) : strlen(expected);

        if (!slash)
                return scan_string_equals(api_version, expected);
        return api_version.size > size + 2 && memcmp(api_version.start + 1, expected, size) == 0;
}

bool scope_is_kind(const struct watcher *watcher, struct span api_version, struct span kind)
{
        const struct message_config_watcher *config = watcher->config;

        if (config->metadata_only && kind.start && scan_string_equals(kind, "PartialObjectMetadata"))
                return true;
        return (!kind.start || scan_string_equals(kind, config->kind)) &&
               (!api_version.start || is_in_group_of(api_version, config->api_version));
}

bool scope_fits(const struct stream *stream, const struct identity *identity)
{
        return scope_is_kind(stream->watcher, identity->api_version, identity->kind) &&
               stream_has_key(stream, identity->key) &&
               stream->watcher->resource.namespaced == (strchr(identity->key, '/') != NULL);
}

/* The cluster and the number of the LIST are on record before any object of them is. The old scope stays
 * until every missing object is explained: until then the store's content belongs to it. */
int meta_save(struct watcher *watcher, bool explained)
{
        struct store_meta meta = watcher->meta;

        meta.cluster = watcher->cluster;
        if (explained || meta.scope[0] == '\0')
                meta.scope = watcher->scope;
        return store_meta_set(watcher->store, &meta);
}

int doubts_set(struct watcher *watcher, struct message **message)
{
        if (strcmp((*message)->doubtful.watch, watcher->config->watch) != 0)
                return -EPROTO;
        message_free(watcher->doubtful);
        watcher->doubtful = TAKE_PTR(*message);
        return 0;
}

static int compare_keys(const void *key, const void *member)
{
        const struct record_doubt *a = key, *b = member;
        int order = strcmp(a->key, b->key);

        return order != 0 ? order : strcmp(a->uid, b->uid);
}

enum doubt doubt_of(const struct watcher *watcher, const char *key, const char *uid)
{
        const struct message_doubtful *list = watcher->doubtful ? &watcher->doubtful->doubtful : NULL;
        const struct record_doubt *found;

        if (!list || list->doubt_count == 0)
                return DOUBT_NONE;
        found = bsearch(&(struct record_doubt){.key = key, .uid = uid}, list->doubt, list->doubt_count,
                        sizeof(*list->doubt), compare_keys);
        if (!found || found->until_boottime <= clock_boottime_usec())
                return DOUBT_NONE;
        return found->unread ? DOUBT_UNREAD : DOUBT_PROGRAM;
}
