/* SPDX-License-Identifier: Apache-2.0 */
/* What is written into a control group, and read from it: on files that look like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/cgroup.h"
#include "process/group.h"

#define ALL (CGROUP_BIT(CGROUP_CONTROLLER_COUNT) - 1)

static const char *const file_name[] = {"memory.max",  "memory.swap.max", "memory.oom.group",
                                        "pids.max",    "cpu.max",         "cpu.stat",
                                        "memory.peak", "memory.events"};

static char folder[] = "/tmp/reconciled-test-group-XXXXXX";

static void put(const char *name, const char *content)
{
        char path[128];
        int fd;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, content, strlen(content)), (ssize_t)strlen(content));
        close(fd);
}

static void assert_content(const char *name, const char *expected)
{
        char path[128], content[64] = "";
        FILE *file;

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        file = fopen(path, "re");
        assert_non_null(file);
        (void)!fread(content, 1, sizeof(content) - 1, file);
        fclose(file);
        assert_string_equal(content, expected);
}

static int setup(void **state _unused_)
{
        snprintf(folder, sizeof(folder), "%s", "/tmp/reconciled-test-group-XXXXXX");
        assert_non_null(mkdtemp(folder));
        for (size_t i = 0; i < ELEMENTS(file_name); i++)
                put(file_name[i], "");
        return 0;
}

static int teardown(void **state _unused_)
{
        for (size_t i = 0; i < ELEMENTS(file_name); i++) {
                char path[128];

                snprintf(path, sizeof(path), "%s/%s", folder, file_name[i]);
                unlink(path);
        }
        return rmdir(folder);
}

static void test_all_limits(void **state _unused_)
{
        assert_int_equal(
                group_limit(folder,
                            &(struct process_limits){.memory = 64 << 20, .pids = 20, .cpu_milli = 1500},
                            ALL),
                0);
        assert_content("memory.max", "67108864");
        assert_content("memory.swap.max", "0");
        assert_content("memory.oom.group", "1");
        assert_content("pids.max", "20");
        assert_content("cpu.max", "150000 100000");
}

static void test_only_what_is_asked_for(void **state _unused_)
{
        assert_int_equal(group_limit(folder, &(struct process_limits){.pids = 5}, ALL), 0);
        assert_content("memory.max", "");
        assert_content("cpu.max", "");
        assert_content("pids.max", "5");
}

static void test_only_where_there_is_a_controller(void **state _unused_)
{
        assert_int_equal(group_limit(folder,
                                     &(struct process_limits){.memory = 1 << 20, .pids = 5, .cpu_milli = 10},
                                     CGROUP_BIT(CGROUP_CPU)),
                         0);
        assert_content("memory.max", "");
        assert_content("pids.max", "");
        assert_content("cpu.max", "1000 100000");
}

static void test_a_limit_that_cannot_be_set_is_no_run(void **state _unused_)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/pids.max", folder);
        unlink(path);
        assert_true(group_limit(folder, &(struct process_limits){.pids = 5}, ALL) < 0);
}

static void test_memory_ends(void **state _unused_)
{
        put("memory.events", "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\n");
        assert_int_equal(group_memory_end(folder), MEMORY_ENOUGH);
        put("memory.events", "low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 1\n");
        assert_int_equal(group_memory_end(folder), MEMORY_LIMIT);
        put("memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n");
        assert_int_equal(group_memory_end(folder), MEMORY_SYSTEM);
        put("memory.events", "");
        assert_int_equal(group_memory_end(folder), MEMORY_ENOUGH);
}

static void test_usage(void **state _unused_)
{
        struct process_usage usage = {.cpu_usec = 7, .memory_peak = 9};

        group_usage(folder, &usage); /* what it does not say stays */
        assert_int_equal(usage.cpu_usec, 7);
        assert_int_equal(usage.memory_peak, 9);
        put("cpu.stat", "usage_usec 12345\nuser_usec 12000\n");
        put("memory.peak", "1048576\n");
        group_usage(folder, &usage);
        assert_int_equal(usage.cpu_usec, 12345);
        assert_int_equal(usage.memory_peak, 1048576);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test_setup_teardown(test_all_limits, setup, teardown),
                cmocka_unit_test_setup_teardown(test_only_what_is_asked_for, setup, teardown),
                cmocka_unit_test_setup_teardown(test_only_where_there_is_a_controller, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_limit_that_cannot_be_set_is_no_run, setup, teardown),
                cmocka_unit_test_setup_teardown(test_memory_ends, setup, teardown),
                cmocka_unit_test_setup_teardown(test_usage, setup, teardown),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
