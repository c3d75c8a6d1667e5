/* SPDX-License-Identifier: Apache-2.0 */
/* Errors of the API server, of every shape in which they come. */
#include <string.h>

#include "kube/kube-error.h"
#include "tests/unit/kube/fixture.h"

static struct kube_error parse(int http_status, const char *body)
{
        struct kube_error error = KUBE_ERROR_NONE;

        assert_int_equal(kube_error_from_status(&error, http_status, body, strlen(body)), 0);
        assert_int_equal(error.failure, KUBE_FAILURE_HTTP);
        assert_non_null(error.message);
        return error;
}

static const struct row {
        const char *name;
        int http_status;
        const char *body;
        int expected_status;
        const char *reason, *message;
        int retry_after_sec;
        bool too_large;
} row[] = {
        {"a Status", 404,
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"pods \\\"a\\\" "
         "not "
         "found\",\"reason\":\"NotFound\",\"code\":404}",
         404, "NotFound", "pods \"a\" not found", -1, false},
        {"the answer's status counts, not the body's", 409, "{\"message\":\"m\",\"code\":500}", 409, NULL,
         "m", -1, false},
        {"in the stream, by its own code", 0,
         "{\"code\":410,\"reason\":\"Expired\",\"message\":\"too old\"}", 410, "Expired", "too old", -1,
         false},
        {"in the stream, without kind and apiVersion (kubernetes#46446)", 0, "{\"code\":410}", 410, NULL,
         "{\"code\":410}", -1, false},
        {"a code that is none", 0, "{\"code\":1e99,\"message\":\"m\"}", 0, NULL, "m", -1, false},
        {"a code of another type", 0, "{\"code\":\"410\",\"message\":\"m\"}", 0, NULL, "m", -1, false},
        {"a reason only", 403, "{\"reason\":\"Forbidden\"}", 403, "Forbidden", "Forbidden", -1, false},
        {"too large, by its cause (kubernetes#107133)", 504,
         "{\"message\":\"x\",\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":\"Other\"},"
         "{\"reason\":\"ResourceVersionTooLarge\",\"message\":\"Too large resource "
         "version\"}],\"retryAfterSeconds\":1},\"code\":504}",
         504, "Timeout", "x", 1, true},
        {"too large, by the message of a cause", 504,
         "{\"message\":\"x\",\"details\":{\"causes\":[{\"message\":\"Too large resource version\"}]}}", 504,
         NULL, "x", -1, true},
        {"too large, by the message only (kubernetes#91073)", 504,
         "{\"message\":\"Timeout: Too large resource version: 10, current: 5\",\"reason\":\"Timeout\"}", 504,
         "Timeout", "Timeout: Too large resource version: 10, current: 5", -1, true},
        {"too large in a stream", 0,
         "{\"message\":\"Too large resource version: 10, current: 5\",\"code\":504}", 504, NULL,
         "Too large resource version: 10, current: 5", -1, true},
        {"another 504", 504, "{\"message\":\"Timeout: request did not complete\"}", 504, NULL,
         "Timeout: request did not complete", -1, false},
        {"words of an object are no proof", 422, "{\"message\":\"spec: Too large resource version\"}", 422,
         NULL, "spec: Too large resource version", -1, false},
        {"a wish to be left alone", 429, "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":7}}", 429,
         NULL, "m", 7, false},
        {"a wish for ever", 429, "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":2147483647}}", 429,
         NULL, "m", KUBE_RETRY_AFTER_MAX, false},
        {"a wish that is none", 429, "{\"message\":\"m\",\"details\":{\"retryAfterSeconds\":-5}}", 429, NULL,
         "m", -1, false},
        {"plain text of priority and fairness", 429, "Too many requests, please try again later.\n", 429,
         NULL, "Too many requests, please try again later.", -1, false},
        {"plain text with CRLF and more lines", 502, "\r\n  Bad gateway\r\nmore\r\n", 502, NULL,
         "Bad gateway", -1, false},
        {"HTML of a proxy", 502, "<html><body>Bad gateway</body></html>", 502, NULL,
         "<html><body>Bad gateway</body></html>", -1, false},
        {"JSON of somebody else", 401, "{\"error\":\"who are you\"}", 401, NULL,
         "{\"error\":\"who are you\"}", -1, false},
        {"a JSON string", 500, "\"oh\"", 500, NULL, "\"oh\"", -1, false},
        {"a list", 500, "[1]", 500, NULL, "[1]", -1, false},
        {"nothing", 503, "", 503, NULL, "HTTP status 503 without an explanation", -1, false},
        {"white space", 503, " \r\n\r\n", 503, NULL, "HTTP status 503 without an explanation", -1, false},
        {"a message of several lines becomes one", 422, "{\"message\":\"a:\\n* b\\r\\n* c\"}", 422, NULL,
         "a: * b  * c", -1, false},
        {"types that do not fit", 500, "{\"message\":5,\"reason\":[],\"details\":\"x\",\"code\":{}}", 500,
         NULL, "{\"message\":5,\"reason\":[],\"details\":\"x\",\"code\":{}}", -1, false},
        {"bytes that are no text", 500, "\x01\xff\xfe oh", 500, NULL, "??? oh", -1, false},
        {"a Status that is cut off", 403, "{\"message\":\"you may n", 403, NULL, "{\"message\":\"you may n",
         -1, false},
};

static void test_rows(void **state)
{
        (void)state;
        for (size_t i = 0; i < ELEMENTS(row); i++) {
                struct kube_error error = parse(row[i].http_status, row[i].body);

                print_message("  %s\n", row[i].name);
                assert_int_equal(error.http_status, row[i].expected_status);
                assert_string_equal(error.message, row[i].message);
                assert_int_equal(error.retry_after_sec, row[i].retry_after_sec);
                assert_int_equal(error.resource_version_too_large, row[i].too_large);
                if (row[i].reason)
                        assert_string_equal(error.reason, row[i].reason);
                else
                        assert_null(error.reason);
                kube_error_done(&error);
        }
}

static void test_gone_whatever_its_reason(void **state)
{
        static const char *const body[] = {"{\"code\":410,\"reason\":\"Gone\"}",
                                           "{\"code\":410,\"reason\":\"Expired\"}", "{\"code\":410}"};

        (void)state;
        for (size_t i = 0; i < ELEMENTS(body); i++) {
                struct kube_error error = parse(0, body[i]);

                assert_true(kube_error_is_gone(&error));
                kube_error_done(&error);
                assert_false(kube_error_is_gone(&error));
        }
}

/* A message goes into logs and the ledger: a megabyte of it does not. */
static void test_huge(void **state)
{
        size_t size = 4 * 1024 * 1024;
        char *body = malloc(size + 1);
        struct kube_error error;

        (void)state;
        assert_non_null(body);
        memset(body, 'x', size);
        body[size] = '\0';
        error = parse(500, body);
        assert_in_range(strlen(error.message), 1, 4096);
        kube_error_done(&error);

        memcpy(body, "{\"message\":\"", 12);
        memcpy(body + size - 2, "\"}", 2);
        error = parse(500, body);
        assert_in_range(strlen(error.message), 1, 4096);
        kube_error_done(&error);

        /* A value of a tree takes sixty times as much as its text. */
        memcpy(body, "{\"message\":\"m\",\"details\":[1", 27);
        for (size_t i = 27; i < size - 3; i++)
                body[i] = i % 2 ? ',' : '1';
        memcpy(body + size - 3, "1]}", 3);
        error = parse(500, body);
        assert_string_not_equal(error.message, "m");
        kube_error_done(&error);

        memset(body, '[', size);
        error = parse(500, body);
        kube_error_done(&error);
        free(body);
}

static void test_header_stays_unless_the_body_knows_better(void **state)
{
        struct kube_error error = KUBE_ERROR_NONE;

        (void)state;
        error.retry_after_sec = 5;
        assert_int_equal(kube_error_from_status(&error, 429, "slow down", 9), 0);
        assert_int_equal(error.retry_after_sec, 5);
        kube_error_done(&error);
        assert_int_equal(error.retry_after_sec, -1);
}

static void test_copy_and_own_message(void **state)
{
        struct kube_error error = parse(404, "{\"message\":\"m\",\"reason\":\"NotFound\"}"), copy;

        (void)state;
        assert_int_equal(kube_error_copy(&error, &copy), 0);
        assert_int_equal(kube_error_set(&error, KUBE_FAILURE_TIMEOUT, "late: %s", error.message), 0);
        assert_string_equal(error.message, "late: m");
        assert_null(error.reason);
        assert_string_equal(copy.reason, "NotFound");
        kube_error_done(&error);
        kube_error_done(&copy);
}

static bool says_not_found(int http_status, const char *body)
{
        struct kube_error error = parse(http_status, body);
        bool says = kube_error_is_not_found(&error);

        kube_error_done(&error);
        return says;
}

/* Finalizers go and deletions are told by it: what is not about an object is no answer. */
static void test_not_found(void **state)
{
        (void)state;
        assert_true(says_not_found(404, "{\"reason\":\"NotFound\",\"details\":{\"name\":\"a\"}}"));
        assert_false(says_not_found(404, "{\"reason\":\"NotFound\",\"details\":{}}"));
        assert_false(says_not_found(404, "{\"reason\":\"NotFound\",\"details\":{\"name\":\"\"}}"));
        assert_false(says_not_found(404, "{\"reason\":\"NotFound\"}"));
        assert_false(says_not_found(404, "{\"details\":{\"name\":\"a\"}}"));
        assert_false(says_not_found(404, "404 page not found"));
        assert_false(says_not_found(403, "{\"reason\":\"NotFound\",\"details\":{\"name\":\"a\"}}"));
}

/* What follows from an answer: whether the same request may succeed later, for how long the server wants to be
 * left alone, and whether it only does not tell. */
static void test_what_follows(void **state)
{
        static const struct {
                int status, retry_after_sec;
                const char *message;
                bool is_passing, is_withheld;
                uint64_t wish_usec;
        } answer[] = {
                {400, -1, "m", false, false, 0},
                {401, -1, "m", true, false, 0},
                {403, -1, "m", false, true, 0},
                {404, -1, "m", false, true, 0},
                {408, -1, "m", true, false, 0},
                {409, 3, "m", false, false, 0},
                {410, -1, "m", false, false, 0},
                {422, -1, "m", false, false, 0},
                {429, -1, "m", true, false, 0},
                {429, 3, "m", true, false, 3000000},
                {500, -1, "m", true, false, 0},
                {500, -1, "failed to create typed patch object (d/a; v1, Kind=ConfigMap)", false, false, 0},
                {503, 3, "m", true, false, 3000000},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(answer); i++) {
                struct kube_error error = {.failure = KUBE_FAILURE_HTTP,
                                           .http_status = answer[i].status,
                                           .retry_after_sec = answer[i].retry_after_sec,
                                           .message = (char *)(uintptr_t)answer[i].message};

                assert_int_equal(kube_error_is_passing(&error), answer[i].is_passing);
                assert_int_equal(kube_error_is_withheld(&error), answer[i].is_withheld);
                assert_int_equal(kube_error_wish_usec(&error), answer[i].wish_usec);
        }
}

/* Whom a 403 blames. What a webhook or a plugin quotes may be any text of whoever wrote the object. */
static void test_whom_a_refusal_blames(void **state)
{
        static const struct {
                const char *message;
                bool of_read;
                enum kube_blame blame;
        } refusal[] = {
                {"widgets \"a\" is forbidden: User \"x\" cannot patch resource \"widgets\"", false,
                 KUBE_BLAME_RIGHTS},
                {"clusterroles \"system:a\" is forbidden: User \"x\" cannot patch", false,
                 KUBE_BLAME_RIGHTS},
                {"forbidden: User \"x\" cannot get path \"/version\"", true, KUBE_BLAME_RIGHTS},
                {"configmaps \"a\" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a "
                 "resource you can't set finalizers on: , <nil>",
                 false, KUBE_BLAME_RIGHTS},
                {"no", true, KUBE_BLAME_RIGHTS},
                {"no", false, KUBE_BLAME_OBJECT},
                {"pods \"a\" is forbidden: maximum cpu usage per Container is 1", false, KUBE_BLAME_OBJECT},
                {"persistentvolumeclaims \"a\" is forbidden: only dynamically provisioned pvc can be resized",
                 false, KUBE_BLAME_OBJECT},
                {"admission webhook \"p\" denied the request: forbidden: User \"x\" cannot patch", false,
                 KUBE_BLAME_REQUEST},
                {"widgets \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: forbidden: User \"x\"",
                 false, KUBE_BLAME_REQUEST},
                {"pods \"a\" is forbidden: bad label: forbidden: cannot set an ownerRef", false,
                 KUBE_BLAME_OBJECT},
                {"roles \"x is forbidden: cannot set an ownerRef\" is forbidden: ValidatingAdmissionPolicy 'p' denied "
                 "request: no",
                 false, KUBE_BLAME_REQUEST},
                {"roles \"x\\\" is forbidden: User \\\"y\" is forbidden: exceeded quota", false,
                 KUBE_BLAME_OBJECT},
                {"roles \"x: y\" is forbidden: User \"x\" cannot patch", false, KUBE_BLAME_RIGHTS},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(refusal); i++) {
                struct kube_error error = {.failure = KUBE_FAILURE_HTTP,
                                           .http_status = 403,
                                           .of_read = refusal[i].of_read,
                                           .message = (char *)(uintptr_t)refusal[i].message};
                bool advice = kube_error_rights_advice(&error)[0] != '\0';

                assert_int_equal(kube_error_blame(&error), refusal[i].blame);
                assert_int_equal(advice, refusal[i].blame == KUBE_BLAME_RIGHTS);
        }
}

static void test_names(void **state)
{
        (void)state;
        for (int i = 0; i < KUBE_FAILURE_COUNT; i++)
                assert_non_null(kube_failure_name((enum kube_failure)i));
        assert_string_equal(kube_failure_name((enum kube_failure)99), "invalid");
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_rows),
                cmocka_unit_test(test_gone_whatever_its_reason),
                cmocka_unit_test(test_huge),
                cmocka_unit_test(test_header_stays_unless_the_body_knows_better),
                cmocka_unit_test(test_copy_and_own_message),
                cmocka_unit_test(test_not_found),
                cmocka_unit_test(test_whom_a_refusal_blames),
                cmocka_unit_test(test_what_follows),
                cmocka_unit_test(test_names),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
