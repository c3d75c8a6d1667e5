/* SPDX-License-Identifier: Apache-2.0 */
/* What handlers leave behind while another one serves on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "os/syscall.h"
#include "process/process.h"
#include "tests/unit/valgrind.h"

#define LONG_USEC (25 * USEC_PER_SEC)
#define HOPS      100000 /* some seconds, if nobody ends it */

static sd_event *event;

struct script {
        struct process *process;
        struct text input;
        bool ready, done, ended_for_it;
};

static void on_line(const char *line, void *userdata)
{
        struct script *script = userdata;

        script->ready = script->ready || strcmp(line, "ready") == 0;
        script->ended_for_it = script->ended_for_it || strstr(line, "it is ended: processes that");
}

static void on_output(const char *line _unused_, size_t size _unused_, bool cut _unused_,
                      void *userdata _unused_)
{
}

static void on_done(const struct process_result *result, void *userdata)
{
        struct script *script = userdata;

        assert_int_not_equal(result->end, PROCESS_TIMED_OUT);
        script->done = true;
}

static void start_as(struct script *script, char *text, const struct process_user *user, bool serves)
{
        char *argument[] = {(char[]){"/bin/bash"}, (char[]){"-c"}, text, NULL};
        char *environment[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
        const struct process_options options = {
                .argument = argument,
                .environment = environment,
                .input = &script->input,
                .timeout_usec = serves ? 0 : LONG_USEC,
                .user = user,
                .on_output = serves ? on_output : NULL,
                .on_line = on_line,
                .on_done = on_done,
                .userdata = script,
        };

        assert_int_equal(process_start(event, &options, &script->process), 0);
}

static void start(struct script *script, char *text)
{
        start_as(script, text, NULL, false);
}

static void turn(void)
{
        assert_true(sd_event_run(event, USEC_PER_SEC) >= 0);
}

static void wait_done(struct script *script)
{
        while (!script->done)
                turn();
        process_free(script->process);
        text_done(&script->input);
}

static void serve(struct script *script, char *text)
{
        start(script, text);
        while (!script->ready)
                turn();
}

/* Forks and ends all the time, so that no process is in the machine's table for long. */
static void hop(void)
{
        for (int i = 0; i < HOPS; i++) {
                if (fork() != 0)
                        _exit(0);
                if (i == 1000)
                        (void)!write(STDOUT_FILENO, "\n", 1);
        }
        _exit(0);
}

/* It holds a pipe, since it cannot be found otherwise. */
static void assert_hopping_process_is_ended(void)
{
        struct script hops = {0};
        char text[160], byte;
        int pair[2];

        assert_int_equal(sys_pipe(pair), 0);
        snprintf(text, sizeof(text), "setsid /proc/%d/exe hop 2>/proc/%d/fd/%d | read", (int)getpid(),
                 (int)getpid(), pair[1]);
        start(&hops, text);
        wait_done(&hops);
        close(pair[1]);
        assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
        assert_int_equal(read(pair[0], &byte, 1), 0); /* nobody holds the other end */
        close(pair[0]);
}

static void test_hopping_process_is_ended_beside_another(void **state)
{
        struct script other = {0};

        (void)state;
        if (under_valgrind()) /* /proc/PID/exe is another program there */
                skip();
        serve(&other, (char[]){"echo ready >&2; exec sleep 60"});
        assert_hopping_process_is_ended();
        assert_hopping_process_is_ended();
        assert_false(other.done);
        process_end(other.process, 0);
        wait_done(&other);
}

static bool has_zombies(void)
{
        siginfo_t info = {0};

        return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0;
}

static void test_orphans_are_reaped_during_a_run(void **state)
{
        struct script script = {0};

        (void)state;
        serve(&script, (char[]){"for i in {1..20}; do (true &); done; echo ready >&2; exec sleep 60"});
        while (has_zombies())
                turn();
        assert_false(script.done); /* its own end would reap them */
        process_end(script.process, 0);
        wait_done(&script);
}

/* Each of four makes processes that lose their parent, and live for a moment in a session of their own. */
static void make_orphans(void)
{
        const struct itimerval life = {.it_value = {.tv_usec = 50000}};

        (void)!write(STDERR_FILENO, "ready\n", 6);
        for (int i = 0; i < 3 && fork() != 0; i++)
                ;
        for (;;) {
                pid_t child = fork();

                if (child == 0) {
                        if (fork() == 0 && setsid() > 0) {
                                close(STDIN_FILENO);
                                close(STDOUT_FILENO);
                                close(STDERR_FILENO);
                                setitimer(ITIMER_REAL, &life, NULL);
                                pause();
                        }
                        _exit(0);
                }
                if (child > 0)
                        waitpid(child, NULL, 0);
        }
}

/* Where every user may execute it. */
static void copy_program(char *path)
{
        int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to = mkstemp(path);

        assert_true(from >= 0 && to >= 0);
        while (sendfile(to, from, NULL, 1 << 20) > 0)
                ;
        assert_int_equal(fchmod(to, 0755), 0);
        close(from);
        close(to);
}

/* Its group is spared, and what has lost its parent shows nobody whose it was. */
static void start_orphans(struct script *script, const struct process_user *user)
{
        char path[] = "/tmp/test-descendants-XXXXXX", text[80];

        copy_program(path);
        snprintf(text, sizeof(text), "exec %s orphans", path);
        start_as(script, text, user, true);
        while (!script->ready && !script->done)
                turn();
        assert_int_equal(unlink(path), 0);
        assert_false(script->done);
}

static void test_orphans_of_another_user_hold_up_no_run(void **state)
{
        static const struct process_user one = {.uid = 65531, .gid = 65531},
                                         two = {.uid = 65532, .gid = 65532};
        struct script orphans = {0};

        (void)state;
        if (geteuid() != 0)
                skip();
        start_orphans(&orphans, &one);
        for (int i = 0; i < 5; i++) {
                struct script script = {0};
                uint64_t since = clock_boottime_usec();

                start_as(&script, (char[]){"exit 0"}, &two, false);
                wait_done(&script);
                assert_true(clock_boottime_usec() - since < 4 * USEC_PER_SEC);
        }
        assert_false(orphans.ended_for_it);
        process_end(orphans.process, 0);
        wait_done(&orphans);
}

/* Where a moment comes without an orphan, the run is over before. */
static void test_orphans_of_the_same_user_are_ended_with_their_maker(void **state)
{
        struct script orphans = {0};

        (void)state;
        start_orphans(&orphans, NULL);
        for (int i = 0; i < 3 && !orphans.ended_for_it; i++) {
                struct script script = {0};
                uint64_t since = clock_boottime_usec();

                start(&script, (char[]){"exit 0"});
                wait_done(&script);
                assert_true(clock_boottime_usec() - since < LONG_USEC);
        }
        process_end(orphans.process, 0);
        wait_done(&orphans);
}

int main(int count, char *argument[])
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_hopping_process_is_ended_beside_another),
                cmocka_unit_test(test_orphans_are_reaped_during_a_run),
                cmocka_unit_test(test_orphans_of_another_user_hold_up_no_run),
                cmocka_unit_test(test_orphans_of_the_same_user_are_ended_with_their_maker),
        };
        sigset_t mask;
        int r;

        if (count > 1 && strcmp(argument[1], "hop") == 0)
                hop();
        if (count > 1 && strcmp(argument[1], "orphans") == 0)
                make_orphans();
        /* As child_init() does it for a worker. */
        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        if (sys_set_subreaper() < 0 || sd_event_new(&event) < 0)
                return 1;
        r = cmocka_run_group_tests(test, NULL, NULL);
        sd_event_unref(event);
        return r;
}
