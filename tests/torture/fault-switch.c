/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into every process of the operator (LD_PRELOAD): the Nth call of a kind fails, in the processes of
 * one program, once or from then on. The product knows nothing of it; its libraries are hit as it is itself.
 *
 * RECONCILED_FAULT="PROGRAM CALL N once|always": which; N 0 fails nothing, and only counts. CALL is a name
 * of the table below. RECONCILED_FAULT_COUNTS=FILE: struct counts, for the test to read; it outlives every
 * death.
 * RECONCILED_FAULT_PLACES=FILE: for each call of the kind, a number that is the same for the same place.
 * RECONCILED_FAULT_TRACE: the first call that fails, and what leaks, says where it comes from.
 *
 * A process of that program that ends in order is asked what it leaves behind: memory that nothing points
 * to, descriptors.
 *
 * Nothing here allocates, locks or calls what is defined here: it runs between fork and exec as well.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
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
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/torture/leaks.h"

#define DESCRIPTORS  1024 /* that are looked at */
#define PLACE_FRAMES 16
#define PLACES_MAX   ((uint64_t)1 << 16)

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
        CALL_STATUS,
        CALL_LOCK,
        CALL_THREAD,
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
        [CALL_STATUS] = {"status", EIO},
        [CALL_LOCK] = {"lock", ENOLCK},
        [CALL_THREAD] = {"thread", EAGAIN},
};

/* As tests/torture/driver.py reads it. */
struct counts {
        _Atomic uint64_t seen[CALL_COUNT], hits;
        _Atomic uint64_t ends, leaked, unknown, descriptors; /* of processes that came to their end */
};

static struct {
        struct counts *counts; /* NULL: another program's turn */
        enum call call;
        uint64_t nth;
        bool always, traced;
        pid_t pid; /* whose end counts: not one between fork and exec */
        bool inherited[DESCRIPTORS];
        uint64_t *places; /* of each call of this kind, where asked for */
} plan;

static void say_where(void)
{
        void *frame[32];

        backtrace_symbols_fd(frame, backtrace(frame, 32), STDERR_FILENO);
}

/* The same for calls from the same place: the same functions have called each other. */
static uint64_t place(void)
{
        uint64_t hash = 0;
        void *frame[PLACE_FRAMES];
        int count = backtrace(frame, PLACE_FRAMES);

        for (int i = 0; i < count; i++)
                hash = (hash ^ (uint64_t)(uintptr_t)frame[i]) * UINT64_C(0x9e3779b97f4a7c15);
        return hash;
}

static bool fails(enum call call)
{
        uint64_t number;

        if (!plan.counts)
                return false;
        number = atomic_fetch_add(&plan.counts->seen[call], 1) + 1;
        if (plan.places && call == plan.call && number <= PLACES_MAX)
                plan.places[number - 1] = place();
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
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *old);

static void *noted(void *new, size_t size)
{
        leaks_note(new, size, plan.counts ? atomic_load(&plan.counts->seen[CALL_MEMORY]) : 0);
        return new;
}

EXPORTED void *malloc(size_t size)
{
        return fails(CALL_MEMORY) ? NULL : noted(__libc_malloc(size), size);
}

EXPORTED void *calloc(size_t count, size_t size)
{
        return fails(CALL_MEMORY) ? NULL : noted(__libc_calloc(count, size), count * size);
}

EXPORTED void free(void *old)
{
        leaks_forget(old);
        __libc_free(old);
}

/* Another thread may get the old place before this one has said that it is free: so it is forgotten first.
 */
EXPORTED void *realloc(void *old, size_t size)
{
        size_t before = old ? malloc_usable_size(old) : 0;
        void *new;

        /* To make a piece smaller, or to give it back, does not fail. */
        if (size > 0 && fails(CALL_MEMORY))
                return NULL;
        leaks_forget(old);
        new = __libc_realloc(old, size);
        if (!new &&size > 0)
                return noted(old, before), NULL;
        return noted(new, size);
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

EXPORTED void *memalign(size_t alignment, size_t size)
{
        return fails(CALL_MEMORY) ? NULL : noted(__libc_memalign(alignment, size), size);
}

EXPORTED void *aligned_alloc(size_t alignment, size_t size)
{
        return memalign(alignment, size);
}

EXPORTED int posix_memalign(void **ret, size_t alignment, size_t size)
{
        void *new = memalign(alignment, size);

        if (!new)
                return ENOMEM;
        *ret = new;
        return 0;
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
WRAP(CALL_READ, ssize_t, getrandom, (void *data, size_t size, unsigned flags), (data, size, flags), -1)

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

EXPORTED void *mremap(void *data, size_t size, size_t new_size, int flags, ...)
{
        va_list arguments;
        void *new;

        va_start(arguments, flags);
        new = flags &MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
        va_end(arguments);
        return fails(CALL_MAP) ? MAP_FAILED : REAL(mremap)(data, size, new_size, flags, new);
}

WRAP(CALL_RECEIVE, ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags), -1)
WRAP(CALL_RECEIVE, ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags), -1)
WRAP(CALL_SEND, ssize_t, send, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags),
     -1)
WRAP(CALL_SEND, ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags),
     -1)

WRAP(CALL_RECEIVE, ssize_t, recvfrom,
     (int fd, void *data, size_t size, int flags, struct sockaddr *address, socklen_t *address_size),
     (fd, data, size, flags, address, address_size), -1)
WRAP(CALL_SEND, int, sendmmsg, (int fd, struct mmsghdr *message, unsigned count, int flags),
     (fd, message, count, flags), -1)
WRAP(CALL_SEND, ssize_t, sendto,
     (int fd, const void *data, size_t size, int flags, const struct sockaddr *address,
      socklen_t address_size),
     (fd, data, size, flags, address, address_size), -1)

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

EXPORTED pid_t fork(void)
{
        pid_t pid = fails(CALL_FORK) ? -1 : REAL(fork)();

        if (pid == 0)
                leaks_stop();
        return pid;
}

EXPORTED int clone(int (*run)(void *), void *stack, int flags, void *argument, ...)
{
        /* What may follow is for threads. */
        return fails(CALL_FORK) ? -1 : REAL(clone)(run, stack, flags, argument);
}

/* It comes back twice, on one stack: so nothing of a caller may lie on it, and it is jumped to. */
#ifdef __x86_64__
EXPORTED pid_t vfork(void);
pid_t (*torture_real_vfork)(void);
int torture_vfork_fails(void);

int torture_vfork_fails(void)
{
        return fails(CALL_FORK);
}

__asm__(".text\n"
        ".globl vfork\n"
        ".type vfork, @function\n"
        "vfork:\n"
        "       subq $8, %rsp\n"
        "       call torture_vfork_fails\n"
        "       addq $8, %rsp\n"
        "       testl %eax, %eax\n"
        "       jne 1f\n"
        "       jmp *torture_real_vfork(%rip)\n"
        "1:     movl $-1, %eax\n"
        "       ret\n"
        ".size vfork, . - vfork\n");
#endif

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

WRAP(CALL_NAME, int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), -1)
WRAP(CALL_NAME, int, renameat, (int from_folder, const char *from, int to_folder, const char *to),
     (from_folder, from, to_folder, to), -1)
WRAP(CALL_NAME, int, link, (const char *from, const char *to), (from, to), -1)

WRAP(CALL_NAME, int, chmod, (const char *path, mode_t mode), (path, mode), -1)
WRAP(CALL_NAME, int, fchmod, (int fd, mode_t mode), (fd, mode), -1)

WRAP(CALL_STATUS, ssize_t, readlink, (const char *path, char *ret, size_t size), (path, ret, size), -1)
WRAP(CALL_STATUS, int, stat, (const char *path, struct stat *ret), (path, ret), -1)
WRAP(CALL_STATUS, int, stat64, (const char *path, struct stat64 *ret), (path, ret), -1)
WRAP(CALL_STATUS, int, lstat, (const char *path, struct stat *ret), (path, ret), -1)
WRAP(CALL_STATUS, int, lstat64, (const char *path, struct stat64 *ret), (path, ret), -1)
WRAP(CALL_STATUS, int, fstat, (int fd, struct stat *ret), (fd, ret), -1)
WRAP(CALL_STATUS, int, fstat64, (int fd, struct stat64 *ret), (fd, ret), -1)
WRAP(CALL_STATUS, int, statfs, (const char *path, struct statfs *ret), (path, ret), -1)
WRAP(CALL_STATUS, int, statfs64, (const char *path, struct statfs64 *ret), (path, ret), -1)
WRAP(CALL_STATUS, int, access, (const char *path, int mode), (path, mode), -1)
WRAP(CALL_STATUS, DIR *, fdopendir, (int fd), (fd), NULL)
WRAP(CALL_STATUS, FILE *, fdopen, (int fd, const char *mode), (fd, mode), NULL)
WRAP(CALL_STATUS, int, getsockopt, (int fd, int level, int name, void *ret, socklen_t *size),
     (fd, level, name, ret, size), -1)
WRAP(CALL_STATUS, int, setsockopt, (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size), -1)

WRAP(CALL_LOCK, int, flock, (int fd, int what), (fd, what), -1)

/* What asks, or changes a flag, does not fail; nor does letting go. Of locks those that exclude others:
 * SQLite waits ten seconds by itself for one that nobody can be in the way of. */
static bool control_fails(int what, const void *argument)
{
        if (what == F_DUPFD || what == F_DUPFD_CLOEXEC)
                return fails(CALL_PIPE);
        return (what == F_SETLK || what == F_SETLKW || what == F_OFD_SETLK || what == F_OFD_SETLKW) &&
               ((const struct flock *)argument)->l_type == F_WRLCK && fails(CALL_LOCK);
}

#define WRAP_FCNTL(name)                                                                                    \
        EXPORTED int name(int fd, int what, ...)                                                            \
        {                                                                                                   \
                va_list arguments;                                                                          \
                void *argument;                                                                             \
                va_start(arguments, what);                                                                  \
                argument = va_arg(arguments, void *);                                                       \
                va_end(arguments);                                                                          \
                return control_fails(what, argument) ? -1 : REAL(name)(fd, what, argument);                 \
        }

WRAP_FCNTL(fcntl)
WRAP_FCNTL(fcntl64)

WRAP(CALL_THREAD, int, pthread_create,
     (pthread_t * ret, const pthread_attr_t *attribute, void *(*run)(void *), void *argument),
     (ret, attribute, run, argument), EAGAIN)

/* Of those without a function of their own: who comes back without a descriptor. */
EXPORTED long syscall(long number, ...)
{
        va_list arguments;
        long argument[6];

        va_start(arguments, number);
        for (int i = 0; i < 6; i++)
                argument[i] = va_arg(arguments, long);
        va_end(arguments);
        if (number == SYS_pidfd_open && fails(CALL_PIPE))
                return -1;
        return REAL(syscall)(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                             argument[5]);
}

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

static void note_inherited(void)
{
        for (int fd = 0; fd < DESCRIPTORS; fd++)
                plan.inherited[fd] = fcntl(fd, F_GETFD) >= 0;
}

static void say_descriptor(int fd)
{
        char link[64], text[256], target[128] = "";

        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        (void)!REAL(readlink)(link, target, sizeof(target) - 1);
        (void)!REAL(write)(
                STDERR_FILENO, text,
                (size_t)snprintf(text, sizeof(text), "left open: descriptor %d, %s\n", fd, target));
}

static void *map_file(const char *path, size_t size)
{
        int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
        void *map;

        if (fd < 0)
                return NULL;
        map = REAL(mmap)(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        return map == MAP_FAILED ? NULL : map;
}

__attribute__((constructor)) static void read_plan(void)
{
        const char *text = getenv("RECONCILED_FAULT"), *path = getenv("RECONCILED_FAULT_COUNTS");
        char program[64], call[16], mode[16];
        unsigned long long nth;

#ifdef __x86_64__
        torture_real_vfork = (pid_t(*)(void))(uintptr_t)dlsym(RTLD_NEXT, "vfork");
#endif
        if (!text || !path || sscanf(text, "%63s %15s %llu %15s", program, call, &nth, mode) != 4 ||
            strcmp(program, program_invocation_short_name) != 0) {
                leaks_stop();
                return;
        }
        for (int i = 0; i < CALL_COUNT; i++)
                if (strcmp(call, table[i].name) == 0)
                        plan.call = (enum call)i;
        plan.nth = nth;
        plan.always = strcmp(mode, "always") == 0;
        plan.traced = getenv("RECONCILED_FAULT_TRACE") != NULL;
        plan.pid = getpid();
        note_inherited();
        trace_crashes();
        if (plan.traced)
                leaks_trace();
        if (getenv("RECONCILED_FAULT_PLACES"))
                plan.places = map_file(getenv("RECONCILED_FAULT_PLACES"), PLACES_MAX * sizeof(*plan.places));
        plan.counts = map_file(path, sizeof(*plan.counts));
}

/* ---- the end */

static uint64_t new_descriptors(void)
{
        uint64_t count = 0;

        for (int fd = 0; fd < DESCRIPTORS; fd++) {
                bool is_new = !plan.inherited[fd] && fcntl(fd, F_GETFD) >= 0;

                count += is_new;
                if (is_new && plan.traced)
                        say_descriptor(fd);
        }
        return count;
}

__attribute__((destructor)) static void look_back(void)
{
        struct counts *counts = plan.counts;
        struct leaks leaks;
        uint64_t descriptors;

        if (!counts || getpid() != plan.pid)
                return;
        plan.counts = NULL; /* nothing fails any more */
        leaks = leaks_find();
        atomic_fetch_add(&counts->ends, 1);
        atomic_fetch_add(&counts->leaked, leaks.blocks);
        atomic_fetch_add(&counts->unknown, !leaks.known);
        descriptors = new_descriptors();
        if (atomic_load(&counts->descriptors) < descriptors)
                atomic_store(&counts->descriptors, descriptors);
}
