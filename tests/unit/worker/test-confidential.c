/* SPDX-License-Identifier: Apache-2.0 */
/* Who the operator is does not show in what tenants read, wherever the text was cut before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "kube/transfer.h"
#include "worker/confidential.h"

#define SERVER "https://10.20.30.40:6443"
#define WHO    "system:serviceaccount:ops:operator"
#define ADDED  " (" SERVER ", as user " WHO ", context c of /etc/kubeconfig)"
#define ROLE   "roles.rbac.authorization.k8s.io \"r\" is forbidden: "
#define GRANT                                                                                               \
        " is attempting to grant RBAC permissions not currently held: {APIGroups:[\"\"], Verbs:[\"get\"]}"

static char server[] = SERVER;
static struct kube_client client = {.credential.server = server};
static const struct worker worker = {.client = &client};

static const struct {
        const char *said, *shown;
} row[] = {
        {"configmaps \"c\" is forbidden: User \"" WHO "\" cannot patch resource \"configmaps\"" ADDED,
         "configmaps \"c\" is forbidden: the operator's user cannot patch resource \"configmaps\""},
        {"forbidden: User \"" WHO "\" cannot get path \"/x\"",
         "forbidden: the operator's user cannot get path \"/x\""},
        {"x is forbidden: User \"a \\\" " WHO "\" cannot list",
         "x is forbidden: the operator's user cannot list"},
        {ROLE "user \"" WHO
              "\" (groups=[\"system:serviceaccounts\" \"system:serviceaccounts:ops\"])" GRANT ADDED,
         ROLE "the operator's user" GRANT},
        {SERVER ": Failed to connect to 10.20.30.40 port 6443",
         "the API server: Failed to connect to the API server port 6443"},
        {"User \"bob\" is locked; user \"eve\" is not", "User \"bob\" is locked; user \"eve\" is not"},
        {"see https://10.2.example.com/ for more", "see https://10.2.example.com/ for more"},
};

static void test_what_tenants_read(void **state _unused_)
{
        char shown[1024];

        for (size_t i = 0; i < ELEMENTS(row); i++) {
                confidential_hide_operator(&worker, row[i].said, shown, sizeof(shown));
                assert_string_equal(shown, row[i].shown);
        }
}

static void test_wherever_it_was_cut(void **state _unused_)
{
        static const char *const next[] = {"", "; ConfigMap b cannot be applied: configmaps \"b\" is old",
                                           ADDED};
        static const char *const secret[] = {"system:s", "10.20.3", "kubeconfig", "ops"};
        char cut[1024], shown[1024];

        for (size_t i = 0; i < 5; i++)
                for (size_t size = 0; size <= strlen(row[i].said); size++)
                        for (size_t j = 0; j < ELEMENTS(next); j++) {
                                snprintf(cut, sizeof(cut), "%.*s%s", (int)size, row[i].said, next[j]);
                                confidential_hide_operator(&worker, cut, shown, sizeof(shown));
                                for (size_t k = 0; k < ELEMENTS(secret); k++)
                                        if (strstr(shown, secret[k]))
                                                fail_msg("%s\nof: %s", shown, cut);
                        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_what_tenants_read),
                cmocka_unit_test(test_wherever_it_was_cut),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
