/* SPDX-License-Identifier: Apache-2.0 */
/* The trigger fingerprint: what must change it, and what must not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "object/fingerprint.h"
#include "object/keyed-hash.h"

#define OURS "widgets.example.com/finalizer"

static const struct bookkeeping ours = {.finalizers = OURS};

static uint64_t essence(const char *json)
{
        uint64_t fingerprint = 0;

        assert_int_equal(fingerprint_object(TRIGGER_ESSENCE, &ours, json, strlen(json), &fingerprint), 0);
        assert_int_not_equal(fingerprint, 0);
        return fingerprint;
}

static void assert_same(const char *a, const char *b)
{
        assert_true(essence(a) == essence(b));
}

static void assert_differs(const char *a, const char *b)
{
        assert_true(essence(a) != essence(b));
}

static void test_order_and_space_do_not_count(void **state _unused_)
{
        assert_same("{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"1\",\"y\":\"2\"}},\"spec\":{\"a\":1,"
                    "\"b\":[1,2]}}",
                    " { \"spec\" : {\"b\":[ 1 ,2 "
                    "],\"a\":1},\n\"metadata\":{\"labels\":{\"y\":\"2\",\"x\":\"1\"},\"name\":\"a\"} }");
}

static void test_the_order_of_elements_counts(void **state _unused_)
{
        assert_differs("{\"spec\":[1,2]}", "{\"spec\":[2,1]}");
        assert_differs("{\"spec\":[[1],2]}", "{\"spec\":[[1,2]]}");
}

static void test_values_and_places_count(void **state _unused_)
{
        assert_differs("{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":2}}");
        assert_differs("{\"spec\":{\"a\":1,\"b\":2}}", "{\"spec\":{\"a\":2,\"b\":1}}");
        assert_differs("{\"spec\":{\"a\":1}}", "{\"data\":{\"a\":1}}");
        assert_differs("{\"spec\":{\"a\":{}}}", "{\"spec\":{\"a\":[]}}");
        assert_differs("{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":\"1\"}}");
        assert_differs("{\"spec\":{}}", "{}");
}

/* Before hashes had a key and 128 bits below, these two had the same fingerprint: found in two seconds (Wagner's generalized
 * birthday over sixteen members, each with one of 16,384 values). */
#define COLLIDING(policy, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p)                                   \
        "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"policy\":\"" policy "\",\"a\":\"" a "\",\"b\":\"" b     \
        "\",\"c\":\"" c "\",\"d\":\"" d "\",\"e\":\"" e "\",\"f\":\"" f "\",\"g\":\"" g "\",\"h\":\"" h     \
        "\",\"i\":\"" i "\",\"j\":\"" j "\",\"k\":\"" k "\",\"l\":\"" l "\",\"m\":\"" m "\",\"n\":\"" n     \
        "\",\"o\":\"" o "\",\"p\":\"" p "\"}}"

static void test_nobody_makes_two_objects_of_one_fingerprint(void **state _unused_)
{
        assert_differs(COLLIDING("deny", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0",
                                 "0", "0", "0"),
                       COLLIDING("allow", "0", "5039", "5542", "2640", "7751", "14486", "15620", "2959",
                                 "2009", "8128", "10190", "15396", "4414", "12851", "2760", "14272"));
}

static void test_another_key_is_another_fingerprint(void **state _unused_)
{
        static const char json[] =
                "{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"1\"},\"data\":{\"password\":\"hunter2\"}}";
        static const char key[][SIPHASH_KEY_SIZE + 1] = {"0123456789abcdef", "0123456789abcdeg"};
        uint64_t found[2][2], name[2];

        for (size_t i = 2; i-- > 0;) {
                assert_int_equal(keyed_hash_begin(key[i], SIPHASH_KEY_SIZE), 0);
                name[i] = keyed_hash_key_name();
                assert_int_equal(fingerprint_object(TRIGGER_ESSENCE, NULL, json, strlen(json), &found[i][0]),
                                 0);
                assert_int_equal(fingerprint_object(TRIGGER_ANY, NULL, json, strlen(json), &found[i][1]), 0);
        }
        assert_true(name[0] != name[1]);
        assert_true(found[0][0] != found[1][0]);
        assert_true(found[0][1] != found[1][1]);
        assert_int_equal(keyed_hash_begin(key[0], SIPHASH_KEY_SIZE - 1), -EPROTO);
}

static void test_parts_are_told_apart(void **state _unused_)
{
        struct siphash hash = keyed_hash_of(HASHED_EVENT), other = hash;

        keyed_hash_add(&hash, "a", 1);
        keyed_hash_add(&other, "ab", 2);
        assert_true(keyed_hash_end(hash, "bc", 2) != keyed_hash_end(other, "c", 1));
        assert_differs("{\"spec\":{\"a\":{\"b\":1}}}", "{\"spec\":{\"a\":{},\"b\":1}}");
        assert_differs("{\"spec\":[[],1]}", "{\"spec\":[[1]]}");
        assert_differs("{\"spec\":[{\"a\":1},{\"b\":1}]}", "{\"spec\":[{\"a\":1,\"b\":1},{}]}");
        assert_differs("{\"spec\":{\"a\":\"{}\"}}", "{\"spec\":{\"a\":{}}}");
}

static void test_what_the_server_maintains_does_not_count(void **state _unused_)
{
        assert_same("{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"a\","
                    "\"resourceVersion\":\"1\","
                    "\"generation\":1,\"managedFields\":[{\"a\":{}}],\"creationTimestamp\":\"t\","
                    "\"selfLink\":\"/\"},"
                    "\"spec\":{},\"status\":{\"phase\":\"x\"}}",
                    "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\"},\"spec\":{}}");
}

static void test_the_same_names_elsewhere_count(void **state _unused_)
{
        assert_differs("{\"spec\":{\"status\":1}}", "{\"spec\":{\"status\":2}}");
        assert_differs("{\"spec\":{\"metadata\":{\"generation\":1}}}",
                       "{\"spec\":{\"metadata\":{\"generation\":2}}}");
        assert_differs("{\"metadata\":{\"labels\":{\"generation\":\"1\"}}}",
                       "{\"metadata\":{\"labels\":{\"generation\":\"2\"}}}");
        assert_differs("{\"spec\":{\"finalizers\":[]}}", "{\"spec\":{\"finalizers\":[\"" OURS "\"]}}");
}

static void test_our_finalizer_does_not_count(void **state _unused_)
{
        static const char without[] = "{\"metadata\":{\"finalizers\":[\"a/b\",\"c/d\"]}}";

        assert_same(without, "{\"metadata\":{\"finalizers\":[\"" OURS "\",\"a/b\",\"c/d\"]}}");
        assert_same(without, "{\"metadata\":{\"finalizers\":[\"a/b\",\"" OURS "\",\"c/d\"]}}");
        assert_same(without, "{\"metadata\":{\"finalizers\":[\"a/b\",\"c/d\",\"" OURS "\"]}}");
        assert_same("{\"metadata\":{}}", "{\"metadata\":{\"finalizers\":[\"" OURS "\"]}}");
        assert_same("{\"metadata\":{}}", "{\"metadata\":{\"finalizers\":[]}}");
        assert_differs(without, "{\"metadata\":{\"finalizers\":[\"a/b\"]}}");
        assert_differs("{\"metadata\":{}}", "{\"metadata\":{\"finalizers\":[\"a/b\"]}}");
}

static void test_deletion_counts(void **state _unused_)
{
        assert_differs("{\"metadata\":{\"name\":\"a\"}}",
                       "{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}");
}

static void test_any(void **state _unused_)
{
        static const char *const json[] = {
                "{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"1\"}}",
                "{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"2\"}}",
                "{\"metadata\":{\"uid\":\"b\",\"resourceVersion\":\"1\"}}",
                "{\"metadata\":{\"uid\":\"a\",\"resourceVersion\":\"1\"},\"spec\":{}}",
        };
        uint64_t fingerprint[4];

        for (size_t i = 0; i < 4; i++)
                assert_int_equal(
                        fingerprint_object(TRIGGER_ANY, NULL, json[i], strlen(json[i]), &fingerprint[i]), 0);
        assert_true(fingerprint[0] != fingerprint[1]);
        assert_true(fingerprint[0] != fingerprint[2]);
        assert_true(fingerprint[0] == fingerprint[3]);
}

static void test_refuses(void **state _unused_)
{
        static const char *const bad[] = {"",           "[]",        "{",           "{\"a\":}",
                                          "{\"a\":1,}", "{\"a\" 1}", "{\"a\":[1,]}"};
        uint64_t fingerprint = 7;

        for (size_t i = 0; i < ELEMENTS(bad); i++)
                assert_int_equal(
                        fingerprint_object(TRIGGER_ESSENCE, NULL, bad[i], strlen(bad[i]), &fingerprint),
                        -EBADMSG);
        assert_int_equal(fingerprint, 7);
}

static void test_depth_bomb(void **state _unused_)
{
        enum { BOMB = 200000 };
        _cleanup_free_ char *bomb = malloc(BOMB);
        uint64_t fingerprint;

        assert_non_null(bomb);
        for (size_t i = 0; i + 5 <= BOMB; i += 5)
                memcpy(bomb + i, "{\"a\":", 5);
        assert_int_equal(fingerprint_object(TRIGGER_ESSENCE, NULL, bomb, BOMB, &fingerprint), -EBADMSG);
}

static uint64_t metadata(const char *json)
{
        uint64_t fingerprint = 0;

        assert_int_equal(fingerprint_metadata(TRIGGER_ESSENCE, &ours, json, strlen(json), &fingerprint), 0);
        assert_int_not_equal(fingerprint, 0);
        return fingerprint;
}

/* The generation stands for the spec, which is not there; the whole object compares with its metadata. */
static void test_of_metadata_alone(void **state _unused_)
{
        static const char partial[] =
                "{\"kind\":\"PartialObjectMetadata\",\"metadata\":{\"name\":\"a\",\"generation\":1}}";

        assert_true(metadata(partial) == metadata("{\"kind\":\"Widget\",\"spec\":{\"n\":1},\"metadata\":{"
                                                  "\"generation\":1,\"name\":\"a\","
                                                  "\"resourceVersion\":\"7\",\"finalizers\":[\"" OURS
                                                  "\"]},\"status\":{}}"));
        assert_true(metadata(partial) != metadata("{\"metadata\":{\"name\":\"a\",\"generation\":2}}"));
        assert_true(metadata(partial) !=
                    metadata("{\"metadata\":{\"name\":\"a\",\"generation\":1,\"labels\":{\"a\":\"b\"}}}"));
        assert_true(fingerprint_is_partial(partial, strlen(partial)));
        assert_false(fingerprint_is_partial("{\"kind\":\"Widget\"}", 17));
        assert_false(fingerprint_is_partial("", 0));
        assert_true(essence(partial) == essence("{\"metadata\":{\"name\":\"a\",\"generation\":2}}"));
}

/* ---- where several watches of one kind have the object */

static uint64_t shared(enum trigger trigger, const char *json)
{
        const struct bookkeeping notes = {OURS, "widgets.example.com", "Gold,Ready"};
        uint64_t fingerprint = 0;

        assert_int_equal(fingerprint_object(trigger, &notes, json, strlen(json), &fingerprint), 0);
        assert_int_not_equal(fingerprint, 0);
        return fingerprint;
}

#define BARE(status) "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"1\"},\"spec\":{}" status "}"
#define NOTED(status)                                                                                       \
        "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"2\",\"finalizers\":[\"" OURS                   \
        "\",\"widgets.example.com/silver.finalizer\"],\"labels\":{\"applyset.k8s.io/id\":\"x\"},"           \
        "\"annotations\":{\"widgets.example.com/children\":\"a\",\"widgets.example.com/"                    \
        "silver.children\":\"b\","                                                                          \
        "\"applyset.k8s.io/tooling\":\"reconciled/1\",\"applyset.k8s.io/contains-group-kinds\":\"c\"}},"    \
        "\"spec\":{}" status "}"

static void test_notes_of_all_watches_do_not_count(void **state _unused_)
{
        assert_true(shared(TRIGGER_ESSENCE, BARE("")) == shared(TRIGGER_ESSENCE, NOTED("")));
        assert_true(shared(TRIGGER_ANY, BARE("")) == shared(TRIGGER_ANY, NOTED("")));
        assert_true(shared(TRIGGER_ESSENCE, BARE("")) == essence(BARE("")));
        assert_true(essence(BARE("")) != essence(NOTED("")));
        /* Notes of others are content. */
        assert_true(shared(TRIGGER_ESSENCE, BARE("")) !=
                    shared(TRIGGER_ESSENCE, "{\"metadata\":{\"name\":\"a\",\"finalizers\":"
                                            "[\"gadgets.example.com/finalizer\"]},\"spec\":{}}"));
        assert_true(shared(TRIGGER_ESSENCE, BARE("")) !=
                    shared(TRIGGER_ESSENCE, "{\"metadata\":{\"name\":\"a\",\"annotations\":"
                                            "{\"widgets.example.com/grandchildren\":\"\"}},\"spec\":{}}"));
}

static void test_any_of_several_watches_sees_the_status(void **state _unused_)
{
        assert_true(shared(TRIGGER_ANY, BARE("")) != shared(TRIGGER_ANY, BARE(",\"status\":{\"a\":1}")));
        assert_true(shared(TRIGGER_ANY, BARE("")) ==
                    shared(TRIGGER_ANY, NOTED(",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":"
                                              "\"True\"},{\"type\":\"Gold\"}]}")));
        assert_true(shared(TRIGGER_ANY, BARE("")) !=
                    shared(TRIGGER_ANY, BARE(",\"status\":{\"conditions\":[{\"type\":\"Other\"}]}")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_of_metadata_alone),
                cmocka_unit_test(test_order_and_space_do_not_count),
                cmocka_unit_test(test_the_order_of_elements_counts),
                cmocka_unit_test(test_values_and_places_count),
                cmocka_unit_test(test_nobody_makes_two_objects_of_one_fingerprint),
                cmocka_unit_test(test_another_key_is_another_fingerprint),
                cmocka_unit_test(test_parts_are_told_apart),
                cmocka_unit_test(test_what_the_server_maintains_does_not_count),
                cmocka_unit_test(test_the_same_names_elsewhere_count),
                cmocka_unit_test(test_our_finalizer_does_not_count),
                cmocka_unit_test(test_deletion_counts),
                cmocka_unit_test(test_any),
                cmocka_unit_test(test_notes_of_all_watches_do_not_count),
                cmocka_unit_test(test_any_of_several_watches_sees_the_status),
                cmocka_unit_test(test_refuses),
                cmocka_unit_test(test_depth_bomb),
        };

        if (keyed_hash_begin("0123456789abcdef", SIPHASH_KEY_SIZE) < 0)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
