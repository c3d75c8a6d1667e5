/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the API, and resources found in a discovery document. */
#include <errno.h>
#include <string.h>

#include "base/throttle.h"
#include "kube/path.h"
#include "kube/search.h"
#include "tests/unit/kube/fixture.h"

static const char document[] =
        "{\"kind\":\"APIResourceList\",\"groupVersion\":\"example.com/v1\",\"resources\":["
        "{\"name\":\"widgets/status\",\"namespaced\":true,\"kind\":\"Widget\"},"
        "{\"name\":\"widgets\",\"namespaced\":true,\"kind\":\"Widget\"},"
        "{\"name\":\"widgetsets\",\"namespaced\":false,\"kind\":\"WidgetSet\"},"
        "{\"name\":\"oxen\",\"kind\":\"Ox\"}, 5, {\"kind\":\"Nameless\"}]}";

static void test_from_list(void **state)
{
        struct kube_resource resource;

        (void)state;
        assert_int_equal(
                kube_resource_from_list("example.com/v1", "Widget", document, strlen(document), &resource),
                0);
        assert_string_equal(resource.group, "example.com");
        assert_string_equal(resource.version, "v1");
        assert_string_equal(resource.kind, "Widget");
        assert_string_equal(resource.plural, "widgets");
        assert_true(resource.namespaced);
        assert_true(resource.status_subresource);
        kube_resource_done(&resource);

        assert_int_equal(kube_resource_from_list("example.com/v1", "WidgetSet", document, strlen(document),
                                                 &resource),
                         0);
        assert_string_equal(resource.plural, "widgetsets");
        assert_false(resource.namespaced);
        assert_false(resource.status_subresource);
        kube_resource_done(&resource);

        assert_int_equal(
                kube_resource_from_list("example.com/v1", "Ox", document, strlen(document), &resource), 0);
        assert_string_equal(resource.plural, "oxen");
        kube_resource_done(&resource);
}

static void test_not_in_list(void **state)
{
        struct kube_resource resource;
        const char *garbage[] = {"", "{", "[]", "{}", "{\"resources\":5}", "null", "404 page not found"};

        (void)state;
        assert_int_equal(
                kube_resource_from_list("example.com/v1", "widget", document, strlen(document), &resource),
                -ENOENT);
        assert_int_equal(
                kube_resource_from_list("example.com/v1", "Nameless", document, strlen(document), &resource),
                -ENOENT);
        for (size_t i = 0; i < ELEMENTS(garbage); i++)
                assert_int_equal(
                        kube_resource_from_list("v1", "Pod", garbage[i], strlen(garbage[i]), &resource),
                        -EBADMSG);
}

static void test_api_version(void **state)
{
        static const char *const wrong[] = {"", "/", "/v1", "apps/", "a/b/c"};
        char *group = NULL, *version = NULL;

        (void)state;
        assert_int_equal(kube_api_version_split("v1", &group, &version), 0);
        assert_string_equal(group, "");
        assert_string_equal(version, "v1");
        free(group);
        free(version);
        assert_int_equal(kube_api_version_split("apps/v1", &group, &version), 0);
        assert_string_equal(group, "apps");
        assert_string_equal(version, "v1");
        free(group);
        free(version);
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                group = version = NULL;
                assert_int_equal(kube_api_version_split(wrong[i], &group, &version), -EINVAL);
                assert_null(group);
                assert_null(version);
        }
}

static void test_path(void **state)
{
        static char core[] = "", group[] = "example.com", v1[] = "v1", pods[] = "pods",
                    widgets[] = "widgets";
        struct kube_resource pod = {.group = core, .version = v1, .plural = pods, .namespaced = true};
        struct kube_resource widget = {.group = group, .version = v1, .plural = widgets, .namespaced = true};
        const struct {
                const struct kube_resource *resource;
                const char *namespace_name, *name, *subresource, *path;
        } row[] = {
                {&pod, NULL, NULL, NULL, "/api/v1/pods"},
                {&pod, "", "", "", "/api/v1/pods"},
                {&pod, "default", NULL, NULL, "/api/v1/namespaces/default/pods"},
                {&pod, "default", "a", NULL, "/api/v1/namespaces/default/pods/a"},
                {&widget, "default", "a", "status",
                 "/apis/example.com/v1/namespaces/default/widgets/a/status"},
                {&widget, "default", "system:node/a?b%", NULL,
                 "/apis/example.com/v1/namespaces/default/widgets/system%3Anode%2Fa%3Fb%25"},
                {&widget, NULL, "a b\xc3\xa4", NULL, "/apis/example.com/v1/widgets/a%20b%C3%A4"},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                char *path =
                        kube_path(row[i].resource, row[i].namespace_name, row[i].name, row[i].subresource);

                assert_string_equal(path, row[i].path);
                free(path);
        }
}

static void test_path_add(void **state)
{
        struct text path = TEXT_EMPTY;

        (void)state;
        text_append_string(&path, "/api/v1/pods");
        assert_int_equal(kube_path_add(&path, "limit", "500"), 0);
        assert_int_equal(kube_path_add(&path, "labelSelector", "a=b,c in (d,e)"), 0);
        assert_int_equal(kube_path_add(&path, "continue", "eyJ2&?=+/"), 0);
        assert_string_equal(path.data, "/api/v1/pods?limit=500&labelSelector=a%3Db%2Cc%20in%20%28d%2Ce%29"
                                       "&continue=eyJ2%26%3F%3D%2B%2F");
        text_done(&path);
}

static void test_path_resource(void **state)
{
        static const char *const row[][2] = {
                {"/api/v1/pods?watch=1", "/pods"},
                {"/api/v1/namespaces/default/pods/a/status", "/pods"},
                {"/api/v1/namespaces/default", "/namespaces"},
                {"/apis/example.com/v1/widgets", "example.com/widgets"},
                {"/apis/example.com/v1/namespaces/default/widgets/a", "example.com/widgets"},
                {"/apis/example.com/v1", "example.com/v1"},
                {"/apis/example.com/v1?timeout=1s", "example.com/v1"},
                {"/api/v1", "/v1"},
                {"/apis/example.com", ""},
                {"/apis", ""},
                {"/api", ""},
                {"/version", ""},
        };
        char resource[THROTTLE_RESOURCE_MAX];

        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                kube_path_resource(row[i][0], resource, sizeof(resource));
                assert_string_equal(resource, row[i][1]);
        }
}

static void test_key_split(void **state)
{
        char *namespace_name, *name;

        (void)state;
        assert_int_equal(kube_key_split("default/a", &namespace_name, &name), 0);
        assert_string_equal(namespace_name, "default");
        assert_string_equal(name, "a");
        free(namespace_name);
        free(name);
        assert_int_equal(kube_key_split("node-1", &namespace_name, &name), 0);
        assert_string_equal(namespace_name, "");
        assert_string_equal(name, "node-1");
        free(namespace_name);
        free(name);
}

/* ---- against a server */

struct asker {
        struct fixture *fixture;
        struct fibers *fibers;
        struct fiber *fiber;
        const char *api_version, *kind;
        unsigned done;
        int result;
        struct kube_finding found;
};

static void ask_kind(void *userdata)
{
        struct asker *asker = userdata;

        asker->result =
                kube_ask_kind(asker->fixture->client, asker->api_version, asker->kind, &asker->found);
        asker->done++;
}

static void answer_resources(struct server_connection *connection, const char *request)
{
        if (strncmp(request, "GET /apis/example.com/v1 HTTP/1.1\r\n", 35) == 0)
                server_answer(connection, "200 OK", "", document);
        else if (strncmp(request, "GET /apis/broken.example/v1 ", 28) == 0)
                server_answer(connection, "200 OK", "", "<html>");
        else
                server_answer(connection, "404 Not Found", "", "404 page not found\n");
}

static void discover(struct asker *asker, const char *api_version, const char *kind)
{
        kube_finding_done(&asker->found);
        asker->api_version = api_version;
        asker->kind = kind;
        asker->done = 0;
        assert_int_equal(fiber_start(asker->fibers, "asker", ask_kind, asker, &asker->fiber), 0);
}

static void assert_not_found(struct asker *asker, const char *api_version, enum kube_failure failure,
                             const char *text)
{
        discover(asker, api_version, "Gadget");
        fixture_wait(asker->fixture, &asker->done, 1);
        assert_int_equal(asker->result, 0);
        assert_null(asker->found.resource.plural);
        assert_int_equal(asker->found.error.failure, failure);
        assert_int_equal(asker->found.error.http_status, failure == KUBE_FAILURE_HTTP ? 404 : 0);
        assert_non_null(strstr(asker->found.error.message, text));
}

static void test_discovery(void **state)
{
        struct fixture *fixture = *state;
        struct asker asker = {.fixture = fixture, .found = KUBE_FINDING_EMPTY};

        assert_int_equal(fibers_new(fixture->event, &asker.fibers), 0);
        fixture->server.on_request = answer_resources;
        discover(&asker, "example.com/v1", "Widget");
        fixture_wait(fixture, &asker.done, 1);
        assert_int_equal(asker.result, 0);
        assert_string_equal(asker.found.resource.plural, "widgets");
        assert_int_equal(asker.found.error.failure, KUBE_FAILURE_NONE);

        assert_not_found(&asker, "example.com/v1", KUBE_FAILURE_HTTP, "Gadget");
        assert_not_found(&asker, "absent.example/v1", KUBE_FAILURE_HTTP, "absent.example/v1");
        assert_not_found(&asker, "broken.example/v1", KUBE_FAILURE_PROTOCOL, "broken.example/v1");

        discover(&asker, "v1", "Pod");
        fiber_cancel(asker.fiber);
        fixture_wait(fixture, &asker.done, 1);
        assert_int_equal(asker.result, -ECANCELED);
        assert_null(asker.found.error.message);
        kube_finding_done(&asker.found);
        fibers_free(asker.fibers);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_from_list),
                cmocka_unit_test(test_not_in_list),
                cmocka_unit_test(test_api_version),
                cmocka_unit_test(test_path),
                cmocka_unit_test(test_path_add),
                cmocka_unit_test(test_path_resource),
                cmocka_unit_test(test_key_split),
                cmocka_unit_test_setup_teardown(test_discovery, fixture_setup, fixture_teardown),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
