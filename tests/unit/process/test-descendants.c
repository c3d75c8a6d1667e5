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
#include <string.h>
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
        bool ready, done;
};

static void on_line(const char *line, void *userdata)
{
        struct script *script = userdata;

        script->ready = script->ready || strcmp(line, "ready") == 0;
}

static void on_done(const struct process_result *result, void *userdata)
{
        struct script *script = userdata;

        assert_int_not_equal(result->end, PROCESS_TIMED_OUT);
        script->done = true;
}

static void start(struct script *script, char *text)
{
        char *argument[] = {(char[]){"/bin/bash"}, (char[]){"-c"}, text, NULL};
        char *environment[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
        const struct process_options options = {
                .argument = argument,
                .environment = environment,
                .input = &script->input,
                .timeout_usec = LONG_USEC,
                .on_line = on_line,
                .on_done = on_done,
                .userdata = script,
        };

        assert_int_equal(process_start(event, &options, &script->process), 0);
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

int main(int count, char *argument[])
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_hopping_process_is_ended_beside_another),
                cmocka_unit_test(test_orphans_are_reaped_during_a_run),
        };
        sigset_t mask;
        int r;

        if (count > 1 && strcmp(argument[1], "hop") == 0)
                hop();
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
