/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/kube/fixture.h"

#include <string.h>

#include "base/duration.h"

#define DEADLINE_USEC (20 * USEC_PER_SEC)

struct message_credential fixture_credential(const char *server, const char *token)
{
        return (struct message_credential){
                .serial = 7,
                .server = server,
                .tls_server_name = "",
                .certificate_authority = "",
                .client_certificate = "",
                .client_key = "",
                .token = token,
                .username = "",
                .password = "",
                .proxy_url = "",
                .default_namespace = "",
                .identity = "",
        };
}

void fixture_use(struct fixture *fixture, const struct message_credential *credential)
{
        assert_int_equal(kube_client_set_credential(fixture->client, credential), 0);
}

int fixture_setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        struct message_credential credential;

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        server_start(&fixture->server, fixture->event);
        assert_int_equal(kube_client_new(fixture->event, "test/1", &fixture->client), 0);
        credential = fixture_credential(fixture->server.url, "s3cret");
        fixture_use(fixture, &credential);
        fixture->error = KUBE_ERROR_NONE;
        *state = fixture;
        return 0;
}

int fixture_teardown(void **state)
{
        struct fixture *fixture = *state;

        kube_client_free(fixture->client);
        server_stop(&fixture->server);
        kube_error_done(&fixture->error);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static int on_data(struct kube_transfer *transfer, const char *bytes, size_t size, void *userdata)
{
        struct fixture *fixture = userdata;
        size_t room = sizeof(fixture->body) - 1 - fixture->body_size, take = size < room ? size : room;

        (void)transfer;
        memcpy(fixture->body + fixture->body_size, bytes, take);
        fixture->body_size += take;
        fixture->body[fixture->body_size] = '\0';
        fixture->streamed++;
        if (fixture->in_data)
                fixture->in_data(fixture);
        return fixture->on_data_result;
}

static void on_done(struct kube_transfer *transfer, const struct kube_response *response, void *userdata)
{
        struct fixture *fixture = userdata;

        (void)transfer;
        fixture->transfer = NULL;
        fixture->done++;
        fixture->http_status = response->http_status;
        fixture->serial = response->credential_serial;
        fixture->repeated = response->repeated;
        kube_error_done(&fixture->error);
        assert_int_equal(kube_error_copy(&response->error, &fixture->error), 0);
        assert_int_equal(strlen(response->body), response->body_size);
        if (fixture->streamed == 0) {
                fixture->body_size = response->body_size;
                snprintf(fixture->body, sizeof(fixture->body), "%s", response->body);
        }
        if (fixture->in_done)
                fixture->in_done(fixture);
}

struct kube_request fixture_request(struct fixture *fixture, const char *path, bool streamed)
{
        return (struct kube_request){
                .method = "GET",
                .path = path,
                .on_data = streamed ? on_data : NULL,
                .on_done = on_done,
                .userdata = fixture,
        };
}

void fixture_wait(struct fixture *fixture, const unsigned *counter, unsigned count)
{
        uint64_t deadline = clock_boottime_usec() + DEADLINE_USEC;

        while (*counter < count) {
                assert_true(clock_boottime_usec() < deadline);
                assert_true(sd_event_run(fixture->event, USEC_PER_SEC) >= 0);
        }
}

void fixture_turn(struct fixture *fixture, uint64_t usec)
{
        uint64_t end = clock_boottime_usec() + usec, now;

        while ((now = clock_boottime_usec()) < end)
                assert_true(sd_event_run(fixture->event, end - now) >= 0);
}

void fixture_get(struct fixture *fixture, const char *path)
{
        struct kube_request request = fixture_request(fixture, path, false);
        unsigned before = fixture->done;

        assert_int_equal(kube_client_start(fixture->client, &request, &fixture->transfer), 0);
        assert_int_equal(fixture->done, before); /* never inside the call */
        fixture_wait(fixture, &fixture->done, before + 1);
}
