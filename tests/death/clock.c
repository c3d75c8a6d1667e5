/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into every process of the operator (LD_PRELOAD): the machine's clock is another one for it, and may
 * be set while it runs. The product knows nothing of it.
 *
 * RECONCILED_CLOCK=FILE: a number of 8 bytes, in microseconds, by which CLOCK_REALTIME is ahead (or behind).
 * Timers of that clock follow as the kernel's do when somebody sets it: when the process next asks for a
 * time, which each turn of its loop does.
 *
 * RECONCILED_BOOT=ID: 32 hexadecimal digits: the machine was started anew.
 */
#undef _FILE_OFFSET_BITS
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <systemd/sd-id128.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED   __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))
#define TIMERS_MAX 64
#define NSEC       INT64_C(1000000000)

struct timer {
        bool is_realtime;
        struct itimerspec set;
};

static const _Atomic int64_t *ahead;
static int64_t seen;
static struct timer timer[TIMERS_MAX]; /* by descriptor */

__attribute__((constructor)) static void load(void)
{
        const char *path = getenv("RECONCILED_CLOCK");
        int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *map = fd >= 0 ? mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

        if (fd >= 0)
                close(fd);
        ahead = map == MAP_FAILED ? NULL : map;
        seen = ahead ? *ahead : 0;
}

static void move(struct timespec *time, int64_t usec)
{
        int64_t total = time->tv_sec * NSEC + time->tv_nsec + usec * 1000;

        time->tv_sec = total / NSEC;
        time->tv_nsec = total % NSEC;
}

static bool is_ours(int fd)
{
        return fd >= 0 && fd < TIMERS_MAX && timer[fd].is_realtime;
}

/* In the kernel's time; one that would be before its beginning is over. */
static int arm(int fd)
{
        struct itimerspec set = timer[fd].set;

        if (set.it_value.tv_sec || set.it_value.tv_nsec) {
                move(&set.it_value, -seen);
                if (set.it_value.tv_sec < 0)
                        set.it_value = (struct timespec){.tv_nsec = 1};
        }
        return REAL(timerfd_settime)(fd, TFD_TIMER_ABSTIME, &set, NULL);
}

EXPORTED int clock_gettime(clockid_t clock, struct timespec *time)
{
        int r = REAL(clock_gettime)(clock, time);

        if (!ahead)
                return r;
        if (seen != *ahead) {
                seen = *ahead;
                for (int fd = 0; fd < TIMERS_MAX; fd++)
                        if (timer[fd].is_realtime)
                                (void)arm(fd);
        }
        if (clock == CLOCK_REALTIME)
                move(time, seen);
        return r;
}

EXPORTED int timerfd_create(clockid_t clock, int flags)
{
        int fd = REAL(timerfd_create)(clock, flags);

        if (fd >= 0 && fd < TIMERS_MAX)
                timer[fd] = (struct timer){.is_realtime = clock == CLOCK_REALTIME};
        return fd;
}

EXPORTED int timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
        if (!ahead || !is_ours(fd) || !(flags & TFD_TIMER_ABSTIME))
                return REAL(timerfd_settime)(fd, flags, new, old);
        timer[fd].set = *new;
        return arm(fd);
}

EXPORTED int sd_id128_get_boot(sd_id128_t *ret)
{
        const char *boot = getenv("RECONCILED_BOOT");

        return boot ? sd_id128_from_string(boot, ret) : REAL(sd_id128_get_boot)(ret);
}
