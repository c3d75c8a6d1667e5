/* SPDX-License-Identifier: Apache-2.0 */
/* The core kinds, as plain objects: no controller runs behind them. */
#include <string.h>

#include "devserver/server.h"

static const struct {
        const char *group, *version, *kind, *plural, *short_name;
        bool namespaced, status;
} table[] = {
        {"", "v1", "Namespace", "namespaces", "ns", false, true},
        {"", "v1", "ConfigMap", "configmaps", "cm", true, false},
        {"", "v1", "Secret", "secrets", "", true, false},
        {"", "v1", "Pod", "pods", "po", true, true},
        {"", "v1", "Node", "nodes", "no", false, true},
        {"", "v1", "Service", "services", "svc", true, true},
        {"", "v1", "ServiceAccount", "serviceaccounts", "sa", true, false},
        {"", "v1", "Event", "events", "ev", true, false},
        {"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", true, true},
        {"apps", "v1", "Deployment", "deployments", "deploy", true, true},
        {"apps", "v1", "StatefulSet", "statefulsets", "sts", true, true},
        {"apps", "v1", "DaemonSet", "daemonsets", "ds", true, true},
        {"batch", "v1", "Job", "jobs", "", true, true},
        {"coordination.k8s.io", "v1", "Lease", "leases", "", true, false},
        {"events.k8s.io", "v1", "Event", "events", "ev", true, false},
        {"rbac.authorization.k8s.io", "v1", "Role", "roles", "", true, false},
        {"rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", true, false},
        {"rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", false, false},
        {"rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", false, false},
        {"networking.k8s.io", "v1", "Ingress", "ingresses", "ing", true, true},
        {"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", "crd", false,
         true},
};

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

void builtin_add(struct server *server)
{
        static const char *const name[] = {"default", "kube-system", "kube-public"};

        for (size_t i = 0; i < ELEMENTS(table); i++) {
                struct resource *resource =
                        resource_add(&server->storage, table[i].group, table[i].version, table[i].kind,
                                     table[i].plural, table[i].namespaced, table[i].status, true);

                if (!resource)
                        continue;
                free(resource->short_name);
                resource->short_name = strdup(table[i].short_name);
        }
        for (size_t i = 0; i < ELEMENTS(name); i++)
                add_namespace(server, name[i]);
}
