/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of rights: asked of the kernel again, and as another user where we may become one. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/acl.h"

#define ONE   ((uid_t)61001)
#define OTHER ((uid_t)61002)

static char folder[] = "/dev/shm/test-acl-XXXXXX";

static int make_folder(void **state)
{
        (void)state;
        return mkdtemp(folder) && chmod(folder, 0700) == 0 ? 0 : -1;
}

static int remove_folder(void **state)
{
        (void)state;
        return rmdir(folder);
}

static int open_folder(void)
{
        int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_true(fd >= 0);
        return fd;
}

static bool may(uid_t user, int mode)
{
        int status = 0;
        pid_t pid = fork();

        if (pid == 0)
                _exit(setgid(user) < 0 || setuid(user) < 0 ? 2 : access(folder, mode) == 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        return WEXITSTATUS(status) == 1;
}

static unsigned mode_of(int fd)
{
        struct stat st;

        assert_int_equal(fstat(fd, &st), 0);
        return st.st_mode & 0777;
}

static void test_each_user_has_what_was_allowed(void **state)
{
        int fd = open_folder();

        (void)state;
        assert_int_equal(acl_allow(fd, (const uid_t[]){OTHER, ONE}, 2, ACL_SEARCH), 0);
        assert_int_equal(mode_of(fd), 0710); /* the mask stands in the place of the group */
        /* Another one joins, and one gets more; nobody loses anything. */
        assert_int_equal(acl_allow(fd, (const uid_t[]){ONE}, 1, ACL_READ), 0);
        assert_int_equal(mode_of(fd), 0750);
        if (geteuid() == 0) {
                assert_true(may(ONE, X_OK) && may(ONE, R_OK) && !may(ONE, W_OK));
                assert_true(may(OTHER, X_OK) && !may(OTHER, R_OK));
                assert_false(may(OTHER + 1, X_OK));
        }
        /* As systemd sets it at each start: the list is there, and its mask allows nothing. */
        assert_int_equal(fchmod(fd, 0700), 0);
        assert_int_equal(acl_allow(fd, (const uid_t[]){ONE}, 1, ACL_SEARCH), 0);
        assert_int_equal(mode_of(fd), 0710);
        if (geteuid() == 0)
                assert_true(may(ONE, X_OK) && !may(OTHER + 1, X_OK));
        close(fd);
}

static void test_a_file_system_without_lists_says_so(void **state)
{
        int fd = open("/proc/self", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        (void)state;
        assert_true(fd >= 0);
        assert_int_equal(acl_allow(fd, (const uid_t[]){ONE}, 1, ACL_SEARCH), -EOPNOTSUPP);
        close(fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_each_user_has_what_was_allowed, make_folder,
                                                remove_folder),
                cmocka_unit_test(test_a_file_system_without_lists_says_so),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
