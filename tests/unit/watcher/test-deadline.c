/* SPDX-License-Identifier: Apache-2.0 */
/* A watch in trouble: what the supervisor is told, when it is fatal, and whose word sets the delay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "watcher/stream/stream.h"

struct fixture {
        struct message_config_watcher config;
        struct child child;
        struct watcher watcher;
        struct stream stream;
        int supervisor; /* its end of the channel */
};

static int on_message(struct channel *channel _unused_, struct message **message _unused_,
                      void *userdata _unused_)
{
        return 0;
}

static void on_error(struct channel *channel _unused_, int status _unused_, const char *reason _unused_,
                     void *userdata _unused_)
{
}

static int setup(void **state)
{
        static const struct channel_callbacks callbacks = {.on_message = on_message, .on_error = on_error};
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        int fd[2];

        assert_non_null(fixture);
        fixture->config = (struct message_config_watcher){
                .watch = "w",
                .api_version = "v1",
                .kind = "Pod",
                .required = true,
                .deadline_usec = USEC_PER_HOUR,
                .reconnect_first_usec = USEC_PER_MSEC,
                .reconnect_max_usec = USEC_PER_SEC,
        };
        fixture->watcher = (struct watcher){.child = &fixture->child,
                                            .config = &fixture->config,
                                            .stream = &fixture->stream,
                                            .stream_count = 1,
                                            .discovered = true};
        assert_int_equal(sd_event_new(&fixture->child.event), 0);
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
        assert_int_equal(channel_new(fixture->child.event, fd[0], ROLE_WATCHER, ROLE_SUPERVISOR, &callbacks,
                                     NULL, &fixture->child.channel),
                         0);
        channel_set_state(fixture->child.channel, CHILD_RUNNING);
        assert_int_equal(kube_client_new(fixture->child.event, "test", &fixture->watcher.client), 0);
        fixture->supervisor = fd[1];
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        failures_done(&fixture->stream.failures);
        failures_done(&fixture->watcher.failures);
        kube_client_free(fixture->watcher.client);
        channel_free(fixture->child.channel);
        sd_event_unref(fixture->child.event);
        close(fixture->supervisor);
        free(fixture);
        return 0;
}

/* The next word to the supervisor; NULL: there is none. */
static struct message *heard(struct fixture *fixture)
{
        static char packet[MESSAGE_SIZE_MAX];
        struct message *message = NULL;
        ssize_t size = recv(fixture->supervisor, packet, sizeof(packet), MSG_DONTWAIT);

        if (size > 0)
                assert_int_equal(message_decode(packet, (size_t)size, &message), 0);
        return message;
}

static void assert_health(struct fixture *fixture, enum watch_health health, uint64_t exit_code)
{
        _cleanup_message_ struct message *message = heard(fixture);

        assert_non_null(message);
        if (health == WATCH_HEALTHY) {
                assert_int_equal(message->type, MESSAGE_RECOVERED);
                return;
        }
        assert_int_equal(message->type, MESSAGE_DEGRADED);
        assert_int_equal(message->degraded.health, health);
        assert_int_equal(message->degraded.exit_code, exit_code);
}

static void assert_silence(struct fixture *fixture)
{
        assert_null(heard(fixture));
}

static int64_t note(struct fixture *fixture, struct failures *failures, int status, int retry_after_sec)
{
        _cleanup_kube_error_ struct kube_error error = KUBE_ERROR_NONE;

        kube_error_from_status(&error, status, "{\"message\":\"no\"}", 16);
        error.retry_after_sec = retry_after_sec;
        return failures_note(&fixture->watcher, failures, &error, 0);
}

static void test_what_is_refused_is_news_at_once(void **state)
{
        struct fixture *fixture = *state;
        struct failures *failures = &fixture->stream.failures;

        assert_true(note(fixture, failures, 403, -1) > 0);
        assert_health(fixture, WATCH_DEGRADED, 0);
        assert_true(note(fixture, failures, 403, -1) > 0);
        assert_silence(fixture);
        failures_clear(&fixture->watcher, failures);
        assert_health(fixture, WATCH_HEALTHY, 0);
        /* a token that has expired is everyday life, at first */
        assert_true(note(fixture, failures, 401, -1) > 0);
        assert_silence(fixture);
        assert_true(note(fixture, failures, 401, -1) > 0);
        assert_health(fixture, WATCH_DEGRADED, 0);
}

static void test_an_isolated_watch_has_failed_and_goes_on(void **state)
{
        struct fixture *fixture = *state;
        struct failures *failures = &fixture->stream.failures;

        fixture->config.isolate = true;
        fixture->config.deadline_usec = 0;
        assert_true(note(fixture, failures, 403, -1) > 0);
        assert_health(fixture, WATCH_FAILED, EXIT_CODE_NO_PERMISSION);
        assert_true(note(fixture, failures, 500, -1) > 0);
        assert_silence(fixture);
        failures_clear(&fixture->watcher, failures);
        assert_health(fixture, WATCH_HEALTHY, 0);
        assert_false(fixture->child.stopping);
}

static void test_the_worst_trouble_counts(void **state)
{
        struct fixture *fixture = *state;

        assert_true(note(fixture, &fixture->stream.failures, 500, -1) > 0);
        assert_health(fixture, WATCH_DEGRADED, 0);
        assert_true(note(fixture, &fixture->watcher.failures, 500, -1) > 0);
        assert_silence(fixture);
        failures_clear(&fixture->watcher, &fixture->stream.failures);
        assert_silence(fixture);
        failures_clear(&fixture->watcher, &fixture->watcher.failures);
        assert_health(fixture, WATCH_HEALTHY, 0);
}

static void test_absence_has_no_deadline(void **state)
{
        struct fixture *fixture = *state;

        fixture->config.required = fixture->watcher.discovered = false;
        fixture->config.deadline_usec = 0;
        for (int i = 0; i < 3; i++)
                assert_true(note(fixture, &fixture->watcher.failures, 404, -1) > 0);
        assert_health(fixture, WATCH_ABSENT, 0);
        assert_silence(fixture);
        assert_false(fixture->child.stopping);
        assert_int_equal(note(fixture, &fixture->watcher.failures, 500, -1), -ECANCELED);
        assert_true(fixture->child.stopping);
}

static void test_retry_after_is_honoured_ten_times(void **state)
{
        struct fixture *fixture = *state;
        struct message *message;
        unsigned throttles = 0;

        for (int i = 0; i < 10; i++)
                assert_int_equal(note(fixture, &fixture->stream.failures, 429, 7), 7 * USEC_PER_SEC);
        assert_in_range(note(fixture, &fixture->stream.failures, 429, 7), 1, 2 * USEC_PER_SEC);
        while ((message = heard(fixture))) {
                throttles += message->type == MESSAGE_THROTTLE;
                message_free(message);
        }
        assert_int_equal(throttles, 10);
}

static void run_to_the_end(struct fixture *fixture, int exit_code)
{
        struct message *message;
        unsigned found = 0;

        assert_int_equal(sd_event_loop(fixture->child.event), exit_code);
        while ((message = heard(fixture))) {
                found += message->type == MESSAGE_FATAL && message->fatal.exit_code == (uint64_t)exit_code;
                message_free(message);
        }
        assert_int_equal(found, 1);
}

static void test_a_request_that_is_held_back_is_subject_to_the_deadline(void **state)
{
        struct fixture *fixture = *state;

        fixture->config.deadline_usec = 20 * USEC_PER_MSEC;
        fixture->watcher.throttle_until = clock_boottime_usec() + USEC_PER_HOUR;
        failures_held(&fixture->watcher, &fixture->stream.failures);
        assert_health(fixture, WATCH_DEGRADED, 0);
        run_to_the_end(fixture, EXIT_CODE_UNAVAILABLE);
}

static void test_an_answer_that_comes_in_is_waited_for(void **state)
{
        struct fixture *fixture = *state;
        struct failures *failures = &fixture->stream.failures;
        uint64_t begin = clock_boottime_usec();

        fixture->config.deadline_usec = 40 * USEC_PER_MSEC;
        assert_true(note(fixture, failures, 403, -1) > 0);
        failures->progress_boottime = begin + 200 * USEC_PER_MSEC; /* bytes until then */
        run_to_the_end(fixture, EXIT_CODE_NO_PERMISSION);
        assert_true(clock_boottime_usec() - begin >= 200 * USEC_PER_MSEC);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(test_what_is_refused_is_news_at_once),
                TEST(test_an_isolated_watch_has_failed_and_goes_on),
                TEST(test_the_worst_trouble_counts),
                TEST(test_absence_has_no_deadline),
                TEST(test_retry_after_is_honoured_ten_times),
                TEST(test_a_request_that_is_held_back_is_subject_to_the_deadline),
                TEST(test_an_answer_that_comes_in_is_waited_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
