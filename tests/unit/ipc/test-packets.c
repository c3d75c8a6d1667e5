/* SPDX-License-Identifier: Apache-2.0 */
/* A channel between two ends of one process: what is one packet, and what of a packet is delivered. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/channel.h"
#include "os/syscall.h"

#define DEADLINE_USEC (30 * USEC_PER_SEC)

struct fixture {
        sd_event *event;
        struct channel *supervisor;
        int worker; /* its end, without a channel */
        struct channel *listener;
        uint64_t sequence[64];
        size_t count;
        int error;
};

static int on_message(struct channel *channel, struct message **message, void *userdata)
{
        struct fixture *fixture = userdata;

        (void)channel;
        assert_int_equal((*message)->type, MESSAGE_RUN);
        assert_true(fixture->count < ELEMENTS(fixture->sequence));
        fixture->sequence[fixture->count++] = (*message)->run.sequence;
        return 0;
}

static void on_error(struct channel *channel, int status, const char *reason, void *userdata)
{
        struct fixture *fixture = userdata;

        (void)channel;
        (void)reason;
        fixture->error = status;
}

static const struct channel_callbacks callbacks = {.on_message = on_message, .on_error = on_error};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));
        int fd[2];

        assert_non_null(fixture);
        assert_true(sd_event_new(&fixture->event) >= 0);
        assert_int_equal(sys_socketpair_seqpacket(fd), 0);
        assert_int_equal(channel_new(fixture->event, fd[0], ROLE_SUPERVISOR, ROLE_WORKER, &callbacks,
                                     fixture, &fixture->supervisor),
                         0);
        channel_set_state(fixture->supervisor, CHILD_RUNNING);
        fixture->worker = fd[1];
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        channel_free(fixture->supervisor);
        channel_free(fixture->listener);
        if (fixture->worker >= 0)
                close(fixture->worker);
        sd_event_unref(fixture->event);
        free(fixture);
        return 0;
}

static void send_run(struct fixture *fixture, uint64_t sequence, const char *settling)
{
        struct message_run run = {.sequence = sequence, .settling = settling};

        assert_int_equal(channel_send(fixture->supervisor, MESSAGE_RUN, &run), 0);
}

/* The size of the next packet; 0: there is none. */
static size_t next_packet(struct fixture *fixture, char *buffer)
{
        ssize_t size = sys_receive(fixture->worker, buffer, MESSAGE_SIZE_MAX);

        assert_true(size > 0 || size == -EAGAIN);
        return size > 0 ? (size_t)size : 0;
}

static void listen_as_worker(struct fixture *fixture)
{
        assert_int_equal(channel_new(fixture->event, fixture->worker, ROLE_WORKER, ROLE_SUPERVISOR,
                                     &callbacks, fixture, &fixture->listener),
                         0);
        fixture->worker = -1;
        channel_set_state(fixture->listener, CHILD_RUNNING);
}

static void wait_for(struct fixture *fixture, size_t count)
{
        uint64_t begin = clock_boottime_usec();

        while (fixture->count < count && fixture->error == 0) {
                assert_true(clock_boottime_usec() - begin < DEADLINE_USEC);
                assert_true(sd_event_run(fixture->event, USEC_PER_SEC) >= 0);
        }
}

static void test_corked_is_one_packet(void **state)
{
        static char buffer[MESSAGE_SIZE_MAX];
        struct fixture *fixture = *state;

        channel_cork(fixture->supervisor);
        for (uint64_t i = 1; i <= 5; i++)
                send_run(fixture, i, "");
        assert_int_equal(next_packet(fixture, buffer), 0);
        assert_int_equal(channel_uncork(fixture->supervisor), 0);
        assert_true(next_packet(fixture, buffer) > 0);
        assert_int_equal(next_packet(fixture, buffer), 0);
        /* and nothing is left over for the next time */
        channel_cork(fixture->supervisor);
        assert_int_equal(channel_uncork(fixture->supervisor), 0);
        assert_int_equal(next_packet(fixture, buffer), 0);
}

static void test_all_come_in_their_order(void **state)
{
        struct fixture *fixture = *state;
        char large[100 * 1024];

        memset(large, 'x', sizeof(large) - 1);
        large[sizeof(large) - 1] = '\0';
        channel_cork(fixture->supervisor);
        for (uint64_t i = 1; i <= 40; i++)
                send_run(fixture, i, i % 10 == 0 ? large : "");
        assert_int_equal(channel_uncork(fixture->supervisor), 0);
        send_run(fixture, 41, "");
        listen_as_worker(fixture);
        wait_for(fixture, 41);
        assert_int_equal(fixture->count, 41);
        for (uint64_t i = 0; i < 41; i++)
                assert_true(fixture->sequence[i] == i + 1);
}

static void send_packet(struct fixture *fixture, unsigned messages, const char *rest)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY, all = TEXT_EMPTY;

        assert_int_equal(message_encode(MESSAGE_RUN, &(struct message_run){.sequence = 1}, &packet), 0);
        for (unsigned i = 0; i < messages; i++)
                text_append(&all, packet.data, packet.size);
        text_append_string(&all, rest);
        assert_int_equal(sys_send(channel_fd(fixture->supervisor), all.data, all.size), all.size);
        listen_as_worker(fixture);
        wait_for(fixture, messages);
}

static void test_what_ends_in_garbage_is_refused_as_a_whole(void **state)
{
        struct fixture *fixture = *state;

        send_packet(fixture, 3, "garbage");
        assert_int_equal(fixture->error, -EPROTO);
        assert_int_equal(fixture->count, 0);
}

static void test_more_than_anybody_sends_is_refused(void **state)
{
        struct fixture *fixture = *state;

        send_packet(fixture, 17, "");
        assert_int_equal(fixture->error, -EPROTO);
        assert_int_equal(fixture->count, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_corked_is_one_packet, setup, teardown),
                cmocka_unit_test_setup_teardown(test_all_come_in_their_order, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_ends_in_garbage_is_refused_as_a_whole, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_more_than_anybody_sends_is_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
