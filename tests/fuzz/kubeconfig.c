/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a kubeconfig: loaded whole or refused with a reason, nothing leaked. */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kubeconfig/kubeconfig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A file in memory, by a path that the loader can open. */
static const char *file_with(const uint8_t *data, size_t size)
{
        static char path[64];
        static int fd = -1;

        if (fd < 0)
                fd = memfd_create("kubeconfig", MFD_CLOEXEC);
        if (fd < 0 || ftruncate(fd, 0) < 0 || pwrite(fd, data, size, 0) != (ssize_t)size)
                abort();
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        return path;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct kubeconfig_options options = {.path = file_with(data, size)};
        struct error error = ERROR_NONE;
        struct kubeconfig config;
        int r = kubeconfig_load(&options, &config, &error);

        if (r < 0) {
                assert(error.message && error.status == r);
                error_done(&error);
                return 0;
        }
        assert(!error.message);
        assert(config.server[0] && config.identity[0] && config.context[0]);
        assert(kubeconfig_equal(&config, &config));
        assert(!strpbrk(config.token, "\r\n"));
        kubeconfig_done(&config);
        return 0;
}
