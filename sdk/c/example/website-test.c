/* SPDX-License-Identifier: Apache-2.0 */
/* Built with -DWEBSITE_TEST, website.c has no main(). */
#include <assert.h>

#include "website.h"

#define LABELS "{'website': 'hello'}"

static const char answer[] =
        "{'status': {'address': 'http://hello.default'}, 'children': ["
        "{'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'hello'}, 'data': {'index.html': 'Hello'}},"
        "{'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': 'hello'}, 'spec': {"
        " 'replicas': 2, 'selector': {'matchLabels': " LABELS "}, 'template': {"
        "  'metadata': {'labels': " LABELS ", 'annotations': {'page': '63f0bfacf2c00f6b'}},"
        "  'spec': {'volumes': [{'name': 'page', 'configMap': {'name': 'hello'}}], 'containers': [{"
        "   'name': 'web', 'image': 'nginx:stable', 'ports': [{'containerPort': 80}],"
        "   'volumeMounts': [{'name': 'page', 'mountPath': '/usr/share/nginx/html'}]}]}}}},"
        "{'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'hello'}, 'spec': {"
        " 'selector': " LABELS ", 'ports': [{'port': 80, 'protocol': 'TCP'}]}}]}";

int main(void)
{
        const char *object = "{'metadata': {'name': 'hello'}, 'spec': {'html': 'Hello', 'replicas': 2}}";

        assert(rk_answers(website_reconcile, "reconcile", object, answer));
        assert(rk_answers(website_reconcile, "reconcile", "{'spec': {}}",
                          "{'error': 'the web site lacks spec.html', 'permanent': true}"));
        assert(rk_answers(website_finalize, "finalize", "{}", "{}"));
        return 0;
}
