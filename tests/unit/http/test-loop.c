/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon in an event loop: what a client of the same process sees of it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "http/http-loop.h"

#define DEADLINE_USEC (20 * USEC_PER_SEC)

struct fixture {
        sd_event *event;
        struct MHD_Daemon *daemon;
        struct http_loop loop;
        struct MHD_Connection *suspended; /* by /wait */
        unsigned requests;
        int client;
};

static unsigned expired;

static uint64_t expire(uint64_t now_usec)
{
        expired++;
        return now_usec + USEC_PER_SEC / 20;
}

static enum MHD_Result answer(struct MHD_Connection *connection, const char *text)
{
        struct MHD_Response *response = MHD_create_response_from_buffer(
                strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);
        enum MHD_Result r = MHD_queue_response(connection, MHD_HTTP_OK, response);

        MHD_destroy_response(response);
        return r;
}

static enum MHD_Result on_access(void *userdata, struct MHD_Connection *connection, const char *url,
                                 const char *method _unused_, const char *version _unused_,
                                 const char *data _unused_, size_t *size _unused_, void **state)
{
        struct fixture *fixture = userdata;
        const char *name;

        if (!*state) {
                *state = fixture;
                return MHD_YES;
        }
        if (strcmp(url, "/wait") == 0 && fixture->requests++ == 0) {
                fixture->suspended = connection;
                MHD_suspend_connection(connection);
                return MHD_YES;
        }
        name = http_header(connection, "X-Name");
        return answer(connection, name ? name : "nobody");
}

static int set_up(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        assert_non_null(fixture);
        fixture->client = -1;
        assert_true(sd_event_new(&fixture->event) >= 0);
        fixture->daemon =
                MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, on_access, fixture,
                                 MHD_OPTION_SOCK_ADDR, (const struct sockaddr *)&address, MHD_OPTION_END);
        assert_non_null(fixture->daemon);
        assert_int_equal(http_loop_attach(&fixture->loop, fixture->event, fixture->daemon, expire), 0);
        *state = fixture;
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *fixture = *state;

        if (fixture->suspended)
                MHD_resume_connection(fixture->suspended);
        if (fixture->client >= 0)
                close(fixture->client);
        http_loop_detach(&fixture->loop);
        MHD_stop_daemon(fixture->daemon);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void ask(struct fixture *fixture, const char *request)
{
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(fixture->daemon, MHD_DAEMON_INFO_BIND_PORT);
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        assert_non_null(info);
        address.sin_port = htons(info->port);
        fixture->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fixture->client >= 0);
        assert_int_equal(connect(fixture->client, (const struct sockaddr *)&address, sizeof(address)), 0);
        assert_int_equal(send(fixture->client, request, strlen(request), MSG_NOSIGNAL),
                         (ssize_t)strlen(request));
        assert_true(fcntl(fixture->client, F_SETFL, O_NONBLOCK) >= 0);
}

static void turn(struct fixture *fixture, uint64_t until)
{
        assert_true(clock_monotonic_usec() < until);
        assert_true(sd_event_run(fixture->event, USEC_PER_SEC / 10) >= 0);
}

/* The loop runs until the client has read this. */
static void await_text(struct fixture *fixture, const char *text)
{
        uint64_t until = clock_monotonic_usec() + DEADLINE_USEC;
        char got[4096] = "";
        size_t size = 0;

        while (!strstr(got, text)) {
                ssize_t n;

                turn(fixture, until);
                n = recv(fixture->client, got + size, sizeof(got) - 1 - size, 0);
                assert_true(n > 0 || (n < 0 && errno == EAGAIN));
                if (n > 0)
                        size += (size_t)n;
                got[size] = '\0';
        }
}

static void test_a_request_is_answered(void **state)
{
        ask(*state, "GET / HTTP/1.1\r\nHost: a\r\nX-Name: somebody\r\n\r\n");
        await_text(*state, "somebody");
}

static void test_what_is_resumed_goes_on_at_once(void **state)
{
        struct fixture *fixture = *state;
        uint64_t until = clock_monotonic_usec() + DEADLINE_USEC;

        ask(fixture, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
        while (!fixture->suspended)
                turn(fixture, until);
        assert_true(http_connection_fd(fixture->suspended) >= 0);
        assert_false(http_client_has_gone(fixture->suspended));
        MHD_resume_connection(TAKE_PTR(fixture->suspended));
        http_loop_run_soon(&fixture->loop);
        await_text(fixture, "nobody");
}

static void test_a_client_that_has_gone_is_seen(void **state)
{
        struct fixture *fixture = *state;
        uint64_t until = clock_monotonic_usec() + DEADLINE_USEC;

        ask(fixture, "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
        while (!fixture->suspended)
                turn(fixture, until);
        close(fixture->client);
        fixture->client = -1;
        while (!http_client_has_gone(fixture->suspended))
                turn(fixture, until);
}

static void test_what_expires_is_asked_for_in_time(void **state)
{
        uint64_t until = clock_monotonic_usec() + DEADLINE_USEC;
        unsigned before = expired;

        while (expired < before + 3)
                turn(*state, until);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_request_is_answered, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_is_resumed_goes_on_at_once, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_a_client_that_has_gone_is_seen, set_up, tear_down),
                cmocka_unit_test_setup_teardown(test_what_expires_is_asked_for_in_time, set_up, tear_down),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
