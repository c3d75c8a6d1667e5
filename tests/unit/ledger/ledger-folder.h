/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A folder for a ledger and all that stands beside it: for the tests of the ledger. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], path[128]; /* of the test, and of the ledger in it */

/* 0, -1: as cmocka's set-ups say it. */
static inline int folder_make(const char *name)
{
        snprintf(folder, sizeof(folder), "/tmp/reconciled-%s-XXXXXX", name);
        if (!mkdtemp(folder))
                return -1;
        snprintf(path, sizeof(path), "%s/ledger.sqlite", folder);
        return 0;
}

static inline void folder_empty(void)
{
        DIR *directory = opendir(folder);
        struct dirent *entry;

        while (directory && (entry = readdir(directory)))
                (void)unlinkat(dirfd(directory), entry->d_name, 0);
        if (directory)
                closedir(directory);
}

static inline int folder_remove(void)
{
        folder_empty();
        return rmdir(folder);
}
