/* SPDX-License-Identifier: Apache-2.0 */
/* See request.h. Circle: related.c adds its member to the request, and writes objects as this file does. */
#include "worker/run/request.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "kube/path.h"
#include "object/identity.h"
#include "store/owner.h"
#include "store/record.h"
#include "worker/given.h"
#include "worker/run/related.h"

#define REQUEST_VERSION 1

/* ---- the object */

static void write_identity_only(const struct run *run, const char *namespace_name, const char *name,
                                struct text *out)
{
        text_append_string(out, "{\"apiVersion\":");
        text_json_string(out, run->watch->config->api_version);
        text_append_string(out, ",\"kind\":");
        text_json_string(out, run->watch->config->kind);
        text_append_string(out, ",\"metadata\":{\"name\":");
        text_json_string(out, name);
        if (namespace_name[0]) {
                text_append_string(out, ",\"namespace\":");
                text_json_string(out, namespace_name);
        }
        text_append_string(out, ",\"uid\":");
        text_json_string(out, run->order->uid);
        text_append_string(out, "}}");
}

/* The server gives a PartialObjectMetadata; the handler is shown the object's own kind. */
static void write_metadata(const struct record_watch *config, const struct scan_object *object,
                           struct text *out)
{
        text_append_string(out, "{\"apiVersion\":");
        text_json_string(out, config->api_version);
        text_append_string(out, ",\"kind\":");
        text_json_string(out, config->kind);
        text_append_string(out, ",\"metadata\":");
        text_append(out, object->metadata.start, object->metadata.size);
        text_append_string(out, "}");
}

void request_write_with_kind(const struct record_watch *config, const struct scan_object *object,
                             struct text *out)
{
        const char *rest = object->whole.start + 1;

        if (config->metadata_only && config->owner[0]) {
                write_metadata(config, object, out);
                return;
        }
        text_append_string(out, "{");
        if (!object->api_version.start) {
                text_append_string(out, "\"apiVersion\":");
                text_json_string(out, config->api_version);
                text_append_string(out, ",");
        }
        if (!object->kind.start) {
                text_append_string(out, "\"kind\":");
                text_json_string(out, config->kind);
                text_append_string(out, ",");
        }
        text_append(out, rest, object->whole.size - 1);
}

int request_complete_object(const struct run *run, char **ret_json)
{
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;
        _cleanup_text_ struct text out = TEXT_EMPTY;
        struct scan_object object;
        int r;

        if (run->object.json_size > 0) {
                r = scan_object(run->object.json, run->object.json_size, &object);
                if (r < 0)
                        return r;
                request_write_with_kind(run->watch->config, &object, &out);
        } else {
                r = kube_key_split(run->order->key, &namespace_name, &name);
                if (r < 0)
                        return r;
                write_identity_only(run, namespace_name, name, &out);
        }
        *ret_json = text_take(&out);
        return *ret_json ? 0 : -ENOMEM;
}

struct owned_list {
        struct run *run;
        const struct record_watch *config; /* of the owned kind */
        struct text *out;
        size_t count;
        size_t room; /* bytes that the request may have */
};

/* The store finds owned objects by the UID in their owner reference, which anyone who may create an
 * object can forge. */
bool request_shows(const struct run *run, const char *json, size_t size)
{
        const struct record_watch *config = run->watch->config;
        struct owner owner;

        return owner_find(json, size, config->api_version, config->kind, &owner) >= 0 &&
               owner_is(&owner, run->order->key, run->order->uid);
}

static int append_owned(struct owned_list *list, const char *json, size_t size)
{
        struct scan_object object;
        int r = scan_object(json, size, &object);

        if (r < 0)
                return r;
        if (list->out->size + size > list->room)
                return -E2BIG; /* stop here: reading on would itself take the memory */
        if (list->count++ > 0)
                text_append_string(list->out, ",");
        request_write_with_kind(list->config, &object, list->out);
        return 0;
}

static int add_object(const struct store_object *owned, void *userdata)
{
        struct owned_list *list = userdata;
        int r;

        if (!request_shows(list->run, owned->json, owned->json_size) ||
            shown_is_known(&list->run->shown, list->config, owned->key) ||
            child_versions_deleted(list->run, list->config, owned->resource_version))
                return 0;
        r = append_owned(list, owned->json, owned->json_size);
        return r < 0 ? r : shown_add(&list->run->shown, list->config, owned->json, owned->json_size, false);
}

/* Children that the server was asked for, since the store does not show them, or is not believed. */
static int add_presented(struct owned_list *list)
{
        const struct shown *shown = &list->run->shown;
        int r = 0;

        for (size_t i = 0; i < shown->count && r >= 0; i++) {
                const struct shown_child *child = shown->item[i];

                if (child->json && child->json[0] && child->config == list->config)
                        r = append_owned(list, child->json, strlen(child->json));
        }
        return r;
}

#define MIB(bytes) ((double)(bytes) / (1 << 20))

/* Names the namespace that has most of them, if they have one: a reader who may raise the limit then knows
 * whom to talk to. */
static void describe_largest(const struct store_extent *extent, char *out, size_t size)
{
        out[0] = '\0';
        if (extent->largest[0])
                snprintf(out, size, " (%.1f MiB of them in namespace %s)", MIB(extent->largest_bytes),
                         extent->largest);
}

char *request_excess(const struct run *run, const struct record_watch *kind, size_t bytes,
                     const struct store_extent *extent)
{
        char largest[128];

        describe_largest(extent, largest, sizeof(largest));
        return format_string(
                "its request would take about %.1f MiB, and handler.requestLimit allows %.1f MiB: there are %zu "
                "objects of kind %s with %.1f MiB that it %s%s. Once they are fewer or smaller it runs by itself. Or "
                "select fewer (`labelSelector` of that kind, `namespaces`), give the handler their metadata alone "
                "(`metadataOnly: true` in the entry of that kind) or raise the limit, reload, and: reconciledctl retry "
                "%s %s",
                MIB(bytes + extent->bytes), MIB(run->watch->config->request_max), extent->count, kind->kind,
                MIB(extent->bytes), kind->related ? "is related to" : "owns", largest, run->order->watch,
                run->order->key);
}

/* Frees what was built before anything else is done. */
static int give_up_owned(struct run *run, const struct owned_list *list, struct store *reader,
                         const char *prefix)
{
        size_t bytes = strlen(run->json) + run->related.size;
        struct store_extent extent;
        int r;

        text_done(list->out);
        r = store_extent_owned(reader, run->order->uid, prefix, &extent);
        if (r < 0)
                return r;
        free(run->excess);
        run->excess = request_excess(run, list->config, bytes, &extent);
        return run->excess ? -E2BIG : -ENOMEM;
}

/* Adds the owned objects, as the stores of their kinds show them. */
static int add_owned(struct run *run, struct text *out)
{
        const struct worker *worker = run->worker;
        const char *key = run->order->key, *slash = strchr(key, '/');
        _cleanup_free_ char *prefix = strndup(key, slash ? (size_t)(slash + 1 - key) : 0);
        size_t max = run->watch->config->request_max, related = run->related.size;
        struct owned_list list = {.run = run,
                                  .out = out,
                                  .room = max == 0        ? SIZE_MAX
                                          : max > related ? max - related
                                                          : 0};
        bool any = false;

        if (!prefix)
                return -ENOMEM;
        shown_forget_stored(&run->shown);
        for (size_t i = 0; i < worker->watch_count; i++) {
                struct worker_watch *watch = &worker->watch[i];
                int r;

                if (strcmp(watch->config->owner, run->watch->config->name) != 0 || watch->config->related)
                        continue;
                text_append_string(out, any ? "" : ",\"children\":[");
                any = true;
                list.config = watch->config;
                r = store_visit_owned(watch->reader, run->order->uid, prefix, add_object, &list);
                if (r >= 0 || r == -ENOENT)
                        r = add_presented(&list);
                if (r == -EBADMSG)
                        return run_store_damaged(run, watch->config);
                if (r == -E2BIG)
                        return give_up_owned(run, &list, watch->reader, prefix);
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return any ? text_append_string(out, "]") : 0;
}

/* Servers and proxies may break lines wherever JSON allows white space: after an answer, or throughout
 * one that is printed for people. A request must be one line. (Strings escape their line breaks.) */
static void join_lines(struct text *out)
{
        char *at = out->data, *end = at + out->size;

        if (!at || out->failed)
                return;
        for (char *c = at; (c = memchr(c, '\n', (size_t)(end - c))); c++)
                *c = ' ';
        for (char *c = at; (c = memchr(c, '\r', (size_t)(end - c))); c++)
                *c = ' ';
}

int request_build(struct run *run, uint64_t id, struct text *out)
{
        const struct message_run *order = run->order;
        int r;

        text_append_string(out, "{");
        if (id > 0)
                text_printf(out, "\"id\":%" PRIu64 ",", id);
        if (run->recorded) { /* it begins with a brace and has no id */
                text_append_string(out, run->recorded + 1);
                return text_append_string(out, "\n");
        }
        text_printf(out, "\"version\":%d,\"action\":", REQUEST_VERSION);
        text_json_string(out, run_told_action(run->action, run->watch->config->own_action));
        text_append_string(out, ",\"reason\":");
        text_json_string(out, run_reason_name(order->reason));
        text_printf(out, ",\"attempt\":%" PRIu64 ",\"lastError\":", order->attempt);
        text_json_string(out, order->last_error);
        text_append_string(out, ",\"watch\":");
        text_json_string(out, order->watch);
        if (run->worker->lead.epoch > 0)
                text_printf(out, ",\"epoch\":%" PRIu64, run->worker->lead.epoch);
        if (run->worker->config->tell_dry_run)
                text_append_string(out, ",\"dryRun\":true");
        text_append_string(out, ",\"object\":");
        text_append_string(out, run->json);
        r = given_write(run, out);
        if (r >= 0)
                r = add_owned(run, out);
        if (r >= 0)
                r = related_write(run, out);
        if (r < 0)
                return r;
        join_lines(out);
        r = text_append_string(out, "}\n");
        run->request_size = out->size;
        return r;
}
