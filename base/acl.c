/* SPDX-License-Identifier: Apache-2.0 */
/* See acl.h. The kernel's form of a list is written here: libacl would be a library for one attribute. */
#include "base/acl.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/cleanup.h"

#define ATTRIBUTE "system.posix_acl_access"
#define VERSION   2U
#define NOBODY    UINT32_MAX /* the id of an entry that needs none */
#define EXTRA     5          /* entries beside those of the users: see acl_allow() */

enum { OWNER = 0x01, USER = 0x02, GROUP = 0x04, MASK = 0x10, OTHERS = 0x20 };

/* Both little endian, as the kernel has them. */
struct entry {
        uint16_t tag, rights;
        uint32_t id;
};

struct list {
        uint32_t version;
        struct entry entry[];
};

static struct entry entry_of(unsigned tag, unsigned rights, uint32_t id)
{
        return (struct entry){htole16((uint16_t)tag), htole16((uint16_t)(rights & 7)), htole32(id)};
}

/* Where there is a list, the mode shows its mask in the place of the group's rights. */
static int group_rights(int fd, const struct stat *st, bool *ret_listed, unsigned *ret)
{
        char buffer[4096] __attribute__((aligned(8)));
        const struct list *list = (const struct list *)(const void *)buffer;
        ssize_t size = fgetxattr(fd, ATTRIBUTE, buffer, sizeof(buffer));
        size_t count =
                size > (ssize_t)sizeof(*list) ? ((size_t)size - sizeof(*list)) / sizeof(struct entry) : 0;

        *ret = st->st_mode >> 3 & 7;
        *ret_listed = size > 0;
        if (size < 0)
                return errno == ENODATA ? 0 : -errno;
        for (size_t i = 0; i < count; i++)
                if (le16toh(list->entry[i].tag) == GROUP)
                        *ret = le16toh(list->entry[i].rights);
        return 0;
}

static int compare(const void *a, const void *b)
{
        const struct entry *one = a, *other = b;

        return (le32toh(one->id) > le32toh(other->id)) - (le32toh(one->id) < le32toh(other->id));
}

int acl_allow(int fd, const uid_t *user, size_t count, unsigned rights)
{
        const size_t size = sizeof(struct list) + (count + EXTRA) * sizeof(struct entry);
        _cleanup_free_ struct list *list = calloc(1, size);
        struct entry *entry;
        unsigned group;
        struct stat st;
        bool listed;
        int r;

        if (!list)
                return -ENOMEM;
        if (fstat(fd, &st) < 0)
                return -errno;
        r = group_rights(fd, &st, &listed, &group);
        if (r < 0)
                return count == 0 && r == -EOPNOTSUPP ? 0 : r;
        if (count == 0) {
                if (listed && fremovexattr(fd, ATTRIBUTE) < 0)
                        return -errno;
                return listed && fchmod(fd, (st.st_mode & 07707) | group << 3) < 0 ? -errno : 0;
        }
        entry = list->entry;
        list->version = htole32(VERSION);
        *entry++ = entry_of(OWNER, st.st_mode >> 6, NOBODY);
        for (size_t i = 0; i < count; i++)
                *entry++ = entry_of(USER, rights, user[i]);
        qsort(&list->entry[1], count, sizeof(struct entry), compare);
        *entry++ = entry_of(GROUP, group, NOBODY);
        *entry++ = entry_of(MASK, group | rights, NOBODY);
        *entry++ = entry_of(OTHERS, st.st_mode, NOBODY);
        return fsetxattr(fd, ATTRIBUTE, list, (size_t)((char *)entry - (char *)list), 0) < 0 ? -errno : 0;
}
