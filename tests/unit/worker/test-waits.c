/* SPDX-License-Identifier: Apache-2.0 */
/* The waits of a run: what its stack holds meanwhile, and how a cancel ends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>

#include "base/duration.h"
#include "os/syscall.h"
#include "tests/unit/valgrind.h"
#include "tests/unit/worker/peer.h"

#define OBJECT                                                                                                \
        "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u1\",\"resourceVersion\":\"10\"}," \
        "\"spec\":{}}"
#define AFTER_PATCH(phase)                                                                                               \
        "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," \
        "\"uid\":\"u1\",\"resourceVersion\":\"11\"},\"spec\":{\"size\":2},\"status\":{\"phase\":\"" phase                \
        "\"}}"
#define DEPTH      10000 /* of what is below `status`; an API server takes no more */
#define TEXT_OF(x) #x
#define DIGITS(x)  TEXT_OF(x)

/* How much of the largest of the worker's mappings that have a stack's size is in memory: a fiber's stack, while its run
 * waits. In KiB; 0: there is none. */
static unsigned long stack_kib(const struct peer *peer)
{
        char path[64], line[256];
        unsigned long size = 0, resident, most = 0;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/smaps", (int)peer->pid);
        file = fopen(path, "re");
        assert_non_null(file);
        while (fgets(line, sizeof(line), file)) {
                (void)sscanf(line, "Size: %lu kB", &size);
                if (sscanf(line, "Rss: %lu kB", &resident) == 1 && size == 8192 && resident > most)
                        most = resident;
        }
        assert_int_equal(fclose(file), 0);
        return most;
}

/* An answer as deep as it may be, and a jq program that looks at the result: half of the stack is enough. */
static void test_deep_answer(void **state)
{
        struct peer *peer = *state;
        _cleanup_text_ struct text object = TEXT_EMPTY;

        peer->trigger = TRIGGER_JQ;
        text_append_string(
                &object,
                "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\","
                "\"namespace\":\"default\",\"uid\":\"u1\",\"resourceVersion\":\"11\"},\"status\":");
        for (int i = 0; i < DEPTH; i++)
                text_append_string(&object, "{\"a\":");
        text_append_string(&object, "1");
        for (int i = 0; i <= DEPTH; i++)
                text_append_string(&object, "}");
        peer->patch_body[0] = peer->patch_body[1] = object.data;
        peer->script = "[ -e $folder/ran ] && { echo running >&2; exec sleep 60; }; touch $folder/ran\n"
                       "printf '{\"status\":'; printf '{\"a\":%.0s' {1.." DIGITS(
                               DEPTH) "}; printf 1; "
                                      "printf '}%.0s' {0.." DIGITS(DEPTH) "}";
        peer_put(peer, "u1", "10", OBJECT);
        peer_start(peer);
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_int_not_equal(peer->done->done.own_fingerprint, 0);
        peer->sequence++;
        peer_send_run(peer, ACTION_RECONCILE, "u1");
        peer_wait_log(peer, "running");
        if (!under_valgrind()) /* which has mappings of its own */
                assert_in_range(stack_kib(peer), 0, 4096);
}

/* ---- cancelled */

static void assert_says(const struct peer *peer, const char *text)
{
        assert_non_null(strstr(peer->done->done.message, text));
}

/* A run whose first write is in flight. */
static struct peer *writing(void **state)
{
        struct peer *peer = *state;
        uint64_t deadline = 0;

        peer->holds = true;
        peer->script = "echo '{\"patch\":{\"spec\":{\"size\":2}},\"status\":{\"phase\":\"Ready\"}}'";
        peer_put(peer, "u1", "10", OBJECT);
        peer_start(peer);
        peer_send_run(peer, ACTION_RECONCILE, "u1");
        while (!peer->held)
                peer_turn(peer, &deadline);
        return peer;
}

static void cancel_run(struct peer *peer)
{
        struct message_cancel cancel = {.sequence = 42, .reason = ""};
        uint64_t deadline = 0;

        assert_int_equal(channel_send(peer->channel, MESSAGE_CANCEL, &cancel), 0);
        for (unsigned seen = peer->heartbeats; peer->heartbeats < seen + 2;) /* it has read that */
                peer_turn(peer, &deadline);
}

static void test_a_cancelled_run_writes_no_more(void **state)
{
        struct peer *peer = writing(state);

        cancel_run(peer);
        server_answer(peer->held, "200 OK", "", AFTER_PATCH("New"));
        assert_int_equal(peer_wait_done(peer)->result, RESULT_CANCELLED);
        assert_says(peer, "the operator stops before the answer was written");
        assert_string_equal(peer->done->done.own_resource_version, "11");
        assert_int_equal(peer->patches, 1);
}

static void test_a_cancel_waits_no_longer_than_its_grace(void **state)
{
        struct peer *peer = *state;

        peer->grace_usec = 50 * USEC_PER_MSEC;
        writing(state);
        cancel_run(peer);
        assert_int_equal(peer_wait_done(peer)->result, RESULT_CANCELLED);
        assert_says(peer, "the run was cut off");
        peer->patch_body[1] = peer->patch_body[2] = AFTER_PATCH("Ready");
        peer->sequence = 43;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS); /* and it goes on */
}

static void test_an_orphan_cuts_a_write_off(void **state)
{
        struct peer *peer = writing(state);
        int status;

        channel_free(TAKE_PTR(peer->channel));
        assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
        peer->pid = 0;
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)

int main(int argc, char **argv)
{
        const struct CMUnitTest test[] = {
                TEST(test_deep_answer),
                TEST(test_a_cancelled_run_writes_no_more),
                TEST(test_a_cancel_waits_no_longer_than_its_grace),
                TEST(test_an_orphan_cuts_a_write_off),
        };

        return peer_prepare(argc, argv) ? cmocka_run_group_tests(test, NULL, NULL) : 1;
}
