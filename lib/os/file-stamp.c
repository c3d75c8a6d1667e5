/* SPDX-License-Identifier: Apache-2.0 */
#include "os/file-stamp.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/sha256.h"

uint64_t file_stamp_add(uint64_t stamp, const struct stat *info)
{
        uint64_t part[6] = {stamp};
        uint8_t sum[SHA256_SIZE];

        if (info && S_ISREG(info->st_mode)) {
                part[1] = (uint64_t)info->st_dev;
                part[2] = (uint64_t)info->st_ino;
                part[3] = (uint64_t)info->st_size;
                part[4] = (uint64_t)info->st_ctim.tv_sec;
                part[5] = (uint64_t)info->st_ctim.tv_nsec;
        }
        sha256(part, sizeof(part), sum);
        memcpy(&stamp, sum, sizeof(stamp));
        return stamp == 0 || stamp == FILE_STAMP_SEVERAL ? 1 : stamp;
}

uint64_t file_stamp_add_argument(uint64_t stamp, const char *argument)
{
        char path[PATH_MAX + 1];
        struct stat info;
        int length = snprintf(path, sizeof(path), "%s%s", argument[0] == '/' ? "" : "/", argument);
        bool is_there = length > 0 && (size_t)length < sizeof(path) && stat(path, &info) >= 0;

        return file_stamp_add(stamp, is_there ? &info : NULL);
}
