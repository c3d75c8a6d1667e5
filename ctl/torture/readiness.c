/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/readiness.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "ctl/torture/rig.h"
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
static bool is_ready(const cJSON *status, const cJSON *wanted)
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

static int give_one(struct rig *rig, const char *path, const cJSON *object, size_t row)
{
        const cJSON *spec = json_member(object, "spec");
        const char *name = ready[row].wanted;
        int wanted = (int)json_number(name ? json_member(spec, name) : NULL, 1);
        int generation = (int)json_number(json_member(json_member(object, "metadata"), "generation"), 1);
        _cleanup_json_ cJSON *status = ready_status(ready[row].status, wanted, generation), *patch = NULL;
        _cleanup_free_ char *place = format_string("%s/status", path);
        int r;

        if (!status || !place)
                return -ENOMEM;
        if (is_ready(json_member(object, "status"), status))
                return 0;
        patch = cJSON_CreateObject();
        cJSON_AddItemToObject(patch, "status", TAKE_PTR(status));
        r = rig_request(rig, "PATCH", place, patch, NULL);
        return r < 0 ? r : r / 100 == 2; /* it may be gone */
}

int readiness_give(struct rig *rig)
{
        const cJSON *each;
        int r = 0, given = 0;

        cJSON_ArrayForEach(each, rig->objects) for (size_t i = 0; i < ELEMENTS(ready) && r >= 0; i++)
        {
                const cJSON *object = json_member(each, "object");

                if (strcmp(ready[i].kind, json_text(object, "kind")) != 0 ||
                    strcmp(ready[i].api_version, json_text(object, "apiVersion")) != 0)
                        continue;
                r = give_one(rig, json_text(each, "path"), object, i);
                given += r > 0;
        }
        return r < 0 ? r : given > 0;
}
