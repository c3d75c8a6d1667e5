/* SPDX-License-Identifier: Apache-2.0 */
/* The core kinds, as plain objects: no controller runs for them. */
#include "devserver/cluster/builtin.h"

#include <string.h>

#include "base/cleanup.h"
#include "devserver/objects/stored-object.h"
#include "devserver/server.h"
#include "devserver/storage/served-resource.h"
#include "devserver/storage/storage.h"
#include "devserver/storage/version.h"
#include "devserver/tree/tree.h"

/* What kubectl shows: {name, type, jsonPath, [priority]}. "count" is the number of elements. */
#define COLUMN(name, type, path) "{\"name\":\"" name "\",\"type\":\"" type "\",\"jsonPath\":\"" path "\"}"
#define AGE                      COLUMN("Age", "date", ".metadata.creationTimestamp")
#define PHASE                    "[" COLUMN("Status", "string", ".status.phase") "," AGE "]"
#define DESIRED                  COLUMN("Desired", "integer", ".spec.replicas")
#define READY                    COLUMN("Ready", "integer", ".status.readyReplicas")
#define WORKLOAD                 "[" DESIRED "," READY "," AGE "]"

/* As both groups show them: of what is stored, which is the core's. Of a list of paths the first that is there
 * counts; priority 1: for -o wide. */
static const char EVENT[] =
        "[{\"name\":\"Last Seen\",\"type\":\"date\","
        "\"jsonPath\":[\".series.lastObservedTime\",\".lastTimestamp\",\".firstTimestamp\",\".eventTime\"]},"
        "{\"name\":\"Type\",\"type\":\"string\",\"jsonPath\":\".type\"},"
        "{\"name\":\"Reason\",\"type\":\"string\",\"jsonPath\":\".reason\"},"
        "{\"name\":\"Object\",\"type\":\"reference\",\"jsonPath\":\".involvedObject\"},"
        "{\"name\":\"Subobject\",\"type\":\"string\","
        "\"jsonPath\":\".involvedObject.fieldPath\",\"priority\":1},"
        "{\"name\":\"Source\",\"type\":\"string\","
        "\"jsonPath\":[\".source.component\",\".reportingComponent\"],\"priority\":1},"
        "{\"name\":\"Message\",\"type\":\"string\",\"jsonPath\":\".message\"},"
        "{\"name\":\"First Seen\",\"type\":\"date\","
        "\"jsonPath\":[\".firstTimestamp\",\".eventTime\"],\"priority\":1},"
        "{\"name\":\"Count\",\"type\":\"integer\","
        "\"jsonPath\":[\".series.count\",\".count\"],\"priority\":1},"
        "{\"name\":\"Name\",\"type\":\"string\",\"jsonPath\":\".metadata.name\",\"priority\":1}]";

static const struct {
        const char *group, *version, *kind, *plural, *short_name;
        bool namespaced, status;
        const char *columns; /* NULL: the age */
} table[] = {
        {"", "v1", "Namespace", "namespaces", "ns", false, true, PHASE},
        {"", "v1", "ConfigMap", "configmaps", "cm", true, false,
         "[" COLUMN("Data", "count", ".data") "," AGE "]"},
        {"", "v1", "Secret", "secrets", "", true, false,
         "[" COLUMN("Type", "string", ".type") "," COLUMN("Data", "count", ".data") "," AGE "]"},
        {"", "v1", "Pod", "pods", "po", true, true, PHASE},
        {"", "v1", "Node", "nodes", "no", false, true, NULL},
        {"", "v1", "Service", "services", "svc", true, true,
         "[" COLUMN("Type", "string", ".spec.type") "," COLUMN("Cluster-IP", "string",
                                                               ".spec.clusterIP") "," AGE "]"},
        {"", "v1", "ServiceAccount", "serviceaccounts", "sa", true, false, NULL},
        {"", "v1", "Event", "events", "ev", true, false, EVENT},
        {"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", true, true, PHASE},
        {"", "v1", "ResourceQuota", "resourcequotas", "quota", true, true, NULL},
        {"", "v1", "LimitRange", "limitranges", "limits", true, false, NULL},
        {"apps", "v1", "Deployment", "deployments", "deploy", true, true, WORKLOAD},
        {"apps", "v1", "ReplicaSet", "replicasets", "rs", true, true, WORKLOAD},
        {"apps", "v1", "StatefulSet", "statefulsets", "sts", true, true, WORKLOAD},
        {"apps", "v1", "DaemonSet", "daemonsets", "ds", true, true, NULL},
        {"batch", "v1", "Job", "jobs", "", true, true, NULL},
        {"batch", "v1", "CronJob", "cronjobs", "cj", true, true, NULL},
        {"coordination.k8s.io", "v1", "Lease", "leases", "", true, false,
         "[" COLUMN("Holder", "string", ".spec.holderIdentity") "," AGE "]"},
        {"events.k8s.io", "v1", "Event", "events", "ev", true, false, EVENT},
        {"rbac.authorization.k8s.io", "v1", "Role", "roles", "", true, false, NULL},
        {"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", true, false, NULL},
        {"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", false, false, NULL},
        {"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", false, false,
         NULL},
        {"networking.k8s.io", "v1", "Ingress", "ingresses", "ing", true, true, NULL},
        {"networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", true, false, NULL},
        {"policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", true, true, NULL},
        {"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd", false,
         true, NULL},
};

static void describe_columns(struct resource *resource, const char *short_name, const char *columns)
{
        cJSON *names = cJSON_CreateObject(), *short_names = cJSON_AddArrayToObject(names, "shortNames");
        cJSON *column = columns ? cJSON_Parse(columns) : NULL;

        if (short_name[0])
                cJSON_AddItemToArray(short_names, cJSON_CreateString(short_name));
        if (strcmp(short_name, "crd") == 0)
                cJSON_AddItemToArray(short_names, cJSON_CreateString("crds"));
        resource_describe(resource, names, column, NULL);
        cJSON_Delete(column);
        cJSON_Delete(names);
}

static void add_namespace(struct server *server, const char *name)
{
        struct resource *resource = resource_find(&server->storage, "", "v1", "namespaces");
        cJSON *object = cJSON_CreateObject(), *metadata;

        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "Namespace");
        metadata = cJSON_AddObjectToObject(object, "metadata");
        cJSON_AddStringToObject(metadata, "name", name);
        object_insert(server, resource, "", object);
        cJSON_Delete(object);
}

void builtin_renew_identity(struct server *server)
{
        struct resource *resource = resource_find(&server->storage, "", "v1", "namespaces");
        const struct version *version = object_find(resource, "kube-system");
        cJSON *object = version ? version_parse(version) : NULL;

        if (object) {
                tree_set_uid(tree_metadata(object));
                object_put(&server->storage, resource, "kube-system", object);
        }
        cJSON_Delete(object);
}

/* Both groups serve what the core stores. */
static void share_events(struct server *server)
{
        struct resource *core = resource_find(&server->storage, "", "v1", "events");
        struct resource *group = resource_find(&server->storage, "events.k8s.io", "v1", "events");

        if (core && group)
                group->table = core;
}

void builtin_add(struct server *server)
{
        static const char *const name[] = {"default", "kube-system", "kube-public"};

        for (size_t i = 0; i < ELEMENTS(table); i++) {
                struct resource *resource =
                        resource_add(&server->storage, table[i].group, table[i].version, table[i].kind,
                                     table[i].plural, table[i].namespaced, table[i].status, true);

                if (resource)
                        describe_columns(resource, table[i].short_name, table[i].columns);
        }
        share_events(server);
        for (size_t i = 0; i < ELEMENTS(name); i++)
                add_namespace(server, name[i]);
}
