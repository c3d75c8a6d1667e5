/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked into programs that tools/same-code builds with clang -fsanitize-coverage=trace-pc-guard: the file
 * $RECONCILED_BLOCKS/<program> gets a byte for each of its basic blocks, 1 if any process of it has been there. Mapped
 * and shared, so that it also tells of processes that are killed.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

extern char *program_invocation_short_name;
void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop);
void __sanitizer_cov_trace_pc_guard(const uint32_t *guard);

static uint8_t *block;
static uint32_t count;

void __sanitizer_cov_trace_pc_guard_init(uint32_t *start, uint32_t *stop)
{
        if (start == stop || *start)
                return;
        for (uint32_t *guard = start; guard < stop; guard++)
                *guard = ++count;
}

/* Behind the constructors that number the blocks. */
__attribute__((constructor(65535))) static void map_blocks(void)
{
        const char *folder = getenv("RECONCILED_BLOCKS");
        char path[4096];
        void *mapped;
        int fd;

        if (!folder)
                return;
        snprintf(path, sizeof(path), "%s/%s", folder, program_invocation_short_name);
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
        if (fd < 0)
                return;
        if (ftruncate(fd, (off_t)count + 1) == 0) {
                mapped = mmap(NULL, (size_t)count + 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                if (mapped != MAP_FAILED)
                        block = mapped;
        }
        close(fd);
}

void __sanitizer_cov_trace_pc_guard(const uint32_t *guard)
{
        if (block && !block[*guard])
                block[*guard] = 1;
}
