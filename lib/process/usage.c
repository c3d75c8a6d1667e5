/* SPDX-License-Identifier: Apache-2.0 */
#include "process/usage.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "os/cgroup.h"

struct process_usage usage_of(const struct rusage *usage)
{
        return (struct process_usage){
                .cpu_usec = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * USEC_PER_SEC +
                            (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec),
                .memory_peak = (uint64_t)usage->ru_maxrss * 1024,
        };
}

uint64_t usage_memory(pid_t pid)
{
        _cleanup_fclose_ FILE *file = NULL;
        unsigned long size, resident;
        char path[64];

        snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
        file = fopen(path, "re");
        if (!file || fscanf(file, "%lu %lu", &size, &resident) != 2)
                return 0;
        return (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* "pid (name) state ..." and 10 numbers later the times of itself and of the children it has waited for. */
uint64_t usage_cpu(pid_t pid)
{
        unsigned long user, kernel, children_user, children_kernel;
        _cleanup_fclose_ FILE *file = NULL;
        char path[64], text[512];
        const char *rest;
        size_t size;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        file = fopen(path, "re");
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
        _cleanup_fclose_ FILE *file = NULL;
        char path[64], line[256];
        unsigned long kilobytes;

        snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
        file = fopen(path, "re");
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
