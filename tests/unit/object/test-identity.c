/* SPDX-License-Identifier: Apache-2.0 */
/* Which object it is, and whose: what others write there is taken within its bounds, and reaches nobody. */
#include "object/identity.h"
#include "store/owner.h"
#include "store/record.h"
#include "tests/unit/store/fixture.h"

#define WIDGET "\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\""

static struct owner find(const char *metadata)
{
        char json[4096];
        struct owner owner;

        snprintf(json, sizeof(json), "{\"metadata\":{%s}}", metadata);
        assert_int_equal(owner_find(json, strlen(json), "example.com/v2", "Widget", &owner), 0);
        return owner;
}

static void assert_owner(const char *metadata, const char *key, const char *uid, bool ignored)
{
        struct owner owner = find(metadata);

        assert_string_equal(owner.key, key);
        assert_string_equal(owner.uid, uid);
        assert_int_equal(owner.ignored, ignored);
}

static void test_the_owner(void **state _unused_)
{
        assert_owner("\"name\":\"a\"", "", "", false);
        assert_owner("\"ownerReferences\":null", "", "", false);
        assert_owner("\"namespace\":\"n\",\"ownerReferences\":[{" WIDGET ",\"name\":\"w\",\"uid\":\"1\"}]",
                     "n/w", "1", false);
        assert_owner("\"ownerReferences\":[{" WIDGET ",\"name\":\"w\",\"uid\":\"1\"}]", "w", "1", false);
        assert_owner("\"ownerReferences\":[{" WIDGET
                     ",\"name\":\"w\",\"uid\":\"1\",\"controller\":null},{" WIDGET
                     ",\"name\":\"v\",\"uid\":\"2\",\"controller\":true}]",
                     "v", "2", false);
        assert_owner(
                "\"ownerReferences\":[{\"apiVersion\":\"example.org/v1\",\"kind\":\"Widget\",\"name\":\"w\","
                "\"uid\":\"1\"},{\"apiVersion\":\"example.com/v1\",\"kind\":\"Gadget\",\"name\":\"w\","
                "\"uid\":\"1\"}]",
                "", "", false);
}

static void test_an_object_is_not_its_own_owner(void **state _unused_)
{
        assert_owner("\"name\":\"w\",\"uid\":\"1\",\"ownerReferences\":[{" WIDGET
                     ",\"name\":\"w\",\"uid\":\"1\",\"controller\":true}]",
                     "", "", false);
        assert_owner("\"name\":\"w\",\"uid\":\"1\",\"ownerReferences\":[{" WIDGET
                     ",\"name\":\"w\",\"uid\":\"1\",\"controller\":true},{" WIDGET
                     ",\"name\":\"v\",\"uid\":\"2\"}]",
                     "v", "2", false);
}

static void test_a_reference_that_names_nobody_hides_no_other_one(void **state _unused_)
{
        static const char *const name[] = {"a/b", "a\\u0000b", "a\\u0007b", ""};
        char metadata[2048], x[IDENTITY_KEY_MAX + 2];

        memset(x, 'x', sizeof(x) - 1);
        x[sizeof(x) - 1] = '\0';
        for (size_t i = 0; i <= ELEMENTS(name); i++) {
                snprintf(metadata, sizeof(metadata),
                         "\"ownerReferences\":[{" WIDGET
                         ",\"name\":\"%s\",\"uid\":\"1\",\"controller\":true},{" WIDGET
                         ",\"name\":\"v\",\"uid\":\"2\"}]",
                         i < ELEMENTS(name) ? name[i] : x);
                assert_owner(metadata, "v", "2", true);
        }
        snprintf(metadata, sizeof(metadata),
                 "\"ownerReferences\":[{" WIDGET ",\"name\":\"w\",\"uid\":\"%s\"},7,{" WIDGET "},{" WIDGET
                 ",\"name\":\"v\",\"uid\":\"2\"}]",
                 x);
        assert_owner(metadata, "v", "2", true);
}

static void test_whose_it_is(void **state _unused_)
{
        struct owner owner = {.key = "n/w", .uid = "1"};

        assert_true(owner_is(&owner, "n/w", "1"));
        assert_true(owner_is(&owner, "w", "1")); /* of the cluster */
        assert_false(owner_is(&owner, "m/w", "1"));
        assert_false(owner_is(&owner, "n/w", "2"));
        assert_false(owner_is(&owner, "n", "1"));
        owner = (struct owner){.key = "w", .uid = "1"}; /* the child is of the cluster */
        assert_true(owner_is(&owner, "w", "1"));
        assert_false(owner_is(&owner, "n/w", "1"));
        owner = (struct owner){0};
        assert_false(owner_is(&owner, "", ""));
}

static int read_of(const char *metadata, struct identity *ret)
{
        char json[4096];

        snprintf(json, sizeof(json), "{\"metadata\":{%s}}", metadata);
        return identity_read(json, strlen(json), true, ret);
}

static void test_whether_there_are_finalizers(void **state _unused_)
{
        static const struct {
                const char *member;
                bool any;
        } row[] = {
                {"", false},
                {",\"finalizers\":[]", false},
                {",\"finalizers\":[ ]", true}, /* not worth a closer look */
                {",\"finalizers\":[\"a\"]", true},
        };

        for (size_t i = 0; i < ELEMENTS(row); i++) {
                struct identity identity;
                char metadata[200];

                snprintf(metadata, sizeof(metadata),
                         "\"name\":\"a\",\"uid\":\"u\",\"resourceVersion\":\"1\"%s", row[i].member);
                assert_int_equal(read_of(metadata, &identity), 0);
                assert_int_equal(identity.has_finalizers, row[i].any);
        }
}

static void test_identity(void **state _unused_)
{
        struct identity identity;
        char metadata[1024];

        assert_int_equal(
                read_of("\"namespace\":\"n\",\"name\":\"a\",\"uid\":\"1\",\"resourceVersion\":\"7\"",
                        &identity),
                0);
        assert_string_equal(identity.key, "n/a");
        assert_int_equal(read_of("\"name\":\"a\",\"resourceVersion\":\"7\"", &identity), -EBADMSG);
        assert_int_equal(read_of("\"name\":\"a\",\"uid\":\"1\"", &identity), -EBADMSG);
        assert_int_equal(read_of("\"name\":7,\"uid\":\"1\",\"resourceVersion\":\"7\"", &identity), -EBADMSG);
        /* No object that we serve has such a name. */
        assert_int_equal(read_of("\"name\":\"a/b\",\"uid\":\"1\",\"resourceVersion\":\"7\"", &identity),
                         -ENAMETOOLONG);
        assert_int_equal(
                read_of("\"name\":\"a\\u0000b\",\"uid\":\"1\",\"resourceVersion\":\"7\"", &identity),
                -ENAMETOOLONG);
        for (unsigned size = IDENTITY_UID_MAX; size <= IDENTITY_UID_MAX + 1; size++) {
                snprintf(metadata, sizeof(metadata),
                         "\"name\":\"a\",\"uid\":\"%0*d\",\"resourceVersion\":\"7\"", (int)size, 1);
                assert_int_equal(read_of(metadata, &identity), size > IDENTITY_UID_MAX ? -ENAMETOOLONG : 0);
        }
        for (unsigned size = IDENTITY_KEY_MAX; size <= IDENTITY_KEY_MAX + 1; size++) {
                snprintf(metadata, sizeof(metadata),
                         "\"name\":\"%0*d\",\"uid\":\"1\",\"resourceVersion\":\"7\"", (int)size, 1);
                assert_int_equal(read_of(metadata, &identity), size > IDENTITY_KEY_MAX ? -ENAMETOOLONG : 0);
        }
}

struct visited {
        char text[64];
};

static int note(const struct store_object *object, void *userdata)
{
        struct visited *visited = userdata;
        size_t length = strlen(visited->text);

        snprintf(visited->text + length, sizeof(visited->text) - length, "%s ", object->key);
        return 0;
}

static void assert_owned(struct store *reader, const char *uid, const char *prefix, const char *expected)
{
        struct visited visited = {0};

        assert_int_equal(store_visit_owned(reader, uid, prefix, note, &visited), 0);
        assert_string_equal(visited.text, expected);
}

static void test_an_owners_objects_in_one_namespace(void **state)
{
        struct fixture *fixture = *state;
        struct store *reader;

        fixture_open(fixture);
        for (const char *const *key = (const char *const[]){"n/cc", "m/a", "n/a", "n/b", "na/c", NULL}; *key;
             key++) {
                struct store_object object = {.key = (char *)(uintptr_t)*key,
                                              .uid = (char[]){"9"},
                                              .resource_version = (char[]){"1"},
                                              .json = (char[]){"{}"},
                                              .json_size = 2};

                assert_int_equal(store_put(fixture->store, &object), 0);
                assert_int_equal(store_owner_add(fixture->store, "1", *key), 0);
                assert_int_equal(store_owner_add(fixture->store, "1", *key), 0);
        }
        assert_int_equal(store_commit(fixture->store), 0);
        assert_int_equal(store_reader_new(fixture->folder, &reader), 0);
        assert_owned(reader, "1", "n/", "n/a n/b n/cc ");
        assert_owned(reader, "1", "", "m/a n/a n/b n/cc na/c ");
        assert_owned(reader, "2", "", "");
        store_free(reader);
        assert_int_equal(store_verify(fixture->store, NULL, NULL), 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_owner),
                cmocka_unit_test(test_an_object_is_not_its_own_owner),
                cmocka_unit_test(test_a_reference_that_names_nobody_hides_no_other_one),
                cmocka_unit_test(test_whose_it_is),
                cmocka_unit_test(test_whether_there_are_finalizers),
                cmocka_unit_test(test_identity),
                fixture_test(test_an_owners_objects_in_one_namespace),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
