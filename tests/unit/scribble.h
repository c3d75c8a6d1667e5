/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Damage of all kinds to a file, by a number that makes it reproducible; and a process that meets it. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/valgrind.h"

#define SCRIBBLE_PAGE  4096
#define SCRIBBLE_BYTES 64

/* How many a test tries: each takes a process, and a second or more under valgrind. */
static inline unsigned scribble_count(void)
{
        return under_valgrind() ? 6 : 300;
}

static inline uint64_t scribble_random(uint64_t *state)
{
        uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        return z ^ z >> 31;
}

struct scribble_file {
        char *bytes;
        size_t size;
        size_t room; /* of a copy: bytes that it may have */
};

static inline int scribble_load(const char *file_name, struct scribble_file *ret)
{
        int fd = open(file_name, O_RDONLY | O_CLOEXEC);
        struct stat st;
        ssize_t r;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -1;
        ret->size = (size_t)st.st_size;
        ret->bytes = malloc(ret->size + 1);
        r = ret->bytes ? pread(fd, ret->bytes, ret->size, 0) : -1;
        close(fd);
        return r == (ssize_t)ret->size ? 0 : -1;
}

/* In place, under whoever has it open. */
static inline int scribble_store(const char *file_name, const struct scribble_file *file)
{
        int fd = open(file_name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ssize_t r = fd < 0 ? -1 : pwrite(fd, file->bytes, file->size, 0);

        if (r >= 0 && ftruncate(fd, (off_t)file->size) < 0)
                r = -1;
        if (fd >= 0)
                close(fd);
        return r == (ssize_t)file->size ? 0 : -1;
}

/* Its memory serves for one copy after the other: AddressSanitizer keeps what is freed, and each fork() would copy
 * the page tables of all former copies. */
static inline void scribble_make_room(struct scribble_file *copy, size_t size)
{
        if (copy->room < size) {
                free(copy->bytes);
                copy->bytes = malloc(size);
                copy->room = size;
        }
        if (!copy->bytes)
                abort();
}

/* Makes `copy` a damaged one: mostly a few bytes anywhere, sometimes a bit, a page of zeros, a page from
 * elsewhere, the end gone. It begins as {0}; the caller frees its bytes at the end. */
static inline void scribble_copy(const struct scribble_file *file, uint64_t seed, struct scribble_file *copy)
{
        uint64_t state = seed, kind = scribble_random(&state) % 10, pages = file->size / SCRIBBLE_PAGE;
        size_t at, left, count;

        if (!file->bytes || file->size == 0)
                abort();
        scribble_make_room(copy, file->size + 1);
        copy->size = file->size;
        at = scribble_random(&state) % file->size;
        left = file->size - at;
        count = 1 + scribble_random(&state) % SCRIBBLE_BYTES;
        memcpy(copy->bytes, file->bytes, file->size);
        if (kind == 0) {
                copy->bytes[at] = (char)(copy->bytes[at] ^ 1 << scribble_random(&state) % 8);
        } else if (kind == 1 && pages > 0) {
                memset(copy->bytes + at / SCRIBBLE_PAGE % pages * SCRIBBLE_PAGE, 0, SCRIBBLE_PAGE);
        } else if (kind == 2 && pages > 0) {
                memcpy(copy->bytes + at / SCRIBBLE_PAGE % pages * SCRIBBLE_PAGE,
                       file->bytes + scribble_random(&state) % pages * SCRIBBLE_PAGE, SCRIBBLE_PAGE);
        } else if (kind == 3) {
                copy->size = at;
        } else {
                for (size_t i = 0; i < count && i < left; i++)
                        copy->bytes[at + i] = (char)scribble_random(&state);
        }
}

/* Runs it in a process of its own: its exit status, or the negative number of the signal that it died of.
 * SIGALRM: it hung. Sanitizers make an exit of a signal. */
static inline int scribble_meet(int (*meet)(void *userdata), void *userdata)
{
        pid_t pid = fork();
        int status;

        if (pid < 0)
                abort();
        if (pid == 0) {
                const struct rlimit none = {0, 0};

                setrlimit(RLIMIT_CORE, &none);
                signal(SIGALRM, SIG_DFL);
                signal(SIGSEGV, SIG_DFL);
                signal(SIGBUS, SIG_DFL);
                signal(SIGABRT, SIG_DFL);
                signal(SIGFPE, SIG_DFL);
                if (!freopen("/dev/null", "w", stderr)) /* what LMDB asserts */
                        _exit(98);
                alarm(20);
                _exit(meet(userdata));
        }
        if (waitpid(pid, &status, 0) != pid)
                abort();
        return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}
