/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of examples/website with the kit: a page in a ConfigMap, a Deployment that serves it, a Service in front. */
#include "website.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

/* FNV-1a, as 16 digits. */
static void hash(const char *text, char digits[17])
{
        uint64_t sum = 0xcbf29ce484222325;

        for (; *text; text++)
                sum = (sum ^ (unsigned char)*text) * 0x100000001b3;
        snprintf(digits, 17, "%016" PRIx64, sum);
}

/* The page's hash among the annotations: another page is another pod. */
static struct rk_value *make_deployment(struct rk_request *request, const char *page, long long replicas)
{
        const char *name = request->name;
        struct rk_value *labels = rk_build(request, "{'website': %s}", name), *container, *pod;
        char digits[17];

        hash(page, digits);
        container = rk_build(request,
                             "{'name': 'web', 'image': 'nginx:stable', 'ports': [{'containerPort': 80}],"
                             " 'volumeMounts': [{'name': 'page', 'mountPath': '/usr/share/nginx/html'}]}");
        pod = rk_build(
                request,
                "{'metadata': {'labels': %v, 'annotations': {'page': %s}},"
                " 'spec': {'volumes': [{'name': 'page', 'configMap': {'name': %s}}], 'containers': [%v]}}",
                labels, digits, name, container);
        return rk_build(request,
                        "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': %s},"
                        " 'spec': {'replicas': %lld, 'selector': {'matchLabels': %v}, 'template': %v}}",
                        name, replicas, labels, pod);
}

struct rk_value *website_reconcile(struct rk_request *request)
{
        const struct rk_value *spec = rk_get(request->object, "spec");
        const char *name = request->name, *page = rk_text(rk_get(spec, "html"), NULL);
        struct rk_value *children, *wrong = NULL;
        long long replicas = 1;
        char address[600];

        if (!page)
                return rk_permanent(request, "the web site lacks spec.html");
        if (!rk_is_null(rk_get(spec, "replicas")))
                wrong = rk_want_integer(request, rk_get(spec, "replicas"), "spec.replicas", &replicas);
        if (wrong)
                return wrong;
        rk_info("web site %s/%s", request->namespace_name, name);
        children = rk_build(
                request,
                "[{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': %s},"
                "  'data': {'index.html': %s}},"
                " %v,"
                " {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': %s},"
                "  'spec': {'selector': {'website': %s}, 'ports': [{'port': 80, 'protocol': 'TCP'}]}}]",
                name, page, make_deployment(request, page, replicas), name, name);
        snprintf(address, sizeof(address), "http://%s.%s", name, request->namespace_name);
        return rk_build(request, "{'children': %v, 'status': {'address': %s}}", children, address);
}

struct rk_value *website_finalize(struct rk_request *request)
{
        rk_info("web site %s goes, and its children with it", request->name);
        return NULL;
}

#ifndef WEBSITE_TEST
int main(void)
{
        return rk_serve(&(struct rk_handler){.reconcile = website_reconcile, .finalize = website_finalize});
}
#endif
