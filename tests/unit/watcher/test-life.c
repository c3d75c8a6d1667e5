/* SPDX-License-Identifier: Apache-2.0 */
/* A watcher's life, from the first question to a watch that is in sync: it may end, or begin anew, at each wait of its fibers. */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/duration.h"
#include "object/keyed-hash.h"
#include "store/writer.h"
#include "tests/unit/kube/fixture.h"
#include "watcher/apply/scope.h"
#include "watcher/apply/verify.h"
#include "watcher/asking.h"
#include "watcher/list/transitions.h"
#include "watcher/setup.h"
#include "watcher/stream/stream.h"

#define NOT_FOUND                                                                                           \
        "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404,\"details\":{\"name\":\"gone\"}}"

static struct record_string namespace[] = {{.value = "n"}};

static const struct message_config_watcher config = {
        .operator_name = "o",
        .watch = "w",
        .api_version = "example.com/v1",
        .kind = "Widget",
        .namespace = namespace,
        .namespace_count = 1,
        .label_selector = "app=a", /* so what is missing is asked for */
        .field_selector = "",
        .trigger_jq = "",
        .filter = "",
        .owner_api_version = "",
        .owner_kind = "",
        .slot_file = "",
        .finalizers = "",
        .shared = "",
        .conditions = "",
        .known_scope = "",
        .known_cluster = "",
        .own_name = "",
        .own_action = "",
        .deadline_usec = USEC_PER_HOUR,
        .reconnect_first_usec = USEC_PER_MSEC,
        .reconnect_max_usec = USEC_PER_MSEC,
        .stall_usec = USEC_PER_MINUTE,
        .watch_timeout_usec = USEC_PER_HOUR,
        .page_limit = 500,
};

struct life {
        struct fixture *fixture;
        struct child child;
        struct watcher watcher;
        char folder[64];
        int supervisor;              /* its end of the channel */
        unsigned suspended, stop_at; /* waits that there were; the one at which something happens */
};

/* ---- a server that fails nearly each kind of question once, and its first watch */

static const struct {
        const char *what; /* in the request */
        const char *answer[3];
} question[] = {
        {"/version", {NULL, "{\"major\":\"1\",\"minor\":\"20\"}"}},
        {"/namespaces/kube-system", {NULL, "{\"metadata\":{\"uid\":\"c\"}}"}},
        {"limit=500",
         {"{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"more\"},\"items\":["
          "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\",\"resourceVersion\":\"4\"}}]}",
          NULL, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}"}},
        {"/api/v1/namespaces/n ", {"{\"metadata\":{\"name\":\"n\"}}", "{}"}},
        {"limit=1 ", {NULL, "{\"metadata\":{\"resourceVersion\":\"6\"},\"items\":[]}"}},
        {"/widgets/", {NULL, NOT_FOUND}},
        {"GET /apis/example.com/v1 ",
         {NULL, "{\"kind\":\"APIResourceList\",\"groupVersion\":\"example.com/v1\",\"resources\":[{\"name\":"
                "\"widgets\",\"kind\":\"Widget\",\"namespaced\":true,\"verbs\":[\"list\",\"watch\"]}]}"}},
};

static unsigned times[ELEMENTS(question)], watches;

static void answer_watch(struct server_connection *connection)
{
        server_say(connection, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n");
        if (watches++ == 0)
                server_hang_up(connection);
}

static void answer_question(struct server_connection *connection, size_t which)
{
        unsigned last = question[which].answer[2] ? 2 : 1;
        const char *body = question[which].answer[times[which] < last ? times[which] : last];

        times[which]++;
        if (!body)
                server_answer(connection, "500 Internal Server Error", "", "{}");
        else
                server_answer(connection, strcmp(body, NOT_FOUND) == 0 ? "404 Not Found" : "200 OK", "",
                              body);
}

static void answer(struct server_connection *connection, const char *request)
{
        if (strstr(request, "watch=1")) {
                answer_watch(connection);
                return;
        }
        for (size_t i = 0; i < ELEMENTS(question); i++)
                if (strstr(request, question[i].what)) {
                        answer_question(connection, i);
                        return;
                }
        server_answer(connection, "404 Not Found", "", "{}"); /* other groups, when the kind is looked for */
}

/* ---- the watcher */

static void count_waits(const struct fiber *fiber, void *userdata)
{
        struct life *life = userdata;

        if (!fiber && fibers_count(life->watcher.fibers) > 0)
                life->suspended++;
}

static int on_message(struct channel *channel _unused_, struct message **message _unused_,
                      void *userdata _unused_)
{
        return 0;
}

static void on_error(struct channel *channel _unused_, int status _unused_, const char *reason _unused_,
                     void *userdata _unused_)
{
}

static void connect_supervisor(struct life *life)
{
        static const struct channel_callbacks callbacks = {.on_message = on_message, .on_error = on_error};
        int fd[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd), 0);
        assert_int_equal(channel_new(life->child.event, fd[0], ROLE_WATCHER, ROLE_SUPERVISOR, &callbacks,
                                     NULL, &life->child.channel),
                         0);
        channel_set_state(life->child.channel, CHILD_RUNNING);
        life->supervisor = fd[1];
}

static void life_begin(struct life *life, void **state, unsigned stop_at)
{
        struct fixture *fixture = *state;
        struct message_credential credential = fixture_credential(fixture->server.url, "s3cret");
        struct watcher *watcher = &life->watcher;
        _cleanup_error_ struct error error = ERROR_NONE;
        bool rebuilt;

        *life = (struct life){.fixture = fixture,
                              .child = {.event = fixture->event},
                              .watcher = {.child = &life->child, .config = &config},
                              .folder = "/tmp/test-life-XXXXXX",
                              .stop_at = stop_at};
        memset(times, 0, sizeof(times));
        watches = 0;
        fixture->server.on_request = answer;
        watcher->client = TAKE_PTR(fixture->client);
        connect_supervisor(life);
        assert_non_null(mkdtemp(life->folder));
        assert_int_equal(fibers_new(fixture->event, &watcher->fibers), 0);
        fibers_on_switch(watcher->fibers, count_waits, life);
        assert_non_null(watcher->scope = scope_new(&config));
        assert_non_null(watcher->basis = basis_new(&config, watcher->scope));
        assert_int_equal(verification_new(&watcher->verification), 0);
        assert_int_equal(streams_new(watcher), 0);
        assert_int_equal(store_writer_new_within(life->folder, 0, &rebuilt, &watcher->store, &error), 0);
        assert_int_equal(store_meta_get(watcher->store, &watcher->meta), 0);
        assert_int_equal(verification_add(watcher, "n/gone", "u2", true), 0);
        assert_int_equal(setup_credential(watcher, &credential), 0);
        setup_retry(watcher);
}

static int remove_path(const char *path, const struct stat *stat _unused_, int type _unused_,
                       struct FTW *ftw _unused_)
{
        return remove(path);
}

static void life_end(struct life *life)
{
        watcher_done(&life->watcher);
        channel_free(life->child.channel);
        close(life->supervisor);
        assert_int_equal(nftw(life->folder, remove_path, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The watch after the one that broke off goes on, and everything was answered. */
static bool is_in_sync(const struct life *life)
{
        const struct watcher *watcher = &life->watcher;

        return watches > 1 && watcher->stream->state == STREAM_WATCHING && !watcher->stream->probe.due &&
               watcher->identified && verification_idle(watcher) && fibers_count(watcher->fibers) == 0;
}

/* Returns whether it came so far before it was to end. */
static bool live(struct life *life)
{
        uint64_t deadline = clock_boottime_usec() + 20 * USEC_PER_SEC;

        while (life->suspended < life->stop_at && !is_in_sync(life)) {
                assert_true(clock_boottime_usec() < deadline);
                assert_true(sd_event_run(life->child.event, 10 * USEC_PER_MSEC) >= 0);
                assert_false(life->child.stopping); /* nothing was fatal */
        }
        return is_in_sync(life);
}

static void at_each_wait(void **state, void (*happens)(struct life *life))
{
        bool is_over = false;
        unsigned stop_at;

        for (stop_at = 0; !is_over; stop_at++) {
                struct life life;

                if (stop_at > 0) /* each time as if it were the first request */
                        assert_true(fixture_teardown(state) >= 0 && fixture_setup(state) >= 0);
                life_begin(&life, state, stop_at);
                is_over = live(&life);
                happens(&life);
                life_end(&life);
                assert_true(stop_at < 200);
        }
        assert_true(stop_at > 12); /* each of them has failed once, and waited for its next attempt */
}

static void nothing(struct life *life _unused_)
{
}

/* Its list, watch and probe are given up, and it lists anew. */
static void restored(struct life *life)
{
        struct stream *stream = life->watcher.stream;

        if (stream->state == STREAM_STOPPED)
                return;
        stream_replace(stream);
        life->stop_at = UINT_MAX;
        watches = 1; /* the next one goes on */
        assert_true(live(life));
}

/* What it knows of the server is in doubt. */
static void doubted(struct life *life)
{
        setup_rediscover(&life->watcher);
        setup_identify(&life->watcher);
        life->stop_at = UINT_MAX;
        assert_true(live(life));
}

static void test_it_ends_at_each_wait(void **state)
{
        at_each_wait(state, nothing);
}

static void test_its_database_is_restored_at_each_wait(void **state)
{
        at_each_wait(state, restored);
}

static void test_its_server_is_doubted_at_each_wait(void **state)
{
        at_each_wait(state, doubted);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest test[] = {
                TEST(test_it_ends_at_each_wait),
                TEST(test_its_database_is_restored_at_each_wait),
                TEST(test_its_server_is_doubted_at_each_wait),
        };

        if (keyed_hash_begin("0123456789abcdef", SIPHASH_KEY_SIZE) < 0)
                return 1;
        return cmocka_run_group_tests(test, NULL, NULL);
}
