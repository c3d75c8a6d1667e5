/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See leaks.h. A table of all living blocks; at the end everything writable that is no block and no stack is
 * searched for words that point into one, and so is each block that was found.
 */
#include "tests/torture/leaks.h"

#include <execinfo.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TABLE      ((size_t)1 << 16)
#define FULL       (TABLE / 4 * 3)
#define FRAMES     12
#define TOLD       100     /* leaks that are told one by one */
#define OWN_FRAMES 2       /* of the switch and of this file */
#define MAPS_MAX   0x40000 /* bytes of /proc/self/maps */

struct block {
        uintptr_t address; /* 0: free */
        size_t size;
        uint64_t serial;
        bool found;
};

static struct {
        struct block block[TABLE];
        void *frame[TABLE][FRAMES]; /* of block[i], where traced; it moves with it */
        size_t count;
        bool stopped, traced;
        atomic_flag busy;

        /* For the search. */
        struct block *sorted[TABLE], *todo[TABLE];
        size_t sorted_count, todo_count;
        char maps[MAPS_MAX];
} all;

static void lock(void)
{
        while (atomic_flag_test_and_set_explicit(&all.busy, memory_order_acquire))
                ;
}

static void unlock(void)
{
        atomic_flag_clear_explicit(&all.busy, memory_order_release);
}

static size_t place_of(uintptr_t address)
{
        return (size_t)((address >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48) % TABLE;
}

static size_t find(uintptr_t address)
{
        size_t i = place_of(address);

        while (all.block[i].address != 0 && all.block[i].address != address)
                i = (i + 1) % TABLE;
        return i;
}

void leaks_note(void *address, size_t size, uint64_t serial)
{
        size_t i;

        if (!address || all.stopped)
                return;
        lock();
        if (all.count >= FULL) {
                all.stopped = true;
        } else {
                i = find((uintptr_t)address);
                all.count += all.block[i].address == 0;
                all.block[i] = (struct block){.address = (uintptr_t)address, .size = size, .serial = serial};
                if (all.traced) {
                        memset(all.frame[i], 0, sizeof(all.frame[i]));
                        (void)backtrace(all.frame[i], FRAMES);
                }
        }
        unlock();
}

/* The gap is closed by what would be looked for beyond it. */
static void take_out(size_t gap)
{
        for (size_t i = (gap + 1) % TABLE; all.block[i].address != 0; i = (i + 1) % TABLE) {
                size_t wanted = place_of(all.block[i].address);

                if ((i + TABLE - wanted) % TABLE < (i + TABLE - gap) % TABLE)
                        continue;
                all.block[gap] = all.block[i];
                if (all.traced)
                        memcpy(all.frame[gap], all.frame[i], sizeof(all.frame[i]));
                gap = i;
        }
        all.block[gap].address = 0;
        all.count--;
}

void leaks_forget(void *address)
{
        size_t i;

        if (!address || all.stopped)
                return;
        lock();
        i = find((uintptr_t)address);
        if (all.block[i].address != 0)
                take_out(i);
        unlock();
}

void leaks_trace(void)
{
        all.traced = true;
}

void leaks_stop(void)
{
        all.stopped = true;
}

/* ---- the search */

static void sift(size_t from, size_t end)
{
        struct block *moved = all.sorted[from];

        for (size_t child; (child = 2 * from + 1) < end; from = child) {
                if (child + 1 < end && all.sorted[child]->address < all.sorted[child + 1]->address)
                        child++;
                if (all.sorted[child]->address <= moved->address)
                        break;
                all.sorted[from] = all.sorted[child];
                all.sorted[child] = moved;
        }
}

static void sort_blocks(void)
{
        for (size_t i = 0; i < TABLE; i++)
                if (all.block[i].address != 0)
                        all.sorted[all.sorted_count++] = &all.block[i];
        for (size_t i = all.sorted_count / 2; i > 0; i--)
                sift(i - 1, all.sorted_count);
        for (size_t end = all.sorted_count; end > 1; end--) {
                struct block *last = all.sorted[end - 1];

                all.sorted[end - 1] = all.sorted[0];
                all.sorted[0] = last;
                sift(0, end - 1);
        }
}

static struct block *block_at(uintptr_t address)
{
        size_t low = 0, high = all.sorted_count;
        struct block *block;

        while (low < high) {
                size_t middle = (low + high) / 2;

                if (all.sorted[middle]->address <= address)
                        low = middle + 1;
                else
                        high = middle;
        }
        block = low > 0 ? all.sorted[low - 1] : NULL;
        /* A pointer to the end of a block is one to it, too. */
        return block && address - block->address <= block->size ? block : NULL;
}

static void search_words(uintptr_t from, uintptr_t end)
{
        from = (from + sizeof(uintptr_t) - 1) & ~(sizeof(uintptr_t) - 1);
        for (; from + sizeof(uintptr_t) <= end; from += sizeof(uintptr_t)) {
                struct block *block = block_at(*(const uintptr_t *)from);

                if (block && !block->found) {
                        block->found = true;
                        all.todo[all.todo_count++] = block;
                }
        }
}

static void search_from(uintptr_t from, uintptr_t end)
{
        search_words(from, end);
        while (all.todo_count > 0) {
                const struct block *block = all.todo[--all.todo_count];

                search_words(block->address, block->address + block->size);
        }
}

/* What is known here is no reason to keep anything. */
static void search_around_own(uintptr_t from, uintptr_t end)
{
        uintptr_t own = (uintptr_t)&all, own_end = own + sizeof(all);

        if (own_end <= from || own >= end) {
                search_from(from, end);
                return;
        }
        if (from < own)
                search_from(from, own);
        if (own_end < end)
                search_from(own_end, end);
}

static bool read_maps(void)
{
        int fd = (int)syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
        size_t size = 0;
        long r = 1;

        while (fd >= 0 && r > 0 && size < sizeof(all.maps) - 1) {
                r = syscall(SYS_read, fd, all.maps + size, sizeof(all.maps) - 1 - size);
                size += r > 0 ? (size_t)r : 0;
        }
        (void)syscall(SYS_close, fd);
        return fd >= 0 && r == 0;
}

/* Private and writable, but neither the heap nor the stack. */
static void search_line(char *line)
{
        char *rest;
        uintptr_t from = strtoul(line, &rest, 16), end;

        if (*rest++ != '-')
                return;
        end = strtoul(rest, &rest, 16);
        if (strncmp(rest, " rw-p", 5) == 0 && !strstr(rest, "[heap]") && !strstr(rest, "[stack]"))
                search_around_own(from, end);
}

static void say(const struct block *block)
{
        size_t i = (size_t)(block - all.block);
        char line[128];
        int size = snprintf(line, sizeof(line), "leaked: allocation %llu, %zu bytes\n",
                            (unsigned long long)block->serial, block->size);

        (void)syscall(SYS_write, STDERR_FILENO, line, (size_t)size);
        for (int frame = OWN_FRAMES; all.traced && frame < FRAMES && all.frame[i][frame]; frame++)
                backtrace_symbols_fd(&all.frame[i][frame], 1, STDERR_FILENO);
}

struct leaks leaks_find(void)
{
        struct leaks leaks = {0};

        if (all.stopped || !read_maps())
                return leaks;
        all.stopped = leaks.known = true;
        sort_blocks();
        for (char *line = all.maps, *next; (next = strchr(line, '\n')); line = next + 1) {
                *next = '\0';
                search_line(line);
        }
        for (size_t i = 0; i < all.sorted_count; i++) {
                if (all.sorted[i]->found)
                        continue;
                leaks.bytes += all.sorted[i]->size;
                if (leaks.blocks++ < TOLD)
                        say(all.sorted[i]);
        }
        return leaks;
}
