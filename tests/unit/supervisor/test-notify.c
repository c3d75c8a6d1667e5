/* SPDX-License-Identifier: Apache-2.0 */
/* What systemd is told of an end: one assignment a line, whatever text comes in. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cmocka.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"

static int manager = -1; /* systemd's end */
static char folder[] = "/tmp/test-notify-XXXXXX", path[64];

static int listen_as_manager(void **state)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        (void)state;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/notify", folder);
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_true(manager >= 0);
        assert_int_equal(bind(manager, (struct sockaddr *)&address, sizeof(address)), 0);
        return setenv("NOTIFY_SOCKET", path, 1);
}

static int end_manager(void **state)
{
        (void)state;
        close(manager);
        return unlink(path) < 0 || rmdir(folder) < 0 ? -1 : 0;
}

static const char *told(void)
{
        static char text[4096];
        ssize_t size = recv(manager, text, sizeof(text) - 1, 0);

        assert_true(size > 0);
        text[size] = '\0';
        return text;
}

static void test_failed(void **state)
{
        static const struct {
                int code, error;
        } known[] = {
                {EXIT_CODE_USAGE, EINVAL},    {EXIT_CODE_CONFIGURATION, EINVAL},
                {EXIT_CODE_IO, EIO},          {EXIT_CODE_UNAVAILABLE, EHOSTUNREACH},
                {EXIT_CODE_SOFTWARE, ECHILD}, {EXIT_CODE_NO_PERMISSION, EACCES},
        };

        (void)state;
        for (size_t i = 0; i < ELEMENTS(known); i++) {
                char expected[256];

                notify_failed(known[i].code, "it rained");
                snprintf(expected, sizeof(expected),
                         "STOPPING=1\nSTATUS=it rained\nERRNO=%d\nEXIT_STATUS=%d", known[i].error,
                         known[i].code);
                assert_string_equal(told(), expected);
        }
}

static void test_a_text_of_several_lines_assigns_nothing(void **state)
{
        char expected[256];

        (void)state;
        notify_failed(EXIT_CODE_SOFTWARE, "server says\nMAINPID=1\nWATCHDOG=trigger\n");
        snprintf(expected, sizeof(expected),
                 "STOPPING=1\nSTATUS=server says MAINPID=1 WATCHDOG=trigger \nERRNO=%d\nEXIT_STATUS=70",
                 ECHILD);
        assert_string_equal(told(), expected);
}

static void test_a_long_text_is_cut(void **state)
{
        char text[3000];

        (void)state;
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        notify_failed(EXIT_CODE_IO, text);
        assert_non_null(strstr(told(), "x\nERRNO=5\nEXIT_STATUS=74"));
}

static void test_fault(void **state)
{
        (void)state;
        notify_fault("the loop failed", -EBADF);
        assert_string_equal(told(), "STATUS=the loop failed\nERRNO=9\nWATCHDOG=trigger");
}

static void test_reloading(void **state)
{
        unsigned long long usec = 0, more = 0;
        struct config config = {.stop_grace_usec = 7000000};
        struct supervisor supervisor = {.config = &config};

        (void)state;
        notify_reloading(&supervisor);
        assert_int_equal(
                sscanf(told(), "RELOADING=1\nMONOTONIC_USEC=%llu\nEXTEND_TIMEOUT_USEC=%llu", &usec, &more),
                2);
        assert_true(more > config.stop_grace_usec);
        assert_true(usec > 0 && usec <= clock_monotonic_usec());
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_failed),
                cmocka_unit_test(test_a_text_of_several_lines_assigns_nothing),
                cmocka_unit_test(test_a_long_text_is_cut),
                cmocka_unit_test(test_fault),
                cmocka_unit_test(test_reloading),
        };

        return cmocka_run_group_tests(test, listen_as_manager, end_manager);
}
