/* SPDX-License-Identifier: Apache-2.0 */
/* A whole run of a real worker: what the handler is given, how its end is judged, what is written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>

#include "base/duration.h"
#include "os/descendants.h"
#include "os/syscall.h"
#include "store/record.h"
#include "store/writer.h"
#include "tests/unit/valgrind.h"
#include "tests/unit/worker/peer.h"

/* As an item of a LIST of a built-in kind comes: without apiVersion and kind. */
#define MEMBERS                                                                                             \
        "\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u1\",\"resourceVersion\":\"10\"}" \
        ","                                                                                                 \
        "\"spec\":{\"size\":1},\"status\":{\"phase\":\"New\",\"n\":1}}"
#define OBJECT "{" MEMBERS
#define AFTER_STATUS                                                                                        \
        "{\"apiVersion\":\"example.com/"                                                                    \
        "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\","                  \
        "\"uid\":\"u1\",\"resourceVersion\":\"11\"},\"spec\":{\"size\":1},\"status\":{\"phase\":\"Ready\"," \
        "\"n\":1}}"
#define AFTER_PATCH                                                                                         \
        "{\"apiVersion\":\"example.com/"                                                                    \
        "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\","                  \
        "\"uid\":\"u1\",\"resourceVersion\":\"11\"},\"spec\":{\"size\":2},\"status\":{\"phase\":\"New\","   \
        "\"n\":1}}"
#define REFUSAL(code, reason, message)                                                                      \
        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"" reason            \
        "\",\"code\":" code ",\"message\":\"" message "\"}"

static struct peer *started(void **state, const char *script)
{
        struct peer *peer = *state;

        peer->script = script;
        peer_put(peer, "u1", "10", OBJECT);
        peer_start(peer);
        return peer;
}

static void assert_says(const struct message_done *done, const char *text)
{
        if (!strstr(done->message, text))
                fail_msg("\"%s\" does not say \"%s\"", done->message, text);
}

static void assert_requests(const struct peer *peer, const char *text)
{
        assert_string_equal(peer->requests.data ? peer->requests.data : "", text);
}

/* ---- what the handler is given */

static void test_request(void **state)
{
        struct peer *peer = started(state, "cat >$folder/request; env >$folder/environment");
        _cleanup_free_ char *request = NULL, *environment = NULL;
        const struct message_done *done = peer_run(peer);
        uint64_t fingerprint;

        assert_int_equal(done->result, RESULT_SUCCESS);
        request = peer_file(peer, "request");
        assert_string_equal(
                request,
                "{\"version\":1,\"action\":\"reconcile\",\"reason\":\"changed\",\"attempt\":3,"
                "\"lastError\":\"it \\\"failed\\\"\",\"watch\":\"widgets\",\"object\":{\"apiVersion\":"
                "\"example.com/v1\",\"kind\":\"Widget\"," MEMBERS "}\n");
        assert_int_equal(fingerprint_object(TRIGGER_ESSENCE, NULL, OBJECT, strlen(OBJECT), &fingerprint), 0);
        assert_true(done->fingerprint == fingerprint);
        assert_string_equal(done->resource_version, "10");
        assert_string_equal(done->own_resource_version, "");
        assert_int_equal(done->own_fingerprint, 0);
        environment = peer_file(peer, "environment");
        for (const char *const *line =
                     (const char *const[]){
                             "RECONCILED_ACTION=reconcile\n", "RECONCILED_REASON=changed\n",
                             "RECONCILED_WATCH=widgets\n", "RECONCILED_NAMESPACE=default\n",
                             "RECONCILED_NAME=a\n", "RECONCILED_UID=u1\n", "RECONCILED_KIND=Widget\n",
                             "RECONCILED_ATTEMPT=3\n", "RECONCILED_API_VERSION=example.com/v1\n", "TZ=UTC\n",
                             "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n", NULL};
             *line; line++)
                if (!strstr(environment, *line))
                        fail_msg("no %s", *line);
        assert_null(strstr(environment, "s3cret"));
        assert_null(strstr(environment, "KUBECONFIG"));
        assert_null(strstr(environment, "NOTIFY_SOCKET"));
        assert_requests(peer, "");
}

static void test_descriptors(void **state)
{
        struct peer *peer = started(state, "ls /proc/self/fd | tr '\\n' ' ' >&2");

        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        peer_wait_log(peer, "\"0 1 2 3 \""); /* 3: the folder that ls reads */
}

static void test_other_uid(void **state)
{
        struct peer *peer = started(state, "echo ran >&2");

        peer_send_run(peer, ACTION_RECONCILE, "u2");
        assert_int_equal(peer_wait_done(peer)->result, RESULT_STALE);
        assert_false(peer_log_has(peer, "ran"));
}

static void test_deleted_without_last_state(void **state)
{
        struct peer *peer = started(state, "cat >$folder/request; echo '{\"status\":{\"phase\":\"x\"}}'");
        _cleanup_free_ char *request = NULL;

        peer_send_run(peer, ACTION_DELETED, "u9");
        assert_int_equal(peer_wait_done(peer)->result, RESULT_SUCCESS);
        request = peer_file(peer, "request");
        assert_non_null(strstr(request, "\"action\":\"deleted\""));
        assert_non_null(strstr(
                request, "\"object\":{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":"
                         "{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u9\"}}}\n"));
        peer_wait_log(peer, "are ignored: the object is gone");
        assert_requests(peer, "");
}

static void test_deleted_with_last_state(void **state)
{
        struct peer *peer = *state;
        struct store_object last = {.key = (char[]){"default/a"},
                                    .uid = (char[]){"u1"},
                                    .resource_version = (char[]){"12"},
                                    .json = (char[]){OBJECT},
                                    .json_size = strlen(OBJECT)};
        _cleanup_free_ char *request = NULL;

        peer_put(peer, "u1", "10", OBJECT);
        assert_int_equal(store_bury(peer->store, &last), 0);
        assert_int_equal(store_commit(peer->store), 0);
        peer->script = "cat >$folder/request";
        peer_start(peer);
        peer_send_run(peer, ACTION_DELETED, "u1");
        assert_int_equal(peer_wait_done(peer)->result, RESULT_SUCCESS);
        request = peer_file(peer, "request");
        assert_non_null(strstr(request, "\"spec\":{\"size\":1}"));
}

/* ---- how it ends */

static void test_ends(void **state)
{
        static const struct {
                const char *script;
                enum run_result result;
                const char *says;
        } row[] = {
                {"exit 0", RESULT_SUCCESS, ""},
                {"echo why >&2; exit 75", RESULT_RETRY, "the handler exited with 75 (try again): why"},
                {"echo why >&2; exit 65", RESULT_PERMANENT, "the handler exited with 65 (permanent): why"},
                {"exit 70", RESULT_STOP, "the handler exited with 70"},
                {"exit 1", RESULT_RETRY, "the handler exited with 1"},
                {"kill -SEGV $$", RESULT_RETRY, "the handler was killed by signal 11 (SEGV)"},
                {"kill -40 $$", RESULT_RETRY, "the handler was killed by signal 40 (real-time)"},
                {"echo '{\"requeueAfter\":\"30s\",\"message\":\"fine\"}'", RESULT_SUCCESS, "fine"},
                {"echo '{\"events\":[{}]}'", RESULT_PERMANENT, "events[0].reason: is missing"},
                {"echo '{\"status\":'", RESULT_PERMANENT, "not valid JSON"},
                {"echo '{\"status\":'; exit 75", RESULT_RETRY, "exited with 75"},
                {"echo 'just words'", RESULT_SUCCESS, ""},
                {"printf '{'; head -c 2000000 /dev/zero", RESULT_PERMANENT, "larger than 1048576 bytes"},
                {"yes | head -c 2000000", RESULT_SUCCESS, ""},
        };
        struct peer *peer = started(state, "");

        for (size_t i = 0; i < ELEMENTS(row); i++) {
                char path[128];
                FILE *file;

                snprintf(path, sizeof(path), "%s/script", peer->folder);
                file = fopen(path, "we");
                assert_non_null(file);
                fprintf(file, "%s\n", row[i].script);
                assert_int_equal(fclose(file), 0);
                if (peer_run(peer)->result != row[i].result)
                        fail_msg("%s: %s, %s", row[i].script,
                                 run_result_name((enum run_result)peer->done->done.result),
                                 peer->done->done.message);
                assert_says(&peer->done->done, row[i].says);
                if (strstr(row[i].script, "30s"))
                        assert_int_equal(peer->done->done.requeue_after_usec, 30 * USEC_PER_SEC);
        }
        peer_wait_log(peer, "just words");
        peer_wait_log(peer, "more lines of output were not logged");
        assert_requests(peer, "");
}

static void test_timeout_with_heartbeats(void **state)
{
        struct peer *peer = *state;
        unsigned before;

        peer->timeout_usec = USEC_PER_SEC;
        peer->grace_usec = 100 * USEC_PER_MSEC;
        started(state, "trap '' TERM; echo busy >&2; setsid sleep 60 & while :; do sleep 60; done");
        before = peer->heartbeats;
        assert_int_equal(peer_run(peer)->result, RESULT_RETRY);
        assert_says(&peer->done->done, "did not end within its timeout of 1s and was ended: busy");
        assert_true(peer->heartbeats >= before + 2);
}

static void test_cancel(void **state)
{
        struct peer *peer = started(state, "echo running >&2; sleep 60 & wait");
        struct message_cancel cancel = {.sequence = 41, .reason = ""};

        peer_send_run(peer, ACTION_RECONCILE, "u1");
        peer_wait_log(peer, "running");
        assert_int_equal(channel_send(peer->channel, MESSAGE_CANCEL, &cancel), 0); /* another run */
        cancel.sequence = 42;
        assert_int_equal(channel_send(peer->channel, MESSAGE_CANCEL, &cancel), 0);
        assert_int_equal(peer_wait_done(peer)->result, RESULT_CANCELLED);
        peer_send_run(peer, ACTION_RECONCILE, "u2"); /* and it goes on */
        assert_int_equal(peer_wait_done(peer)->result, RESULT_STALE);
}

/* ---- more than one */

static void send_runs(struct peer *peer, unsigned count)
{
        for (unsigned i = 0; i < count; i++) {
                peer->sequence = 42 + i;
                peer_send_run(peer, ACTION_RECONCILE, "u1");
        }
}

static void wait_endings(struct peer *peer, unsigned count)
{
        uint64_t deadline = 0;

        while (peer->ended_count < count)
                peer_turn(peer, &deadline);
}

static void assert_ended(const struct peer *peer, unsigned index, uint64_t sequence, enum run_result result)
{
        assert_int_equal(peer->ended[index].sequence, sequence);
        assert_int_equal(peer->ended[index].result, result);
}

static void test_behind_a_long_run_they_go_back(void **state)
{
        struct peer *peer = started(state, "echo running >&2; sleep 60 & wait");
        struct message_cancel cancel = {.sequence = 42, .reason = ""};

        send_runs(peer, 3);
        wait_endings(peer, 2);
        assert_ended(peer, 0, 44, RESULT_RETURNED);
        assert_ended(peer, 1, 43, RESULT_RETURNED);
        assert_int_equal(channel_send(peer->channel, MESSAGE_RECALL, &(struct message_recall){0}), 0);
        peer_wait_log(peer, "running");
        assert_int_equal(channel_send(peer->channel, MESSAGE_CANCEL, &cancel), 0);
        wait_endings(peer, 3);
        assert_ended(peer, 2, 42, RESULT_CANCELLED);
        peer->sequence = 43;
        peer_send_run(peer, ACTION_RECONCILE, "u2"); /* and it goes on */
        assert_int_equal(peer_wait_done(peer)->result, RESULT_STALE);
}

/* On a machine that is slow the next one may go back. */
static void test_a_cancel_is_of_one_run(void **state)
{
        struct peer *peer =
                started(state, "[ -e $folder/ran ] && exec echo '{\"status\":{\"phase\":\"Ready\"}}'; "
                               "touch $folder/ran; echo running >&2; exec sleep 60");
        struct message_cancel cancel = {.sequence = 42, .reason = ""};

        peer->patch_body[0] = AFTER_STATUS;
        peer_send_run(peer, ACTION_RECONCILE, "u1");
        peer_wait_log(peer, "running");
        assert_int_equal(channel_send(peer->channel, MESSAGE_CANCEL, &cancel), 0);
        peer->sequence = 43;
        peer_send_run(peer, ACTION_RECONCILE, "u1");
        wait_endings(peer, 2);
        if (peer->ended[0].result == RESULT_RETURNED)
                return;
        assert_ended(peer, 0, 42, RESULT_CANCELLED);
        assert_ended(peer, 1, 43, RESULT_SUCCESS);
}

/* On a machine that is slow some may go back; those that are done are done in their order, each once. */
static void test_short_runs_are_done_in_their_order(void **state)
{
        struct peer *peer = started(state, "echo >>$folder/done");
        _cleanup_free_ char *text = NULL;
        uint64_t last = 0;
        size_t count = 0;

        send_runs(peer, 5);
        wait_endings(peer, 5);
        for (unsigned i = 0; i < 5; i++) {
                if (peer->ended[i].result == RESULT_RETURNED)
                        continue;
                assert_int_equal(peer->ended[i].result, RESULT_SUCCESS);
                assert_true(peer->ended[i].sequence > last);
                last = peer->ended[i].sequence;
                count++;
        }
        text = peer_file(peer, "done");
        assert_int_equal(text ? strlen(text) : 0, count);
        assert_true(count > 0);
}

/* Nothing wakes the worker for the one behind those that end as soon as they begin. */
static void test_those_that_end_at_once_are_followed_by_the_next(void **state)
{
        struct peer *peer = started(state, "echo >>$folder/done");

        channel_cork(peer->channel);
        for (unsigned i = 0; i < 6; i++) {
                peer->sequence = 42 + i;
                peer_send_run(peer, ACTION_RECONCILE, i == 0 || i == 5 ? "u1" : "u2");
        }
        assert_int_equal(channel_uncork(peer->channel), 0);
        wait_endings(peer, 6);
        for (unsigned i = 0; i < 6; i++)
                if (peer->ended[i].result != RESULT_RETURNED)
                        assert_int_equal(peer->ended[i].result,
                                         peer->ended[i].sequence == 42 || peer->ended[i].sequence == 47
                                                 ? RESULT_SUCCESS
                                                 : RESULT_STALE);
}

static void test_a_stop_begins_nothing(void **state)
{
        struct peer *peer = started(state, "echo running >&2; sleep 0.3");
        struct message_stop stop = {.grace_usec = 20 * USEC_PER_SEC};

        send_runs(peer, 2);
        assert_int_equal(channel_send(peer->channel, MESSAGE_STOP, &stop), 0);
        channel_set_state(peer->channel, CHILD_STOPPING);
        wait_endings(peer, 2);
        assert_ended(peer, 0, 43, RESULT_RETURNED);
        assert_ended(peer, 1, 42, RESULT_SUCCESS);
}

static void test_stop_lets_finish(void **state)
{
        struct peer *peer = started(state, "echo running >&2; sleep 0.3");
        struct message_stop stop = {.grace_usec = 20 * USEC_PER_SEC};

        peer_send_run(peer, ACTION_RECONCILE, "u1");
        peer_wait_log(peer, "running");
        assert_int_equal(channel_send(peer->channel, MESSAGE_STOP, &stop), 0);
        channel_set_state(peer->channel, CHILD_STOPPING);
        assert_int_equal(peer_wait_done(peer)->result, RESULT_SUCCESS);
}

/* CANCEL with a long grace, then the supervisor is gone: all must be over within a second. */
static void test_orphan_while_cancelling(void **state)
{
        struct peer *peer = *state;
        struct message_cancel cancel = {.sequence = 42, .reason = ""};
        /* One second, and what a busy machine adds. */
        const uint64_t bound = slowness() * 2 * USEC_PER_SEC;
        uint64_t since;
        int status;

        peer->grace_usec = 4 * bound;
        started(state, "trap '' TERM; setsid sleep 60 & echo running >&2; while :; do sleep 60; done");
        peer_send_run(peer, ACTION_RECONCILE, "u1");
        peer_wait_log(peer, "running");
        assert_int_equal(channel_send(peer->channel, MESSAGE_CANCEL, &cancel), 0);
        channel_free(TAKE_PTR(peer->channel));
        since = clock_boottime_usec();
        assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
        assert_true(clock_boottime_usec() - since < bound);
        peer->pid = 0;
        assert_true(WIFEXITED(status));
}

/* ---- writing */

static void test_status(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"},\"message\":\"ok\"}'");
        uint64_t fingerprint;

        peer->patch_body[0] = AFTER_STATUS;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_requests(
                peer,
                "GET /apis/example.com/v1 \n"
                "PATCH "
                "/apis/example.com/v1/namespaces/default/widgets/a/status?fieldManager=test.example.com "
                "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"10\"},"
                "\"status\":{\"phase\":\"Ready\"}}\n");
        assert_non_null(strstr(peer->server.request, "Content-Type: application/merge-patch+json"));
        assert_string_equal(peer->done->done.own_resource_version, "11");
        assert_int_equal(
                fingerprint_object(TRIGGER_ESSENCE, NULL, AFTER_STATUS, strlen(AFTER_STATUS), &fingerprint),
                0);
        assert_true(peer->done->done.own_fingerprint == fingerprint);
        assert_int_equal(peer->done->done.known_version, 11);
        assert_string_equal(peer->done->done.message, "ok");
        /* The store still holds the old state: sent again, discovery is not. */
        peer->patch_body[1] = AFTER_STATUS;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_int_equal(peer->discoveries, 1);
        peer_put(peer, "u1", "11", AFTER_STATUS);
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_int_equal(peer->patches, 2); /* nothing to change, nothing sent */
}

static void test_patch_then_status(void **state)
{
        struct peer *peer = started(
                state, "echo '{\"status\":{\"n\":12345678901234567890},\"patch\":{\"spec\":{\"size\":2}}}'");
        uint64_t fingerprint;

        peer->patch_body[0] = AFTER_PATCH;
        peer->patch_body[1] =
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u1\",\"resourceVersion\":"
                "\"12\"},\"spec\":{\"size\":2},\"status\":{\"n\":12345678901234567890}}";
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_requests(
                peer,
                "GET /apis/example.com/v1 \n"
                "PATCH /apis/example.com/v1/namespaces/default/widgets/a?fieldManager=test.example.com "
                "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"10\"},\"spec\":{\"size\":2}}\n"
                "PATCH "
                "/apis/example.com/v1/namespaces/default/widgets/a/status?fieldManager=test.example.com "
                "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":\"11\"},"
                "\"status\":{\"n\":12345678901234567890}}\n");
        assert_int_equal(
                fingerprint_object(TRIGGER_ESSENCE, NULL, AFTER_PATCH, strlen(AFTER_PATCH), &fingerprint),
                0);
        assert_true(peer->done->done.own_fingerprint == fingerprint);
        assert_string_equal(peer->done->done.own_resource_version, "12");
        assert_false(peer_log_has(peer, "did not keep"));
}

/* trigger any: the write is locked, so that what it brings is known to be ours alone. */
static void test_status_locked(void **state)
{
        struct peer *peer = *state;
        uint64_t fingerprint;

        peer->trigger = TRIGGER_ANY;
        started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");
        peer->patch_body[0] = AFTER_STATUS;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_non_null(strstr(peer->requests.data, "{\"metadata\":{\"uid\":\"u1\",\"resourceVersion\":"
                                                    "\"10\"},\"status\":{\"phase\":\"Ready\"}}"));
        assert_int_equal(
                fingerprint_object(TRIGGER_ANY, NULL, AFTER_STATUS, strlen(AFTER_STATUS), &fingerprint), 0);
        assert_true(peer->done->done.own_fingerprint == fingerprint);
}

static void test_nothing_to_change(void **state)
{
        struct peer *peer = started(
                state,
                "echo '{\"status\":{\"phase\":\"New\",\"x\":null},\"patch\":{\"spec\":{\"size\":1}}}'");

        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_requests(peer, "");
}

static void test_refusals(void **state)
{
        static const struct {
                const char *status, *body;
                enum run_result result;
                const char *says;
        } row[] = {
                {"403 Forbidden",
                 REFUSAL("403", "Forbidden", "widgets \\\"a\\\" is forbidden: User \\\"me\\\" cannot patch"),
                 RESULT_FORBIDDEN,
                 "the API server refused the handler's status (HTTP 403): widgets \"a\" is forbidden: User \"me\" cannot patch (http"},
                {"422 Unprocessable Entity", REFUSAL("422", "Invalid", "status.phase: Invalid"),
                 RESULT_UNRECOVERABLE, "status.phase: Invalid; mend what the handler answers"},
                {"403 Forbidden",
                 REFUSAL("403", "Forbidden", "admission webhook \\\"w\\\" denied the request: no"),
                 RESULT_UNRECOVERABLE, "its admission is in the way"},
                {"500 Internal Server Error", "oops", RESULT_UNAVAILABLE, "(HTTP 500)"},
        };
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        for (size_t i = 0; i < ELEMENTS(row); i++) {
                peer->patch_status[i] = row[i].status;
                peer->patch_body[i] = row[i].body;
                if (peer_run(peer)->result != row[i].result)
                        fail_msg("%s: %s", row[i].status, peer->done->done.message);
                assert_says(&peer->done->done, row[i].says);
                assert_int_equal(peer->patches, i + 1); /* never tried again by itself */
        }
        assert_int_equal(peer->refreshes, 0);
        assert_int_equal(peer->throttles, 0);
}

static void test_unauthorized(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        peer->patch_status[0] = peer->patch_status[1] = "401 Unauthorized";
        assert_int_equal(peer_run(peer)->result, RESULT_FORBIDDEN);
        assert_int_equal(peer_run(peer)->result, RESULT_FORBIDDEN);
        assert_int_equal(peer->refreshes, 1); /* one a credential */
}

static void test_retry_after(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        peer->patch_status[0] = "429 Too Many Requests";
        peer->headers = "Retry-After: 1\r\n";
        assert_int_equal(peer_run(peer)->result, RESULT_UNAVAILABLE);
        assert_int_equal(peer->throttles, 1);
}

#define NOT_FOUND "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"details\":{\"name\":\"a\"},\"code\":404}"

static void test_gone(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        peer->patch_body[0] = AFTER_STATUS;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        peer->patch_status[1] = peer->patch_status[2] = "404 Not Found";
        peer->patch_body[1] = peer->patch_body[2] = NOT_FOUND;
        assert_int_equal(peer_run(peer)->result, RESULT_STALE);
        assert_int_equal(peer->discoveries, 2); /* it might have been the kind that moved */
        assert_int_equal(peer->patches, 3);
}

static void test_not_served(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        peer->patch_status[0] = peer->patch_status[1] = "404 Not Found";
        peer->patch_body[0] = peer->patch_body[1] = "404 page not found\n";
        assert_int_equal(peer_run(peer)->result, RESULT_RETRY);
}

static const char without_status[] =
        "{\"kind\":\"APIResourceList\",\"groupVersion\":\"example.com/v1\",\"resources\":["
        "{\"name\":\"widgets\",\"namespaced\":true,\"kind\":\"Widget\",\"verbs\":[\"patch\"]}]}";

/* The subresource went: the status is not lost, and the object is not taken for gone. */
static void test_status_subresource_went(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        peer->patch_body[0] = peer->patch_body[2] = AFTER_STATUS;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        peer->patch_status[1] = "404 Not Found";
        peer->discovery = without_status;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_non_null(
                strstr(peer->requests.data, "/widgets/a?fieldManager=test.example.com {\"metadata\""));
}

/* The subresource came: what is sent to the resource itself is dropped silently. */
static void test_status_subresource_came(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        peer->discovery = without_status;
        peer->patch_body[0] = peer->patch_body[2] = AFTER_STATUS;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        peer->discovery = NULL;
        peer->patch_body[1] = OBJECT;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        assert_int_equal(peer->patches, 3);
        assert_non_null(strstr(peer->requests.data, "/widgets/a/status?"));
        assert_false(peer_log_has(peer, "did not keep"));
}

static void test_status_pruned(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"unknown\":true}}'");

        peer->patch_body[0] = peer->patch_body[1] = OBJECT;
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
        peer_wait_log(peer, "did not keep the status as the handler gave it");
        assert_int_equal(peer_run(peer)->result, RESULT_SUCCESS);
}

static void test_kind_not_served(void **state)
{
        struct peer *peer = started(state, "echo '{\"status\":{\"phase\":\"Ready\"}}'");

        peer->discovery =
                "{\"kind\":\"APIResourceList\",\"groupVersion\":\"example.com/v1\",\"resources\":[]}";
        assert_int_equal(peer_run(peer)->result, RESULT_RETRY);
        assert_says(&peer->done->done, "the server has no kind Widget in example.com/v1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, peer_setup, peer_teardown)

int main(int argc, char **argv)
{
        const struct CMUnitTest test[] = {
                TEST(test_request),
                TEST(test_descriptors),
                TEST(test_other_uid),
                TEST(test_deleted_without_last_state),
                TEST(test_deleted_with_last_state),
                TEST(test_ends),
                TEST(test_timeout_with_heartbeats),
                TEST(test_cancel),
                TEST(test_a_cancel_is_of_one_run),
                TEST(test_behind_a_long_run_they_go_back),
                TEST(test_short_runs_are_done_in_their_order),
                TEST(test_those_that_end_at_once_are_followed_by_the_next),
                TEST(test_a_stop_begins_nothing),
                TEST(test_stop_lets_finish),
                TEST(test_orphan_while_cancelling),
                TEST(test_status),
                TEST(test_patch_then_status),
                TEST(test_status_locked),
                TEST(test_nothing_to_change),
                TEST(test_refusals),
                TEST(test_unauthorized),
                TEST(test_retry_after),
                TEST(test_gone),
                TEST(test_not_served),
                TEST(test_status_subresource_went),
                TEST(test_status_subresource_came),
                TEST(test_status_pruned),
                TEST(test_kind_not_served),
        };

        return peer_prepare(argc, argv) ? cmocka_run_group_tests(test, NULL, NULL) : 1;
}
