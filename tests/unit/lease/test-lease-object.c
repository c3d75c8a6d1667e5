/* SPDX-License-Identifier: Apache-2.0 */
/* Leases as objects: what is sent for each question of the election, and what is read in answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "lease/lease-object.h"

#define LEASES "/apis/coordination.k8s.io/v1/namespaces/ns/leases"

static const struct lease_names names = {
        .operator_name = "widgets.example.com",
        .namespace_name = "ns",
        .record = "leader",
        .who = "host 1",
        .duration_usec = 15000000,
        .cluster = "6a1f",
};
static const struct leader_member self = {"leader-1", "abc"};

static void assert_request(const struct election_ask *ask, const char *method, const char *path,
                           const char *body)
{
        struct lease_request request;

        lease_request_make(&names, &self, ask, "tail 1\n", UINT64_C(1764216000000005), &request);
        assert_string_equal(request.method, method);
        assert_string_equal(request.path, path);
        assert_string_equal(request.body.data ? request.body.data : "", body);
        lease_request_done(&request);
}

static void test_questions(void **state _unused_)
{
        assert_request(&(struct election_ask){.kind = ASK_OWN}, "GET", LEASES "/leader-1", "");
        assert_request(&(struct election_ask){.kind = ASK_RECORD}, "GET", LEASES "/leader", "");
        assert_request(&(struct election_ask){.kind = ASK_HOLDER, .member = "other"}, "GET", LEASES "/other",
                       "");
}

#define SPEC(holder)                                                                                        \
        "\"spec\":{\"holderIdentity\":\"" holder                                                            \
        "\",\"leaseDurationSeconds\":15,\"renewTime\":\"2025-11-27T04:00:00.000005Z\"}}"

/* Another version is refused by the server, which is what the election rests on. */
static void test_writes_name_the_version_that_they_replace(void **state _unused_)
{
        struct election_ask ask = {
                .kind = ASK_TAKE,
                .version = "u-1 7",
                .claim = {.holder = self, .epoch = 5, .writes = 9, .duration_usec = 15000000}};

        assert_request(
                &(struct election_ask){.kind = ASK_RENEW, .version = "u-2 8"}, "PATCH",
                LEASES "/leader-1?fieldManager=widgets.example.com",
                "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"uid\":\"u-2\","
                "\"resourceVersion\":\"8\"}," SPEC("host 1 abc"));
        assert_request(
                &ask, "PATCH", LEASES "/leader?fieldManager=widgets.example.com",
                "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"uid\":\"u-1\","
                "\"resourceVersion\":\"7\",\"annotations\":{\"widgets.example.com/leader\":"
                "\"reconciled-leader 1\\noperator widgets.example.com\\ncluster 6a1f\\nepoch 5\\nwrites 9\\n"
                "duration 15000000\\nholder leader-1 abc\\ntail 1\\n\"}}," SPEC("leader-1"));
}

static void test_what_is_missing_is_created(void **state _unused_)
{
        assert_request(
                &(struct election_ask){.kind = ASK_RENEW}, "POST",
                LEASES "?fieldManager=widgets.example.com",
                "{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\",\"metadata\":{\"name\":\"leader-1\","
                "\"namespace\":\"ns\",\"labels\":{\"app.kubernetes.io/managed-by\":\"reconciled\"}}," SPEC(
                        "host 1 abc"));
}

#define META "{\"metadata\":{\"uid\":\"u\",\"resourceVersion\":\"12\""
#define RECORD                                                                                              \
        META ",\"annotations\":{\"widgets.example.com/leader\":"                                            \
             "\"reconciled-leader 1\\noperator widgets.example.com\\ncluster 6a1f\\nepoch 5\\nwrites 9\\n"  \
             "duration 14000001\\nholder leader-1 abc\\ntail 1\\n\"}},"
#define NO_RECORD META "},"
#define HELD(holder, duration)                                                                              \
        "\"spec\":{\"holderIdentity\":\"" holder "\",\"leaseDurationSeconds\":" duration "}}"

static void test_answers(void **state _unused_)
{
        static const char member[] = NO_RECORD HELD("host 1 abc", "15");
        static const char foreign[] = NO_RECORD HELD("client-go_1", "15");
        char version[ELECTION_VERSION_MAX], life[LEADER_LIFE_MAX + 1];

        assert_int_equal(lease_version(member, strlen(member), version), 0);
        assert_string_equal(version, "u 12");
        assert_int_equal(lease_version("{\"metadata\":{\"uid\":\"u\"}}", 24, version), -EBADMSG);
        assert_int_equal(lease_version("[]", 2, version), -EBADMSG);
        lease_life(member, strlen(member), life);
        assert_string_equal(life, "abc");
        lease_life(foreign, strlen(foreign), life);
        assert_string_equal(life, "");
}

static void test_durations(void **state _unused_)
{
        static const struct {
                const char *json;
                uint64_t usec;
        } lease[] = {
                {NO_RECORD HELD("h abc", "15"), 15000000},
                {NO_RECORD HELD("h abc", "999999999"), LEADER_DURATION_MAX},
                {NO_RECORD HELD("h abc", "-15"), 0},
                {NO_RECORD HELD("h abc", "9999999999"), 0},
                {NO_RECORD HELD("h abc", "\"15\""), 0},
                {"{\"spec\":{}}", 0},
                {"[]", 0},
        };

        for (size_t i = 0; i < ELEMENTS(lease); i++)
                assert_int_equal(lease_duration(lease[i].json, strlen(lease[i].json)), lease[i].usec);
}

static void test_record(void **state _unused_)
{
        static const char record[] = RECORD HELD("leader-1", "15");
        _cleanup_error_ struct error error = ERROR_NONE;
        struct leader_record found;

        assert_int_equal(lease_record(&names, record, strlen(record), &found, &error), 0);
        assert_true(leader_member_is(&found.claim.holder, &self));
        assert_false(found.claim.foreign);
        assert_string_equal(found.rest, "tail 1\n");
        leader_record_done(&found);
}

/* Who knows nothing of us changes the spec, and leaves our annotation as it is. */
static void test_record_that_somebody_else_has_taken(void **state _unused_)
{
        static const struct {
                const char *json, *holder;
                uint64_t epoch, seconds;
                bool has_rest;
        } row[] = {
                {RECORD HELD("client-go_1", "15"), "client-go_1", 6, 15, true},
                {RECORD HELD("", "1"), "", 6, 5, true},
                {RECORD HELD("leader-1", "16"), "leader-1", 6, 16, true},
                {NO_RECORD HELD("client-go_1", "15"), "client-go_1", 2, 15, false},
                {NO_RECORD HELD("\\u001b[2J", "999999999"), "?[2J", 2, 3600, false},
                {NO_RECORD HELD("", "9999999999"), "", 2, 5, false},
                {META "}}", "", 2, 5, false},
        };
        struct lease_names shared = names;

        shared.is_shared = true;
        FOREACH_ARRAY(test, row, ELEMENTS(row)) {
                _cleanup_error_ struct error error = ERROR_NONE, refused = ERROR_NONE;
                struct leader_record found;

                assert_int_equal(lease_record(&names, test->json, strlen(test->json), &found, &refused),
                                 -EBADMSG);
                assert_non_null(strstr(error_message(&refused), test->holder));
                assert_int_equal(lease_record(&shared, test->json, strlen(test->json), &found, &error), 0);
                assert_true(found.claim.foreign);
                assert_int_equal(found.claim.released, !test->holder[0]);
                assert_int_equal(found.claim.late, !test->holder[0]);
                assert_string_equal(found.claim.holder.name, test->holder);
                assert_string_equal(found.claim.holder.life, "");
                assert_int_equal(found.claim.epoch, test->epoch);
                assert_int_equal(found.claim.duration_usec, test->seconds * 1000000);
                assert_int_equal(found.rest != NULL, test->has_rest);
                leader_record_done(&found);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_questions),
                cmocka_unit_test(test_writes_name_the_version_that_they_replace),
                cmocka_unit_test(test_what_is_missing_is_created),
                cmocka_unit_test(test_answers),
                cmocka_unit_test(test_durations),
                cmocka_unit_test(test_record),
                cmocka_unit_test(test_record_that_somebody_else_has_taken),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
