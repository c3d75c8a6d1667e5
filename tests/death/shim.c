/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded into every process of the operator (LD_PRELOAD), so that a test can make one of them do what a
 * broken one would, or lie to it about the machine. The product knows nothing of it.
 *
 * At any time: SIGRTMIN+5 with a value (sigqueue) says what to do, enum act.
 *
 * RECONCILED_DEATH="PROGRAM MOMENT ACT": in a certain state. The moment is `hello`, its first word (of the
 * supervisor: it hears that of a child), `stop`, it is told to end (of the supervisor: it tells a child to),
 * or `done`, the supervisor hears how a run has ended. Done once, by who empties the file
 * $RECONCILED_DEATH_ONCE, or removes it where it was not there when the process began. (A sandbox
 * lets it remove only what is its own.)
 *
 * RECONCILED_DEATH_WITHOUT=pdeathsig: the kernel tells nobody of its parent's death; =groups: nobody tells
 * what groups a user is in.
 *
 * RECONCILED_DEATH_STATFS=NUMBER: every file system is of this type.
 *
 * RECONCILED_DEATH_READS="TEXT ACT": a watcher that reads an object with an annotation whose key holds the text.
 *
 * RECONCILED_DEATH_SAYS="TEXT ACT": a worker that says DONE of a run whose key holds the text.
 *
 * RECONCILED_DEATH_WRITES="PROGRAM PATTERN ERRNO": writing to files whose path contains the pattern fails,
 * while the file $RECONCILED_DEATH_ARMED exists.
 *
 * RECONCILED_DEATH_SYNCS="PROGRAM PATTERN": while that file exists, to sync such files takes a moment, and
 * in the thread of a process's loop it takes for ever. At any time: before it is synced each is copied, and
 * the copy is named *.synced when that is done: what a loss of power leaves of it.
 */
#undef _FILE_OFFSET_BITS /* both names of each call are defined here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "ipc/message.h"

#define CHANNEL_FD 3
#define EXPORTED   __attribute__((visibility("default")))
#define ARRAY_OF   0x90 /* msgpack: an array of up to 15 */
#define ARRAY_16   0xdc /* of more: two bytes for how many */
#define NOT        0xc2

enum act {
        ACT_EXIT = 0,      /* + exit code */
        ACT_FATAL = 256,   /* + exit code: says FATAL, then ends with it */
        ACT_GARBAGE = 512, /* says what is no message */
        ACT_MUTE,          /* lives on, and is heard no more */
        ACT_EXECUTE,       /* runs a program in its place */
        ACT_MAKE,          /* makes the files $RECONCILED_DEATH_MAKES (with colons), as far as it can */
        ACT_FORK,          /* starts a process */
        ACT_CONNECT,       /* opens a connection to the network; exit code 99 where it is refused a socket */
        ACT_CLOSE,         /* closes its channel, and lives on */
        ACT_ASK, /* asks at the control socket $RECONCILED_DEATH_ASKS; exit code 98 where that refuses, 96
                            * where it cannot */
        ACT_READ, /* reads the files $RECONCILED_DEATH_SEES (with colons); exit code 98 where it may read none */
        ACT_SIGNAL = 1024, /* + number: dies of it, or stops */
};

static bool is_supervisor, mute, spoken;
static int planned = -1, once_fd = -1, reading = -1, saying = -1;
static char deadly_text[64];
static char moment[16];
static char failing_path[64];
static int failing_errno;
static char synced_path[64];

#define REAL(name) ((__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name))

/* ---- acting */

static ssize_t real_send(int fd, const void *buffer, size_t size, int flags)
{
        return sendto(fd, buffer, size, flags, NULL, 0);
}

static void say_fatal(int code)
{
        uint8_t packet[] = {ARRAY_OF | 4, MESSAGE_FATAL, (uint8_t)code, 0xa4, 't', 'o', 'l', 'd', NOT};

        (void)real_send(CHANNEL_FD, packet, sizeof(packet), MSG_NOSIGNAL);
}

static void make_files(void)
{
        const char *list = getenv("RECONCILED_DEATH_MAKES");
        char *files = strdup(list ? list : ""), *rest = files;

        for (const char *path; (path = strsep(&rest, ":"));) {
                int fd = open(path, O_WRONLY | O_CREAT, 0600);

                if (fd >= 0)
                        close(fd);
        }
        free(files);
}

static void read_files(void)
{
        const char *list = getenv("RECONCILED_DEATH_SEES");
        char *files = strdup(list ? list : ""), *rest = files;

        for (const char *path; (path = strsep(&rest, ":"));)
                if (open(path, O_RDONLY | O_CLOEXEC) >= 0 || errno != EACCES)
                        _exit(97);
        _exit(98);
}

static void connect_anywhere(void)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9)};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (fd < 0)
                _exit(99);
        (void)connect(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
}

static void ask_operator(void)
{
        const uint8_t packet[] = {ARRAY_OF | 4, MESSAGE_QUERY, PROTOCOL_VERSION, 0xa6, 'h', 'e', 'a', 'l',
                                  't',          'h',           ARRAY_OF};
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        const char *path = getenv("RECONCILED_DEATH_ASKS");
        char answer[4096];
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        ssize_t size;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path ? path : "");
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
            real_send(fd, packet, sizeof(packet), MSG_NOSIGNAL) < 0)
                _exit(96);
        size = recvfrom(fd, answer, sizeof(answer), 0, NULL, NULL);
        _exit(size > 0 && memmem(answer, (size_t)size, "takes no orders", 15) ? 98 : 97);
}

static void act(int what)
{
        char *const argument[] = {(char[]){"/bin/true"}, NULL};

        if (what >= ACT_SIGNAL) {
                raise(what - ACT_SIGNAL);
        } else if (what == ACT_MUTE) {
                mute = true;
        } else if (what == ACT_EXECUTE) {
                execve(argument[0], argument, argument + 1);
        } else if (what == ACT_MAKE) {
                make_files();
        } else if (what == ACT_FORK) {
                if (fork() == 0)
                        _exit(0);
        } else if (what == ACT_CONNECT) {
                connect_anywhere();
        } else if (what == ACT_READ) {
                read_files();
        } else if (what == ACT_ASK) {
                ask_operator();
        } else if (what == ACT_CLOSE) {
                close(CHANNEL_FD);
                for (;;)
                        pause();
        } else if (what == ACT_GARBAGE) {
                (void)real_send(CHANNEL_FD, "garbage", 7, MSG_NOSIGNAL);
        } else {
                if (what >= ACT_FATAL)
                        say_fatal(what - ACT_FATAL);
                _exit(what & 0xff);
        }
}

static void on_signal(int signal _unused_, siginfo_t *info, void *context _unused_)
{
        act(info->si_value.sival_int);
}

static bool is_first(void)
{
        const char *once = getenv("RECONCILED_DEATH_ONCE");
        char byte;

        if (once_fd < 0)
                return once && unlink(once) == 0;
        return flock(once_fd, LOCK_EX) == 0 && pread(once_fd, &byte, 1, 0) == 1 &&
               REAL(ftruncate)(once_fd, 0) == 0 && flock(once_fd, LOCK_UN) == 0;
}

static void act_at(const char *now)
{
        if (planned >= 0 && strcmp(moment, now) == 0 && is_first())
                act(planned);
}

static bool is_message(const void *packet, ssize_t size, enum message_type type)
{
        const uint8_t *byte = packet;

        if (size > 3 && byte[0] == ARRAY_16)
                return byte[3] == type;
        return size > 1 && byte[0] >> 4 == ARRAY_OF >> 4 && byte[1] == type;
}

/* ---- the channel */

EXPORTED ssize_t send(int fd, const void *buffer, size_t size, int flags)
{
        if (is_supervisor && is_message(buffer, (ssize_t)size, MESSAGE_STOP))
                act_at("stop");
        if (is_supervisor || fd != CHANNEL_FD)
                return real_send(fd, buffer, size, flags);
        if (saying >= 0 && is_message(buffer, (ssize_t)size, MESSAGE_DONE) &&
            memmem(buffer, size, deadly_text, strlen(deadly_text)))
                act(saying);
        if (!spoken) {
                spoken = true;
                act_at("hello");
        }
        return mute ? (ssize_t)size : real_send(fd, buffer, size, flags);
}

EXPORTED ssize_t recv(int fd, void *buffer, size_t size, int flags)
{
        ssize_t r = recvfrom(fd, buffer, size, flags, NULL, NULL);

        if (is_supervisor && is_message(buffer, r, MESSAGE_HELLO))
                act_at("hello");
        if (is_supervisor && is_message(buffer, r, MESSAGE_DONE))
                act_at("done");
        if (!is_supervisor && fd == CHANNEL_FD && is_message(buffer, r, MESSAGE_STOP))
                act_at("stop");
        return r;
}

/* ---- reading */

/* A watcher looks for a slash in each key of annotations while it hashes an object, and nowhere else in what it reads. */
EXPORTED void *memchr(const void *data, int byte, size_t size)
{
        char needle = (char)byte;

        if (reading >= 0 && byte == '/' && memmem(data, size, deadly_text, strlen(deadly_text)))
                act(reading);
        return memmem(data, size, &needle, 1);
}

/* ---- the machine */

EXPORTED int prctl(int option, ...)
{
        const char *without = getenv("RECONCILED_DEATH_WITHOUT");
        unsigned long argument[4];
        va_list arguments;

        va_start(arguments, option);
        for (int i = 0; i < 4; i++)
                argument[i] = va_arg(arguments, unsigned long);
        va_end(arguments);
        if (option == PR_SET_PDEATHSIG && without && strcmp(without, "pdeathsig") == 0)
                return 0;
        return REAL(prctl)(option, argument[0], argument[1], argument[2], argument[3]);
}

EXPORTED int initgroups(const char *user, gid_t group)
{
        const char *without = getenv("RECONCILED_DEATH_WITHOUT");

        while (without && strcmp(without, "groups") == 0)
                pause();
        return REAL(initgroups)(user, group);
}

#define STATFS(name)                                                                                        \
        EXPORTED int name(const char *path, struct name *ret)                                               \
        {                                                                                                   \
                const char *type = getenv("RECONCILED_DEATH_STATFS");                                       \
                int r = REAL(name)(path, ret);                                                              \
                                                                                                            \
                if (r == 0 && type)                                                                         \
                        ret->f_type = (__typeof__(ret->f_type))strtoul(type, NULL, 0);                      \
                return r;                                                                                   \
        }
STATFS(statfs)
STATFS(statfs64)

static bool is_armed(void)
{
        const char *armed = getenv("RECONCILED_DEATH_ARMED");

        return armed && access(armed, F_OK) == 0;
}

static const char *path_of(int fd, char *path, size_t size)
{
        char name[64];
        ssize_t length;

        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        length = readlink(name, path, size - 1);
        path[length > 0 ? length : 0] = '\0';
        return path;
}

static bool fails(int fd)
{
        char path[4096];

        if (!failing_path[0] || !is_armed() || !strstr(path_of(fd, path, sizeof(path)), failing_path))
                return false;
        errno = failing_errno;
        return true;
}

static bool copy_file(const char *original, const char *path)
{
        int from = open(original, O_RDONLY | O_CLOEXEC);
        int to = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        char bytes[65536];
        ssize_t size = 0;

        if (from < 0 || to < 0)
                return false;
        for (off_t at = 0; (size = pread(from, bytes, sizeof(bytes), at)) > 0; at += size)
                if (REAL(pwrite)(to, bytes, (size_t)size, at) != size)
                        size = -1;
        close(from);
        return close(to) == 0 && size == 0;
}

static int synced(int fd, int (*real)(int fd))
{
        char path[4096], copy[4128], done[4128];
        bool copied;
        int r;

        if (fails(fd))
                return -1;
        if (!synced_path[0] || !strstr(path_of(fd, path, sizeof(path)), synced_path))
                return real(fd);
        snprintf(copy, sizeof(copy), "%s.syncing", path);
        snprintf(done, sizeof(done), "%s.synced", path);
        copied = copy_file(path, copy);
        while (is_armed() && gettid() == getpid())
                poll(NULL, 0, 100);
        if (is_armed())
                poll(NULL, 0, 300);
        r = real(fd);
        if (r == 0 && copied)
                (void)rename(copy, done);
        return r;
}

EXPORTED ssize_t write(int fd, const void *buffer, size_t size)
{
        return fails(fd) ? -1 : REAL(write)(fd, buffer, size);
}

EXPORTED ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
        return fails(fd) ? -1 : REAL(pwrite)(fd, buffer, size, offset);
}

EXPORTED ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t offset)
{
        return fails(fd) ? -1 : REAL(pwrite64)(fd, buffer, size, offset);
}

EXPORTED ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t offset)
{
        return fails(fd) ? -1 : REAL(pwritev)(fd, vector, count, offset);
}

EXPORTED ssize_t pwritev64(int fd, const struct iovec *vector, int count, off64_t offset)
{
        return fails(fd) ? -1 : REAL(pwritev64)(fd, vector, count, offset);
}

EXPORTED int fsync(int fd)
{
        return synced(fd, REAL(fsync));
}

EXPORTED int fdatasync(int fd)
{
        return synced(fd, REAL(fdatasync));
}

EXPORTED int ftruncate(int fd, off_t size)
{
        return fails(fd) ? -1 : REAL(ftruncate)(fd, size);
}

EXPORTED int ftruncate64(int fd, off64_t size)
{
        return fails(fd) ? -1 : REAL(ftruncate64)(fd, size);
}

/* ---- loading */

static void plan_death(const char *program)
{
        const char *plan = getenv("RECONCILED_DEATH"), *once = getenv("RECONCILED_DEATH_ONCE");
        char whose[32];
        int what;

        if (plan && sscanf(plan, "%31s %15s %d", whose, moment, &what) == 3 && strcmp(program, whose) == 0)
                planned = what;
        if (planned >= 0 && once)
                once_fd = open(once, O_RDWR | O_CLOEXEC);
}

static void plan_reading(const char *program)
{
        const char *plan = getenv("RECONCILED_DEATH_READS");
        int what;

        if (plan && strcmp(program, "reconciled-watcher") == 0 &&
            sscanf(plan, "%63s %d", deadly_text, &what) == 2)
                reading = what;
        plan = getenv("RECONCILED_DEATH_SAYS");
        if (plan && strcmp(program, "reconciled-worker") == 0 &&
            sscanf(plan, "%63s %d", deadly_text, &what) == 2)
                saying = what;
}

static void plan_failure(const char *program)
{
        const char *plan = getenv("RECONCILED_DEATH_WRITES");
        char whose[32], pattern[64];

        if (plan && sscanf(plan, "%31s %63s %d", whose, pattern, &failing_errno) == 3 &&
            strcmp(program, whose) == 0)
                memcpy(failing_path, pattern, sizeof(failing_path));
        plan = getenv("RECONCILED_DEATH_SYNCS");
        if (plan && sscanf(plan, "%31s %63s", whose, pattern) == 2 && strcmp(program, whose) == 0)
                memcpy(synced_path, pattern, sizeof(synced_path));
}

__attribute__((constructor)) static void load(void)
{
        struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
        const char *program = program_invocation_short_name;

        if (strncmp(program, "reconciled", 10) != 0)
                return;
        is_supervisor = strcmp(program, "reconciled") == 0;
        plan_death(program);
        plan_failure(program);
        plan_reading(program);
        sigaction(SIGRTMIN + 5, &action, NULL);
}
