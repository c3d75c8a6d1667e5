/* SPDX-License-Identifier: Apache-2.0 */
/* A file that takes the place of another: at once, or not at all. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "os/file.h"

static char folder[] = "/tmp/file-XXXXXX", path[64], temporary[64], other[64];

static void assert_content(const char *name, const char *expected)
{
        _cleanup_free_ char *content = NULL;
        size_t size;

        assert_int_equal(file_read(name, 1024, &content, &size), 0);
        assert_string_equal(content, expected);
}

static int replace(const char *text, int (*prepare)(int fd, const void *userdata))
{
        const struct file_rules rules = {.mode = 0600, .durable = true, .prepare = prepare};

        return file_replace(path, temporary, text, strlen(text), &rules);
}

static void test_replaced(void **state)
{
        struct stat st;

        (void)state;
        assert_int_equal(replace("first", NULL), 0);
        assert_int_equal(replace("second", NULL), 0);
        assert_content(path, "second");
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(access(temporary, F_OK), -1);
}

static int refuse(int fd, const void *userdata)
{
        (void)fd;
        (void)userdata;
        return -EPERM;
}

static void test_the_former_file_stays(void **state)
{
        (void)state;
        assert_int_equal(replace("former", NULL), 0);
        assert_int_equal(replace("new", refuse), -EPERM);
        assert_content(path, "former");
        assert_int_equal(access(temporary, F_OK), -1);
}

/* A link that lies where the new file is to be written leads nobody's content there. */
static void test_no_link_is_followed(void **state)
{
        (void)state;
        assert_int_equal(symlink(other, temporary), 0);
        assert_int_equal(replace("mine", NULL), 0);
        assert_content(path, "mine");
        assert_int_equal(access(other, F_OK), -1);
}

static void test_no_folder(void **state)
{
        const struct file_rules rules = {.mode = 0600};

        (void)state;
        assert_int_equal(file_replace("/tmp/none/of/this", "/tmp/none/of/that", "x", 1, &rules), -ENOENT);
}

static int set_up(void **state)
{
        (void)state;
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/file", folder);
        snprintf(temporary, sizeof(temporary), "%s/file.new", folder);
        snprintf(other, sizeof(other), "%s/other", folder);
        return 0;
}

static int tear_down(void **state)
{
        (void)state;
        (void)unlink(path);
        return rmdir(folder);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_replaced),
                cmocka_unit_test(test_the_former_file_stays),
                cmocka_unit_test(test_no_link_is_followed),
                cmocka_unit_test(test_no_folder),
        };

        return cmocka_run_group_tests(test, set_up, tear_down);
}
