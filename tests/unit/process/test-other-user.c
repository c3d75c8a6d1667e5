/* SPDX-License-Identifier: Apache-2.0 */
/* A process of another user: what it cannot hold up, and what is told of a program that it may not execute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/keyctl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/syscall.h"
#include "tests/unit/process/fixture.h"
#include "tests/unit/valgrind.h"

#define OTHER 65534

static void start_script(struct fixture *fixture, const struct process_user *user, char *program,
                         char *script, uint64_t timeout_usec)
{
        char *argument[] = {program, (char[]){"-c"}, script, NULL};
        char *environment[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
        struct process_options options = {
                .argument = argument,
                .environment = environment,
                .input = &fixture->input,
                .timeout_usec = timeout_usec,
                .user = user,
                .on_line = on_line,
                .on_done = on_done,
                .userdata = fixture,
        };

        fixture->started = clock_boottime_usec();
        assert_int_equal(process_start(fixture->event, &options, &fixture->process), 0);
}

static void start_as_other(struct fixture *fixture, char *program, uint64_t timeout_usec)
{
        static const struct process_user user = {.uid = OTHER, .gid = OTHER};

        start_script(fixture, &user, program, (char[]){"id -u; id -g; id -G"}, timeout_usec);
}

/* Where the change of user happens in memory that is ours as well, the kernel sets the flag to
 * fs.suid_dumpable. */
static void test_another_user_leaves_our_memory_alone(void **state)
{
        struct fixture *fixture = *state;
        int before = prctl(PR_GET_DUMPABLE), flag;
        FILE *file = fopen("/proc/sys/fs/suid_dumpable", "re");

        if (geteuid() != 0)
                skip();
        assert_non_null(file);
        assert_int_equal(fscanf(file, "%d", &flag), 1);
        fclose(file);
        assert_int_equal(prctl(PR_SET_DUMPABLE, flag == 0), 0);
        start_as_other(fixture, (char[]){"/bin/sh"}, LONG_USEC);
        assert_int_equal(prctl(PR_GET_DUMPABLE), flag == 0);
        wait_done(fixture);
        assert_int_equal(fixture->wait_status, 0);
        assert_string_equal(fixture->output.data, "65534\n65534\n65534\n");
        assert_int_equal(fixture->start_error, 0);
        assert_int_equal(prctl(PR_GET_DUMPABLE), flag == 0);
        prctl(PR_SET_DUMPABLE, before == 1);
}

static void test_program_of_another_user_missing(void **state)
{
        struct fixture *fixture = *state;

        if (geteuid() != 0)
                skip();
        start_as_other(fixture, (char[]){"/nonexistent/handler"}, LONG_USEC);
        wait_done(fixture);
        assert_int_equal(fixture->start_error, -ENOENT);
        assert_string_equal(fixture->last_line, "it cannot be started: No such file or directory");
}

/* Its owner, another process of that user, is asked to give up its lease, and does not. execve() waits. */
static pid_t hold_by_lease(const char *path)
{
        int ready[2];
        pid_t holder;
        char byte;

        assert_int_equal(sys_pipe(ready), 0);
        holder = fork();
        if (holder == 0) {
                int fd;

                signal(SIGIO, SIG_IGN);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (setresuid(OTHER, OTHER, OTHER) < 0 || (fd = open(path, O_RDWR | O_CLOEXEC)) < 0 ||
                    fcntl(fd, F_SETLEASE, F_WRLCK) < 0 || write(ready[1], "", 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        return holder;
}

static void test_another_user_who_holds_up_the_start(void **state)
{
        struct fixture *fixture = *state;
        char path[] = "/tmp/handler.XXXXXX";
        int fd, status;
        pid_t holder;

        if (geteuid() != 0)
                skip();
        fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(fchown(fd, OTHER, OTHER), 0);
        assert_int_equal(fchmod(fd, 0700), 0);
        close(fd);
        holder = hold_by_lease(path);
        assert_int_equal(descendants_spare(holder, DESCENDANTS_ANY), 0);
        start_as_other(fixture, path, 300 * USEC_PER_MSEC);
        assert_true(clock_boottime_usec() - fixture->started < 10 * USEC_PER_SEC);
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_TIMED_OUT);
        descendants_spare_no_more(holder);
        assert_int_equal(kill(holder, SIGKILL), 0);
        assert_int_equal(waitpid(holder, &status, 0), holder);
        assert_int_equal(unlink(path), 0);
}

#define OF_KEYS  65533 /* a user of its own: the quota is filled */
#define KEYS_MAX 100000

static const struct process_user of_keys = {.uid = OF_KEYS, .gid = OF_KEYS};

static long make_key(const char *name, long keyring)
{
        return syscall(SYS_add_key, "user", name, "secret", strlen("secret"), keyring);
}

/* false: not allowed here, as in many containers. */
static bool make_session_key(void)
{
        if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
                return false;
        assert_true(make_key("of-the-operator", KEY_SPEC_SESSION_KEYRING) > 0);
        return true;
}

/* /proc/keys shows the keys that its reader may see: those of its session keyring are among them. */
static void test_another_user_has_no_key_of_our_session(void **state)
{
        struct fixture *fixture = *state;

        if (geteuid() != 0 || !make_session_key())
                skip();
        start_script(fixture, &of_keys, (char[]){"/bin/sh"}, (char[]){"grep -c of-the-operator /proc/keys"},
                     LONG_USEC);
        wait_done(fixture);
        assert_int_equal(fixture->start_error, 0);
        assert_string_equal(fixture->output.data, "0\n");
}

static int fill_quota(int ready)
{
        char name[32];

        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (setresuid(OF_KEYS, OF_KEYS, OF_KEYS) < 0)
                return 1;
        for (int i = 0; i < KEYS_MAX; i++) {
                snprintf(name, sizeof(name), "%d", i);
                if (make_key(name, KEY_SPEC_PROCESS_KEYRING) < 0)
                        break;
        }
        if (errno != EDQUOT || write(ready, "", 1) != 1)
                return 1;
        for (;;)
                pause();
}

/* It must not come by our keys in that way. */
static void test_another_user_who_has_filled_its_quota_of_keys(void **state)
{
        struct fixture *fixture = *state;
        int ready[2], status;
        pid_t holder;
        char byte;

        if (geteuid() != 0 || under_valgrind() || !make_session_key())
                skip();
        assert_int_equal(sys_pipe(ready), 0);
        holder = fork();
        if (holder == 0)
                _exit(fill_quota(ready[1]));
        assert_int_equal(descendants_spare(holder, DESCENDANTS_ANY), 0);
        close(ready[1]);
        assert_int_equal(read(ready[0], &byte, 1), 1);
        close(ready[0]);
        start_script(fixture, &of_keys, (char[]){"/bin/sh"}, (char[]){"exit 0"}, LONG_USEC);
        wait_done(fixture);
        assert_int_equal(fixture->start_error, -EDQUOT);
        descendants_spare_no_more(holder);
        assert_int_equal(kill(holder, SIGKILL), 0);
        assert_int_equal(waitpid(holder, &status, 0), holder);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_another_user_leaves_our_memory_alone, setup, teardown),
                cmocka_unit_test_setup_teardown(test_program_of_another_user_missing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_another_user_who_holds_up_the_start, setup, teardown),
                cmocka_unit_test_setup_teardown(test_another_user_has_no_key_of_our_session, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_another_user_who_has_filled_its_quota_of_keys, setup,
                                                teardown),
        };
        sigset_t child;

        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        sigprocmask(SIG_BLOCK, &child, NULL);
        return cmocka_run_group_tests(test, NULL, NULL);
}
