/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/as-cluster.h"

#include <string.h>

#include "base/text.h"
#include "json/json.h"

#define CONDITION(type) "{\"type\":\"" type "\",\"status\":\"True\",\"reason\":\"AsTheClusterWould\"}"

/* Their status as soon as all is well. `?` is the wanted number, `#` the generation. */
static const struct {
        const char *api_version, *kind;
        const char *wanted; /* the member of spec; NULL: 1 */
        const char *status;
} ready[] = {
        {"apps/v1", "Deployment", "replicas",
         "{\"observedGeneration\":#,\"replicas\":?,\"updatedReplicas\":?,\"readyReplicas\":?,\"availableReplicas\":?,"
         "\"conditions\":[" CONDITION("Available") "," CONDITION("Progressing") "]}"},
        {"apps/v1", "ReplicaSet", "replicas",
         "{\"observedGeneration\":#,\"replicas\":?,\"fullyLabeledReplicas\":?,\"readyReplicas\":?,\"availableReplicas\":?}"},
        {"apps/v1", "StatefulSet", "replicas",
         "{\"observedGeneration\":#,\"replicas\":?,\"readyReplicas\":?,\"currentReplicas\":?,\"updatedReplicas\":?,"
         "\"availableReplicas\":?,\"currentRevision\":\"1\",\"updateRevision\":\"1\"}"},
        {"apps/v1", "DaemonSet", NULL,
         "{\"observedGeneration\":#,\"desiredNumberScheduled\":?,\"currentNumberScheduled\":?,\"numberMisscheduled\":0,"
         "\"numberReady\":?,\"updatedNumberScheduled\":?,\"numberAvailable\":?}"},
        {"batch/v1", "Job", "completions", "{\"succeeded\":?,\"conditions\":[" CONDITION("Complete") "]}"},
        {"v1", "Pod", NULL, "{\"phase\":\"Running\",\"conditions\":[" CONDITION("Ready") "]}"},
        {"v1", "PersistentVolumeClaim", NULL, "{\"phase\":\"Bound\"}"},
};

static cJSON *ready_status(const char *pattern, int wanted, int generation)
{
        _cleanup_text_ struct text json = TEXT_EMPTY;

        for (const char *c = pattern; *c; c++)
                if (*c == '?' || *c == '#')
                        text_printf(&json, "%d", *c == '?' ? wanted : generation);
                else
                        text_append(&json, c, 1);
        return json.failed ? NULL : json_parse(json.data, json.size);
}

/* The server leaves out nothing of it, so what is there is compared member by member. */
static bool status_is_ready(const cJSON *status, const cJSON *wanted)
{
        const cJSON *member;

        cJSON_ArrayForEach(member, wanted)
        {
                const cJSON *there = json_member(status, member->string);

                if (!there || (!cJSON_IsArray(member) && !json_equal(there, member)))
                        return false;
        }
        return true;
}

static cJSON *patch_of(const cJSON *object, size_t row)
{
        const cJSON *spec = json_member(object, "spec");
        const char *name = ready[row].wanted;
        int wanted = (int)json_number(name ? json_member(spec, name) : NULL, 1);
        int generation = (int)json_number(json_member(json_member(object, "metadata"), "generation"), 1);
        _cleanup_json_ cJSON *status = ready_status(ready[row].status, wanted, generation);
        cJSON *patch;

        if (!status || status_is_ready(json_member(object, "status"), status))
                return NULL;
        patch = cJSON_CreateObject();
        cJSON_AddItemToObject(patch, "status", TAKE_PTR(status));
        return patch;
}

cJSON *as_cluster_would(const cJSON *object)
{
        for (size_t i = 0; i < ELEMENTS(ready); i++)
                if (strcmp(ready[i].kind, json_text(object, "kind")) == 0 &&
                    strcmp(ready[i].api_version, json_text(object, "apiVersion")) == 0)
                        return patch_of(object, i);
        return NULL;
}
