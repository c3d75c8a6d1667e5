/* SPDX-License-Identifier: Apache-2.0 */
/* The message table: every type there and back, nothing else accepted, permissions as meant. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ipc/message.h"

/* A message of every type with nothing in it but zeros and empty strings round-trips to the same bytes. */
static void round_trip(enum message_type type, const void *fields)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY, again = TEXT_EMPTY;
        struct message *message = NULL;

        assert_int_equal(message_encode(type, fields, &packet), 0);
        assert_int_equal(message_decode(packet.data, packet.size, &message), 0);
        assert_int_equal(message->type, type);
        assert_int_equal(message_encode(type, &message->hello, &again), 0);
        assert_int_equal(packet.size, again.size);
        assert_memory_equal(packet.data, again.data, packet.size);
        message_free(message);

        for (size_t size = 0; size < packet.size; size++)
                assert_int_equal(message_decode(packet.data, size, &message), -EBADMSG);
        text_append(&packet, "\x01", 1);
        assert_int_equal(message_decode(packet.data, packet.size, &message), -EBADMSG);
}

static void test_every_type(void **state)
{
        (void)state;
#define M(NAME, name, senders, receivers, cap, states)                                                      \
        round_trip(MESSAGE_##NAME, &(struct message_##name){0});
        MESSAGE_TABLE(M)
#undef M
}

static void test_content(void **state)
{
        struct record_change change[2] = {
                {.sequence = 7,
                 .kind = CHANGE_DELETED,
                 .key = "d/a",
                 .uid = "u1",
                 .resource_version = "5",
                 .fingerprint = UINT64_MAX},
                {.sequence = 8, .key = "d/b", .uid = "ü", .resource_version = "", .first = true},
        };
        struct message_keys keys = {.watch = "w", .change = change, .change_count = 2};
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        _cleanup_message_ struct message *message = NULL;

        (void)state;
        round_trip(MESSAGE_KEYS, &keys);
        assert_int_equal(message_encode(MESSAGE_KEYS, &keys, &packet), 0);
        assert_int_equal(message_decode(packet.data, packet.size, &message), 0);
        assert_int_equal(message->keys.change_count, 2);
        assert_string_equal(message->keys.change[0].key, "d/a");
        assert_true(message->keys.change[0].fingerprint == UINT64_MAX);
        assert_string_equal(message->keys.change[1].uid, "ü");
        assert_true(message->keys.change[1].first);
}

static void test_text_must_be_clean(void **state)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        struct message *message = NULL;

        (void)state;
        assert_int_equal(
                message_encode(MESSAGE_RECOVERED, &(struct message_recovered){.watch = "\xff"}, &packet),
                -EINVAL);
        assert_int_equal(
                message_encode(MESSAGE_RECOVERED, &(struct message_recovered){.watch = "ab"}, &packet), 0);
        packet.data[packet.size - 1] = '\0';
        assert_int_equal(message_decode(packet.data, packet.size, &message), -EBADMSG);
        packet.data[packet.size - 1] = (char)0xc3;
        assert_int_equal(message_decode(packet.data, packet.size, &message), -EBADMSG);
}

static void test_what_a_terminal_would_obey(void **state)
{
        char text[] = "a\tb\x1b[2J\xc2\x9b"
                      "c\xff\xe2\x80\xaexyz\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c ü € \xf0\x9f\x98\x80 \xc2\xa0";

        (void)state;
        utf8_clean(text);
        assert_string_equal(text, "a\tb?[2J??"
                                  "c????xyz???????? ü € \xf0\x9f\x98\x80 \xc2\xa0");
}

/* Where a packet differs from another of the same size. */
static size_t difference(const struct text *a, const struct text *b)
{
        size_t at = 0;

        assert_int_equal(a->size, b->size);
        while (at < a->size && a->data[at] == b->data[at])
                at++;
        return at;
}

static void test_numbers_of_an_enum_end(void **state)
{
        _cleanup_text_ struct text first = TEXT_EMPTY, last = TEXT_EMPTY, none = TEXT_EMPTY;
        struct message_run run = {.reason = RUN_ADDED};
        struct record_change change = {.kind = CHANGE_KIND_COUNT};
        struct message_keys keys = {.change = &change, .change_count = 1};
        struct message *message = NULL;

        (void)state;
        assert_int_equal(message_encode(MESSAGE_RUN, &run, &first), 0);
        run.reason = RUN_REASON_COUNT - 1;
        assert_int_equal(message_encode(MESSAGE_RUN, &run, &last), 0);
        assert_int_equal(message_decode(last.data, last.size, &message), 0);
        assert_int_equal(message->run.reason, RUN_REASON_COUNT - 1);
        message_free(message);
        last.data[difference(&first, &last)]++;
        assert_int_equal(message_decode(last.data, last.size, &message), -EBADMSG);
        run.reason = RUN_REASON_COUNT;
        assert_int_equal(message_encode(MESSAGE_RUN, &run, &none), -EINVAL);
        assert_int_equal(message_encode(MESSAGE_KEYS, &keys, &none), -EINVAL);
}

static void test_reasons_have_names(void **state)
{
        enum run_reason found = RUN_RETRY;

        (void)state;
        for (enum run_reason reason = RUN_REASON_NONE; reason < RUN_REASON_COUNT; reason++) {
                assert_true(run_reason_parse(run_reason_name(reason), &found));
                assert_int_equal(found, reason);
        }
        assert_false(run_reason_parse("of another release", &found));
        assert_int_equal(found, RUN_REASON_COUNT - 1);
}

static void test_caps(void **state)
{
        _cleanup_text_ struct text packet = TEXT_EMPTY;
        _cleanup_free_ char *large = malloc(5000);

        (void)state;
        memset(large, 'x', 4999);
        large[4999] = '\0';
        assert_int_equal(
                message_encode(MESSAGE_RECOVERED, &(struct message_recovered){.watch = large}, &packet),
                -EMSGSIZE);
}

static void test_counts_that_lie(void **state)
{
        static const unsigned char lie[] = {0xdd, 0xff, 0xff, 0xff, 0xff, 0x01},
                                   deep[] = {0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x01};
        struct message *message = NULL;

        (void)state;
        assert_int_equal(message_decode(lie, sizeof(lie), &message), -EBADMSG);
        assert_int_equal(message_decode(deep, sizeof(deep), &message), -EBADMSG);
        assert_int_equal(message_decode("", 0, &message), -EBADMSG);
}

static void test_permissions(void **state)
{
        (void)state;
        assert_true(message_permitted(MESSAGE_HELLO, ROLE_WATCHER, ROLE_SUPERVISOR, CHILD_STARTING));
        assert_false(message_permitted(MESSAGE_HELLO, ROLE_WATCHER, ROLE_SUPERVISOR, CHILD_RUNNING));
        assert_false(message_permitted(MESSAGE_HELLO, ROLE_SUPERVISOR, ROLE_WATCHER, CHILD_STARTING));
        assert_true(message_permitted(MESSAGE_KEYS, ROLE_WATCHER, ROLE_SUPERVISOR, CHILD_RUNNING));
        assert_false(message_permitted(MESSAGE_KEYS, ROLE_WORKER, ROLE_SUPERVISOR, CHILD_RUNNING));
        assert_false(message_permitted(MESSAGE_RUN, ROLE_SUPERVISOR, ROLE_WATCHER, CHILD_RUNNING));
        assert_false(message_permitted(MESSAGE_CREDENTIAL, ROLE_WORKER, ROLE_SUPERVISOR, CHILD_RUNNING));
        assert_false(message_permitted(MESSAGE_QUERY, ROLE_WORKER, ROLE_SUPERVISOR, CHILD_RUNNING));
        assert_false(message_permitted(MESSAGE_INVALID, ROLE_WORKER, ROLE_SUPERVISOR, CHILD_RUNNING));
        for (int type = 0; type <= MESSAGE_TYPE_COUNT; type++)
                assert_false(message_permitted((enum message_type)type, ROLE_WORKER, ROLE_SUPERVISOR,
                                               CHILD_GONE));
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_every_type),
                cmocka_unit_test(test_content),
                cmocka_unit_test(test_text_must_be_clean),
                cmocka_unit_test(test_what_a_terminal_would_obey),
                cmocka_unit_test(test_caps),
                cmocka_unit_test(test_counts_that_lie),
                cmocka_unit_test(test_permissions),
                cmocka_unit_test(test_numbers_of_an_enum_end),
                cmocka_unit_test(test_reasons_have_names),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
