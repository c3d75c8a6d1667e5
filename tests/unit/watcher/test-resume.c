/* SPDX-License-Identifier: Apache-2.0 */
/* When a store is as good as a LIST, and how requests are worded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/duration.h"
#include "store/meta.h"
#include "watcher/stream/resume.h"
#include "watcher/stream/stream-request.h"

static char cluster[] = "cluster", other[] = "other", scope[] = "scope", basis[] = "basis", empty[] = "",
            version[] = "v1", plural[] = "pods", older[] = "5", newer[] = "42", token[] = "t/1";

struct fixture {
        struct message_config_watcher config;
        struct watcher watcher;
        struct stream stream;
};

static struct fixture *fixture_new(void)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        fixture->config = (struct message_config_watcher){.watch = "w",
                                                          .known_scope = scope,
                                                          .label_selector = "",
                                                          .field_selector = "",
                                                          .page_limit = 500};
        fixture->watcher = (struct watcher){
                .config = &fixture->config,
                .cluster = cluster,
                .scope = scope,
                .basis = basis,
                .meta = {.cluster = cluster, .scope = scope, .mark = 7},
                .resource = {.group = empty, .version = version, .plural = plural, .namespaced = true},
                .stream = &fixture->stream,
                .stream_count = 1,
        };
        fixture->stream = (struct stream){.watcher = &fixture->watcher,
                                          .namespace_name = "",
                                          .resource_version = newer,
                                          .continue_token = empty,
                                          .watch_timeout_sec = 300};
        return fixture;
}

static void test_only_the_same_is_resumed(void **state _unused_)
{
        struct fixture *fixture = fixture_new();

        assert_true(resume_is_allowed(&fixture->watcher));
        fixture->config.known_scope = ""; /* the ledger has nothing yet */
        assert_true(resume_is_allowed(&fixture->watcher));
        fixture->config.known_scope = other;
        assert_false(resume_is_allowed(&fixture->watcher));
        fixture->config.known_scope = scope;
        fixture->watcher.meta.scope = other;
        assert_false(resume_is_allowed(&fixture->watcher));
        fixture->watcher.meta.scope = scope;
        fixture->watcher.meta.cluster = other;
        assert_false(resume_is_allowed(&fixture->watcher));
        fixture->watcher.meta.cluster = empty;
        assert_false(resume_is_allowed(&fixture->watcher));
        fixture->watcher.meta.cluster = cluster;
        fixture->watcher.deletions_suspended = true;
        assert_false(resume_is_allowed(&fixture->watcher));
        free(fixture);
}

static void test_only_what_was_complete_is_resumed(void **state _unused_)
{
        struct fixture *fixture = fixture_new();
        struct store_position position = {.resource_version = older, .basis = basis, .mark = 7};

        assert_true(resume_position_fits(&fixture->watcher, &position));
        position.basis = other; /* fingerprinted in another way */
        assert_false(resume_position_fits(&fixture->watcher, &position));
        position.basis = basis;
        position.mark = 0;
        assert_false(resume_position_fits(&fixture->watcher, &position));
        position.mark = 8; /* of a LIST that the store knows nothing of */
        assert_false(resume_position_fits(&fixture->watcher, &position));
        position.mark = 7;
        position.resource_version = empty;
        assert_false(resume_position_fits(&fixture->watcher, &position));
        free(fixture);
}

static void assert_path(const struct fixture *fixture, enum request request, const char *expected)
{
        _cleanup_free_ char *path = request_path(&fixture->stream, request);

        assert_non_null(path);
        assert_string_equal(path, expected);
}

static void test_requests(void **state _unused_)
{
        struct fixture *fixture = fixture_new();

        assert_path(fixture, REQUEST_LIST, "/api/v1/pods?limit=500");
        assert_path(fixture, REQUEST_PROBE, "/api/v1/pods?limit=1");
        assert_path(fixture, REQUEST_WATCH,
                    "/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion=42&timeoutSeconds=300");
        assert_path(fixture, REQUEST_INITIAL,
                    "/api/v1/pods?watch=1&allowWatchBookmarks=true&sendInitialEvents=true&"
                    "resourceVersionMatch=NotOlderThan&resourceVersion=&timeoutSeconds=300");
        fixture->stream.continue_token = token;
        fixture->config.label_selector = "a in (b)";
        /* a continue page carries no resourceVersion */
        assert_path(fixture, REQUEST_LIST,
                    "/api/v1/pods?limit=500&labelSelector=a%20in%20%28b%29&continue=t%2F1");
        fixture->stream.continue_token = empty;
        fixture->stream.list_unpaged = true;
        fixture->config.label_selector = "";
        fixture->stream.namespace_name = "default";
        assert_path(fixture, REQUEST_LIST, "/api/v1/namespaces/default/pods");
        free(fixture);
}

static void test_parameters_are_left_out_one_by_one(void **state _unused_)
{
        struct fixture *fixture = fixture_new();

        assert_true(request_reduce(&fixture->watcher, PHASE_LIST));
        assert_path(fixture, REQUEST_LIST, "/api/v1/pods");
        assert_false(request_reduce(&fixture->watcher, PHASE_LIST));
        assert_true(request_reduce(&fixture->watcher, PHASE_WATCH));
        assert_path(fixture, REQUEST_WATCH, "/api/v1/pods?watch=1&resourceVersion=42&timeoutSeconds=300");
        assert_true(request_reduce(&fixture->watcher, PHASE_WATCH));
        assert_path(fixture, REQUEST_WATCH, "/api/v1/pods?watch=1&resourceVersion=42");
        assert_false(request_reduce(&fixture->watcher, PHASE_WATCH));
        /* an hour later */
        fixture->watcher.left_out_until = 1;
        assert_path(fixture, REQUEST_LIST, "/api/v1/pods?limit=500");
        free(fixture);
}

static void test_when_a_list_may_be_streamed(void **state _unused_)
{
        struct fixture *fixture = fixture_new();

        assert_false(request_may_stream_list(&fixture->stream));
        fixture->watcher.server_minor = 26;
        assert_false(request_may_stream_list(&fixture->stream));
        fixture->watcher.server_minor = 27;
        assert_true(request_may_stream_list(&fixture->stream));
        fixture->watcher.no_watch_list_until = UINT64_MAX;
        assert_false(request_may_stream_list(&fixture->stream));
        fixture->watcher.no_watch_list_until = 1;
        fixture->stream.list_unpaged = true;
        assert_false(request_may_stream_list(&fixture->stream));
        free(fixture);
}

static void test_partial_objects_are_asked_for(void **state _unused_)
{
        struct fixture *fixture = fixture_new();

        assert_null(request_accept(&fixture->watcher, REQUEST_LIST));
        fixture->config.metadata_only = true;
        assert_string_equal(request_accept(&fixture->watcher, REQUEST_LIST),
                            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
        assert_string_equal(request_accept(&fixture->watcher, REQUEST_WATCH),
                            "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");
        free(fixture);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_only_the_same_is_resumed),
                cmocka_unit_test(test_only_what_was_complete_is_resumed),
                cmocka_unit_test(test_requests),
                cmocka_unit_test(test_parameters_are_left_out_one_by_one),
                cmocka_unit_test(test_when_a_list_may_be_streamed),
                cmocka_unit_test(test_partial_objects_are_asked_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
