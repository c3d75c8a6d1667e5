/* SPDX-License-Identifier: Apache-2.0 */
/* A folder is removed with all that is in it, and nothing else is. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/folder.h"

static char base[] = "/tmp/folder-XXXXXX";
static bool is_hostile;

/* In place of the C library's. Who may write to the folder is as fast as can be: what is in "below" is being removed, and is a
 * link to another folder at that moment. */
static void swap_below(const char *name)
{
        const char *last = strrchr(name, '/');

        if (!is_hostile || strcmp(last ? last + 1 : name, "file") != 0)
                return;
        is_hostile = false;
        assert_int_equal(rename("victim/below", "victim/away"), 0);
        assert_int_equal(symlink("../other", "victim/below"), 0);
}

int remove(const char *path)
{
        swap_below(path);
        return unlink(path) < 0 && errno == EISDIR ? rmdir(path) : 0;
}

int unlinkat(int fd, const char *name, int flags)
{
        swap_below(name);
        return (int)syscall(SYS_unlinkat, fd, name, flags);
}

static void make_file(const char *path)
{
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        close(fd);
}

static void make_victim(void)
{
        assert_int_equal(mkdir("victim", 0700), 0);
        assert_int_equal(mkdir("victim/below", 0700), 0);
        assert_int_equal(mkdir("victim/below/empty", 0700), 0);
        make_file("victim/file-above");
        make_file("victim/below/file");
        assert_int_equal(symlink("../other", "victim/link"), 0);
}

static void test_all_that_is_in_it(void **state)
{
        (void)state;
        make_victim();
        assert_int_equal(folder_remove("victim"), 0);
        assert_int_equal(access("victim", F_OK), -1);
        assert_int_equal(access("other/file", F_OK), 0);
        assert_int_equal(folder_remove("victim"), 0);
        make_file("victim");
        assert_int_equal(folder_remove("victim"), 0);
        assert_int_equal(symlink("other", "victim"), 0);
        assert_int_equal(folder_remove("victim"), 0);
        assert_int_equal(access("other/file", F_OK), 0);
}

static void test_a_folder_that_becomes_a_link(void **state)
{
        (void)state;
        make_victim();
        is_hostile = true;
        assert_int_equal(folder_remove("victim"), -ENOTDIR);
        assert_false(is_hostile);
        assert_int_equal(access("other/file", F_OK), 0);
        assert_int_equal(folder_remove("victim"), 0);
        assert_int_equal(access("other/file", F_OK), 0);
}

static int set_up(void **state)
{
        (void)state;
        assert_non_null(mkdtemp(base));
        assert_int_equal(chdir(base), 0);
        assert_int_equal(mkdir("other", 0700), 0);
        make_file("other/file");
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        return folder_remove(base);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_all_that_is_in_it),
                cmocka_unit_test(test_a_folder_that_becomes_a_link),
        };

        return cmocka_run_group_tests(test, set_up, tear_down);
}
