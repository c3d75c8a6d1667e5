/* SPDX-License-Identifier: Apache-2.0 */
#include "process/group.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "os/cgroup.h"

#define CPU_PERIOD_USEC    100000
#define CPU_QUOTA_MIN_USEC 1000 /* the kernel takes no less */

/* ---- limits */

static int limit_group(const char *group, const char *file, uint64_t value)
{
        char text[24];

        snprintf(text, sizeof(text), "%" PRIu64, value);
        return cgroup_write(group, file, text);
}

/* The handler as a whole is ended, instead of one of its processes that the others then wait for. */
static int limit_memory(const char *group, uint64_t bytes)
{
        int r = limit_group(group, "memory.max", bytes);

        if (r < 0)
                return r;
        (void)limit_group(group, "memory.swap.max", 0); /* is not there without swap */
        return limit_group(group, "memory.oom.group", 1);
}

static int limit_cpu(const char *group, uint64_t milli)
{
        uint64_t quota = milli * (CPU_PERIOD_USEC / 1000);
        char text[64];

        if (quota < CPU_QUOTA_MIN_USEC)
                quota = CPU_QUOTA_MIN_USEC;
        snprintf(text, sizeof(text), "%" PRIu64 " %d", quota, CPU_PERIOD_USEC);
        return cgroup_write(group, "cpu.max", text);
}

int group_limit(const char *group, const struct process_limits *limits, unsigned controllers)
{
        int r = 0;

        if (limits->memory > 0 && controllers & CGROUP_BIT(CGROUP_MEMORY))
                r = limit_memory(group, limits->memory);
        if (r >= 0 && limits->pids > 0 && controllers & CGROUP_BIT(CGROUP_PIDS))
                r = limit_group(group, "pids.max", limits->pids);
        if (r >= 0 && limits->cpu_milli > 0 && controllers & CGROUP_BIT(CGROUP_CPU))
                r = limit_cpu(group, limits->cpu_milli);
        return r;
}

/* ---- its life */

int group_new(const struct process_options *options, char **ret)
{
        static unsigned count; /* names of this process's groups */
        char name[48], *group;
        int r;

        *ret = NULL;
        if (!options->group_folder || !options->group_folder[0])
                return 0;
        snprintf(name, sizeof(name), "%d-%u", (int)getpid(), ++count);
        r = cgroup_make(options->group_folder, name, &group);
        if (r < 0)
                return r;
        r = group_limit(group, &options->limits, options->group_controllers);
        if (r < 0) {
                group_free(group);
                return r;
        }
        *ret = group;
        return 0;
}

void group_kill(const char *group)
{
        (void)cgroup_kill(group); /* before Linux 5.14 one by one, as without groups */
}

void group_free(char *group)
{
        if (group)
                (void)cgroup_remove(group); /* else the next start of the operator does it */
        free(group);
}

/* ---- what it says */

void group_usage(const char *group, struct process_usage *usage)
{
        int64_t cpu = cgroup_read(group, "cpu.stat", "usage_usec");
        int64_t peak = cgroup_read(group, "memory.peak", NULL);

        if (cpu > 0)
                usage->cpu_usec = (uint64_t)cpu;
        if (peak > 0)
                usage->memory_peak = (uint64_t)peak;
}

enum process_memory_end group_memory_end(const char *group)
{
        if (cgroup_read(group, "memory.events", "oom_kill") <= 0)
                return MEMORY_ENOUGH;
        /* "oom": its own limit was reached. Otherwise that of a group above it, or the machine's. */
        return cgroup_read(group, "memory.events", "oom") > 0 ? MEMORY_LIMIT : MEMORY_SYSTEM;
}

struct process_usage usage_of(const struct rusage *usage)
{
        return (struct process_usage){
                .cpu_usec = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * USEC_PER_SEC +
                            (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec),
                .memory_peak = (uint64_t)usage->ru_maxrss * 1024,
        };
}

static FILE *open_proc(pid_t pid, const char *name)
{
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        return fopen(path, "re");
}

uint64_t usage_memory(pid_t pid)
{
        _cleanup_fclose_ FILE *file = open_proc(pid, "statm");
        unsigned long size, resident;

        if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2)
                return 0;
        return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* "pid (name) state ..." and 10 numbers later the times of itself and of the children it has waited for. */
uint64_t usage_cpu(pid_t pid)
{
        unsigned long user, kernel, children_user, children_kernel;
        _cleanup_fclose_ FILE *file = open_proc(pid, "stat");
        char text[512];
        const char *rest;
        size_t size;

        size = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
        text[size] = '\0';
        rest = strrchr(text, ')');
        if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &user,
                            &kernel, &children_user, &children_kernel) != 4)
                return 0;
        return (user + kernel + children_user + children_kernel) * USEC_PER_SEC /
               (uint64_t)sysconf(_SC_CLK_TCK);
}

uint64_t usage_peak(pid_t pid)
{
        _cleanup_fclose_ FILE *file = open_proc(pid, "status");
        char line[256];
        unsigned long kilobytes;

        while (file && fgets(line, sizeof(line), file))
                if (sscanf(line, "VmHWM: %lu kB", &kilobytes) == 1)
                        return (uint64_t)kilobytes * 1024;
        return 0;
}

int64_t usage_memory_kills(uint64_t usec)
{
        static int64_t count;
        static uint64_t asked; /* CLOCK_BOOTTIME */
        uint64_t now = clock_boottime_usec();

        if (asked == 0 || now - asked > usec) {
                count = cgroup_memory_kills();
                asked = now;
        }
        return count;
}
