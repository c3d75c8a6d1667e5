/* SPDX-License-Identifier: Apache-2.0 */
/* Readiness, by the rules of each kind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "worker/readiness.h"

#define OF(kind, spec, status)                                                                              \
        "{\"kind\":\"" kind "\",\"metadata\":{\"generation\":2},\"spec\":{" spec "},\"status\":{" status "}}"
#define CONDITION(type, status)                                                                             \
        "\"conditions\":[{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"R\"}]"
#define SEEN "\"observedGeneration\":2"

static const struct {
        const char *object;
        enum readiness readiness;
} row[] = {
        {OF("Deployment", "\"replicas\":2", ""), READINESS_NOT_YET},
        {OF("Deployment", "\"replicas\":2",
            "\"observedGeneration\":1,\"replicas\":2,\"updatedReplicas\":2,\"availableReplicas\":2"),
         READINESS_NOT_YET},
        {OF("Deployment", "\"replicas\":2",
            SEEN ",\"replicas\":2,\"updatedReplicas\":2,\"availableReplicas\":1"),
         READINESS_NOT_YET},
        {OF("Deployment", "\"replicas\":2",
            SEEN ",\"replicas\":3,\"updatedReplicas\":2,\"availableReplicas\":2"),
         READINESS_NOT_YET},
        {OF("Deployment", "\"replicas\":2",
            SEEN ",\"replicas\":2,\"updatedReplicas\":2,\"availableReplicas\":2"),
         READINESS_READY},
        {OF("Deployment", "\"replicas\":0", SEEN), READINESS_READY},
        {OF("Deployment", "",
            SEEN ",\"conditions\":[{\"type\":\"Progressing\",\"status\":\"False\",\"reason\":"
                 "\"ProgressDeadlineExceeded\"}]"),
         READINESS_FAILED},
        {OF("StatefulSet", "", SEEN ",\"readyReplicas\":1"), READINESS_NOT_YET},
        {OF("StatefulSet", "", SEEN ",\"readyReplicas\":1,\"updatedReplicas\":1"), READINESS_READY},
        {OF("DaemonSet", "", ""), READINESS_NOT_YET},
        {OF("DaemonSet", "",
            SEEN ",\"desiredNumberScheduled\":2,\"updatedNumberScheduled\":2,\"numberAvailable\":1"),
         READINESS_NOT_YET},
        {OF("DaemonSet", "",
            SEEN ",\"desiredNumberScheduled\":2,\"updatedNumberScheduled\":2,\"numberAvailable\":2"),
         READINESS_READY},
        {OF("Job", "", ""), READINESS_NOT_YET},
        {OF("Job", "", CONDITION("Complete", "True")), READINESS_READY},
        {OF("Job", "", CONDITION("Failed", "True")), READINESS_FAILED},
        {OF("Pod", "", "\"phase\":\"Pending\""), READINESS_NOT_YET},
        {OF("Pod", "", "\"phase\":\"Running\""), READINESS_NOT_YET},
        {OF("Pod", "", "\"phase\":\"Running\"," CONDITION("Ready", "True")), READINESS_READY},
        {OF("Pod", "", "\"phase\":\"Succeeded\""), READINESS_READY},
        {OF("Pod", "", "\"phase\":\"Failed\""), READINESS_FAILED},
        {OF("CustomResourceDefinition", "", ""), READINESS_NOT_YET},
        {OF("CustomResourceDefinition", "", CONDITION("Established", "True")), READINESS_READY},
        {OF("CustomResourceDefinition", "", CONDITION("NamesAccepted", "False")), READINESS_FAILED},
        {OF("PersistentVolumeClaim", "", "\"phase\":\"Pending\""), READINESS_NOT_YET},
        {OF("PersistentVolumeClaim", "", "\"phase\":\"Bound\""), READINESS_READY},
        {OF("PersistentVolumeClaim", "", "\"phase\":\"Lost\""), READINESS_FAILED},
        {OF("Service", "", ""), READINESS_READY},
        {OF("Service", "\"type\":\"LoadBalancer\"", ""), READINESS_NOT_YET},
        {OF("Service", "\"type\":\"LoadBalancer\"", "\"loadBalancer\":{\"ingress\":[{}]}"), READINESS_READY},
        {OF("ConfigMap", "", ""), READINESS_READY},
        {OF("Other", "", SEEN "," CONDITION("Ready", "True")), READINESS_READY},
        {OF("Other", "", CONDITION("Ready", "False")), READINESS_NOT_YET},
        {OF("Other", "", CONDITION("Available", "Unknown")), READINESS_NOT_YET},
        {OF("Other", "", "\"observedGeneration\":1"), READINESS_NOT_YET},
        {OF("Other", "", CONDITION("Stalled", "True")), READINESS_FAILED},
        {"nonsense", READINESS_NOT_YET},
};

static void test_rules(void **state)
{
        char why[200];

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                if (readiness_of(row[i].object, why, sizeof(why)) != row[i].readiness)
                        fail_msg("%s: %s", row[i].object, why);
                assert_int_equal(why[0] == '\0', row[i].readiness == READINESS_READY);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {cmocka_unit_test(test_rules)};

        return cmocka_run_group_tests(test, NULL, NULL);
}
