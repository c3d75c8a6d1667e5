/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded (LD_PRELOAD) into what runs under valgrind 3.19, for what that cannot do: it has no room for the
 * 64 GiB of address space that a store maps, where less will do, and does not know pidfd_open, which is
 * made of a pipe that ends with the child. The product knows nothing of it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define MAP_MAX  ((size_t)1 << 30)

static long (*real_syscall)(long number, ...);

EXPORTED int mdb_env_set_mapsize(MDB_env *environment, size_t size)
{
        int (*real)(MDB_env *, size_t);

        *(void **)&real = dlsym(RTLD_NEXT, "mdb_env_set_mapsize");
        return real ? real(environment, size < MAP_MAX ? size : MAP_MAX) : ENOSYS;
}

struct watched {
        pid_t pid;
        int fd;
};

static void *wait_for_child(void *userdata)
{
        struct watched watched = *(struct watched *)userdata;
        siginfo_t info;

        free(userdata);
        while (waitid(P_PID, (id_t)watched.pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
                ;
        close(watched.fd);
        return NULL;
}

static int start_waiting(struct watched *watched)
{
        sigset_t all, before;
        pthread_t thread;
        int r;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, NULL, wait_for_child, watched);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r == 0 ? pthread_detach(thread) : r;
}

static int pidfd_of_child(pid_t pid)
{
        struct watched *watched = malloc(sizeof(*watched));
        int end[2];

        if (!watched || pipe2(end, O_CLOEXEC) < 0) {
                free(watched);
                return -1;
        }
        *watched = (struct watched){pid, end[1]};
        errno = start_waiting(watched);
        return errno == 0 ? end[0] : -1;
}

EXPORTED long syscall(long number, ...)
{
        long argument[6];
        va_list arguments;

        va_start(arguments, number);
        for (int i = 0; i < 6; i++)
                argument[i] = va_arg(arguments, long);
        va_end(arguments);
        if (number == SYS_pidfd_open)
                return pidfd_of_child((pid_t)argument[0]);
        return real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                            argument[5]);
}

/* Before main: whoever was forked may not look for it. */
__attribute__((constructor)) static void load(void)
{
        *(void **)&real_syscall = dlsym(RTLD_NEXT, "syscall");
}
