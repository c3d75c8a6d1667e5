/* SPDX-License-Identifier: Apache-2.0 */
/* A failed assert() ends the program with 70 after its text was told; where nobody tells it, with SIGABRT. */
#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail_an_assertion(int number)
{
        assert(number == 0);
}

/* cmocka redefines assert. */
#include <cmocka.h>

#include "base/exit-code.h"
#include "os/assertion.h"

static void tell(const char *text, void *userdata)
{
        if (write(*(int *)userdata, text, strlen(text)) < 0)
                _exit(1);
}

static void tell_and_fail(const char *text, void *userdata)
{
        tell(text, userdata);
        fail_an_assertion(1);
}

static int end_of_child(assertion_tell_t told, char *text, size_t size)
{
        int fd[2], status;
        ssize_t length;
        pid_t pid;

        assert_int_equal(pipe(fd), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
                (void)dup2(fd[1], STDERR_FILENO);
                assertion_on_failure(told, &fd[1]);
                fail_an_assertion(1);
                _exit(0);
        }
        close(fd[1]);
        length = read(fd[0], text, size - 1);
        assert_true(length > 0);
        text[length] = '\0';
        close(fd[0]);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return status;
}

static void test_it_is_told_and_ends_with_70(void **state)
{
        char text[600];
        int status = end_of_child(tell, text, sizeof(text));

        (void)state;
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), EXIT_CODE_SOFTWARE);
        assert_non_null(strstr(text, "number == 0"));
        assert_non_null(strstr(text, "test-assertion.c:"));
        assert_non_null(strstr(text, "fail_an_assertion()"));
}

static void test_without_anybody_to_tell_it_aborts(void **state)
{
        char text[600];
        int status = end_of_child(NULL, text, sizeof(text));

        (void)state;
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
        assert_non_null(strstr(text, "number == 0"));
}

static void test_one_that_fails_while_it_is_told_aborts(void **state)
{
        char text[600];
        int status = end_of_child(tell_and_fail, text, sizeof(text));

        (void)state;
        assert_true(WIFSIGNALED(status));
        assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_it_is_told_and_ends_with_70),
                cmocka_unit_test(test_without_anybody_to_tell_it_aborts),
                cmocka_unit_test(test_one_that_fails_while_it_is_told_aborts),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
