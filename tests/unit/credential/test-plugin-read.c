/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin may print, and what is refused without repeating any of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "credential/plugin-read.h"

#define V1   "client.authentication.k8s.io/v1"
#define HEAD "{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":"

static void test_token(void **state)
{
        struct plugin_credential credential = {0};
        const char *text =
                HEAD "{\"token\":\"abc\",\"expirationTimestamp\":\"2026-01-01T01:00:00.5+01:00\"}}";

        (void)state;
        assert_int_equal(plugin_read(text, strlen(text), V1, &credential, NULL), 0);
        assert_string_equal(credential.token, "abc");
        assert_string_equal(credential.client_key, "");
        assert_int_equal(credential.expires_realtime, UINT64_C(1767225600) * 1000000 + 500000);
        plugin_credential_done(&credential);
}

static const struct {
        const char *output, *said;
} wrong[] = {
        {"", "not a JSON object"},
        {"secret", "not a JSON object"},
        {"[]", "not a JSON object"},
        {"{\"kind\":\"Pod\"}", "not an ExecCredential"},
        {"{\"kind\":\"ExecCredential\",\"apiVersion\":\"client.authentication.k8s.io/v1beta1\"}",
         "apiVersion"},
        {HEAD "7}", "status is missing"},
        {HEAD "{}}", "neither token nor"},
        {HEAD "{\"token\":\"a b\\n\"}}", "credential"},
        {HEAD "{\"clientCertificateData\":\"x\"}}", "must come together"},
        {HEAD "{\"clientCertificateData\":\"x\",\"clientKeyData\":\"secret\"}}", "PEM"},
        {HEAD "{\"token\":\"a\",\"expirationTimestamp\":\"tomorrow\"}}", "RFC 3339"},
        {HEAD "{\"token\":\"a\",\"expirationTimestamp\":\"2026-01-01T00:00:00\"}}", "RFC 3339"},
};

static void test_refused(void **state)
{
        (void)state;
        for (size_t i = 0; i < ELEMENTS(wrong); i++) {
                struct plugin_credential credential = {0};
                struct error error = ERROR_NONE;

                assert_true(plugin_read(wrong[i].output, strlen(wrong[i].output), V1, &credential, &error) <
                            0);
                if (!strstr(error_message(&error), wrong[i].said) || strstr(error_message(&error), "secret"))
                        fail_msg("%s: %s", wrong[i].output, error_message(&error));
                assert_null(credential.token);
                error_done(&error);
        }
}

int main(void)
{
        const struct CMUnitTest test[] = {cmocka_unit_test(test_token), cmocka_unit_test(test_refused)};

        return cmocka_run_group_tests(test, NULL, NULL);
}
