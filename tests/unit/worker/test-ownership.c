/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a child is, by its mark and its owner references. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "worker/dependents/ownership.h"

#define MADE       "\"op.example.com/made\":"
#define ADOPTED    "\"op.example.com/adopted\":"
#define CHILD      "ConfigMap/ns/a"
#define OURS       "\"Widget.example.com/ns/w/u1//" CHILD "\""
#define TWIN       "\"Widget.example.com/ns/w/u1/gold/" CHILD "\""
#define FORMER     "\"Widget.example.com/ns/w/u0//" CHILD "\""
#define OTHER      "\"Widget.example.com/ns/v/u1//" CHILD "\""
#define COPIED     "\"Widget.example.com/ns/w/u1//ConfigMap/ns/b\""
#define OTHERS     "\"other.example.com/made\":" OURS
#define REF(uid)   "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"name\":\"w\",\"uid\":\"" uid "\"}"
#define CONTROLLER "{\"kind\":\"ReplicaSet\",\"name\":\"web\",\"controller\":true,\"uid\":\"u9\"}"

static const struct dependent_owner owner = {.api_version = "example.com/v1",
                                             .kind = "Widget",
                                             .uid = "u1",
                                             .namespace_name = (char[]){"ns"},
                                             .name = (char[]){"w"},
                                             .operator_name = "op.example.com",
                                             .former_names = "older.example.com,old.example.com"};
static const struct dependent child = {.api_version = (char[]){"v1"},
                                       .kind = (char[]){"ConfigMap"},
                                       .namespace_name = (char[]){"ns"},
                                       .name = (char[]){"a"}};

static const char *manager = "helm"; /* of some fields */

static struct ownership_view judge(const char *annotations, const char *references)
{
        struct ownership_view view;
        char json[2000];
        int size = snprintf(
                json, sizeof(json),
                "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"c1\",\"resourceVersion\":\"7\","
                "\"annotations\":{%s},\"ownerReferences\":[%s],\"managedFields\":[{\"manager\":\"kubectl\"},"
                "{\"manager\":\"%s\"},{\"manager\":\"kubectl\"}]}}",
                annotations, references, manager);

        assert_int_equal(ownership_judge(&owner, &child, json, (size_t)size, &view), 0);
        assert_string_equal(view.uid, "c1");
        assert_string_equal(view.version, "7");
        return view;
}

static void test_whose(void **state)
{
        static const struct {
                const char *annotations, *references;
                enum ownership whose;
                bool made, claimed, shared;
        } table[] = {
                {MADE OURS, REF("u1"), OWNERSHIP_OURS, .made = true},
                {MADE OURS, "", OWNERSHIP_OURS, .made = true},
                {MADE OURS, REF("u1") "," REF("u5"), OWNERSHIP_OURS, .made = true, .shared = true},
                {MADE OURS, REF("u5"), OWNERSHIP_OURS, .made = true, .shared = true},
                {MADE OURS, CONTROLLER, OWNERSHIP_FOREIGN, .made = true, .claimed = true, .shared = true},
                {ADOPTED OURS, "", OWNERSHIP_OURS},
                {"\"x\":\"y\"," ADOPTED OURS, REF("u5"), OWNERSHIP_OURS, .shared = true},
                {MADE COPIED "," ADOPTED OURS, "", OWNERSHIP_OURS},
                {MADE TWIN, REF("u1"), OWNERSHIP_TWIN, .made = true},
                {MADE FORMER, "", OWNERSHIP_FORMER, .made = true},
                {MADE FORMER, REF("u0"), OWNERSHIP_FALLEN, .made = true},
                {MADE FORMER, REF("u5"), OWNERSHIP_FORMER, .made = true, .shared = true},
                {MADE OTHER, REF("u1"), OWNERSHIP_FOREIGN, .claimed = true},
                {MADE COPIED, "", OWNERSHIP_FOREIGN},
                {MADE "\"nonsense\"", "", OWNERSHIP_FOREIGN},
                {MADE "7", "", OWNERSHIP_FOREIGN},
                {"", "", OWNERSHIP_FOREIGN},
                {"", REF("u1"), OWNERSHIP_FOREIGN},
                {OTHERS, REF("u1"), OWNERSHIP_FOREIGN, .claimed = true},
                {OTHERS, "", OWNERSHIP_FOREIGN, .claimed = true},
                {MADE OURS "," OTHERS, "", OWNERSHIP_OURS, .made = true},
                {"\"old.example.com/made\":" OURS, REF("u1"), OWNERSHIP_OURS, .made = true},
                {"\"older.example.com/adopted\":" OURS, "", OWNERSHIP_OURS},
                {"\"older.example.com/made\":" TWIN, "", OWNERSHIP_TWIN, .made = true},
                {"\"older.example.com/made\":" OTHER, "", OWNERSHIP_FOREIGN, .claimed = true},
                {"", REF("u1") "," CONTROLLER, OWNERSHIP_FOREIGN, .claimed = true, .shared = true},
                {"", CONTROLLER, OWNERSHIP_FOREIGN, .claimed = true, .shared = true},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                struct ownership_view view = judge(table[i].annotations, table[i].references);

                print_message("%s %s\n", table[i].annotations, table[i].references);
                assert_int_equal(view.whose, table[i].whose);
                assert_int_equal(view.made, table[i].made);
                assert_int_equal(view.claimed, table[i].claimed);
                assert_int_equal(view.shared, table[i].shared);
        }
}

static void test_a_former_name(void **state)
{
        (void)state;
        assert_true(judge("\"old.example.com/made\":" OURS, "").renamed);
        assert_false(judge(MADE OURS, "").renamed);
        assert_false(judge(MADE OURS ",\"old.example.com/made\":" OURS, "").renamed);
        manager = "older.example.com";
        assert_int_equal(judge("", REF("u1")).whose, OWNERSHIP_OURS);
        manager = "helm";
}

static void test_a_mark_that_was_taken_off(void **state)
{
        (void)state;
        manager = "op.example.com";
        assert_int_equal(judge("", REF("u1")).whose, OWNERSHIP_OURS);
        assert_int_equal(judge("", "").whose, OWNERSHIP_FOREIGN);
        assert_int_equal(judge(OTHERS, REF("u1")).whose, OWNERSHIP_FOREIGN);
        manager = "helm";
}

/* An object that two groups serve is one; two kinds of one name are two. */
static void test_groups(void **state)
{
        static const struct {
                const char *api_version, *kind, *marked;
                enum ownership whose;
        } table[] = {
                {"networking.k8s.io/v1", "Ingress", "Ingress.networking.k8s.io", OWNERSHIP_OURS},
                {"networking.k8s.io/v1", "Ingress", "Ingress.extensions", OWNERSHIP_OURS},
                {"extensions/v1beta1", "Ingress", "Ingress.networking.k8s.io", OWNERSHIP_OURS},
                {"events.k8s.io/v1", "Event", "Event", OWNERSHIP_OURS},
                {"v1", "Event", "Event.events.k8s.io", OWNERSHIP_OURS},
                {"v1", "Service", "Service.serving.knative.dev", OWNERSHIP_FOREIGN},
                {"serving.knative.dev/v1", "Service", "Service", OWNERSHIP_FOREIGN},
                {"apps/v1", "Ingress", "Ingress.extensions", OWNERSHIP_FOREIGN},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(table); i++) {
                struct dependent other = {.api_version = (char *)(uintptr_t)table[i].api_version,
                                          .kind = (char *)(uintptr_t)table[i].kind,
                                          .namespace_name = (char[]){"ns"},
                                          .name = (char[]){"a"}};
                struct ownership_view view;
                char json[500];
                int size = snprintf(
                        json, sizeof(json),
                        "{\"metadata\":{\"uid\":\"c1\",\"resourceVersion\":\"7\",\"annotations\":{" MADE
                        "\"Widget.example.com/ns/w/u1//%s/ns/a\"}}}",
                        table[i].marked);

                assert_int_equal(ownership_judge(&owner, &other, json, (size_t)size, &view), 0);
                print_message("%s %s\n", table[i].api_version, table[i].marked);
                assert_int_equal(view.whose, table[i].whose);
        }
}

static void test_texts_for_people(void **state)
{
        (void)state;
        assert_string_equal(judge("", "").holder,
                            "this operator has not created it: it was written by kubectl, helm");
        assert_string_equal(judge(MADE OTHER, "").holder, "it is a child of Widget.example.com ns/v");
        assert_string_equal(judge("", CONTROLLER).holder, "it is not ours: ReplicaSet web controls it");
}

static void test_its_own_mark_is_ours(void **state)
{
        _cleanup_text_ struct text mark = TEXT_EMPTY;

        (void)state;
        ownership_mark(&owner, &child, &mark);
        assert_string_equal(mark.data, "Widget.example.com/ns/w/u1//ConfigMap/ns/a");
}

/* Bytes of a server that lies, or of somebody who may write the object. */
static void test_bounds(void **state)
{
        static const char *const broken[] = {"", "{}", "[]", "{\"metadata\":{\"uid\":\"u\"}}",
                                             "{\"metadata\":{\"uid\":\"\",\"resourceVersion\":\"1\"}}"};
        char annotations[1500], longest[1200];
        struct ownership_view view;

        (void)state;
        for (size_t i = 0; i < ELEMENTS(broken); i++)
                assert_true(ownership_judge(&owner, &child, broken[i], strlen(broken[i]), &view) < 0);
        memset(longest, 'x', sizeof(longest) - 1);
        longest[sizeof(longest) - 1] = '\0';
        snprintf(annotations, sizeof(annotations), MADE "\"Widget.example.com/ns/w/%.300s//" CHILD "\"",
                 longest);
        assert_int_equal(judge(annotations, "").whose, OWNERSHIP_FOREIGN);
        snprintf(annotations, sizeof(annotations), MADE "\"Widget.example.com/ns/w/u1/%.300s/" CHILD "\"",
                 longest);
        assert_int_equal(judge(annotations, "").whose, OWNERSHIP_FOREIGN);
        snprintf(annotations, sizeof(annotations), MADE "\"Widget.example.com/ns/%s/u1//" CHILD "\"",
                 longest);
        assert_int_equal(judge(annotations, "").whose, OWNERSHIP_FOREIGN);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_whose),
                cmocka_unit_test(test_a_former_name),
                cmocka_unit_test(test_a_mark_that_was_taken_off),
                cmocka_unit_test(test_groups),
                cmocka_unit_test(test_texts_for_people),
                cmocka_unit_test(test_its_own_mark_is_ours),
                cmocka_unit_test(test_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
