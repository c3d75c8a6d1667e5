/* SPDX-License-Identifier: Apache-2.0 */
/* Slots: what a writer noted is seen by another process; what is torn, wild or idle is not. */
#include "os/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fixture {
        char folder[64], path[80];
        struct slots *slots;
};

static int setup(void **state)
{
        struct fixture *fixture = calloc(1, sizeof(*fixture));

        assert_non_null(fixture);
        snprintf(fixture->folder, sizeof(fixture->folder), "/tmp/test-slot-XXXXXX");
        assert_non_null(mkdtemp(fixture->folder));
        snprintf(fixture->path, sizeof(fixture->path), "%s/slots", fixture->folder);
        assert_int_equal(slots_new(fixture->path, 3, &fixture->slots), 0);
        *state = fixture;
        return 0;
}

static int teardown(void **state)
{
        struct fixture *fixture = *state;

        slots_free(fixture->slots);
        assert_int_equal(access(fixture->path, F_OK), -1);
        rmdir(fixture->folder);
        free(fixture);
        return 0;
}

static void assert_idle(const struct fixture *fixture, size_t index)
{
        struct slot_view view;

        assert_int_equal(slots_look(fixture->slots, index, &view), -ENOENT);
}

static void test_a_writer_that_is_killed(void **state)
{
        struct fixture *fixture = *state;
        struct slot_view view;
        int status;
        pid_t pid = fork();

        if (pid == 0) {
                struct slot *slot = NULL;

                if (slot_open(fixture->path, 1, &slot) < 0)
                        _exit(1);
                slot_set(slot, SLOT_READING, "n/other", "u0");
                slot_set(slot, SLOT_PROGRAM, "n/a", "u1");
                raise(SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(slots_look(fixture->slots, 1, &view), 0);
        assert_int_equal(view.stage, SLOT_PROGRAM);
        assert_string_equal(view.key, "n/a");
        assert_string_equal(view.uid, "u1");
        assert_idle(fixture, 0);
        assert_idle(fixture, 2);
        assert_idle(fixture, 3); /* there is none */
        /* It goes to a writer of another watch. */
        assert_int_equal(slots_clear(fixture->slots, 0), 0);
        assert_int_equal(slots_look(fixture->slots, 1, &view), 0);
        assert_int_equal(slots_clear(fixture->slots, 1), 0);
        assert_idle(fixture, 1);
        /* A new writer of the slot is at nothing; a new supervisor begins with nothing. */
        slots_free(fixture->slots);
        assert_int_equal(slots_new(fixture->path, 3, &fixture->slots), 0);
        assert_idle(fixture, 1);
}

static void test_what_is_over_is_idle(void **state)
{
        struct fixture *fixture = *state;
        struct slot *slot = NULL;
        struct slot_view view;

        assert_int_equal(slot_open(fixture->path, 0, &slot), 0);
        assert_idle(fixture, 0);
        slot_set(slot, SLOT_READING, "a", "u");
        assert_int_equal(slots_look(fixture->slots, 0, &view), 0);
        slot_clear(slot);
        assert_idle(fixture, 0);
        slot_close(slot);
        assert_int_equal(slot_open(fixture->path, 3, &slot), -EBADMSG);
        slot_set(NULL, SLOT_READING, "a", "u"); /* nobody looks */
        slot_clear(NULL);
}

static void test_what_cannot_be_believed(void **state)
{
        struct fixture *fixture = *state;
        struct slot *slot = NULL;

        assert_int_equal(slot_open(fixture->path, 0, &slot), 0);
        slot_set(slot, SLOT_READING, "a", "u");
        slot->key_size = SLOT_KEY_MAX + 1;
        assert_idle(fixture, 0);
        slot_set(slot, SLOT_READING, "a", "u");
        slot->uid_size = 0;
        assert_idle(fixture, 0);
        slot_set(slot, SLOT_READING, "abc", "u");
        slot->key[1] = '\0';
        assert_idle(fixture, 0);
        slot_set(slot, SLOT_READING, "a", "u");
        atomic_store(&slot->state, SLOT_VERSION | SLOT_STAGE_COUNT);
        assert_idle(fixture, 0);
        atomic_store(&slot->state, UINT32_C(0xffffff00) | SLOT_READING); /* of another version */
        assert_idle(fixture, 0);
        slot_close(slot);
}

static void test_no_place_is_no_file(void **state)
{
        struct fixture *fixture = *state;
        struct slots *slots = NULL;
        char path[100];

        snprintf(path, sizeof(path), "%s/none/slots", fixture->folder);
        assert_int_equal(slots_new(path, 1, &slots), -ENOENT);
        assert_null(slots);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_writer_that_is_killed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_is_over_is_idle, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_cannot_be_believed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_no_place_is_no_file, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
