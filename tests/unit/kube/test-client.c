/* SPDX-License-Identifier: Apache-2.0 */
/* What goes out: headers, credentials, bodies, proxies, the hold-back. How transfers end: test-transfer.c.
 */
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "tests/unit/kube/fixture.h"

static void answer_ok(struct server_connection *connection, const char *request)
{
        (void)request;
        server_answer(connection, "200 OK", "", "{\"kind\":\"PodList\"}");
}

static bool asked(const struct fixture *fixture, const char *text)
{
        return strstr(fixture->server.request, text);
}

static void test_get(void **state)
{
        struct fixture *fixture = *state;

        fixture->server.on_request = answer_ok;
        fixture_get(fixture, "/api/v1/pods?limit=5&labelSelector=a%3Db");
        assert_int_equal(fixture->http_status, 200);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_NONE);
        assert_string_equal(fixture->body, "{\"kind\":\"PodList\"}");
        assert_int_equal(fixture->serial, 7);
        assert_ptr_equal(
                strstr(fixture->server.request, "GET /api/v1/pods?limit=5&labelSelector=a%3Db HTTP/1.1\r\n"),
                fixture->server.request);
        assert_true(asked(fixture, "\r\nAuthorization: Bearer s3cret\r\n"));
        assert_true(asked(fixture, "\r\nUser-Agent: test/1\r\n"));
        assert_true(asked(fixture, "\r\nAccept: application/json\r\n"));
        assert_false(asked(fixture, "gzip"));
}

static void test_one_connection_for_many(void **state)
{
        struct fixture *fixture = *state;

        fixture->server.on_request = answer_ok;
        for (unsigned i = 0; i < 20; i++)
                fixture_get(fixture, "/version");
        assert_int_equal(fixture->server.requests, 20);
        assert_int_equal(fixture->server.connections, 1);
}

static void test_patch(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/a", false);
        char body[2048];

        /* Above 1 KiB libcurl would ask for leave first (Expect: 100-continue), which costs a round trip. */
        memset(body, 'x', sizeof(body) - 1);
        body[sizeof(body) - 1] = '\0';
        fixture->server.on_request = answer_ok;
        request.method = "PATCH";
        request.content_type = "application/merge-patch+json";
        request.accept = "application/json;as=Table";
        request.body = body;
        request.body_size = strlen(body);
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        body[0] = 'y'; /* it was copied */
        fixture_wait(fixture, &fixture->done, 1);
        assert_true(asked(fixture, "PATCH /a HTTP/1.1\r\n"));
        assert_true(asked(fixture, "\r\nContent-Type: application/merge-patch+json\r\n"));
        assert_true(asked(fixture, "\r\nAccept: application/json;as=Table\r\n"));
        assert_true(asked(fixture, "\r\nContent-Length: 2047\r\n"));
        assert_false(asked(fixture, "Expect"));
        assert_true(asked(fixture, "\r\n\r\nxxx"));
        body[0] = 'x';
        assert_true(asked(fixture, body));
}

static void test_delete_without_body(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/a", false);

        fixture->server.on_request = answer_ok;
        request.method = "DELETE";
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 1);
        assert_true(asked(fixture, "DELETE /a HTTP/1.1\r\n"));
        assert_false(asked(fixture, "Content-Type"));
}

static void test_basic(void **state)
{
        struct fixture *fixture = *state;
        struct message_credential credential = fixture_credential(fixture->server.url, "");

        credential.username = "admin";
        credential.password = "pw:1";
        fixture_use(fixture, &credential);
        fixture->server.on_request = answer_ok;
        fixture_get(fixture, "/version");
        assert_true(asked(fixture, "\r\nAuthorization: Basic YWRtaW46cHc6MQ==\r\n"));
}

static void test_server_with_a_path(void **state)
{
        struct fixture *fixture = *state;
        char url[128] = "";
        struct message_credential credential = fixture_credential(url, "");

        fixture->server.on_request = answer_ok;
        snprintf(url, sizeof(url), "%s/k8s/clusters/c-1/", fixture->server.url);
        fixture_use(fixture, &credential);
        fixture_get(fixture, "/api/v1/namespaces/../pods");
        assert_true(asked(fixture, "GET /k8s/clusters/c-1/api/v1/namespaces/../pods HTTP/1.1\r\n"));
        assert_false(asked(fixture, "Authorization"));
}

/* The URL says the name that TLS shall check; the connection and the Host header are the real server's. */
static void test_tls_server_name(void **state)
{
        struct fixture *fixture = *state;
        struct message_credential credential = fixture_credential(fixture->server.url, "t");
        char host[64];

        credential.tls_server_name = "api.invalid";
        fixture_use(fixture, &credential);
        fixture->server.on_request = answer_ok;
        fixture_get(fixture, "/version?a=b");
        assert_int_equal(fixture->http_status, 200);
        snprintf(host, sizeof(host), "\r\nHost: 127.0.0.1:%d\r\n", fixture->server.port);
        assert_true(asked(fixture, host));
        assert_true(asked(fixture, "GET /version?a=b HTTP/1.1\r\n"));
}

static void test_no_credential_yet(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/", false);
        struct kube_client *client;

        assert_int_equal(kube_client_new(fixture->event, "test/1", &client), 0);
        assert_false(kube_client_has_credential(client));
        assert_string_equal(kube_client_server(client), "");
        assert_int_equal(kube_client_start(client, &request, NULL), -ENOKEY);
        kube_client_free(client);
        kube_client_free(NULL);
}

/* ---- a new credential */

static void test_new_credential(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/slow", false);
        struct message_credential credential = fixture_credential(fixture->server.url, "fresh");
        struct server_connection *slow;

        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->server.requests, 1);
        slow = fixture->server.last;

        credential.serial = 8;
        fixture_use(fixture, &credential);
        assert_int_equal(kube_client_credential_serial(fixture->client), 8);
        fixture->server.on_request = answer_ok;
        fixture_get(fixture, "/version");
        assert_true(asked(fixture, "Bearer fresh"));
        assert_int_equal(fixture->serial, 8);

        server_answer(slow, "401 Unauthorized", "", "{\"code\":401,\"reason\":\"Unauthorized\"}");
        fixture_wait(fixture, &fixture->done, 2);
        assert_int_equal(fixture->error.http_status, 401);
        assert_int_equal(fixture->serial, 7); /* a REFRESH must name the one that was refused */
}

/* ---- proxies */

static void test_proxy_of_the_kubeconfig(void **state)
{
        struct fixture *fixture = *state;
        struct message_credential credential = fixture_credential("http://api.invalid:6443", "t");

        credential.proxy_url = fixture->server.url;
        fixture_use(fixture, &credential);
        setenv("NO_PROXY", "*", 1);
        fixture->server.on_request = answer_ok;
        fixture_get(fixture, "/version");
        unsetenv("NO_PROXY");
        assert_int_equal(fixture->http_status, 200);
        assert_true(asked(fixture, "GET http://api.invalid:6443/version HTTP/1.1\r\n"));
}

static void test_environments_proxy_is_not_for_this_machine(void **state)
{
        struct fixture *fixture = *state;

        fixture->server.on_request = answer_ok;
        setenv("http_proxy", "http://127.0.0.1:1", 1);
        fixture_get(fixture, "/version");
        unsetenv("http_proxy");
        assert_int_equal(fixture->http_status, 200);
}

/* ---- holding back */

static void test_throttle(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/held", false);
        uint64_t until = clock_boottime_usec() + 300 * USEC_PER_MSEC;
        struct kube_transfer *cancelled;

        fixture->server.on_request = answer_ok;
        request.timeout_usec = 200 * USEC_PER_MSEC; /* counts from the moment it may leave */
        kube_client_throttle(fixture->client, "", until);
        kube_client_throttle(fixture->client, "", until - 200 * USEC_PER_MSEC); /* the longer wish counts */
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        assert_int_equal(kube_client_start(fixture->client, &request, &cancelled), 0);
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        kube_transfer_cancel(cancelled);
        fixture_wait(fixture, &fixture->server.requests, 1);
        assert_true(clock_boottime_usec() >= until);
        fixture_wait(fixture, &fixture->done, 2);
        assert_int_equal(fixture->http_status, 200);
        fixture_get(fixture, "/version");
        assert_int_equal(fixture->server.requests, 3);
}

/* Nothing else is under way that would give the client a turn. */
static void test_patience(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/apis/apps/v1/deployments/a", false);
        uint64_t until = clock_boottime_usec() + USEC_PER_HOUR;

        fixture->server.on_request = answer_ok;
        kube_client_set_patience(fixture->client, 100 * USEC_PER_MSEC);
        kube_client_throttle(fixture->client, "apps/deployments", until);
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        assert_int_equal(fixture->done, 0); /* the caller has not noted the transfer yet */
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_HELD);
        assert_int_equal(fixture->http_status, 0);
        assert_in_range(fixture->error.retry_after_sec, 3590, 3600);
        assert_non_null(strstr(fixture->error.message, "deployments"));
        assert_int_equal(kube_error_blame(&fixture->error), KUBE_BLAME_SERVER);
        fixture_get(fixture, "/apis/apps/v1/replicasets/a");
        assert_int_equal(fixture->http_status, 200);
        assert_int_equal(fixture->server.requests, 1);
}

/* The wish comes while they wait for a shorter one: what is impatient ends, the other leaves in time. */
static void test_patience_ends_while_it_waits(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/api/v1/pods/a", false);
        uint64_t until = clock_boottime_usec() + 300 * USEC_PER_MSEC;

        fixture->server.on_request = answer_ok;
        kube_client_set_patience(fixture->client, 200 * USEC_PER_MSEC);
        kube_client_throttle(fixture->client, "/pods", clock_boottime_usec() + 100 * USEC_PER_MSEC);
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        request.patient = true;
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        kube_client_throttle(fixture->client, "", until);
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_HELD);
        assert_null(strstr(fixture->error.message, "pods")); /* it is the whole server's */
        fixture_wait(fixture, &fixture->done, 2);
        assert_true(clock_boottime_usec() >= until);
        assert_int_equal(fixture->http_status, 200);
        assert_int_equal(fixture->server.requests, 1);
}

static struct server_connection *held[32];
static unsigned held_count;

static void hold_answer(struct server_connection *connection, const char *request)
{
        (void)request;
        held[held_count++ % ELEMENTS(held)] = connection;
}

/* Four at once; after a 429 two, and with as many successes three. */
static void test_few_requests_at_once(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/version", false);
        struct kube_transfer *transfer[8];

        held_count = 0;
        fixture->server.on_request = hold_answer;
        kube_client_set_at_once(fixture->client, 4, 4);
        for (size_t i = 0; i < ELEMENTS(transfer); i++)
                assert_int_equal(kube_client_start(fixture->client, &request, &transfer[i]), 0);
        fixture_wait(fixture, &fixture->server.requests, 4);
        assert_int_equal(fixture->server.connections, 4);
        server_answer(held[0], "429 Too Many Requests", "", "{}");
        fixture_wait(fixture, &fixture->done, 1);
        server_answer(held[1], "200 OK", "", "{}");
        fixture_wait(fixture, &fixture->done, 2);
        assert_int_equal(fixture->server.requests, 4);
        server_answer(held[2], "200 OK", "", "{}");
        fixture_wait(fixture, &fixture->server.requests, 6);
        assert_int_equal(fixture->done, 3);
        /* One that waits is cancelled, and one that is in flight: its place is another one's. */
        kube_transfer_cancel(transfer[6]);
        kube_transfer_cancel(transfer[5]);
        fixture_wait(fixture, &fixture->server.requests, 7);
}

/* One at once, and one more for each millisecond that its quickest answer takes. */
static void test_more_requests_at_once_if_the_server_is_far_away(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/version", false);
        uint64_t began = clock_boottime_usec(), first_took = 0;

        held_count = 0;
        fixture->server.on_request = hold_answer;
        kube_client_set_at_once(fixture->client, 1, ELEMENTS(held) / 2);
        for (size_t i = 0; i < ELEMENTS(held); i++)
                assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        for (unsigned i = 0; i < ELEMENTS(held); i++) {
                fixture_wait(fixture, &fixture->server.requests, i + 1);
                fixture_turn(fixture, 2 * USEC_PER_MSEC);
                server_answer(held[i], "200 OK", "", "{}");
                fixture_wait(fixture, &fixture->done, i + 1);
                if (i == 0)
                        first_took = clock_boottime_usec() - began;
        }
        assert_in_range(fixture->server.connections, 2, 1 + first_took / USEC_PER_MSEC);
}

/* ---- small and bounded */

static void test_counters(void **state)
{
        struct fixture *fixture = *state;
        struct record_counter counter[8];
        size_t n;

        fixture->server.on_request = answer_ok;
        fixture_get(fixture, "/version");
        fixture_get(fixture, "/version");
        n = kube_client_count(fixture->client, counter, ELEMENTS(counter));
        assert_in_range(n, 1, ELEMENTS(counter));
        assert_string_equal(counter[0].name, "api_requests_2xx");
        assert_int_equal(counter[0].value, 2);
        assert_int_equal(kube_client_count(fixture->client, counter, 1), 1);
}

static unsigned open_descriptors(void)
{
        DIR *folder = opendir("/proc/self/fd");
        unsigned n = 0;

        assert_non_null(folder);
        while (readdir(folder))
                n++;
        closedir(folder);
        return n;
}

static void answer_gone_and_close(struct server_connection *connection, const char *request)
{
        (void)request;
        server_answer(connection, "410 Gone", "Connection: close\r\n", "{\"code\":410}");
        server_hang_up(connection);
}

/* fabric8#1943 */
static void test_descriptors_stay_constant(void **state)
{
        struct fixture *fixture = *state;
        unsigned before = 0;

        fixture->server.on_request = answer_gone_and_close;
        for (unsigned i = 0; i < 300; i++) {
                fixture_get(fixture, "/watch");
                assert_int_equal(fixture->error.http_status, 410);
                if (i == 5)
                        before = open_descriptors();
        }
        assert_in_range(open_descriptors(), 1, before + 2);
}

/* ---- connections that are kept */

static void hang_up_once(struct server_connection *connection, const char *request)
{
        if (connection->server->requests == 2)
                server_hang_up(connection);
        else
                server_answer(connection, strncmp(request, "GET /a", 6) == 0 ? "200 OK" : "409 Conflict", "",
                              "{}");
}

static void test_a_repeated_request_says_so(void **state)
{
        struct fixture *fixture = *state;

        fixture->server.on_request = hang_up_once;
        fixture_get(fixture, "/a");
        assert_false(fixture->repeated);
        fixture_get(fixture, "/b");
        assert_int_equal(fixture->http_status, 409);
        assert_int_equal(fixture->server.requests, 3);
        assert_true(fixture->repeated);
        fixture_get(fixture, "/a");
        assert_false(fixture->repeated);
}

static void ask_at_once(struct fixture *fixture, unsigned count)
{
        struct kube_request request = fixture_request(fixture, "/version", false);
        unsigned before = fixture->done;

        held_count = 0;
        fixture->server.on_request = hold_answer;
        for (unsigned i = 0; i < count; i++)
                assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &held_count, count);
        for (unsigned i = 0; i < count; i++)
                server_answer(held[i], "200 OK", "", "{}");
        fixture_wait(fixture, &fixture->done, before + count);
}

static void test_connections_outlive_a_pause(void **state)
{
        struct fixture *fixture = *state;

        kube_client_set_at_once(fixture->client, 16, 16);
        ask_at_once(fixture, 16);
        ask_at_once(fixture, 1);
        ask_at_once(fixture, 16);
        assert_int_equal(fixture->server.connections, 16);
}

/* ---- warnings */

static unsigned warned;
static char last_warning[512];

static void on_warning(const char *text, const struct fiber *asker _unused_, void *userdata)
{
        assert_non_null(userdata);
        warned++;
        snprintf(last_warning, sizeof(last_warning), "%s", text);
}

static const char *warning_header = "";

static void answer_with_warning(struct server_connection *connection, const char *request)
{
        (void)request;
        server_answer(connection, "200 OK", warning_header, "{}");
}

static void test_warnings_come_once(void **state)
{
        static const struct {
                const char *header, *text; /* NULL: none */
        } given[] = {
                {"Warning: 299 - \"v1beta1 is deprecated\"\r\n", "v1beta1 is deprecated"},
                {"Warning: 299 - \"v1beta1 is deprecated\"\r\n", NULL},
                {"warning:299 - \"say \\\"a\\\\b\\\"\" \"Sat, 21 Nov 2026 04:00:00 GMT\"\r\n",
                 "say \"a\\b\""},
                {"Warning: 110 cache \"stale\"\r\n", NULL},
                {"Warning: 299 - unquoted\r\n", NULL},
                {"Warning: 299 - \"\"\r\n", NULL},
                {"Warning: 299 - \"tab\there\r\n", "tab here"},
        };
        struct fixture *fixture = *state;

        warned = 0;
        fixture->server.on_request = answer_with_warning;
        kube_client_on_warning(fixture->client, on_warning, fixture);
        for (size_t i = 0; i < ELEMENTS(given); i++) {
                unsigned before = warned;

                warning_header = given[i].header;
                fixture_get(fixture, "/version");
                assert_int_equal(warned, before + (given[i].text ? 1 : 0));
                if (given[i].text)
                        assert_string_equal(last_warning, given[i].text);
        }
}

/* ---- a peer that vanished */

static int option_of(int fd, int level, int name)
{
        int value = -1;
        socklen_t size = sizeof(value);

        assert_int_equal(getsockopt(fd, level, name, &value, &size), 0);
        return value;
}

static bool leads_to(int fd, int port)
{
        struct sockaddr_in peer = {0};
        socklen_t size = sizeof(peer);

        return getpeername(fd, (struct sockaddr *)&peer, &size) == 0 && peer.sin_family == AF_INET &&
               ntohs(peer.sin_port) == port;
}

/* kubernetes#65012: the kernel tells of it, while the stream is idle and while bytes are on their way. */
static void test_a_vanished_peer_is_noticed(void **state)
{
        struct fixture *fixture = *state;
        unsigned found = 0;

        fixture->server.on_request = answer_ok;
        fixture_get(fixture, "/version"); /* its connection is kept */
        for (int fd = 0; fd < 256; fd++) {
                if (!leads_to(fd, fixture->server.port))
                        continue;
                found++;
                assert_int_equal(option_of(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
                assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE), 30);
                assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL), 30);
                assert_int_equal(option_of(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
        }
        assert_int_equal(found, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest test[] = {
                TEST(test_get),
                TEST(test_one_connection_for_many),
                TEST(test_patch),
                TEST(test_delete_without_body),
                TEST(test_basic),
                TEST(test_server_with_a_path),
                TEST(test_tls_server_name),
                TEST(test_no_credential_yet),
                TEST(test_new_credential),
                TEST(test_proxy_of_the_kubeconfig),
                TEST(test_environments_proxy_is_not_for_this_machine),
                TEST(test_throttle),
                TEST(test_patience),
                TEST(test_patience_ends_while_it_waits),
                TEST(test_few_requests_at_once),
                TEST(test_more_requests_at_once_if_the_server_is_far_away),
                TEST(test_counters),
                TEST(test_descriptors_stay_constant),
                TEST(test_a_repeated_request_says_so),
                TEST(test_connections_outlive_a_pause),
                TEST(test_warnings_come_once),
                TEST(test_a_vanished_peer_is_noticed),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
