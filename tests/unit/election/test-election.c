/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The election, where one order of events says it best. All orders: tests/simulation/replicas.h.
 *
 * Each test plays the server and the other members for one replica, "a".
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/duration.h"
#include "election/election.h"

#define D       (15 * USEC_PER_SEC)
#define SECONDS 1764216000 /* of the server's clock */

struct play {
        struct election election;
        uint64_t now;
        unsigned versions;
};

static void play_begin(struct play *play)
{
        const struct leader_member self = {"a", "1"};

        *play = (struct play){.now = USEC_PER_SEC};
        election_init(&play->election, &self, false, D, play->now);
        election_reaped(&play->election, play->now);
}

/* The one request of this kind that is asked for now; others stay without an answer. */
static struct election_ask take_ask(struct play *play, enum election_ask_kind kind)
{
        struct election_ask ask, found = {.number = 0};

        while (election_next(&play->election, play->now, &ask))
                if (ask.kind == kind)
                        found = ask;
        if (!found.number)
                fail_msg("no request of kind %d, but one is wanted in state %d", kind, play->election.state);
        return found;
}

static void assert_no_ask(struct play *play)
{
        struct election_ask ask;

        if (election_next(&play->election, play->now, &ask))
                fail_msg("a request of kind %d", ask.kind);
}

static struct election_answer done(struct play *play, const struct election_ask *ask)
{
        struct election_answer answer = {.number = ask->number, .server_seconds = SECONDS};

        snprintf(answer.version, sizeof(answer.version), "uid %u", ++play->versions);
        return answer;
}

static void answer_with(struct play *play, const struct election_ask *ask, enum election_outcome outcome)
{
        struct election_answer answer = done(play, ask);

        answer.outcome = outcome;
        election_answer(&play->election, &answer, play->now);
}

static void answer_record(struct play *play, const struct election_ask *ask,
                          const struct leader_claim *claim)
{
        struct election_answer answer = done(play, ask);

        answer.claim = *claim;
        election_answer(&play->election, &answer, play->now);
}

/* It becomes a member, and reads this record. */
static void join(struct play *play, const struct leader_claim *claim)
{
        struct election_ask own, record, ask;

        play_begin(play);
        assert_true(election_next(&play->election, play->now, &own));
        assert_true(election_next(&play->election, play->now, &record));
        assert_int_equal(own.kind, ASK_OWN);
        assert_int_equal(record.kind, ASK_RECORD);
        answer_with(play, &own, OUTCOME_MISSING);
        assert_true(election_next(&play->election, play->now, &ask));
        assert_int_equal(ask.kind, ASK_RENEW);
        answer_with(play, &ask, OUTCOME_DONE);
        answer_record(play, &record, claim);
}

static struct leader_claim released(uint64_t epoch, const char *successor)
{
        struct leader_claim claim = {.epoch = epoch, .writes = 1, .duration_usec = D, .released = true};

        snprintf(claim.successor, sizeof(claim.successor), "%s", successor);
        return claim;
}

static struct leader_claim held(uint64_t epoch, const char *name, const char *life)
{
        struct leader_claim claim = {.epoch = epoch, .writes = 1, .duration_usec = D};

        snprintf(claim.holder.name, sizeof(claim.holder.name), "%s", name);
        snprintf(claim.holder.life, sizeof(claim.holder.life), "%s", life);
        return claim;
}

static void lead(struct play *play)
{
        const struct leader_claim claim = released(7, "a");
        struct election_ask ask;

        join(play, &claim);
        ask = take_ask(play, ASK_TAKE);
        answer_with(play, &ask, OUTCOME_DONE);
        assert_int_equal(play->election.state, ELECTION_LEADING);
}

/* ---- epochs */

static void test_epoch_is_of_the_servers_clock(void **state)
{
        struct election_hold hold;
        struct play play;

        (void)state;
        lead(&play);
        election_hold(&play.election, play.now, &hold);
        assert_true(hold.leads);
        assert_int_equal(hold.epoch, SECONDS);
        assert_int_equal(hold.stop_at, play.now + D / 15 * 10);
        assert_int_equal(hold.kill_at, play.now + D / 15 * 12);
        assert_int_equal(hold.reaped_at, play.now + D / 15 * 14);
}

static void test_epoch_is_above_all_that_were_seen(void **state)
{
        const struct leader_claim high = held(SECONDS + 1000, "b", "1"), low = released(SECONDS + 10, "");
        struct election_ask ask;
        struct play play;

        (void)state;
        join(&play, &high);
        election_watched_record(&play.election, "put back", play.now);
        ask = take_ask(&play, ASK_RECORD);
        answer_record(&play, &ask, &low);
        assert_no_ask(&play); /* not released by its last holder: a duration passes */
        for (unsigned i = 0; i < 9; i++) {
                play.now += D / 15 * 2;
                while (election_next(&play.election, play.now, &ask) && ask.kind != ASK_TAKE)
                        if (ask.kind == ASK_RECORD) {
                                struct election_answer answer = {.number = ask.number, .claim = low};

                                memcpy(answer.version, play.election.record.version, sizeof(answer.version));
                                election_answer(&play.election, &answer, play.now);
                        } else {
                                answer_with(&play, &ask, OUTCOME_DONE);
                        }
                if (ask.kind == ASK_TAKE)
                        break;
        }
        assert_int_equal(ask.kind, ASK_TAKE);
        assert_int_equal(ask.claim.epoch, SECONDS + 1001);
}

static void test_epoch_that_leaps_is_refused(void **state)
{
        const struct leader_claim claim = released(SECONDS + ELECTION_LEAP + 1, "a");
        struct play play;

        (void)state;
        join(&play, &claim);
        assert_true(play.election.epoch_leaps);
        assert_no_ask(&play);
}

static void test_nothing_is_taken_without_a_server_clock(void **state)
{
        const struct leader_claim claim = released(7, "a");
        struct play play;

        (void)state;
        join(&play, &claim);
        play.election.server_seconds = 0; /* as if no answer had had a Date */
        assert_no_ask(&play);
}

/* ---- records of others */

static void test_record_of_another_operator(void **state)
{
        const struct leader_claim claim = released(7, "a");
        struct election_answer answer;
        struct election_ask ask;
        struct play play;

        (void)state;
        join(&play, &claim);
        election_watched_record(&play.election, "other", play.now);
        ask = take_ask(&play, ASK_RECORD);
        answer = done(&play, &ask);
        answer.refused = true;
        election_answer(&play.election, &answer, play.now);
        assert_true(play.election.record_refused);
        assert_no_ask(&play);
}

/* A holder with longer leases, as before a rolling update that shortens them, is given its own duration. */
static void test_longer_leases_of_others(void **state)
{
        struct leader_claim claim = held(7, "b", "1");
        struct election_ask ask;
        struct play play;

        (void)state;
        claim.duration_usec = 4 * D;
        join(&play, &claim);
        ask = take_ask(&play, ASK_HOLDER);
        answer_with(&play, &ask, OUTCOME_MISSING);
        play.now += 2 * D;
        while (election_next(&play.election, play.now, &ask))
                assert_true(ask.kind == ASK_RENEW || ask.kind == ASK_RECORD);
}

/* Renews, and finds the record and the holder's Lease like this, until nothing is asked for. Returns whether the record is taken. */
static bool look_around_at(struct play *play, const struct leader_claim *claim, const char *life,
                           uint64_t duration_usec)
{
        struct election_ask ask;

        while (election_next(&play->election, play->now, &ask)) {
                struct election_answer answer = done(play, &ask);

                if (ask.kind == ASK_TAKE)
                        return true;
                if (ask.kind == ASK_RECORD) {
                        answer.claim = *claim;
                        snprintf(answer.version, sizeof(answer.version), "uid %llu",
                                 (unsigned long long)claim->writes);
                } else if (ask.kind == ASK_HOLDER) {
                        snprintf(answer.life, sizeof(answer.life), "%s", life);
                        snprintf(answer.version, sizeof(answer.version), "lease same");
                        answer.duration_usec = duration_usec;
                }
                election_answer(&play->election, &answer, play->now);
        }
        return false;
}

/* When it is taken, since the holder was last seen alive. claim: as the record is from then on. */
static uint64_t taken_after(struct play *play, const struct leader_claim *claim, const char *life,
                            uint64_t duration_usec)
{
        uint64_t began = play->now;

        election_watched_record(&play->election, "another", play->now);
        while (!look_around_at(play, claim, life, duration_usec)) {
                assert_true(play->now < began + 100 * D);
                play->now += D / 15;
        }
        return play->now - began;
}

/* The record said an hour for a moment. Its holder's own Lease tells what is right, if the record has that holder's epoch. */
static void test_a_duration_is_remembered_until_its_holder_tells_its_own(void **state)
{
        struct leader_claim claim = held(7, "b", "1"), forged = claim, older = held(6, "b", "1");
        static const struct {
                const char *life;
                uint64_t in_lease, in_record, expected;
        } with[] = {
                {"1", D, D, D},         {"1", 4 * D, D, 4 * D},  {"1", D, 3 * D, 3 * D},
                {"1", D / 3, D / 3, D}, {"other", D, D, 20 * D}, {"1", 0, D, 20 * D},
        };
        struct play play;

        (void)state;
        forged.duration_usec = 20 * D;
        for (size_t i = 0; i <= ELEMENTS(with); i++) {
                bool is_older = i == ELEMENTS(with);
                uint64_t after, expected = is_older ? 20 * D : with[i].expected;

                forged.writes = 101;
                claim.writes = older.writes = 102;
                claim.duration_usec = is_older ? D : with[i].in_record;
                join(&play, &forged);
                after = taken_after(&play, is_older ? &older : &claim, is_older ? "1" : with[i].life,
                                    is_older ? D : with[i].in_lease);
                assert_in_range(after, expected, expected + D / 5);
        }
}

static void test_a_leader_writes_its_own_duration_again(void **state)
{
        struct leader_claim claim;
        struct election_ask ask;
        struct play play;

        (void)state;
        lead(&play);
        claim = play.election.claim;
        claim.duration_usec = LEADER_DURATION_MAX;
        election_watched_record(&play.election, "another", play.now);
        ask = take_ask(&play, ASK_RECORD);
        answer_record(&play, &ask, &claim);
        assert_int_equal(play.election.state, ELECTION_LEADING);
        ask = take_ask(&play, ASK_RESTORE);
        assert_int_equal(ask.claim.duration_usec, D);
        answer_with(&play, &ask, OUTCOME_DONE);
        assert_no_ask(&play);
}

/* Renews, and finds the holder's Lease like this, until nothing is asked for. Returns whether the record is taken. */
static bool look_around(struct play *play, const char *life, const char *version)
{
        struct election_ask ask;

        while (election_next(&play->election, play->now, &ask)) {
                struct election_answer answer = done(play, &ask);

                if (ask.kind == ASK_TAKE)
                        return true;
                if (ask.kind == ASK_RECORD) {
                        answer.claim = play->election.claim;
                        memcpy(answer.version, play->election.record.version, sizeof(answer.version));
                } else if (ask.kind == ASK_HOLDER) {
                        snprintf(answer.life, sizeof(answer.life), "%s", life);
                        snprintf(answer.version, sizeof(answer.version), "%s", version);
                }
                election_answer(&play->election, &answer, play->now);
        }
        return false;
}

static void test_renewals_of_the_holder_are_seen_as_they_come(void **state)
{
        const struct leader_claim claim = held(7, "b", "1");
        struct play play;

        (void)state;
        join(&play, &claim);
        for (unsigned i = 0; i < 14; i += 2, play.now += D / 15 * 2) {
                char version[8];

                snprintf(version, sizeof(version), "h %u", i);
                assert_false(look_around(&play, "1", version));
        }
        for (unsigned i = 0; i < 12; i += 2, play.now += D / 15 * 2)
                assert_false(look_around(&play, "1", "h 12"));
        play.now += D / 15 + 15;
        assert_true(look_around(&play, "1", "h 12"));
}

static void test_renewal_that_the_watch_tells_is_looked_at(void **state)
{
        const struct leader_claim claim = held(7, "b", "1");
        struct play play;
        uint64_t first;

        (void)state;
        join(&play, &claim);
        first = play.now;
        assert_false(look_around(&play, "1", "h 1"));
        play.now += D / 15 * 3 - 15; /* a silent watch is trusted for so long */
        assert_false(look_around(&play, "1", "h 2"));
        assert_int_equal(play.election.holder.since, first);
        election_watched_holder(&play.election, play.now);
        assert_false(look_around(&play, "1", "h 2"));
        assert_int_equal(play.election.holder.since, play.now);
}

static void test_holder_of_a_former_life(void **state)
{
        const struct leader_claim claim = held(7, "b", "1");
        struct play play;

        (void)state;
        join(&play, &claim);
        for (unsigned i = 0; i < 15; i += 3, play.now += D / 15 * 3)
                assert_false(look_around(&play, "2",
                                         i < 9 ? "h 1" : "h 2")); /* renewed meanwhile, and no matter */
        play.now += 15;
        assert_true(look_around(&play, "2", "h 2"));
}

/* ---- a record that is shared with somebody who has no member Lease */

static void test_foreign_holder_renews_the_record(void **state)
{
        struct leader_claim claim = held(7, "client-go_1", "");
        struct election_ask ask;
        struct play play;

        (void)state;
        claim.foreign = true;
        claim.duration_usec = 2 * D;
        join(&play, &claim);
        for (unsigned i = 0; i < 40; i += 2, play.now += D / 15 * 2) {
                assert_false(look_around(&play, "1", "h 1")); /* its identity is no Lease's name */
                assert_false(play.election.holder.known);
                if (i < 10) { /* renewed until then */
                        election_watched_record(&play.election, "new", play.now);
                        ask = take_ask(&play, ASK_RECORD);
                        answer_record(&play, &ask, &claim);
                }
                if (play.now >= play.election.record.since + 2 * D - D / 15 * 2)
                        break;
        }
        assert_int_equal(play.now, USEC_PER_SEC + D / 15 * 8 + 2 * D - D / 15 * 2);
        play.now += D / 15 * 2;
        assert_true(look_around(&play, "1", "h 1"));
}

static void test_shared_record_is_renewed(void **state)
{
        struct leader_claim claim = held(SECONDS + 9, "client-go_1", "");
        struct election_ask ask;
        struct play play;
        uint64_t first;

        (void)state;
        lead(&play);
        first = play.now;
        play.now += D / 15 * 2;
        assert_false(look_around(&play, "", ""));
        assert_int_equal(play.election.written, first); /* one of our own alone is written on changes */
        play.election.is_shared = true;
        assert_false(look_around(&play, "", ""));
        assert_int_equal(play.election.written, play.now);
        election_watched_record(&play.election, "taken", play.now);
        ask = take_ask(&play, ASK_RECORD);
        claim.foreign = true;
        answer_record(&play, &ask, &claim);
        assert_int_equal(play.election.state, ELECTION_ENDING);
}

/* ---- a lead */

static void test_renewal_without_a_change_is_none(void **state)
{
        struct election_answer answer;
        struct election_hold before, after;
        struct election_ask ask;
        struct play play;

        (void)state;
        lead(&play);
        election_hold(&play.election, play.now, &before);
        play.now += D / 15 * 2;
        ask = take_ask(&play, ASK_RENEW);
        answer = done(&play, &ask);
        memcpy(answer.version, ask.version, sizeof(answer.version));
        election_answer(&play.election, &answer, play.now);
        election_hold(&play.election, play.now, &after);
        assert_int_equal(before.stop_at, after.stop_at);
}

static void test_lead_lapses_by_the_clock_alone(void **state)
{
        struct election_hold hold;
        struct play play;

        (void)state;
        lead(&play);
        play.now += D / 15 * 10 - 1;
        election_hold(&play.election, play.now, &hold);
        assert_true(hold.leads);
        play.now += 1;
        election_hold(&play.election, play.now, &hold);
        assert_false(hold.leads);
        assert_int_not_equal(hold.epoch, 0); /* what runs is to end by kill_at */
        (void)take_ask(&play, ASK_RENEW);
        assert_int_equal(play.election.state, ELECTION_ENDING);
}

static void test_after_a_release_nothing_is_held(void **state)
{
        struct election_hold hold;
        struct election_ask ask;
        struct play play;

        (void)state;
        lead(&play);
        election_step_down(&play.election, "b", true, true, play.now);
        assert_no_ask(&play); /* what runs is not reaped */
        election_reaped(&play.election, play.now);
        ask = take_ask(&play, ASK_RECORD);
        election_hold(&play.election, play.now, &hold);
        assert_int_equal(hold.epoch, 0);
        {
                struct election_answer answer = {.number = ask.number, .claim = held(SECONDS, "a", "1")};

                memcpy(answer.version, play.election.record.version, sizeof(answer.version));
                election_answer(&play.election, &answer, play.now);
        }
        ask = take_ask(&play, ASK_RELEASE);
        assert_true(ask.claim.released && ask.claim.late);
        assert_string_equal(ask.claim.successor, "b");
        assert_int_equal(ask.claim.epoch, SECONDS);
        answer_with(&play, &ask, OUTCOME_DONE);
        assert_int_equal(play.election.state, ELECTION_FOLLOWING);
}

/* A second process with our identity has taken our Lease: the first one is over. */
static void test_superseded(void **state)
{
        struct election_answer answer;
        struct election_ask ask;
        struct play play;

        (void)state;
        lead(&play);
        play.now += D / 15 * 2;
        ask = take_ask(&play, ASK_RENEW);
        answer_with(&play, &ask, OUTCOME_CONFLICT);
        play.now += D / 15;
        ask = take_ask(&play, ASK_OWN);
        answer = done(&play, &ask);
        snprintf(answer.life, sizeof(answer.life), "2");
        election_answer(&play.election, &answer, play.now);
        assert_true(play.election.is_superseded);
        assert_int_equal(play.election.state, ELECTION_ENDING);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_epoch_is_of_the_servers_clock),
                cmocka_unit_test(test_epoch_is_above_all_that_were_seen),
                cmocka_unit_test(test_epoch_that_leaps_is_refused),
                cmocka_unit_test(test_nothing_is_taken_without_a_server_clock),
                cmocka_unit_test(test_record_of_another_operator),
                cmocka_unit_test(test_longer_leases_of_others),
                cmocka_unit_test(test_a_duration_is_remembered_until_its_holder_tells_its_own),
                cmocka_unit_test(test_a_leader_writes_its_own_duration_again),
                cmocka_unit_test(test_renewals_of_the_holder_are_seen_as_they_come),
                cmocka_unit_test(test_renewal_that_the_watch_tells_is_looked_at),
                cmocka_unit_test(test_holder_of_a_former_life),
                cmocka_unit_test(test_foreign_holder_renews_the_record),
                cmocka_unit_test(test_shared_record_is_renewed),
                cmocka_unit_test(test_renewal_without_a_change_is_none),
                cmocka_unit_test(test_lead_lapses_by_the_clock_alone),
                cmocka_unit_test(test_after_a_release_nothing_is_held),
                cmocka_unit_test(test_superseded),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
