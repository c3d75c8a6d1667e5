/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/dependents/parked/readiness.h"

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "ipc/message.h"
#include "json/json.h"

struct look {
        const cJSON *object, *spec, *status;
        char *why;
        size_t size;
};

static double number(const cJSON *object, const char *key, double otherwise)
{
        return json_number(json_member(object, key), otherwise);
}

static const cJSON *condition(const struct look *look, const char *type)
{
        const cJSON *item;

        cJSON_ArrayForEach(item, json_member(look->status, "conditions"))
        {
                if (strcmp(json_text(item, "type"), type) == 0)
                        return item;
        }
        return NULL;
}

static bool condition_is(const struct look *look, const char *type, const char *status)
{
        const cJSON *found = condition(look, type);

        return found && strcmp(json_text(found, "status"), status) == 0;
}

_printf_(3, 4) static enum readiness
        say(const struct look *look, enum readiness readiness, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(look->why, look->size, format, arguments);
        va_end(arguments);
        utf8_clean(look->why);
        return readiness;
}

static enum readiness say_condition(const struct look *look, enum readiness readiness, const char *type)
{
        const cJSON *found = condition(look, type);

        return say(look, readiness, "%s is %s: %s %s", type, json_text(found, "status"),
                   json_text(found, "reason"), json_text(found, "message"));
}

/* The controller has not seen the newest generation yet. */
static bool is_unobserved(const struct look *look)
{
        return number(look->status, "observedGeneration", 0) <
               number(json_member(look->object, "metadata"), "generation", 0);
}

/* ---- kinds */

static enum readiness of_deployment(const struct look *look)
{
        double replicas = number(look->spec, "replicas", 1),
               updated = number(look->status, "updatedReplicas", 0);
        double available = number(look->status, "availableReplicas", 0);

        if (is_unobserved(look))
                return say(look, READINESS_NOT_YET, "its controller has not seen it yet");
        if (condition_is(look, "Progressing", "False") &&
            strcmp(json_text(condition(look, "Progressing"), "reason"), "ProgressDeadlineExceeded") == 0)
                return say_condition(look, READINESS_FAILED, "Progressing");
        if (updated < replicas || number(look->status, "replicas", 0) > updated || available < updated)
                return say(look, READINESS_NOT_YET, "%.0f of %.0f replicas are updated, %.0f available",
                           updated, replicas, available);
        return READINESS_READY;
}

static enum readiness of_replica_set(const struct look *look)
{
        double replicas = number(look->spec, "replicas", 1);
        double available = number(look->status, "availableReplicas", 0);

        if (is_unobserved(look))
                return say(look, READINESS_NOT_YET, "its controller has not seen it yet");
        return available >= replicas ? READINESS_READY
                                     : say(look, READINESS_NOT_YET, "%.0f of %.0f replicas are available",
                                           available, replicas);
}

/* Pods of the old version stay until they are deleted by hand, so they are not waited for. */
static bool updates_by_hand(const struct look *look)
{
        return strcmp(json_text(json_member(look->spec, "updateStrategy"), "type"), "OnDelete") == 0;
}

/* Replicas that a partition leaves at the old version. */
static double kept_back(const struct look *look)
{
        return number(json_member(json_member(look->spec, "updateStrategy"), "rollingUpdate"), "partition",
                      0);
}

static enum readiness of_stateful_set(const struct look *look)
{
        double replicas = number(look->spec, "replicas", 1),
               ready = number(look->status, "readyReplicas", 0);
        double updated = number(look->status, "updatedReplicas", 0);

        if (is_unobserved(look))
                return say(look, READINESS_NOT_YET, "its controller has not seen it yet");
        if (updates_by_hand(look))
                updated = replicas;
        if (ready < replicas || updated < replicas - kept_back(look))
                return say(look, READINESS_NOT_YET, "%.0f of %.0f replicas are updated, %.0f ready", updated,
                           replicas, ready);
        return READINESS_READY;
}

static enum readiness of_daemon_set(const struct look *look)
{
        double desired = number(look->status, "desiredNumberScheduled", 0);
        double updated = number(look->status, "updatedNumberScheduled", 0);
        double available = number(look->status, "numberAvailable", 0);

        if (is_unobserved(look))
                return say(look, READINESS_NOT_YET, "its controller has not seen it yet");
        if (updates_by_hand(look))
                updated = desired;
        if (updated < desired || available < desired)
                return say(look, READINESS_NOT_YET, "%.0f of %.0f pods are updated, %.0f available", updated,
                           desired, available);
        return READINESS_READY;
}

static enum readiness of_job(const struct look *look)
{
        if (condition_is(look, "Failed", "True"))
                return say_condition(look, READINESS_FAILED, "Failed");
        return condition_is(look, "Complete", "True") ? READINESS_READY
                                                      : say(look, READINESS_NOT_YET, "it is not complete");
}

static enum readiness of_pod(const struct look *look)
{
        const char *phase = json_text(look->status, "phase");

        if (strcmp(phase, "Failed") == 0)
                return say(look, READINESS_FAILED, "it has failed: %s %s", json_text(look->status, "reason"),
                           json_text(look->status, "message"));
        if (strcmp(phase, "Succeeded") == 0 || condition_is(look, "Ready", "True"))
                return READINESS_READY;
        return say(look, READINESS_NOT_YET, "its phase is %s", phase[0] ? phase : "unknown");
}

static enum readiness of_definition(const struct look *look)
{
        if (condition_is(look, "NamesAccepted", "False"))
                return say_condition(look, READINESS_FAILED, "NamesAccepted");
        return condition_is(look, "Established", "True")
                       ? READINESS_READY
                       : say(look, READINESS_NOT_YET, "it is not established");
}

static enum readiness of_claim(const struct look *look)
{
        const char *phase = json_text(look->status, "phase");

        if (strcmp(phase, "Lost") == 0)
                return say(look, READINESS_FAILED, "its volume is lost");
        return strcmp(phase, "Bound") == 0 ? READINESS_READY
                                           : say(look, READINESS_NOT_YET, "it is not bound");
}

static enum readiness of_service(const struct look *look)
{
        const cJSON *ingress = json_member(json_member(look->status, "loadBalancer"), "ingress");

        if (strcmp(json_text(look->spec, "type"), "LoadBalancer") != 0 || cJSON_GetArraySize(ingress) > 0)
                return READINESS_READY;
        return say(look, READINESS_NOT_YET, "its load balancer has no address");
}

static enum readiness of_others(const struct look *look)
{
        static const char *const good[] = {"Ready", "Available"};

        if (json_member(look->status, "observedGeneration") && is_unobserved(look))
                return say(look, READINESS_NOT_YET, "its controller has not seen it yet");
        if (condition_is(look, "Stalled", "True"))
                return say_condition(look, READINESS_FAILED, "Stalled");
        for (size_t i = 0; i < ELEMENTS(good); i++)
                if (condition(look, good[i]) && !condition_is(look, good[i], "True"))
                        return say_condition(look, READINESS_NOT_YET, good[i]);
        return READINESS_READY;
}

static bool is_of_group(const char *version, const char *group)
{
        const char *slash = strchr(version, '/');
        size_t size = slash ? (size_t)(slash - version) : 0;

        return strlen(group) == size && strncmp(version, group, size) == 0;
}

enum readiness readiness_of(const char *api_version, const char *kind, const char *json, char *why,
                            size_t size)
{
        static const struct {
                const char *group, *kind;
                enum readiness (*judge)(const struct look *look);
        } rule[] = {
                {"apps", "Deployment", of_deployment},
                {"apps", "ReplicaSet", of_replica_set},
                {"apps", "StatefulSet", of_stateful_set},
                {"apps", "DaemonSet", of_daemon_set},
                {"batch", "Job", of_job},
                {"", "Pod", of_pod},
                {"apiextensions.k8s.io", "CustomResourceDefinition", of_definition},
                {"", "Service", of_service},
                {"", "PersistentVolumeClaim", of_claim},
        };
        _cleanup_json_ cJSON *object = json_parse_served(json, strlen(json));
        struct look look = {object, json_member(object, "spec"), json_member(object, "status"), why, size};

        why[0] = '\0';
        if (!object)
                return say(&look, READINESS_NOT_YET, "it cannot be read, or has too many values");
        if (json_member(json_member(object, "metadata"), "deletionTimestamp"))
                return say(&look, READINESS_NOT_YET, "it is being deleted");
        for (size_t i = 0; i < ELEMENTS(rule); i++)
                if (strcmp(kind, rule[i].kind) == 0 && is_of_group(api_version, rule[i].group))
                        return rule[i].judge(&look);
        return of_others(&look);
}
