/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/channel.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/duration.h"
#include "os/syscall.h"

struct fixture {
        sd_event *event;
        struct channel *channel;
        int peer;
        char reason[64]; /* of the FATAL that came */
        int status;      /* of the end */
};

static int on_message(struct channel *channel _unused_, struct message **message, void *userdata)
{
        struct fixture *fixture = userdata;

        assert_int_equal((*message)->type, MESSAGE_FATAL);
        assert_int_equal(fixture->status, 0);
        assert_int_equal((*message)->fatal.exit_code, 69);
        snprintf(fixture->reason, sizeof(fixture->reason), "%s", (*message)->fatal.reason);
        return 0;
}

static void on_error(struct channel *channel _unused_, int status, const char *reason _unused_,
                     void *userdata)
{
        struct fixture *fixture = userdata;

        fixture->status = status;
}

static const struct channel_callbacks callbacks = {.on_message = on_message, .on_error = on_error};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        int pair[2];

        assert_non_null(fixture);
        assert_return_code(sys_socketpair_seqpacket(pair), 0);
        assert_return_code(sd_event_new(&fixture->event), 0);
        fixture->peer = pair[1];
        assert_return_code(channel_new(fixture->event, pair[0], ROLE_SUPERVISOR, ROLE_GATEWAY, &callbacks,
                                       fixture, &fixture->channel),
                           0);
        channel_set_state(fixture->channel, CHILD_RUNNING);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        channel_free(fixture->channel);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void say_fatal(struct fixture *fixture)
{
        const struct message_fatal fatal = {.exit_code = 69, .reason = "it is not reachable"};
        _cleanup_text_ struct text packet = TEXT_EMPTY;

        assert_return_code(message_encode(MESSAGE_FATAL, &fatal, &packet), 0);
        assert_int_equal(sys_send(fixture->peer, packet.data, packet.size), packet.size);
}

/* A child that gives up while something for it is under way. */
static void end_with_something_unread(struct fixture *fixture)
{
        assert_return_code(
                channel_send(fixture->channel, MESSAGE_STOP, &(struct message_stop){.grace_usec = 0}), 0);
        say_fatal(fixture);
        close(fixture->peer);
}

static void test_what_it_said_last_is_heard(void **state)
{
        struct fixture *fixture = *state;

        end_with_something_unread(fixture);
        while (fixture->status == 0)
                assert_int_not_equal(sd_event_run(fixture->event, 10 * USEC_PER_SEC), 0);
        assert_string_equal(fixture->reason, "it is not reachable");
        assert_int_equal(fixture->status, -ECONNRESET);
}

static void test_what_it_said_last_is_heard_when_its_end_is_known_first(void **state)
{
        struct fixture *fixture = *state;

        end_with_something_unread(fixture);
        channel_read_rest(fixture->channel);
        assert_string_equal(fixture->reason, "it is not reachable");
        assert_int_equal(fixture->status, -ECONNRESET);
}

static void test_who_does_not_listen_hears_it_later(void **state)
{
        struct fixture *fixture = *state;

        assert_return_code(channel_listen(fixture->channel, false), 0);
        say_fatal(fixture);
        assert_int_equal(sd_event_run(fixture->event, 0), 0);
        assert_string_equal(fixture->reason, "");
        assert_return_code(channel_listen(fixture->channel, true), 0);
        while (fixture->reason[0] == '\0')
                assert_int_not_equal(sd_event_run(fixture->event, 10 * USEC_PER_SEC), 0);
        close(fixture->peer);
}

static void test_who_does_not_listen_hears_the_end(void **state)
{
        struct fixture *fixture = *state;

        assert_return_code(channel_listen(fixture->channel, false), 0);
        end_with_something_unread(fixture);
        while (fixture->status == 0)
                assert_int_not_equal(sd_event_run(fixture->event, 10 * USEC_PER_SEC), 0);
        assert_string_equal(fixture->reason, "it is not reachable");
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_what_it_said_last_is_heard, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_it_said_last_is_heard_when_its_end_is_known_first,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_who_does_not_listen_hears_it_later, setup, teardown),
                cmocka_unit_test_setup_teardown(test_who_does_not_listen_hears_the_end, setup, teardown),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
