/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of fibers: the answer comes back as a value, many wait at once, and a cancel leaves nothing in flight. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "kube/kube-ask.h"
#include "tests/unit/kube/fixture.h"

struct asker {
        struct fixture *fixture;
        struct fiber *fiber;
        char path[40];
        unsigned requests; /* one after the other */
        int result;
        struct kube_answer answer; /* the last one */
        unsigned *ended;
};

static void ask(void *userdata)
{
        struct asker *asker = userdata;
        const struct kube_request request = {.method = "GET", .path = asker->path};

        for (unsigned i = 0; i < asker->requests; i++) {
                kube_answer_done(&asker->answer);
                asker->result = kube_ask(asker->fixture->client, &request, &asker->answer);
                if (asker->result < 0)
                        break;
        }
        ++*asker->ended;
}

struct asking {
        struct fibers *fibers;
        struct asker asker[8];
        unsigned ended;
};

static void asking_start(struct asking *asking, struct fixture *fixture, unsigned count, unsigned requests)
{
        assert_int_equal(fibers_new(fixture->event, &asking->fibers), 0);
        for (unsigned i = 0; i < count; i++) {
                struct asker *asker = &asking->asker[i];

                *asker = (struct asker){.fixture = fixture, .requests = requests, .ended = &asking->ended};
                snprintf(asker->path, sizeof(asker->path), "/path/%u", i);
                assert_int_equal(fiber_start(asking->fibers, "asker", ask, asker, &asker->fiber), 0);
        }
}

static void asking_done(struct asking *asking)
{
        for (size_t i = 0; i < ELEMENTS(asking->asker); i++)
                kube_answer_done(&asking->asker[i].answer);
        fibers_free(asking->fibers);
}

/* The path comes back, so that each can see that the answer is its own. */
static void answer_path(struct server_connection *connection, const char *request)
{
        char body[64];

        snprintf(body, sizeof(body), "%.7s", request + strlen("GET "));
        server_answer(connection, "200 OK", "", body);
}

static void test_many_ask_at_once_and_each_has_its_answer(void **state)
{
        struct fixture *fixture = *state;
        struct asking asking = {0};

        fixture->server.on_request = answer_path;
        asking_start(&asking, fixture, 8, 3);
        fixture_wait(fixture, &asking.ended, 8);
        assert_int_equal(fixture->server.requests, 24);
        for (unsigned i = 0; i < 8; i++) {
                const struct asker *asker = &asking.asker[i];

                assert_int_equal(asker->result, 0);
                assert_int_equal(asker->answer.response.http_status, 200);
                assert_string_equal(asker->answer.response.body, asker->path);
                assert_int_equal(asker->answer.response.body_size, strlen(asker->path));
        }
        asking_done(&asking);
}

static void answer_conflict(struct server_connection *connection, const char *request)
{
        (void)request;
        server_answer(connection, "409 Conflict", "",
                      "{\"kind\":\"Status\",\"reason\":\"Conflict\",\"message\":\"changed\",\"code\":409}");
}

static void test_a_refusal_is_an_answer(void **state)
{
        struct fixture *fixture = *state;
        struct asking asking = {0};
        const struct kube_response *response = &asking.asker[0].answer.response;

        fixture->server.on_request = answer_conflict;
        asking_start(&asking, fixture, 1, 1);
        fixture_wait(fixture, &asking.ended, 1);
        assert_int_equal(asking.asker[0].result, 0);
        assert_int_equal(response->error.failure, KUBE_FAILURE_HTTP);
        assert_int_equal(response->error.http_status, 409);
        assert_string_equal(response->error.reason, "Conflict");
        assert_non_null(strstr(response->error.message, "changed"));
        asking_done(&asking);
}

static void test_who_is_to_end_asks_nothing(void **state)
{
        struct fixture *fixture = *state;
        struct asking asking = {0};

        fixture->server.on_request = answer_path;
        asking_start(&asking, fixture, 1, 1);
        fiber_ask_to_end(asking.asker[0].fiber);
        fixture_wait(fixture, &asking.ended, 1);
        assert_int_equal(asking.asker[0].result, -ECANCELED);
        assert_int_equal(fixture->server.requests, 0);
        asking_done(&asking);
}

static void test_what_is_in_flight_may_end(void **state)
{
        struct fixture *fixture = *state;
        struct asking asking = {0};

        asking_start(&asking, fixture, 1, 2); /* no answer yet */
        fixture_wait(fixture, &fixture->server.requests, 1);
        fiber_ask_to_end(asking.asker[0].fiber);
        server_answer(fixture->server.last, "200 OK", "", "late");
        fixture_wait(fixture, &asking.ended, 1);
        assert_int_equal(asking.asker[0].result, -ECANCELED); /* of the second */
        assert_int_equal(fixture->server.requests, 1);
        asking_done(&asking);
}

static void test_a_cancel_ends_the_wait_and_the_request(void **state)
{
        struct fixture *fixture = *state;
        struct asking asking = {0};
        uint64_t since;

        asking_start(&asking, fixture, 3, 1);
        fixture_wait(fixture, &fixture->server.requests, 3);
        assert_string_equal(fiber_waits_for(asking.asker[1].fiber, &since), "/path/1");
        fiber_cancel(asking.asker[1].fiber);
        fixture_wait(fixture, &asking.ended, 1);
        assert_int_equal(asking.asker[1].result, -ECANCELED);
        assert_string_equal(asking.asker[1].answer.response.body, "");
        assert_int_equal(fibers_count(asking.fibers), 2); /* the others wait on */
        fiber_cancel(asking.asker[0].fiber);
        fiber_cancel(asking.asker[2].fiber);
        fixture_wait(fixture, &asking.ended, 3);
        asking_done(&asking);
}

static void test_without_a_credential(void **state)
{
        struct fixture *fixture = *state;
        struct asking asking = {0};

        kube_client_free(fixture->client);
        assert_int_equal(kube_client_new(fixture->event, "test/1", &fixture->client), 0);
        asking_start(&asking, fixture, 1, 1);
        fixture_wait(fixture, &asking.ended, 1);
        assert_int_equal(asking.asker[0].result, -ENOKEY);
        asking_done(&asking);
}

/* ---- a body that streams in */

struct reader {
        struct asker asker;
        struct text text;
        unsigned pieces;
        bool refuses;
};

static int on_piece(struct kube_transfer *transfer, const char *bytes, size_t size, void *userdata)
{
        struct reader *reader = userdata;

        (void)transfer;
        assert_null(fiber_current()); /* the loop calls it */
        reader->pieces++;
        return reader->refuses ? -EBADMSG : text_append(&reader->text, bytes, size);
}

static void ask_streamed(void *userdata)
{
        struct reader *reader = userdata;
        struct asker *asker = &reader->asker;
        const struct kube_request request = {
                .method = "GET", .path = "/path/9", .on_data = on_piece, .userdata = reader};

        asker->result = kube_ask(asker->fixture->client, &request, &asker->answer);
        ++*asker->ended;
}

static void test_a_body_streams_in(void **state)
{
        struct fixture *fixture = *state;
        struct fibers *fibers;
        unsigned ended = 0;
        struct reader reader = {.asker = {.fixture = fixture, .ended = &ended}};

        fixture->server.on_request = answer_path;
        assert_int_equal(fibers_new(fixture->event, &fibers), 0);
        for (unsigned i = 1; i <= 2; i++) {
                reader.refuses = i == 2;
                kube_answer_done(&reader.asker.answer);
                assert_int_equal(fiber_start(fibers, "reader", ask_streamed, &reader, NULL), 0);
                fixture_wait(fixture, &ended, i);
                assert_int_equal(reader.asker.result, 0);
                assert_int_equal(reader.asker.answer.response.error.failure,
                                 i == 1 ? KUBE_FAILURE_NONE : KUBE_FAILURE_CANCELLED);
                assert_string_equal(reader.asker.answer.response.body, "");
        }
        assert_int_equal(reader.pieces, 2);
        assert_string_equal(reader.text.data, "/path/9");
        kube_answer_done(&reader.asker.answer);
        text_done(&reader.text);
        fibers_free(fibers);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_many_ask_at_once_and_each_has_its_answer, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_a_refusal_is_an_answer, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_who_is_to_end_asks_nothing, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_what_is_in_flight_may_end, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_a_cancel_ends_the_wait_and_the_request, fixture_setup,
                                                fixture_teardown),
                cmocka_unit_test_setup_teardown(test_without_a_credential, fixture_setup, fixture_teardown),
                cmocka_unit_test_setup_teardown(test_a_body_streams_in, fixture_setup, fixture_teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
