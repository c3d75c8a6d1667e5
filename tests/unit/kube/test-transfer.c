/* SPDX-License-Identifier: Apache-2.0 */
/* How transfers end: refused, cut, slow, streamed, cancelled and freed from inside their own callbacks. */
#include <string.h>

#include "base/duration.h"
#include "tests/unit/kube/fixture.h"

/* What the server does with the next request. */
static const char *answer;
static bool then_hang_up;

static void say_answer(struct server_connection *connection, const char *request)
{
        (void)request;
        if (answer)
                server_say(connection, answer);
        if (then_hang_up)
                server_hang_up(connection);
}

static void get_answer(struct fixture *fixture, const char *text, bool hang_up)
{
        answer = text;
        then_hang_up = hang_up;
        fixture->server.on_request = say_answer;
        fixture_get(fixture, "/a");
}

static void start_stream(struct fixture *fixture)
{
        struct kube_request request = fixture_request(fixture, "/watch", true);

        assert_int_equal(kube_client_start(fixture->client, &request, &fixture->transfer), 0);
        fixture_wait(fixture, &fixture->server.requests, 1);
}

#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

/* ---- answers */

static void answer_not_found(struct server_connection *connection, const char *request)
{
        (void)request;
        server_answer(connection, "404 Not Found", "", "{\"reason\":\"NotFound\",\"message\":\"no a\"}");
}

static unsigned accepted;

static void note_accepted(struct kube_transfer *transfer, void *userdata)
{
        (void)transfer;
        (void)userdata;
        accepted++;
}

static void answer_head(struct server_connection *connection, const char *request)
{
        (void)request;
        server_say(connection, "HTTP/1.1 100 Continue\r\n\r\n" CHUNKED);
}

/* A watch stands before its first event; a refusal is no acceptance. */
static void test_accepted_before_the_first_byte(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/watch", true);

        request.on_accepted = note_accepted;
        accepted = 0;
        fixture->server.on_request = answer_head;
        assert_int_equal(kube_client_start(fixture->client, &request, &fixture->transfer), 0);
        fixture_wait(fixture, &accepted, 1);
        assert_int_equal(fixture->done, 0);
        kube_transfer_cancel(TAKE_PTR(fixture->transfer));

        fixture->server.on_request = answer_not_found;
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(accepted, 1);
}

static void test_status_error(void **state)
{
        struct fixture *fixture = *state;

        fixture->server.on_request = answer_not_found;
        fixture_get(fixture, "/a");
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_HTTP);
        assert_int_equal(fixture->http_status, 404);
        assert_string_equal(fixture->error.reason, "NotFound");
        assert_string_equal(fixture->error.message, "no a");
}

static void test_retry_after(void **state)
{
        static const struct {
                const char *value;
                int expected;
        } row[] = {{"3", 3},
                   {"0", -1},
                   {"-1", -1},
                   {"soon", -1},
                   {"99999999999999999999", -2},
                   {"7200", KUBE_RETRY_AFTER_MAX}};
        struct fixture *fixture = *state;
        char text[256];

        for (size_t i = 0; i < ELEMENTS(row); i++) {
                snprintf(text, sizeof(text),
                         "HTTP/1.1 429 Too Many Requests\r\nRetry-After: %s\r\nContent-Length: "
                         "9\r\n\r\nslow down",
                         row[i].value);
                get_answer(fixture, text, false);
                assert_int_equal(fixture->error.failure, KUBE_FAILURE_HTTP);
                assert_int_equal(fixture->error.http_status, 429);
                assert_string_equal(fixture->error.message, "slow down");
                if (row[i].expected != -2)
                        assert_int_equal(fixture->error.retry_after_sec, row[i].expected);
                else
                        assert_true(fixture->error.retry_after_sec <= KUBE_RETRY_AFTER_MAX);
        }
}

static void test_redirect_is_not_followed(void **state)
{
        struct fixture *fixture = *state;

        get_answer(fixture, "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0\r\n\r\n",
                   false);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_HTTP);
        assert_int_equal(fixture->error.http_status, 302);
        assert_int_equal(fixture->server.requests, 1);
}

static void test_cut(void **state)
{
        struct fixture *fixture = *state;

        get_answer(fixture, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", true);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_INTERRUPTED);
        get_answer(fixture, CHUNKED "4\r\nhalf\r\n", true);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_INTERRUPTED);
        get_answer(fixture, NULL, true);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_INTERRUPTED);
        assert_int_equal(fixture->http_status, 0);
}

/* The status line said it all; a 401 must lead to a fresh token however its body ends. */
static void test_cut_refusal(void **state)
{
        struct fixture *fixture = *state;

        get_answer(fixture, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 100\r\n\r\nwho are", true);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_HTTP);
        assert_int_equal(fixture->error.http_status, 401);
        assert_non_null(strstr(fixture->error.message, "who are (http")); /* server and user behind it */
}

static void test_not_http(void **state)
{
        struct fixture *fixture = *state;

        get_answer(fixture, "220 smtp.example.com ESMTP\r\n", true);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_PROTOCOL);
}

static void test_refused(void **state)
{
        struct fixture *fixture = *state;

        server_stop(&fixture->server);
        fixture_get(fixture, "/a");
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_CONNECT);
        assert_int_equal(fixture->http_status, 0);
        assert_non_null(strstr(fixture->error.message, fixture->server.url));
        assert_null(strstr(fixture->error.message, "s3cret"));
}

static void test_name_not_found(void **state)
{
        struct fixture *fixture = *state;
        struct message_credential credential = fixture_credential("https://api.invalid", "t");

        fixture_use(fixture, &credential);
        fixture_get(fixture, "/a");
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_CONNECT);
}

static void test_timeout(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/slow", false);

        get_answer(fixture, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false);
        fixture->server.on_request = NULL;
        request.timeout_usec = 50 * USEC_PER_MSEC;
        /* on a connection that was used before */
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 2);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_TIMEOUT);
        assert_int_equal(fixture->server.connections, 1);
        /* and on a new one */
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 3);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_TIMEOUT);
}

static void test_too_large(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/a", false);

        answer = "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world";
        fixture->server.on_request = say_answer;
        request.body_max = 11;
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_NONE);
        request.body_max = 10;
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 2);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_PROTOCOL);
        assert_non_null(strstr(fixture->error.message, "too large"));
}

/* Lines after a body in pieces, which libcurl keeps without a bound. A stream is accepted once, whatever they are. */
static void test_endless_trailer(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/watch", true);
        char line[1024];

        request.on_accepted = note_accepted;
        accepted = 0;
        answer = CHUNKED "0\r\n";
        fixture->server.on_request = say_answer;
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &accepted, 1);
        snprintf(line, sizeof(line), "X-a: %*d\r\n", 900, 0);
        for (unsigned i = 0; i < 2000 && fixture->done == 0; i++) {
                server_say(fixture->server.last, line);
                for (int turns = 0; turns < 3 && fixture->done == 0; turns++)
                        assert_true(sd_event_run(fixture->event, 0) >= 0);
        }
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_PROTOCOL);
        assert_non_null(strstr(fixture->error.message, "too large"));
        assert_int_equal(accepted, 1);
}

/* A refusal that explains itself without end. */
static void test_endless_refusal(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/watch", true);
        char block[4096];

        memset(block, 'x', sizeof(block));
        answer = "HTTP/1.1 403 Forbidden\r\n\r\n";
        fixture->server.on_request = say_answer;
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->server.requests, 1);
        for (unsigned i = 0; i < 2000 && fixture->done == 0; i++) {
                server_say_bytes(fixture->server.connection[0], block, sizeof(block));
                for (int turns = 0; turns < 3 && fixture->done == 0; turns++)
                        assert_true(sd_event_run(fixture->event, 0) >= 0);
        }
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_HTTP);
        assert_int_equal(fixture->error.http_status, 403);
        assert_int_equal(fixture->streamed, 0);
}

/* ---- streams */

static void wait_streamed(struct fixture *fixture, size_t count)
{
        while (fixture->streamed < count)
                assert_true(sd_event_run(fixture->event, 10 * USEC_PER_SEC) > 0);
}

static void test_stream(void **state)
{
        struct fixture *fixture = *state;

        start_stream(fixture);
        server_say(fixture->server.last, CHUNKED "4\r\none\n\r\n");
        wait_streamed(fixture, 1);
        assert_string_equal(fixture->body, "one\n");
        assert_int_equal(fixture->done, 0);
        server_say(fixture->server.last, "4\r\ntwo\n\r\n0\r\n\r\n");
        fixture_wait(fixture, &fixture->done, 1);
        assert_string_equal(fixture->body, "one\ntwo\n");
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_NONE);
}

static void test_stream_refused(void **state)
{
        struct fixture *fixture = *state;

        start_stream(fixture);
        server_answer(fixture->server.last, "410 Gone", "", "{\"code\":410,\"message\":\"too old\"}");
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(fixture->streamed, 0);
        assert_true(kube_error_is_gone(&fixture->error));
        assert_string_equal(fixture->error.message, "too old");
}

static void test_stream_ended_by_its_owner(void **state)
{
        struct fixture *fixture = *state;
        struct record_counter counter[8];
        size_t n;

        fixture->on_data_result = -1;
        start_stream(fixture);
        server_say(fixture->server.last, CHUNKED "4\r\none\n\r\n4\r\ntwo\n\r\n");
        fixture_wait(fixture, &fixture->done, 1);
        assert_int_equal(fixture->error.failure, KUBE_FAILURE_CANCELLED);
        assert_int_equal(fixture->streamed, 1);
        /* The server did nothing wrong. */
        n = kube_client_count(fixture->client, counter, ELEMENTS(counter));
        for (size_t i = 0; i < n; i++)
                if (strcmp(counter[i].name, "api_requests_failed") == 0)
                        assert_int_equal(counter[i].value, 0);
}

/* ---- from inside callbacks */

static void cancel_own(struct fixture *fixture)
{
        kube_transfer_cancel(fixture->transfer);
        fixture->transfer = NULL;
}

static void free_client(struct fixture *fixture)
{
        kube_client_free(fixture->client);
        fixture->client = NULL;
}

#define FOUR_PIECES CHUNKED "1\r\na\r\n1\r\nb\r\n1\r\nc\r\n1\r\nd\r\n0\r\n\r\n"

static void test_cancel_in_data(void **state)
{
        struct fixture *fixture = *state;

        fixture->in_data = cancel_own;
        start_stream(fixture);
        server_say(fixture->server.last, FOUR_PIECES);
        wait_streamed(fixture, 1);
        fixture_turn(fixture, 20 * USEC_PER_MSEC);
        assert_int_equal(fixture->streamed, 1);
        assert_int_equal(fixture->done, 0);
        get_answer(fixture, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false);
        assert_int_equal(fixture->http_status, 200);
}

static void test_free_client_in_data(void **state)
{
        struct fixture *fixture = *state;

        fixture->in_data = free_client;
        start_stream(fixture);
        server_say(fixture->server.last, FOUR_PIECES);
        wait_streamed(fixture, 1);
        fixture_turn(fixture, 20 * USEC_PER_MSEC);
        assert_int_equal(fixture->streamed, 1);
        assert_int_equal(fixture->done, 0);
}

static void test_free_client_in_done(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/a", false);

        answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        fixture->server.on_request = say_answer;
        fixture->in_done = free_client;
        for (int i = 0; i < 3; i++)
                assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 1);
        fixture_turn(fixture, 20 * USEC_PER_MSEC);
        assert_int_equal(fixture->done, 1);
}

static void cancel_other(struct fixture *fixture)
{
        kube_transfer_cancel(fixture->transfer);
        fixture->transfer = NULL;
}

static void on_ended(struct kube_transfer *transfer, const struct kube_response *response, void *userdata)
{
        struct fixture *fixture = userdata;

        (void)transfer;
        (void)response;
        fixture->done++;
        if (fixture->in_done)
                fixture->in_done(fixture);
}

static void test_cancel_another_in_done(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request watch = fixture_request(fixture, "/watch", true),
                            request = fixture_request(fixture, "/a", false);

        assert_int_equal(kube_client_start(fixture->client, &watch, &fixture->transfer), 0);
        fixture_wait(fixture, &fixture->server.requests, 1);
        request.on_done = on_ended;
        fixture->in_done = cancel_other;
        answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        then_hang_up = false;
        fixture->server.on_request = say_answer;
        assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
        fixture_wait(fixture, &fixture->done, 1);
        fixture_turn(fixture, 20 * USEC_PER_MSEC);
        assert_int_equal(fixture->done, 1);
}

static void start_next(struct fixture *fixture)
{
        struct kube_request request = fixture_request(fixture, "/next", false);

        if (fixture->done < 50)
                assert_int_equal(kube_client_start(fixture->client, &request, NULL), 0);
}

static void test_start_in_done(void **state)
{
        struct fixture *fixture = *state;

        fixture->in_done = start_next;
        get_answer(fixture, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false);
        fixture_wait(fixture, &fixture->done, 50);
        assert_int_equal(fixture->server.connections, 1);
}

static void test_cancel_before_it_left(void **state)
{
        struct fixture *fixture = *state;
        struct kube_request request = fixture_request(fixture, "/a", false);

        assert_int_equal(kube_client_start(fixture->client, &request, &fixture->transfer), 0);
        kube_transfer_cancel(fixture->transfer);
        kube_transfer_cancel(NULL);
        fixture_turn(fixture, 20 * USEC_PER_MSEC);
        assert_int_equal(fixture->done, 0);
}

static void test_free_with_transfers(void **state)
{
        struct fixture *fixture = *state;

        start_stream(fixture);
        server_say(fixture->server.last, CHUNKED "1\r\na\r\n");
        wait_streamed(fixture, 1);
        free_client(fixture);
        fixture_turn(fixture, 20 * USEC_PER_MSEC);
        assert_int_equal(fixture->done, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest test[] = {
                TEST(test_accepted_before_the_first_byte),
                TEST(test_status_error),
                TEST(test_retry_after),
                TEST(test_redirect_is_not_followed),
                TEST(test_cut),
                TEST(test_cut_refusal),
                TEST(test_not_http),
                TEST(test_refused),
                TEST(test_name_not_found),
                TEST(test_timeout),
                TEST(test_too_large),
                TEST(test_endless_trailer),
                TEST(test_endless_refusal),
                TEST(test_stream),
                TEST(test_stream_refused),
                TEST(test_stream_ended_by_its_owner),
                TEST(test_cancel_in_data),
                TEST(test_free_client_in_data),
                TEST(test_free_client_in_done),
                TEST(test_cancel_another_in_done),
                TEST(test_start_in_done),
                TEST(test_cancel_before_it_left),
                TEST(test_free_with_transfers),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
