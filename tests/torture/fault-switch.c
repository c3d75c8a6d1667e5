/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into every process of the operator (LD_PRELOAD): the Nth call of a kind fails, in the processes of
 * one program, once or from then on. The product knows nothing of it; its libraries are hit as it is itself.
 *
 * RECONCILED_FAULT="PROGRAM CALL N once|always": which; N 0 fails nothing, and only counts. CALL is a name
 * of the table below. RECONCILED_FAULT_COUNTS=FILE: struct counts, for the test to read; it outlives every
 * death.
 * RECONCILED_FAULT_TRACE: the first call that fails says where it comes from.
 *
 * Nothing here allocates, locks or calls what is defined here: it runs between fork and exec as well.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum call {
        CALL_MEMORY,
        CALL_OPEN,
        CALL_READ,
        CALL_WRITE,
        CALL_SYNC,
        CALL_SPACE,
        CALL_MAP,
        CALL_RECEIVE,
        CALL_SEND,
        CALL_SOCKET,
        CALL_CONNECT,
        CALL_PIPE,
        CALL_FORK,
        CALL_EXEC,
        CALL_EVENT,
        CALL_NAME,
        CALL_COUNT,
};

static const struct {
        const char *name;
        int error;
} table[CALL_COUNT] = {
        [CALL_MEMORY] = {"memory", ENOMEM},
        [CALL_OPEN] = {"open", EMFILE},
        [CALL_READ] = {"read", EIO},
        [CALL_WRITE] = {"write", ENOSPC},
        [CALL_SYNC] = {"sync", EIO},
        [CALL_SPACE] = {"space", ENOSPC},
        [CALL_MAP] = {"map", ENOMEM},
        [CALL_RECEIVE] = {"receive", ENOMEM},
        [CALL_SEND] = {"send", ENOBUFS},
        [CALL_SOCKET] = {"socket", EMFILE},
        [CALL_CONNECT] = {"connect", ENETUNREACH},
        [CALL_PIPE] = {"pipe", EMFILE},
        [CALL_FORK] = {"fork", EAGAIN},
        [CALL_EXEC] = {"exec", EACCES},
        [CALL_EVENT] = {"event", ENOMEM},
        [CALL_NAME] = {"name", EIO},
};

/* As tests/torture/driver.py reads it. */
struct counts {
        _Atomic uint64_t seen[CALL_COUNT], hits;
};

static struct {
        struct counts *counts; /* NULL: another program's turn */
        enum call call;
        uint64_t nth;
        bool always, traced;
} plan;

static void say_where(void)
{
        void *frame[32];

        backtrace_symbols_fd(frame, backtrace(frame, 32), STDERR_FILENO);
}

static bool fails(enum call call)
{
        uint64_t number;

        if (!plan.counts)
                return false;
        number = atomic_fetch_add(&plan.counts->seen[call], 1) + 1;
        if (call != plan.call || plan.nth == 0 || (plan.always ? number < plan.nth : number != plan.nth))
                return false;
        if (atomic_fetch_add(&plan.counts->hits, 1) == 0 && plan.traced)
                say_where();
        errno = table[call].error;
        return true;
}

#define REAL(name)                                                                                          \
        ({                                                                                                  \
                static __typeof__(&name) real_;                                                             \
                if (!real_)                                                                                 \
                        real_ = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name);                      \
                real_;                                                                                      \
        })

/* ---- memory: dlsym() itself allocates */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

EXPORTED void *malloc(size_t size)
{
        return fails(CALL_MEMORY) ? NULL : __libc_malloc(size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
        return fails(CALL_MEMORY) ? NULL : __libc_calloc(count, size);
}

EXPORTED void *realloc(void *old, size_t size)
{
        /* To make a piece smaller, or to give it back, does not fail. */
        return size > 0 && fails(CALL_MEMORY) ? NULL : __libc_realloc(old, size);
}

EXPORTED void *reallocarray(void *old, size_t count, size_t size)
{
        size_t bytes;

        if (__builtin_mul_overflow(count, size, &bytes)) {
                errno = ENOMEM;
                return NULL;
        }
        return realloc(old, bytes);
}

/* ---- all others */

#define WRAP(call, result, name, parameters, arguments, failure)                                            \
        EXPORTED result name parameters                                                                     \
        {                                                                                                   \
                return fails(call) ? (failure) : REAL(name) arguments;                                      \
        }

#define WRAP_OPEN(name)                                                                                     \
        EXPORTED int name(const char *path, int flags, ...)                                                 \
        {                                                                                                   \
                va_list arguments;                                                                          \
                mode_t mode;                                                                                \
                va_start(arguments, flags);                                                                 \
                mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                       \
                va_end(arguments);                                                                          \
                return fails(CALL_OPEN) ? -1 : REAL(name)(path, flags, mode);                               \
        }

#define WRAP_OPENAT(name)                                                                                   \
        EXPORTED int name(int folder, const char *path, int flags, ...)                                     \
        {                                                                                                   \
                va_list arguments;                                                                          \
                mode_t mode;                                                                                \
                va_start(arguments, flags);                                                                 \
                mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;                       \
                va_end(arguments);                                                                          \
                return fails(CALL_OPEN) ? -1 : REAL(name)(folder, path, flags, mode);                       \
        }

WRAP_OPEN(open)
WRAP_OPEN(open64)
WRAP_OPENAT(openat)
WRAP_OPENAT(openat64)
WRAP(CALL_OPEN, FILE *, fopen, (const char *path, const char *mode), (path, mode), NULL)
WRAP(CALL_OPEN, FILE *, fopen64, (const char *path, const char *mode), (path, mode), NULL)
WRAP(CALL_OPEN, DIR *, opendir, (const char *path), (path), NULL)

WRAP(CALL_READ, ssize_t, read, (int fd, void *data, size_t size), (fd, data, size), -1)
WRAP(CALL_READ, ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at), -1)
WRAP(CALL_READ, ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at), -1)

WRAP(CALL_WRITE, ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), -1)
WRAP(CALL_WRITE, ssize_t, writev, (int fd, const struct iovec *part, int count), (fd, part, count), -1)
WRAP(CALL_WRITE, ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at),
     -1)
WRAP(CALL_WRITE, ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at),
     (fd, data, size, at), -1)
WRAP(CALL_WRITE, ssize_t, pwritev, (int fd, const struct iovec *part, int count, off_t at),
     (fd, part, count, at), -1)

WRAP(CALL_SYNC, int, fsync, (int fd), (fd), -1)
WRAP(CALL_SYNC, int, fdatasync, (int fd), (fd), -1)
WRAP(CALL_SYNC, int, msync, (void *data, size_t size, int flags), (data, size, flags), -1)

WRAP(CALL_SPACE, int, ftruncate, (int fd, off_t size), (fd, size), -1)
WRAP(CALL_SPACE, int, ftruncate64, (int fd, off64_t size), (fd, size), -1)
WRAP(CALL_SPACE, int, fallocate, (int fd, int mode, off_t at, off_t size), (fd, mode, at, size), -1)
WRAP(CALL_SPACE, int, posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size), ENOSPC)
WRAP(CALL_SPACE, int, posix_fallocate64, (int fd, off64_t at, off64_t size), (fd, at, size), ENOSPC)

WRAP(CALL_MAP, void *, mmap, (void *data, size_t size, int protection, int flags, int fd, off_t at),
     (data, size, protection, flags, fd, at), MAP_FAILED)
WRAP(CALL_MAP, void *, mmap64, (void *data, size_t size, int protection, int flags, int fd, off64_t at),
     (data, size, protection, flags, fd, at), MAP_FAILED)

WRAP(CALL_RECEIVE, ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags), -1)
WRAP(CALL_RECEIVE, ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1)
WRAP(CALL_SEND, ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags),
     -1)
WRAP(CALL_SEND, ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
     -1)

WRAP(CALL_SOCKET, int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
WRAP(CALL_SOCKET, int, socketpair, (int domain, int type, int protocol, int pair[2]),
     (domain, type, protocol, pair), -1)
WRAP(CALL_SOCKET, int, bind, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size),
     -1)
WRAP(CALL_SOCKET, int, listen, (int fd, int backlog), (fd, backlog), -1)
WRAP(CALL_SOCKET, int, accept, (int fd, struct sockaddr *address, socklen_t *size), (fd, address, size), -1)
WRAP(CALL_SOCKET, int, accept4, (int fd, struct sockaddr *address, socklen_t *size, int flags),
     (fd, address, size, flags), -1)
WRAP(CALL_CONNECT, int, connect, (int fd, const struct sockaddr *address, socklen_t size),
     (fd, address, size), -1)

WRAP(CALL_PIPE, int, pipe, (int pair[2]), (pair), -1)
WRAP(CALL_PIPE, int, pipe2, (int pair[2], int flags), (pair, flags), -1)
WRAP(CALL_PIPE, int, dup2, (int from, int to), (from, to), -1)
WRAP(CALL_PIPE, int, eventfd, (unsigned value, int flags), (value, flags), -1)

WRAP(CALL_FORK, pid_t, fork, (void), (), -1)
WRAP(CALL_EXEC, int, execv, (const char *path, char *const argument[]), (path, argument), -1)
WRAP(CALL_EXEC, int, execve, (const char *path, char *const argument[], char *const environment[]),
     (path, argument, environment), -1)

WRAP(CALL_EVENT, int, epoll_create1, (int flags), (flags), -1)
WRAP(CALL_EVENT, int, timerfd_create, (clockid_t clock, int flags), (clock, flags), -1)

/* What only changes or ends something cannot run out of anything. */
EXPORTED int epoll_ctl(int fd, int what, int other, struct epoll_event *event)
{
        return what == EPOLL_CTL_ADD && fails(CALL_EVENT) ? -1 : REAL(epoll_ctl)(fd, what, other, event);
}

EXPORTED int signalfd(int fd, const sigset_t *mask, int flags)
{
        return fd < 0 && fails(CALL_EVENT) ? -1 : REAL(signalfd)(fd, mask, flags);
}

WRAP(CALL_NAME, int, rename, (const char *from, const char *to), (from, to), -1)
WRAP(CALL_NAME, int, unlink, (const char *path), (path), -1)
WRAP(CALL_NAME, int, rmdir, (const char *path), (path), -1)
WRAP(CALL_NAME, int, mkdir, (const char *path, mode_t mode), (path, mode), -1)

/* ---- a crash says where */

static void on_crash(int number)
{
        say_where();
        raise(number); /* its default action, as soon as this returns */
}

static void trace_crashes(void)
{
        static const int crash[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
        const struct sigaction action = {.sa_handler = on_crash, .sa_flags = (int)SA_RESETHAND};
        void *frame[2];

        (void)backtrace(frame, 2); /* what it needs is loaded now */
        for (size_t i = 0; i < sizeof(crash) / sizeof(*crash); i++)
                (void)sigaction(crash[i], &action, NULL);
}

/* ---- the plan */

static struct counts *map_counts(const char *path)
{
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        void *map;

        if (fd < 0)
                return NULL;
        map = REAL(mmap)(NULL, sizeof(struct counts), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        return map == MAP_FAILED ? NULL : map;
}

__attribute__((constructor)) static void read_plan(void)
{
        const char *text = getenv("RECONCILED_FAULT"), *path = getenv("RECONCILED_FAULT_COUNTS");
        char program[64], call[16], mode[16];
        unsigned long long nth;

        if (!text || !path || sscanf(text, "%63s %15s %llu %15s", program, call, &nth, mode) != 4 ||
            strcmp(program, program_invocation_short_name) != 0)
                return;
        for (int i = 0; i < CALL_COUNT; i++)
                if (strcmp(call, table[i].name) == 0)
                        plan.call = (enum call)i;
        plan.nth = nth;
        plan.always = strcmp(mode, "always") == 0;
        plan.traced = getenv("RECONCILED_FAULT_TRACE") != NULL;
        trace_crashes();
        plan.counts = map_counts(path);
}
