/* SPDX-License-Identifier: Apache-2.0 */
#include "config/check/check-own.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/duration.h"
#include "base/text.h"
#include "config/read/expand.h"
#include "config/read/problem.h"
#include "os/file.h"

#define POD_NAMESPACE_FILE "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
#define NAMESPACE_MAX      63 /* bytes of a name */
#define SCHEDULE_NAME_MAX  40 /* it becomes a part of the names of annotations, after "schedule-" */

/* ---- one entry */

static void check_schedule_name(struct reader *reader, yaml_node_t *node, const char *path, const char *name)
{
        static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
        size_t length = strlen(name);
        char key[256];

        if (length > 0 && length <= SCHEDULE_NAME_MAX && strspn(name, allowed) == length && name[0] != '-' &&
            name[length - 1] != '-')
                return;
        snprintf(key, sizeof(key), "%.200s.name", path);
        problem_add(
                reader, mapping_find(reader, node, "name"), false, key,
                "\"%s\" must be at most %d lower-case letters, digits or '-', with a letter or digit at both ends: it "
                "becomes part of the name of a ConfigMap",
                name, SCHEDULE_NAME_MAX);
}

static void check_zone(struct reader *reader, yaml_node_t *node, const char *path, const char *zone)
{
        char key[256];

        if (cron_zone_exists(zone))
                return;
        snprintf(key, sizeof(key), "%.200s.timeZone", path);
        problem_add(
                reader, mapping_find(reader, node, "timeZone"), false, key,
                "\"%s\" is no time zone of this system's tzdata (Europe/Berlin is one; the package tzdata has them)",
                zone);
}

static void check_cron(struct reader *reader, yaml_node_t *node, const char *path,
                       struct config_watch *watch)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        uint64_t next;
        char key[256];
        int r = cron_parse(watch->cron, &watch->due, &error);

        snprintf(key, sizeof(key), "%.200s.cron", path);
        if (r < 0)
                problem_add(reader, mapping_find(reader, node, "cron"), false, key, "%s",
                            error_message(&error));
        else if (cron_next(&watch->due, "UTC", clock_realtime_usec(), &next) == -ENOENT)
                problem_add(reader, mapping_find(reader, node, "cron"), false, key,
                            "\"%s\" is never due: there is no such day", watch->cron);
}

void own_watch_complete(struct reader *reader, yaml_node_t *node, const char *path, bool is_startup,
                        struct config_watch *watch)
{
        _cleanup_free_ char *id = NULL;

        watch->own = is_startup ? OWN_STARTUP : OWN_SCHEDULE;
        watch->resync_usec = 0;
        if (is_startup) {
                watch->quarantine_after = UINT_MAX; /* never: all others wait for it */
                (void)keep_text(reader, &watch->name, "startup");
        }
        if (!watch->name || keep_text(reader, &watch->api_version, "v1") < 0 ||
            keep_text(reader, &watch->kind, "ConfigMap") < 0)
                return;
        id = format_string("%s%s", is_startup ? "" : "schedule-", watch->name);
        if (!id || keep_text(reader, &watch->id, id) < 0)
                return;
        if (is_startup)
                return;
        check_schedule_name(reader, node, path, watch->name);
        if (!watch->time_zone && keep_text(reader, &watch->time_zone, "UTC") < 0)
                return;
        check_zone(reader, node, path, watch->time_zone);
        if (watch->cron)
                check_cron(reader, node, path, watch);
}

/* ---- all of them */

static bool is_namespace(const char *text)
{
        size_t length = strlen(text);

        return length > 0 && length <= NAMESPACE_MAX &&
               strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length && text[0] != '-' &&
               text[length - 1] != '-';
}

/* The pod's own namespace; NULL outside of a pod. */
static char *find_namespace(void)
{
        _cleanup_free_ char *content = NULL;
        size_t size;

        if (file_read(POD_NAMESPACE_FILE, NAMESPACE_MAX + 1, &content, &size) < 0)
                return NULL;
        content[strcspn(content, "\n")] = '\0';
        return is_namespace(content) ? TAKE_PTR(content) : NULL;
}

static bool check_own_namespace(struct reader *reader, const struct config_watch *watch)
{
        struct config *config = reader->config;

        if (!config->namespace)
                config->namespace = find_namespace();
        if (!config->namespace)
                problem_add(
                        reader, NULL, false, watch->own == OWN_STARTUP ? "startup" : "schedules",
                        "needs a namespace for its ConfigMap, and this is not a pod, which would have one: set "
                        "`namespace: NAME` at the top of the file");
        return config->namespace;
}

static int place_object(const struct config *config, struct config_watch *watch)
{
        assert(config->namespace);
        watch->own_name = format_string("%s-%s", config->operator_name, watch->name);
        watch->namespace = calloc(2, sizeof(char *));
        if (!watch->own_name || !watch->namespace)
                return -ENOMEM;
        watch->namespace[0] = strdup(config->namespace);
        watch->namespace_count = watch->namespace[0] != NULL;
        free(watch->field_selector);
        watch->field_selector = format_string("metadata.name=%s", watch->own_name);
        return watch->namespace[0] && watch->field_selector ? 0 : -ENOMEM;
}

static void settle_replicas_namespace(struct reader *reader)
{
        struct config *config = reader->config;

        if (config->replicas_namespace) {
                if (expand_text(reader, NULL, "replicas.namespace", &config->replicas_namespace) &&
                    !is_namespace(config->replicas_namespace))
                        problem_add(reader, NULL, false, "replicas.namespace",
                                    "\"%s\" is not the name of a namespace", config->replicas_namespace);
                return;
        }
        config->replicas_namespace = config->namespace ? strdup(config->namespace) : find_namespace();
        if (!config->replicas_namespace)
                problem_add(
                        reader, NULL, false, "replicas",
                        "needs a namespace for its Leases, and this is not a pod, which would have one: set "
                        "`replicas: {namespace: NAME}`, or `namespace: NAME` at the top of the file");
}

void check_replicas(struct reader *reader)
{
        struct config *config = reader->config;

        if (!config->replicas || !config->operator_name)
                return;
        if (!config->replicas_lease && keep_text(reader, &config->replicas_lease, config->operator_name) < 0)
                return;
        if (!is_subdomain(config->replicas_lease) || strlen(config->replicas_lease) > REPLICAS_LEASE_MAX)
                problem_add(
                        reader, NULL, false, "replicas.lease",
                        "\"%s\" is not a name of lower-case letters, digits, '-' and '.' with at most %d bytes",
                        config->replicas_lease, REPLICAS_LEASE_MAX);
        settle_replicas_namespace(reader);
}

void check_own_objects(struct reader *reader)
{
        struct config *config = reader->config;

        if (config->namespace && !expand_text(reader, NULL, "namespace", &config->namespace))
                return;
        if (config->namespace && !is_namespace(config->namespace)) {
                problem_add(reader, NULL, false, "namespace", "\"%s\" is not the name of a namespace",
                            config->namespace);
                return;
        }
        FOREACH_ARRAY(watch, config->watch, config->watch_count) {
                if (!watch->own || !watch->name || !watch->place || !config->operator_name)
                        continue;
                if (!check_own_namespace(reader, watch))
                        return;
                if (place_object(config, watch) < 0)
                        reader->out_of_memory = true;
        }
}
