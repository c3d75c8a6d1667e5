/* SPDX-License-Identifier: Apache-2.0 */
/* The leader record: what is read, kept and refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "election/leader-record.h"

#define HEAD "reconciled-leader 1\noperator widgets.example.com\ncluster 6a1f\n"
#define BODY "epoch 1764216000\nwrites 3\nduration 15000000\n"

static int read_text(const char *text, struct leader_record *ret, struct error *error)
{
        return leader_record_read(text, strlen(text), "widgets.example.com", "6a1f", ret, error);
}

static void assert_kept(const char *text, struct leader_record *ret)
{
        _cleanup_text_ struct text written = TEXT_EMPTY;
        _cleanup_error_ struct error error = ERROR_NONE;

        if (read_text(text, ret, &error) < 0)
                fail_msg("%s: %s", text, error_message(&error));
        leader_record_write(&written, ret);
        assert_string_equal(written.data, text);
}

static void assert_refused(const char *text, int status, const char *said)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct leader_record record = {.rest = NULL};
        int r = read_text(text, &record, &error);

        if (r != status || !strstr(error_message(&error), said))
                fail_msg("%s: %d, %s", text, r, error_message(&error));
        assert_null(record.rest);
}

static void test_forms(void **state)
{
        struct leader_record record;

        (void)state;
        assert_kept(HEAD BODY "holder widgets-0 4f1c\n", &record);
        assert_string_equal(record.claim.holder.name, "widgets-0");
        assert_string_equal(record.claim.holder.life, "4f1c");
        assert_int_equal(record.claim.epoch, 1764216000);
        assert_int_equal(record.claim.duration_usec, 15000000);
        assert_false(record.claim.released);
        leader_record_done(&record);
        assert_kept(HEAD BODY "released widgets-1\n", &record);
        assert_true(record.claim.released);
        assert_string_equal(record.claim.successor, "widgets-1");
        leader_record_done(&record);
        assert_kept(HEAD BODY "released\n", &record);
        assert_true(record.claim.released && !record.claim.successor[0]);
        leader_record_done(&record);
        assert_kept(HEAD BODY, &record);
        assert_true(!record.claim.released && !record.claim.holder.name[0]);
        leader_record_done(&record);
}

/* An older release that takes over loses nothing of what a newer one has written. */
static void test_unknown_lines_are_kept(void **state)
{
        struct leader_record record;

        (void)state;
        assert_kept(HEAD BODY "holder a b\npaused widgets \"disk moves\"\nsuspect default/\xc3\xa4pfel\n",
                    &record);
        assert_string_equal(record.rest, "paused widgets \"disk moves\"\nsuspect default/\xc3\xa4pfel\n");
        leader_record_done(&record);
}

static void test_refused(void **state)
{
        static const char *const damaged[] = {
                "reconciled-leader 1\n",
                HEAD "epoch 0\nwrites 3\nduration 15000000\n",
                HEAD "epoch 01\nwrites 3\nduration 15000000\n",
                HEAD "epoch -1\nwrites 3\nduration 15000000\n",
                HEAD "epoch 9999999999999999999\nwrites 3\nduration 15000000\n",
                HEAD "epoch 1\nwrites 3\nduration 4999999\n",
                HEAD "epoch 1\nwrites 3\nduration 3600000001\n",
                HEAD "writes 3\nepoch 1\nduration 15000000\n",
                HEAD BODY "holder a\n",
                HEAD BODY "holder a b c\n",
                HEAD BODY "holder a 012345678901234567890123456789012\n",
                HEAD BODY "holder a b\nreleased\n",
                HEAD BODY "released a b\n",
                HEAD BODY "released \n",
                HEAD BODY "paused\nepoch 7\n",
                HEAD BODY "paused\n\n",
                HEAD BODY "paused\ta\n",
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(damaged); i++)
                assert_refused(damaged[i], -EBADMSG, "damaged");
        assert_refused("", -EBADMSG, "none of reconciled's");
        assert_refused("control-plane: x\n", -EBADMSG, "none of reconciled's");
        assert_refused(HEAD BODY "holder a b", -EBADMSG, "none of reconciled's");
        assert_refused("reconciled-leader 2\nanything\n", -EPROTONOSUPPORT, "newer release (2)");
        assert_refused("reconciled-leader 1\noperator gadgets.example.com\ncluster 6a1f\n" BODY, -EXDEV,
                       "of operator gadgets.example.com");
        assert_refused("reconciled-leader 1\noperator widgets.example.com\ncluster 6a20\n" BODY, -EXDEV,
                       "in cluster 6a20");
}

/* What is read once can be written and read again, whatever the names: half of the room is for what is kept. */
static void test_bounds(void **state)
{
        _cleanup_text_ struct text text = TEXT_EMPTY;
        struct leader_record record;

        (void)state;
        text_append_string(&text, HEAD BODY);
        while (text.size < LEADER_RECORD_MAX / 2)
                text_append_string(&text, "x\n");
        assert_kept(text.data, &record);
        leader_record_done(&record);
        while (text.size < LEADER_RECORD_MAX - 2)
                text_append_string(&text, "x\n");
        assert_refused(text.data, -EBADMSG, "damaged");
        text_append_string(&text, "xxxxxxxx\n");
        assert_refused(text.data, -EBADMSG, "none of reconciled's");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_forms),
                cmocka_unit_test(test_unknown_lines_are_kept),
                cmocka_unit_test(test_refused),
                cmocka_unit_test(test_bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
