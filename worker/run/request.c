/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler is given: the request on stdin, the basics in the environment. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/duration.h"
#include "object/identity.h"
#include "worker/worker.h"

#define REQUEST_VERSION   1
#define REQUEST_OWNED_MAX 1000

/* Nothing else of ours reaches a handler: no credential, no socket of systemd's. */
static const char *const passed_on[] = {"PATH",     "HOME",      "LANG",     "LC_ALL",
                                        "TZ",       "TMPDIR",    "USER",     "LOGNAME",
                                        "HOSTNAME", "NODE_NAME", "POD_NAME", "POD_NAMESPACE"};

/* Where the operator has none (a container's first process): what a shell would take. */
#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

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

/* What the server gives of it is a PartialObjectMetadata; it is shown as what it is. */
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

/* Items of a LIST of built-in kinds lack apiVersion and kind. */
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
        const struct run *run;
        const struct record_watch *config; /* of the owned kind */
        struct text *out;
        size_t count;
        size_t room; /* bytes that the request may have */
};

/* The store finds dependents by the UID in their reference, which anyone who may make an object can forge. */
static bool is_owned(const struct run *run, const struct store_object *owned)
{
        const struct record_watch *config = run->watch->config;
        struct owner owner;

        return owner_find(owned->json, owned->json_size, config->api_version, config->kind, &owner) >= 0 &&
               owner_is(&owner, run->order->key, run->order->uid);
}

static int add_object(const struct store_object *owned, void *userdata)
{
        struct owned_list *list = userdata;
        const struct run *run = list->run;
        struct scan_object object;
        int r;

        if (!is_owned(run, owned))
                return 0;
        r = scan_object(owned->json, owned->json_size, &object);
        if (r < 0 || list->count == REQUEST_OWNED_MAX)
                return r < 0 ? r : 0;
        if (list->out->size + owned->json_size > list->room)
                return -E2BIG; /* nothing more is read: that alone would take the memory */
        if (list->count++ > 0)
                text_append_string(list->out, ",");
        request_write_with_kind(list->config, &object, list->out);
        return 0;
}

#define MIB(bytes) ((double)(bytes) / (1 << 20))

char *request_excess(const struct run *run, const struct record_watch *kind, size_t bytes,
                     const struct store_extent *extent)
{
        char *text;

        if (asprintf(
                    &text,
                    "its request would take about %.1f MiB, and handler.requestLimit allows %.1f MiB: there "
                    "are "
                    "%zu objects of kind %s with %.1f MiB that it %s. Give the handler their metadata alone "
                    "(`metadataOnly: true` in the entry of that kind) or raise the limit, reload, and: "
                    "reconciledctl retry %s %s",
                    MIB(bytes + extent->bytes), MIB(run->watch->config->request_max), extent->count,
                    kind->kind, MIB(extent->bytes), kind->related ? "is related to" : "owns",
                    run->order->watch, run->order->key) < 0)
                return NULL;
        return text;
}

/* What was made of it is given back before anything else is done. */
static int give_up(struct run *run, const struct owned_list *list, struct store *reader, const char *prefix)
{
        size_t bytes = strlen(run->json) + (run->related ? strlen(run->related) : 0);
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

/* As the stores of those kinds show them. */
static int add_owned(struct run *run, struct text *out)
{
        const struct worker *worker = run->worker;
        const char *key = run->order->key, *slash = strchr(key, '/');
        _cleanup_free_ char *prefix = strndup(key, slash ? (size_t)(slash + 1 - key) : 0);
        size_t max = run->watch->config->request_max, related = run->related ? strlen(run->related) : 0;
        struct owned_list list = {.run = run,
                                  .out = out,
                                  .room = max == 0        ? SIZE_MAX
                                          : max > related ? max - related
                                                          : 0};
        bool any = false;

        if (!prefix)
                return -ENOMEM;

        for (size_t i = 0; i < worker->watch_count; i++) {
                struct worker_watch *watch = &worker->watch[i];
                int r;

                if (strcmp(watch->config->owner, run->watch->config->name) != 0 || watch->config->related)
                        continue;
                text_append_string(out, any ? "" : ",\"children\":[");
                any = true;
                list.config = watch->config;
                r = store_visit_owned(watch->reader, run->order->uid, prefix, add_object, &list);
                if (r == -EBADMSG)
                        return run_store_damaged(run, watch->config);
                if (r == -E2BIG)
                        return give_up(run, &list, watch->reader, prefix);
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        return any ? text_append_string(out, "]") : 0;
}

/* Servers and proxies may break lines wherever JSON takes white space: behind an answer, or throughout one
 * that is printed for people. A request is one line, whatever it was made from. Strings escape theirs. */
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
        if (run->recorded) { /* begins with a brace and no id */
                text_append_string(out, run->recorded + 1);
                return text_append_string(out, "\n");
        }
        text_printf(out, "\"version\":%d,\"action\":", REQUEST_VERSION);
        text_json_string(out, run_action_name(run->action));
        text_append_string(out, ",\"reason\":");
        text_json_string(out, order->reason);
        text_printf(out, ",\"attempt\":%" PRIu64 ",\"lastError\":", order->attempt);
        text_json_string(out, order->last_error);
        text_append_string(out, ",\"watch\":");
        text_json_string(out, order->watch);
        text_append_string(out, ",\"object\":");
        text_append_string(out, run->json);
        r = add_owned(run, out);
        if (r >= 0 && run->related)
                r = text_printf(out, ",\"related\":%s", run->related);
        if (r < 0)
                return r;
        join_lines(out);
        return text_append_string(out, "}\n");
}

/* ---- the environment */

#define RUN_VARIABLES 6 /* of one run */

static int add(char **environment, size_t *count, const char *name, const char *value)
{
        if (asprintf(&environment[*count], "%s=%s", name, value) < 0) {
                environment[*count] = NULL;
                return -ENOMEM;
        }
        (*count)++;
        return 0;
}

/* What belongs to a user is that of the handler's own. */
static const char *value_for(const struct record_watch *config, const char *name)
{
        if (config->user[0] && strcmp(name, "HOME") == 0)
                return config->home;
        if (config->user[0] && (strcmp(name, "USER") == 0 || strcmp(name, "LOGNAME") == 0))
                return config->user;
        return getenv(name);
}

static void variables_free(char **environment, size_t first)
{
        for (size_t i = first; environment && environment[i]; i++)
                free(environment[i]);
        free((void *)environment);
}

static bool is_given(const struct record_watch *config, const char *name)
{
        for (size_t i = 0; i < config->environment_count; i++)
                if (strcmp(config->environment[i].name, name) == 0)
                        return true;
        return false;
}

static int add_kubeconfig(char **environment, size_t *count, const char *folder)
{
        _cleanup_free_ char *path = NULL;

        if (asprintf(&path, "%s/kubeconfig", folder) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        return add(environment, count, "KUBECONFIG", path);
}

/* What is passed on, and what is the same for all runs of a watch. NULL: no memory. */
static char **environment_new(const struct record_watch *config, size_t *ret_count)
{
        char **environment = calloc(ELEMENTS(passed_on) + config->environment_count + 7, sizeof(char *));
        int r = environment ? 0 : -ENOMEM;
        size_t count = 0;

        if (r >= 0 && !getenv("PATH") && !is_given(config, "PATH"))
                r = add(environment, &count, "PATH", PATH_DEFAULT);
        for (size_t i = 0; i < ELEMENTS(passed_on) && r >= 0; i++) {
                const char *value = value_for(config, passed_on[i]);

                if (value && !is_given(config, passed_on[i]))
                        r = add(environment, &count, passed_on[i], value);
        }
        for (size_t i = 0; i < config->environment_count && r >= 0; i++)
                r = add(environment, &count, config->environment[i].name, config->environment[i].value);
        if (r >= 0 && config->credentials_folder[0])
                r = add(environment, &count, "RECONCILED_CREDENTIALS_DIRECTORY", config->credentials_folder);
        if (r >= 0 && config->kubernetes)
                r = add_kubeconfig(environment, &count, config->credentials_folder);
        if (r >= 0)
                r = add(environment, &count, "RECONCILED_WATCH", config->name);
        if (r >= 0)
                r = add(environment, &count, "RECONCILED_API_VERSION", config->api_version);
        if (r >= 0)
                r = add(environment, &count, "RECONCILED_KIND", config->kind);
        if (r < 0) {
                variables_free(environment, 0);
                return NULL;
        }
        *ret_count = count;
        return environment;
}

/* Made once: this process's own environment does not change, nor does its configuration. */
char *const *environment_of_watch(struct worker_watch *watch)
{
        if (!watch->environment)
                watch->environment = environment_new(watch->config, &watch->environment_count);
        return watch->environment;
}

void environment_of_watch_free(struct worker_watch *watch)
{
        variables_free(TAKE_PTR(watch->environment), 0);
}

char *const *environment_build(const struct run *run)
{
        const struct message_run *order = run->order;
        _cleanup_free_ char *namespace_name = NULL, *name = NULL;
        char *const *of_watch = environment_of_watch(run->watch);
        size_t count = run->watch->environment_count;
        char attempt[24], **environment;

        environment = of_watch ? calloc(count + RUN_VARIABLES + 1, sizeof(char *)) : NULL;
        if (!environment)
                return NULL;
        memcpy((void *)environment, of_watch, count * sizeof(char *));
        snprintf(attempt, sizeof(attempt), "%" PRIu64, order->attempt);
        if (kube_key_split(order->key, &namespace_name, &name) < 0 ||
            add(environment, &count, "RECONCILED_ACTION", run_action_name(run->action)) < 0 ||
            add(environment, &count, "RECONCILED_REASON", order->reason) < 0 ||
            add(environment, &count, "RECONCILED_NAMESPACE", namespace_name) < 0 ||
            add(environment, &count, "RECONCILED_NAME", name) < 0 ||
            add(environment, &count, "RECONCILED_UID", order->uid) < 0 ||
            add(environment, &count, "RECONCILED_ATTEMPT", attempt) < 0) {
                environment_free(run->watch, environment);
                return NULL;
        }
        return environment;
}

void environment_free(const struct worker_watch *watch, char *const *environment)
{
        variables_free((char **)(uintptr_t)environment, watch->environment_count);
}
