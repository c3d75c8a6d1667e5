/* SPDX-License-Identifier: Apache-2.0 */
#include "os/slot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* A page for each, so that no writer can reach another one's. */
static size_t stride(void)
{
        return (size_t)sysconf(_SC_PAGESIZE);
}

struct slots {
        char *path;
        char *map;
        size_t count, size;
};

/* Space that is not there would kill the process that writes to it: it is taken before. */
static int make_slot_file(const char *path, size_t size)
{
        _cleanup_close_ int fd = -1;
        int r;

        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = posix_fallocate(fd, 0, (off_t)size);
        return r != 0 ? -r : TAKE_FD(fd);
}

int slots_new(const char *path, size_t count, struct slots **ret)
{
        _cleanup_(slots_free_pointer) struct slots *slots = calloc(1, sizeof(*slots));
        size_t size = (count ? count : 1) * stride();
        _cleanup_close_ int fd = -1;
        void *map;

        if (!slots)
                return -ENOMEM;
        fd = make_slot_file(path, size);
        if (fd < 0)
                return fd;
        slots->path = strdup(path);
        map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        slots->map = map;
        slots->count = count;
        slots->size = size;
        if (!slots->path)
                return -ENOMEM;
        *ret = TAKE_PTR(slots);
        return 0;
}

void slots_free(struct slots *slots)
{
        if (!slots)
                return;
        if (slots->map)
                munmap(slots->map, slots->size);
        if (slots->path)
                (void)unlink(slots->path); /* what stays is overwritten at the next start */
        free(slots->path);
        free(slots);
}

static bool is_slot_text(const char *text, uint32_t size, size_t max)
{
        return size > 1 && size <= max && strnlen(text, size) == size - 1;
}

int slots_look(const struct slots *slots, size_t index, struct slot_view *ret)
{
        const struct slot *slot;
        struct slot copy;
        uint32_t state;

        if (!slots || index >= slots->count)
                return -ENOENT;
        slot = (const struct slot *)(const void *)(slots->map + index * stride());
        state = atomic_load_explicit(&slot->state, memory_order_acquire);
        if ((state & 0xff) == SLOT_IDLE || (state & 0xff) >= SLOT_STAGE_COUNT ||
            (state & ~UINT32_C(0xff)) != SLOT_VERSION)
                return -ENOENT;
        memcpy(&copy, slot, sizeof(copy));
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&slot->state, memory_order_relaxed) != state ||
            !is_slot_text(copy.key, copy.key_size, SLOT_KEY_MAX) ||
            !is_slot_text(copy.uid, copy.uid_size, SLOT_UID_MAX))
                return -ENOENT;
        ret->stage = (enum slot_stage)(state & 0xff);
        memcpy(ret->key, copy.key, sizeof(ret->key));
        memcpy(ret->uid, copy.uid, sizeof(ret->uid));
        return 0;
}

int slots_clear(const struct slots *slots, size_t index)
{
        struct slot *slot = NULL;
        int r = slot_open(slots->path, index, &slot);

        if (r >= 0)
                slot_close(slot);
        return r;
}

/* ---- the writer */

int slot_open(const char *path, size_t index, struct slot **ret)
{
        _cleanup_close_ int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        struct stat st;
        void *map;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if ((size_t)st.st_size < (index + 1) * stride())
                return -EBADMSG;
        map = mmap(NULL, sizeof(struct slot), PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                   (off_t)(index * stride()));
        if (map == MAP_FAILED)
                return -errno;
        *ret = map;
        slot_clear(*ret);
        return 0;
}

void slot_close(struct slot *slot)
{
        if (!slot)
                return;
        slot_clear(slot);
        munmap(slot, sizeof(*slot));
}
