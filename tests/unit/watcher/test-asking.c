/* SPDX-License-Identifier: Apache-2.0 */
/* What waits for the server on a fiber of the watcher ends at each of its waits, and leaves nothing behind. */
#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "kube/transfer.h"
#include "tests/unit/kube/fixture.h"
#include "watcher/apply/finalizer-search.h"
#include "watcher/asking.h"
#include "watcher/stream/missing-namespaces.h"
#include "watcher/stream/stream.h"

static char group[] = "example.com", version[] = "v1", plural[] = "widgets", namespace_name[] = "n";

static const struct message_config_watcher config = {
        .watch = "w",
        .finalizers = "example.com/w",
        .label_selector = "app=a", /* so there is something to search for */
        .field_selector = "",
        .reconnect_first_usec = USEC_PER_MSEC,
        .reconnect_max_usec = USEC_PER_MSEC,
};

struct watching {
        struct child child;
        struct watcher watcher;
        struct stream stream;
        unsigned suspended, stop_at; /* waits that there were; the one at which it ends */
};

static void count_waits(const struct fiber *fiber, void *userdata)
{
        struct watching *watching = userdata;

        if (!fiber && fibers_count(watching->watcher.fibers) > 0)
                watching->suspended++;
}

static unsigned pages; /* that were asked for */

/* A page, a failure, and the last page; and the namespace is not there. */
static void answer(struct server_connection *connection, const char *request)
{
        if (strstr(request, "/api/v1/namespaces/")) {
                server_answer(connection, "404 Not Found", "",
                              "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404}");
                return;
        }
        assert_non_null(strstr(request, plural));
        switch (pages++) {
        case 0:
                server_answer(connection, "200 OK", "",
                              "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"more\"},\"items\":["
                              "{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\",\"uid\":\"u\"}}]}");
                break;
        case 1:
                server_answer(connection, "500 Internal Server Error", "", "{}");
                break;
        default:
                server_answer(connection, "200 OK", "",
                              "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}");
        }
}

static int do_nothing(sd_event_source *source _unused_, void *userdata _unused_)
{
        return 0;
}

static void watching_begin(struct watching *watching, struct fixture *fixture, unsigned stop_at)
{
        *watching = (struct watching){
                .child = {.event = fixture->event},
                .watcher = {.child = &watching->child,
                            .config = &config,
                            .client = fixture->client,
                            .resource = {.group = group,
                                         .version = version,
                                         .plural = plural,
                                         .namespaced = true},
                            .stream = &watching->stream,
                            .stream_count = 1},
                .stream = {.watcher = &watching->watcher, .namespace_name = namespace_name},
                .stop_at = stop_at,
        };
        pages = 0;
        fixture->server.on_request = answer;
        assert_int_equal(fibers_new(fixture->event, &watching->watcher.fibers), 0);
        fibers_on_switch(watching->watcher.fibers, count_waits, watching);
        /* In the place of what would be told to a supervisor. */
        assert_true(sd_event_add_defer(fixture->event, &watching->watcher.announce.source, do_nothing,
                                       NULL) >= 0);
}

/* As a watcher ends. */
static void watching_end(struct watching *watching)
{
        struct watcher *watcher = &watching->watcher;

        asking_done(watcher);
        assert_null(watcher->fibers);
        assert_null(watcher->namespaces);
        assert_null(watcher->search.fiber);
        assert_null(watcher->client->transfer);
        assert_int_equal(watcher->client->at_once.running, 0);
        sd_event_source_disable_unref(watcher->announce.source);
}

static void begin_search(struct watcher *watcher)
{
        finalizer_search_begin(watcher, CHANGE_UPDATED);
        (void)finalizer_search_is_through(watcher);
}

static bool search_is_over(const struct watcher *watcher)
{
        return !watcher->search.is_due;
}

static bool namespace_is_known(const struct watcher *watcher)
{
        return missing_namespaces_has(&watcher->stream[0]);
}

struct walk {
        void (*begin)(struct watcher *watcher);
        bool (*is_over)(const struct watcher *watcher);
};

static const struct walk search = {begin_search, search_is_over};
static const struct walk namespaces = {missing_namespaces_look, namespace_is_known};

/* Returns whether it was over before it was to end. */
static bool walk_until(struct watching *watching, const struct walk *walk)
{
        while (watching->suspended < watching->stop_at && !walk->is_over(&watching->watcher))
                assert_true(sd_event_run(watching->child.event, 10 * USEC_PER_SEC) >= 0);
        return walk->is_over(&watching->watcher);
}

static void test_it_ends_at_each_wait(void **state, const struct walk *walk)
{
        bool is_over = false;

        for (unsigned stop_at = 0; !is_over; stop_at++) {
                struct watching watching;

                if (stop_at > 0) /* each time as if it were the first request */
                        assert_true(fixture_teardown(state) >= 0 && fixture_setup(state) >= 0);
                watching_begin(&watching, *state, stop_at);
                walk->begin(&watching.watcher);
                is_over = walk_until(&watching, walk);
                watching_end(&watching);
                assert_true(stop_at < 100);
        }
}

static void test_a_search_ends_at_each_wait(void **state)
{
        test_it_ends_at_each_wait(state, &search);
}

static void test_a_question_ends_at_each_wait(void **state)
{
        test_it_ends_at_each_wait(state, &namespaces);
}

/* The first one ends in the middle, and the watcher goes on. */
static void test_another_search_takes_the_place_of_one_at_each_wait(void **state)
{
        bool is_over = false;

        for (unsigned stop_at = 0; !is_over; stop_at++) {
                struct watching watching;

                watching_begin(&watching, *state, stop_at);
                begin_search(&watching.watcher);
                is_over = walk_until(&watching, &search);
                begin_search(&watching.watcher);
                watching.stop_at = UINT_MAX;
                assert_true(walk_until(&watching, &search));
                assert_true(fibers_count(watching.watcher.fibers) <= 1);
                watching_end(&watching);
                assert_true(stop_at < 100);
        }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
        const struct CMUnitTest test[] = {
                TEST(test_a_search_ends_at_each_wait),
                TEST(test_a_question_ends_at_each_wait),
                TEST(test_another_search_takes_the_place_of_one_at_each_wait),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
