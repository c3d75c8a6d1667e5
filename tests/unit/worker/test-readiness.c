/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness, by the rules of each kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "worker/dependents/parked/readiness.h"

#define OF(version, kind, spec, status)                                                                     \
        version, kind, "{\"metadata\":{\"generation\":2},\"spec\":{" spec "},\"status\":{" status "}}"
#define CONDITION(type, status)                                                                             \
        "\"conditions\":[{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"R\"}]"
#define SEEN "\"observedGeneration\":2"

static const struct {
        const char *api_version, *kind, *object; /* as an item of a LIST, without its kind */
        enum readiness readiness;
} row[] = {
        {OF("apps/v1", "Deployment", "\"replicas\":2", ""), READINESS_NOT_YET},
        {OF("apps/v1", "Deployment", "\"replicas\":2",
            "\"observedGeneration\":1,\"replicas\":2,\"updatedReplicas\":2,\"availableReplicas\":2"),
         READINESS_NOT_YET},
        {OF("apps/v1", "Deployment", "\"replicas\":2",
            SEEN ",\"replicas\":2,\"updatedReplicas\":2,\"availableReplicas\":1"),
         READINESS_NOT_YET},
        {OF("apps/v1", "Deployment", "\"replicas\":2",
            SEEN ",\"replicas\":3,\"updatedReplicas\":2,\"availableReplicas\":2"),
         READINESS_NOT_YET},
        {OF("apps/v1", "Deployment", "\"replicas\":2",
            SEEN ",\"replicas\":2,\"updatedReplicas\":2,\"availableReplicas\":2"),
         READINESS_READY},
        {OF("apps/v1", "Deployment", "\"replicas\":0", SEEN), READINESS_READY},
        {OF("apps/v1", "Deployment", "",
            SEEN ",\"conditions\":[{\"type\":\"Progressing\",\"status\":\"False\",\"reason\":"
                 "\"ProgressDeadlineExceeded\"}]"),
         READINESS_FAILED},
        {OF("apps/v1", "StatefulSet", "", SEEN ",\"readyReplicas\":1"), READINESS_NOT_YET},
        {OF("apps/v1", "StatefulSet", "", SEEN ",\"readyReplicas\":1,\"updatedReplicas\":1"),
         READINESS_READY},
        {OF("apps/v1", "DaemonSet", "", ""), READINESS_NOT_YET},
        {OF("apps/v1", "DaemonSet", "",
            SEEN ",\"desiredNumberScheduled\":2,\"updatedNumberScheduled\":2,\"numberAvailable\":1"),
         READINESS_NOT_YET},
        {OF("apps/v1", "DaemonSet", "",
            SEEN ",\"desiredNumberScheduled\":2,\"updatedNumberScheduled\":2,\"numberAvailable\":2"),
         READINESS_READY},
        {OF("apps/v1", "StatefulSet",
            "\"replicas\":3,\"updateStrategy\":{\"rollingUpdate\":{\"partition\":2}}",
            SEEN ",\"readyReplicas\":3,\"updatedReplicas\":1"),
         READINESS_READY},
        {OF("apps/v1", "StatefulSet", "\"updateStrategy\":{\"type\":\"OnDelete\"}",
            SEEN ",\"readyReplicas\":1"),
         READINESS_READY},
        {OF("apps/v1", "DaemonSet", "\"updateStrategy\":{\"type\":\"OnDelete\"}",
            SEEN ",\"desiredNumberScheduled\":2,\"numberAvailable\":2"),
         READINESS_READY},
        {OF("apps/v1", "ReplicaSet", "\"replicas\":2", SEEN ",\"availableReplicas\":1"), READINESS_NOT_YET},
        {OF("apps/v1", "ReplicaSet", "\"replicas\":2", SEEN ",\"availableReplicas\":2"), READINESS_READY},
        {OF("serving.knative.dev/v1", "Service", "", CONDITION("Ready", "False")), READINESS_NOT_YET},
        {"v1", "ConfigMap",
         "{\"metadata\":{\"deletionTimestamp\":\"2026-01-01T00:"
         "00:00Z\"}}",
         READINESS_NOT_YET},
        {OF("batch/v1", "Job", "", ""), READINESS_NOT_YET},
        {OF("batch/v1", "Job", "", CONDITION("Complete", "True")), READINESS_READY},
        {OF("batch/v1", "Job", "", CONDITION("Failed", "True")), READINESS_FAILED},
        {OF("v1", "Pod", "", "\"phase\":\"Pending\""), READINESS_NOT_YET},
        {OF("v1", "Pod", "", "\"phase\":\"Running\""), READINESS_NOT_YET},
        {OF("v1", "Pod", "", "\"phase\":\"Running\"," CONDITION("Ready", "True")), READINESS_READY},
        {OF("v1", "Pod", "", "\"phase\":\"Succeeded\""), READINESS_READY},
        {OF("v1", "Pod", "", "\"phase\":\"Failed\""), READINESS_FAILED},
        {OF("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", ""), READINESS_NOT_YET},
        {OF("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", CONDITION("Established", "True")),
         READINESS_READY},
        {OF("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", CONDITION("NamesAccepted", "False")),
         READINESS_FAILED},
        {OF("v1", "PersistentVolumeClaim", "", "\"phase\":\"Pending\""), READINESS_NOT_YET},
        {OF("v1", "PersistentVolumeClaim", "", "\"phase\":\"Bound\""), READINESS_READY},
        {OF("v1", "PersistentVolumeClaim", "", "\"phase\":\"Lost\""), READINESS_FAILED},
        {OF("v1", "Service", "", ""), READINESS_READY},
        {OF("v1", "Service", "\"type\":\"LoadBalancer\"", ""), READINESS_NOT_YET},
        {OF("v1", "Service", "\"type\":\"LoadBalancer\"", "\"loadBalancer\":{\"ingress\":[{}]}"),
         READINESS_READY},
        {OF("v1", "ConfigMap", "", ""), READINESS_READY},
        {OF("example.com/v1", "Other", "", SEEN "," CONDITION("Ready", "True")), READINESS_READY},
        {OF("example.com/v1", "Other", "", CONDITION("Ready", "False")), READINESS_NOT_YET},
        {OF("example.com/v1", "Other", "", CONDITION("Available", "Unknown")), READINESS_NOT_YET},
        {OF("example.com/v1", "Other", "", "\"observedGeneration\":1"), READINESS_NOT_YET},
        {OF("example.com/v1", "Other", "", CONDITION("Stalled", "True")), READINESS_FAILED},
        {"v1", "ConfigMap", "nonsense", READINESS_NOT_YET},
};

static void test_rules(void **state)
{
        char why[200];

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                if (readiness_of(row[i].api_version, row[i].kind, row[i].object, why, sizeof(why)) !=
                    row[i].readiness)
                        fail_msg("%s: %s", row[i].object, why);
                assert_int_equal(why[0] == '\0', row[i].readiness == READINESS_READY);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {cmocka_unit_test(test_rules)};

        return cmocka_run_group_tests(test, NULL, NULL);
}
