/* SPDX-License-Identifier: Apache-2.0 */
/* One handler process, as real small shell scripts: how it ends, what it says, and that nothing survives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/syscall.h"
#include "tests/unit/process/fixture.h"
#include "tests/unit/valgrind.h"

static void on_answer(const char *line, size_t size _unused_, bool cut _unused_, void *userdata)
{
        struct fixture *fixture = userdata;

        text_printf(&fixture->lines, "> %s\n", line);
}

static void start_with(struct fixture *fixture, const char *script, uint64_t timeout_usec,
                       uint64_t grace_usec)
{
        char *argument[] = {(char[]){"/bin/bash"}, (char[]){"-c"}, strdup(script), NULL};
        char *environment[] = {(char[]){"PATH=/usr/bin:/bin"}, NULL};
        struct process_options options = {
                .argument = argument,
                .environment = environment,
                .input = &fixture->input,
                .timeout_usec = timeout_usec,
                .grace_usec = grace_usec,
                .on_output = fixture->serves ? on_answer : NULL,
                .on_line = on_line,
                .on_done = on_done,
                .userdata = fixture,
        };

        fixture->started = clock_boottime_usec();
        assert_int_equal(process_start(fixture->event, &options, &fixture->process), 0);
        free(argument[2]);
}

static void wait_line(struct fixture *fixture, const char *line)
{
        while (!fixture->lines.data || !strstr(fixture->lines.data, line))
                turn(fixture);
}

static void run_script(struct fixture *fixture, const char *script)
{
        start_with(fixture, script, LONG_USEC, LONG_USEC);
        wait_done(fixture);
}

static void assert_exit(const struct fixture *fixture, int status)
{
        assert_true(WIFEXITED(fixture->wait_status));
        assert_int_equal(WEXITSTATUS(fixture->wait_status), status);
}

static const char *output(const struct fixture *fixture)
{
        return fixture->output.data ? fixture->output.data : "";
}

static const char *lines(const struct fixture *fixture)
{
        return fixture->lines.data ? fixture->lines.data : "";
}

/* ---- streams */

static void test_answer_and_lines(void **state)
{
        struct fixture *fixture = *state;

        text_append_string(&fixture->input, "{\"a\":1}\n");
        run_script(fixture, "cat; echo one >&2; printf 'two\\r\\n\\nthree' >&2");
        assert_exit(fixture, 0);
        assert_int_equal(fixture->end, PROCESS_EXITED);
        assert_string_equal(output(fixture), "{\"a\":1}\n");
        assert_string_equal(lines(fixture), "one\ntwo\nthree\n");
        assert_string_equal(fixture->last_line, "three");
        assert_false(fixture->left_over);
        assert_null(fixture->input.data); /* taken over */
}

static void test_exit_statuses(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "exit 75");
        assert_exit(fixture, 75);
}

static void test_signal(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "kill -SEGV $$");
        assert_true(WIFSIGNALED(fixture->wait_status));
        assert_int_equal(WTERMSIG(fixture->wait_status), SIGSEGV);
        assert_int_equal(fixture->end, PROCESS_EXITED);
}

static void fill(struct text *text, size_t size)
{
        assert_int_equal(text_reserve(text, size), 0);
        memset(text->data, 'x', size);
        text->size = size;
        text->data[size] = '\0';
}

static void test_input_not_read(void **state)
{
        struct fixture *fixture = *state;

        fill(&fixture->input, 5 * 1024 * 1024);
        run_script(fixture, "exit 3");
        assert_exit(fixture, 3);
}

static void test_input_closed_early(void **state)
{
        struct fixture *fixture = *state;

        fill(&fixture->input, 5 * 1024 * 1024);
        run_script(fixture, "head -c 100 | wc -c; exec <&-; echo still here");
        assert_exit(fixture, 0);
        assert_string_equal(output(fixture), "100\nstill here\n");
}

static void test_input_large(void **state)
{
        struct fixture *fixture = *state;

        fill(&fixture->input, 5 * 1024 * 1024);
        run_script(fixture, "wc -c");
        assert_string_equal(output(fixture), "5242880\n");
}

static void test_output_without_end(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "head -c 20000000 /dev/zero; echo done >&2");
        assert_exit(fixture, 0);
        assert_true(fixture->output_too_large);
        assert_int_equal(fixture->output.size, PROCESS_ANSWER_MAX);
        assert_string_equal(fixture->last_line, "done");
}

static void test_output_just_fits(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "head -c 1048576 /dev/zero");
        assert_false(fixture->output_too_large);
        assert_int_equal(fixture->output.size, PROCESS_ANSWER_MAX);
}

/* Returns when the script has done the first part; the loop has had no turn. */
static void start_until(struct fixture *fixture, const char *first, const char *then)
{
        char folder[] = "/tmp/test-process-XXXXXX", path[64], script[160];
        int fd;

        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/ready", folder);
        assert_int_equal(mkfifo(path, 0600), 0);
        snprintf(script, sizeof(script), "%s; : >%s; %s", first, path, then);
        start_with(fixture, script, 0, LONG_USEC);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        close(fd);
        unlink(path);
        rmdir(folder);
}

/* More than a pipe holds, by one that is told to end before the loop has had a turn. */
static void test_output_of_one_that_is_ended_at_once(void **state)
{
        struct fixture *fixture = *state;

        start_until(fixture, "trap '' TERM", "head -c 300000 /dev/zero; echo done >&2");
        process_end(fixture->process, LONG_USEC);
        wait_done(fixture);
        assert_string_equal(fixture->last_line, "done");
        assert_int_equal(fixture->output.size, 300000);
}

/* Both pipes are full of it before anybody looks: what was said first is of the run that the answer ends. */
static void test_what_is_said_before_the_answer(void **state)
{
        struct fixture *fixture = *state;

        fixture->serves = true;
        start_until(fixture, "echo; echo said >&2; echo answer", "sleep 60");
        wait_line(fixture, "> answer");
        assert_string_equal(lines(fixture), "said\n> \n> answer\n");
}

static void test_closed_streams(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "exec <&- >&- 2>&-; read -t 0.1 x < <(sleep 1); exit 4");
        assert_exit(fixture, 4);
}

static void test_huge_line(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "head -c 3000000 /dev/zero | tr '\\0' y >&2; echo >&2; echo after >&2");
        assert_int_equal(fixture->line_count, 2);
        assert_int_equal(fixture->longest_line, PROCESS_LINE_MAX);
        assert_string_equal(fixture->last_line, "after");
}

static void test_bytes_that_are_no_text(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "printf 'a\\0b\\377\\033[31mc\\n' >&2");
        assert_string_equal(lines(fixture), "a?b??[31mc\n");
}

static void test_many_lines(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "seq 1 5000 >&2");
        assert_int_equal(fixture->line_count, PROCESS_LINES_MAX + 1);
        assert_non_null(strstr(lines(fixture), "\n1000\n(4000 more lines of output were not logged)\n"));
        assert_string_equal(fixture->last_line, "5000"); /* the error that matters comes last */
}

static void test_many_bytes(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "for i in {1..500}; do printf '%2000s\\n' $i >&2; done");
        assert_true(fixture->lines.size < PROCESS_BYTES_MAX + 4096);
        assert_non_null(strstr(lines(fixture), "more lines of output were not logged)"));
}

/* ---- the end of everything */

static void test_timeout(void **state)
{
        struct fixture *fixture = *state;

        start_with(fixture, "trap 'echo asked >&2; exit 0' TERM; sleep 60 & wait",
                   slowness() * 200 * USEC_PER_MSEC, LONG_USEC);
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_TIMED_OUT);
        assert_string_equal(fixture->last_line, "asked");
        assert_true(fixture->took < LONG_USEC);
}

static void test_timeout_ignored(void **state)
{
        struct fixture *fixture = *state;

        /* on a loaded machine the shell takes a while to get to its trap */
        start_with(fixture, "trap '' TERM; while :; do sleep 60; done", USEC_PER_SEC, 200 * USEC_PER_MSEC);
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_TIMED_OUT);
        assert_true(WIFSIGNALED(fixture->wait_status));
        assert_int_equal(WTERMSIG(fixture->wait_status), SIGKILL);
        assert_true(fixture->took >= 1200 * USEC_PER_MSEC);
}

/* The shell dies of TERM at once; what it started has its grace all the same. */
static void test_grace_of_the_group(void **state)
{
        struct fixture *fixture = *state;

        start_with(fixture,
                   "bash -c 'trap \"sleep 0.4; echo cleaned up >&2; exit\" TERM; echo ready >&2; sleep 60 & "
                   "wait' & "
                   "trap - TERM; wait",
                   LONG_USEC, LONG_USEC);
        wait_line(fixture, "ready");
        process_end(fixture->process, LONG_USEC);
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_ENDED);
        assert_string_equal(fixture->last_line, "cleaned up");
        assert_true(fixture->took < LONG_USEC);
}

static void test_daemon_is_ended(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "setsid sh -c 'setsid sleep 60 </dev/null >/dev/null 2>&1 & sleep 60' & exit 0");
        assert_exit(fixture, 0);
        assert_true(fixture->left_over);
        assert_true(fixture->took < LONG_USEC);
        assert_false(descendants_reap());
}

static void test_daemon_ended_at_timeout(void **state)
{
        struct fixture *fixture = *state;

        start_with(fixture, "setsid sh -c 'trap \"\" TERM; sleep 60' & trap '' TERM; sleep 60; sleep 60",
                   100 * USEC_PER_MSEC, 100 * USEC_PER_MSEC);
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_TIMED_OUT);
        assert_true(fixture->took < LONG_USEC);
        assert_false(descendants_reap());
}

/* Who may not give the operator orders. */
static void test_who_descends_from_us(void **state)
{
        pid_t pid = fork();

        (void)state;
        if (pid == 0)
                for (;;)
                        pause();
        assert_true(descendants_may_include(getpid()));
        assert_true(descendants_may_include(pid));
        assert_false(descendants_may_include(getppid()));
        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(descendants_may_include(pid)); /* of one that has ended it cannot be told */
}

static void test_fork_storm_is_ended(void **state)
{
        struct fixture *fixture = *state;

        start_with(fixture, "f() { trap '' TERM; setsid sleep 60 & f; }; f", 100 * USEC_PER_MSEC, 0);
        wait_done(fixture);
        assert_false(descendants_reap());
}

/* `exec > >(tee ...)`: the shell does not wait for it. */
static void test_last_words_after_exit(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "exec > >(sed s/a/b/); echo '{a}'");
        assert_string_equal(output(fixture), "{b}\n");
        assert_false(fixture->left_over);
}

/* On a busy machine the last program of a pipe may need more than a moment. */
static void test_slow_last_words_after_exit(void **state)
{
        struct fixture *fixture = *state;

        run_script(fixture, "exec > >(sleep 0.4; sed s/a/b/); echo '{a}'");
        assert_string_equal(output(fixture), "{b}\n");
        assert_false(fixture->left_over);
}

static void test_earlier_kill_counts(void **state)
{
        struct fixture *fixture = *state;

        start_with(fixture, "trap '' TERM; echo ready >&2; while :; do sleep 60; done", LONG_USEC,
                   LONG_USEC);
        wait_line(fixture, "ready");
        process_end(fixture->process, LONG_USEC);
        process_end(fixture->process, 100 * USEC_PER_MSEC); /* the supervisor is gone meanwhile */
        process_end(fixture->process, LONG_USEC);
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_ENDED);
        assert_true(fixture->took < LONG_USEC);
}

static void test_free_ends_everything(void **state)
{
        struct fixture *fixture = *state;

        start_with(fixture, "trap '' TERM; setsid sh -c 'setsid sleep 60 & wait' & echo ready >&2; sleep 60",
                   LONG_USEC, LONG_USEC);
        wait_line(fixture, "ready");
        process_free(TAKE_PTR(fixture->process));
        assert_false(fixture->done);
        assert_false(descendants_reap());
}

/* ---- several at once */

/* A second one beside the fixture's own, in the same loop. */
static struct fixture *add_second(struct fixture *fixture)
{
        struct fixture *second = calloc(1, sizeof(*second));

        assert_non_null(second);
        second->event = sd_event_ref(fixture->event);
        return second;
}

static void free_second(struct fixture *second)
{
        void *state = second;

        assert_int_equal(teardown(&state), 0);
}

static pid_t start_long(struct fixture *fixture)
{
        start_with(fixture, "echo \"pid $$ \" >&2; exec sleep 60", LONG_USEC, 0);
        wait_line(fixture, " \n");
        return (pid_t)strtol(strstr(fixture->lines.data, "pid ") + strlen("pid "), NULL, 10);
}

/* Its end stands there to be told; nothing has been told yet. */
static void kill_and_await(pid_t pid)
{
        siginfo_t info;

        assert_int_equal(kill(pid, SIGKILL), 0);
        assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
}

/* The kernel tells of both with one signal. */
static void test_two_end_at_once(void **state)
{
        struct fixture *fixture = *state, *second = add_second(fixture);
        pid_t pid = start_long(fixture), second_pid = start_long(second);

        kill_and_await(pid);
        kill_and_await(second_pid);
        wait_done(fixture);
        wait_done(second);
        assert_int_equal(fixture->end, PROCESS_EXITED);
        assert_int_equal(second->end, PROCESS_EXITED);
        free_second(second);
}

/* Who ends the one waits for the very signal that tells of the other. */
static void test_end_beside_one_that_is_freed(void **state)
{
        struct fixture *fixture = *state, *second = add_second(fixture);
        pid_t pid = start_long(fixture);

        start_long(second);
        kill_and_await(pid);
        free_second(second);
        assert_false(fixture->done);
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_EXITED);
}

/* The one clock of all is set for the first of them. */
static void test_timeouts_beside_each_other(void **state)
{
        struct fixture *fixture = *state, *second = add_second(fixture);

        start_with(fixture, "echo first >&2; exec sleep 60", slowness() * 300 * USEC_PER_MSEC, LONG_USEC);
        start_with(second, "echo second >&2; exec sleep 60", USEC_PER_MSEC, LONG_USEC);
        wait_done(second);
        assert_int_equal(second->end, PROCESS_TIMED_OUT);
        wait_line(fixture, "first");
        wait_done(fixture);
        assert_int_equal(fixture->end, PROCESS_TIMED_OUT);
        assert_true(fixture->took < LONG_USEC);
        free_second(second);
}

/* ---- what a handler is born with */

static void test_surroundings(void **state)
{
        struct fixture *fixture = *state;
        int leak = open("/dev/null", O_RDONLY); /* not close-on-exec, as LMDB's */

        umask(077);
        assert_true(leak >= 3);
        run_script(fixture, "ls /proc/self/fd | tr '\\n' ' '; pwd; umask; env | sort | tr '\\n' ' '; "
                            "grep -E 'SigBlk|SigIgn' /proc/self/status | tr -d '\\n\\t'; "
                            "read -a f </proc/$$/stat; test ${f[4]} = $$ && echo ' own group'");
        close(leak);
        /* 3 is the folder that ls itself reads. */
        assert_string_equal(output(fixture),
                            "0 1 2 3 /\n0022\nPATH=/usr/bin:/bin PWD=/ SHLVL=1 _=/usr/bin/env "
                            "SigBlk:0000000000000000SigIgn:0000000000000000 own group\n");
}

static void test_program_missing(void **state)
{
        struct fixture *fixture = *state;
        char *argument[] = {(char[]){"/nonexistent/handler"}, NULL}, *environment[] = {NULL};
        struct process_options options = {
                .argument = argument, .environment = environment, .input = &fixture->input};

        if (under_valgrind())
                skip(); /* it makes a fork of each vfork, and the child cannot tell what has failed */
        assert_int_equal(process_start(fixture->event, &options, &fixture->process), -ENOENT);
        argument[0] = (char[]){"/etc/passwd"};
        assert_int_equal(process_start(fixture->event, &options, &fixture->process), -EACCES);
        assert_false(descendants_reap());
}

/* A worker that is killed takes its handler along. */
static void test_dies_with_its_worker(void **state)
{
        struct fixture *fixture = *state;
        int end[2], status;
        pid_t worker;
        char byte;

        assert_int_equal(sys_pipe(end), 0);
        worker = fork();
        if (worker == 0) {
                assert_true(sd_event_new(&fixture->event) >= 0); /* a loop does not survive a fork */
                start_with(fixture, "echo ready >&2; sleep 60 2>&1", LONG_USEC, LONG_USEC);
                wait_line(fixture, "ready");
                kill(getpid(), SIGKILL);
        }
        close(end[1]);
        assert_int_equal(waitpid(worker, &status, 0), worker);
        assert_int_equal(read(end[0], &byte, 1), 0);
        close(end[0]);
        /* The shell is killed by the kernel; its sleep comes to us, as it would come to the supervisor. */
        descendants_end(DEADLINE_USEC);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_answer_and_lines, setup, teardown),
                cmocka_unit_test_setup_teardown(test_exit_statuses, setup, teardown),
                cmocka_unit_test_setup_teardown(test_signal, setup, teardown),
                cmocka_unit_test_setup_teardown(test_input_not_read, setup, teardown),
                cmocka_unit_test_setup_teardown(test_input_closed_early, setup, teardown),
                cmocka_unit_test_setup_teardown(test_input_large, setup, teardown),
                cmocka_unit_test_setup_teardown(test_output_without_end, setup, teardown),
                cmocka_unit_test_setup_teardown(test_output_just_fits, setup, teardown),
                cmocka_unit_test_setup_teardown(test_output_of_one_that_is_ended_at_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_what_is_said_before_the_answer, setup, teardown),
                cmocka_unit_test_setup_teardown(test_closed_streams, setup, teardown),
                cmocka_unit_test_setup_teardown(test_huge_line, setup, teardown),
                cmocka_unit_test_setup_teardown(test_bytes_that_are_no_text, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_lines, setup, teardown),
                cmocka_unit_test_setup_teardown(test_many_bytes, setup, teardown),
                cmocka_unit_test_setup_teardown(test_timeout, setup, teardown),
                cmocka_unit_test_setup_teardown(test_timeout_ignored, setup, teardown),
                cmocka_unit_test_setup_teardown(test_grace_of_the_group, setup, teardown),
                cmocka_unit_test_setup_teardown(test_daemon_is_ended, setup, teardown),
                cmocka_unit_test_setup_teardown(test_daemon_ended_at_timeout, setup, teardown),
                cmocka_unit_test(test_who_descends_from_us),
                cmocka_unit_test_setup_teardown(test_fork_storm_is_ended, setup, teardown),
                cmocka_unit_test_setup_teardown(test_last_words_after_exit, setup, teardown),
                cmocka_unit_test_setup_teardown(test_slow_last_words_after_exit, setup, teardown),
                cmocka_unit_test_setup_teardown(test_earlier_kill_counts, setup, teardown),
                cmocka_unit_test_setup_teardown(test_free_ends_everything, setup, teardown),
                cmocka_unit_test_setup_teardown(test_two_end_at_once, setup, teardown),
                cmocka_unit_test_setup_teardown(test_end_beside_one_that_is_freed, setup, teardown),
                cmocka_unit_test_setup_teardown(test_timeouts_beside_each_other, setup, teardown),
                cmocka_unit_test_setup_teardown(test_surroundings, setup, teardown),
                cmocka_unit_test_setup_teardown(test_program_missing, setup, teardown),
                cmocka_unit_test_setup_teardown(test_dies_with_its_worker, setup, teardown),
        };
        sigset_t mask;

        /* As child_init() does it for a worker. */
        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        if (sys_set_subreaper() < 0)
                return 1;
        return cmocka_run_group_tests(test, NULL, NULL);
}
