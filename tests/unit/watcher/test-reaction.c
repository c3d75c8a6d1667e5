/* SPDX-License-Identifier: Apache-2.0 */
/* The table of reactions: total, and right where being wrong is expensive. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "watcher/stream/reaction.h"

static enum answer answer_to(int status, const char *body)
{
        struct kube_error error = KUBE_ERROR_NONE;
        enum answer answer;

        assert_int_equal(kube_error_from_status(&error, status, body, strlen(body)), 0);
        answer = answer_of(&error);
        kube_error_done(&error);
        return answer;
}

static void test_every_cell_is_defined(void **state _unused_)
{
        for (unsigned phase = 0; phase < PHASE_COUNT; phase++)
                for (unsigned answer = 0; answer < ANSWER_COUNT; answer++) {
                        enum reaction reaction = reaction_to(phase, answer);

                        assert_true(reaction > REACT_FATAL && reaction < REACTION_COUNT);
                }
        assert_int_equal(reaction_to(PHASE_COUNT, ANSWER_GONE), REACT_FATAL);
        assert_int_equal(reaction_to(PHASE_LIST, ANSWER_COUNT), REACT_FATAL);
}

/* What fails is never repeated at full speed, but for what a LIST mends. Each of these is bounded elsewhere:
 * LIST_NOW by its pace, UNPAGED because a LIST without pages is another phase, INSTEAD by the hour for which
 * it is remembered, REDUCED by the parameters that are left. */
static void test_at_once_only_where_it_is_bounded(void **state _unused_)
{
        for (unsigned phase = 0; phase < PHASE_COUNT; phase++)
                for (unsigned answer = 0; answer < ANSWER_COUNT; answer++) {
                        enum reaction reaction = reaction_to(phase, answer);

                        if (reaction == REACT_LIST_NOW)
                                assert_true(answer == ANSWER_GONE || answer == ANSWER_TOO_LARGE);
                        if (reaction == REACT_LIST_UNPAGED)
                                assert_int_equal(phase, PHASE_CONTINUE);
                        if (reaction == REACT_LIST_INSTEAD)
                                assert_int_equal(phase, PHASE_INITIAL);
                        if (reaction == REACT_LIST_REDUCED)
                                assert_int_equal(phase, PHASE_LIST);
                        assert_true(reaction != REACT_WATCH_NOW);
                }
}

/* A list that failed is made again; going on with a watch would lose what it did not show. */
static void test_no_watch_after_a_failed_list(void **state _unused_)
{
        for (unsigned answer = 0; answer < ANSWER_COUNT; answer++)
                for (unsigned phase = PHASE_LIST; phase <= PHASE_INITIAL; phase++) {
                        enum reaction reaction = reaction_to(phase, answer);

                        assert_true(reaction != REACT_WATCH_LATER && reaction != REACT_WATCH_REDUCED &&
                                    reaction != REACT_REFRESH_WATCH);
                }
}

/* Connection, credential, right and server may come back: that is no reason to give WatchList up. */
static void test_a_streamed_list_is_given_up_for_good_reasons(void **state _unused_)
{
        static const enum answer keep[] = {ANSWER_UNAUTHORIZED, ANSWER_FORBIDDEN,   ANSWER_NOT_FOUND,
                                           ANSWER_BUSY,         ANSWER_UNREACHABLE, ANSWER_INTERRUPTED};

        for (unsigned answer = 0; answer < ANSWER_COUNT; answer++) {
                bool kept = false;

                for (size_t i = 0; i < ELEMENTS(keep); i++)
                        kept = kept || keep[i] == answer;
                assert_int_equal(reaction_to(PHASE_INITIAL, answer) == REACT_LIST_INSTEAD, !kept);
        }
}

/* A page that failed for a while is asked for again; the pages before it are not in vain. */
static void test_a_page_is_tried_again(void **state _unused_)
{
        static const enum answer again[] = {ANSWER_BUSY, ANSWER_SERVER_ERROR, ANSWER_UNREACHABLE,
                                            ANSWER_INTERRUPTED, ANSWER_SILENT};

        for (size_t i = 0; i < ELEMENTS(again); i++)
                assert_int_equal(reaction_to(PHASE_CONTINUE, again[i]), REACT_PAGE_LATER);
        assert_int_equal(reaction_to(PHASE_CONTINUE, ANSWER_GONE), REACT_LIST_UNPAGED);
}

static void test_the_third_server_error_lists(void **state _unused_)
{
        struct recent recent = {0};
        uint64_t now = UINT64_C(1) << 40;

        assert_int_equal(reaction_to(PHASE_STREAM, ANSWER_SERVER_ERRORS), REACT_LIST_LATER);
        assert_int_equal(reaction_to(PHASE_WATCH, ANSWER_SERVER_ERRORS), REACT_LIST_LATER);
        assert_false(recent_note(&recent, now));
        assert_false(recent_note(&recent, now + 1));
        assert_true(recent_note(&recent, now + RECENT_USEC - 1));
        assert_false(recent_note(&recent, now + RECENT_USEC));
        /* spread over more than a minute */
        recent = (struct recent){0};
        for (unsigned i = 0; i < 100; i++)
                assert_false(recent_note(&recent, now += RECENT_USEC / 2 + 1));
}

static void test_the_same_version_goes_on(void **state _unused_)
{
        static const enum answer same[] = {ANSWER_BUSY, ANSWER_SERVER_ERROR, ANSWER_UNREACHABLE,
                                           ANSWER_INTERRUPTED, ANSWER_FORBIDDEN};

        for (size_t i = 0; i < ELEMENTS(same); i++) {
                assert_int_equal(reaction_to(PHASE_WATCH, same[i]), REACT_WATCH_LATER);
                assert_int_equal(reaction_to(PHASE_STREAM, same[i]), REACT_WATCH_LATER);
        }
}

static void test_answers(void **state _unused_)
{
        assert_int_equal(answer_to(410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}"),
                         ANSWER_GONE);
        assert_int_equal(answer_to(410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Gone\"}"),
                         ANSWER_GONE);
        assert_int_equal(answer_to(0, "{\"code\":410}"), ANSWER_GONE); /* kubernetes#46446 */
        assert_int_equal(answer_to(410, "gone"), ANSWER_GONE);
        assert_int_equal(answer_to(401, ""), ANSWER_UNAUTHORIZED);
        assert_int_equal(answer_to(403, ""), ANSWER_FORBIDDEN);
        assert_int_equal(answer_to(404, "404 page not found"), ANSWER_NOT_FOUND);
        assert_int_equal(answer_to(429, "slow down"), ANSWER_BUSY);
        assert_int_equal(answer_to(422, ""), ANSWER_REFUSED);
        assert_int_equal(answer_to(500, ""), ANSWER_SERVER_ERROR);
        assert_int_equal(answer_to(504, ""), ANSWER_SERVER_ERROR);
        assert_int_equal(answer_to(503, "{\"code\":503,\"details\":{\"retryAfterSeconds\":3}}"),
                         ANSWER_BUSY);
        assert_int_equal(
                answer_to(504, "{\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}"),
                ANSWER_TOO_LARGE);
        assert_int_equal(
                answer_to(504, "{\"message\":\"Timeout: Too large resource version: 10, current: 5\"}"),
                ANSWER_TOO_LARGE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_every_cell_is_defined),
                cmocka_unit_test(test_at_once_only_where_it_is_bounded),
                cmocka_unit_test(test_a_streamed_list_is_given_up_for_good_reasons),
                cmocka_unit_test(test_a_page_is_tried_again),
                cmocka_unit_test(test_the_third_server_error_lists),
                cmocka_unit_test(test_no_watch_after_a_failed_list),
                cmocka_unit_test(test_the_same_version_goes_on),
                cmocka_unit_test(test_answers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
