/* SPDX-License-Identifier: Apache-2.0 */
/* See acl.h. The kernel's form of a list is read and written here: libacl would be a library for one
 * attribute. */
#include "os/acl.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ATTRIBUTE   "system.posix_acl_access"
#define VERSION     2U
#define NOBODY      UINT32_MAX /* the id of an entry that needs none */
#define ENTRIES_MAX 1024

/* The kernel wants the entries in this order, those of one tag by their ids. */
enum { OWNER = 0x01, USER = 0x02, GROUP = 0x04, OTHER_GROUP = 0x08, MASK = 0x10, OTHERS = 0x20 };

/* Both little endian, as the kernel has them. */
struct entry {
        uint16_t tag, rights;
        uint32_t id;
};

struct list {
        uint32_t version;
        struct entry entry[ENTRIES_MAX];
};

static struct entry *find_acl_entry(struct list *list, size_t count, unsigned tag, uint32_t id)
{
        for (size_t i = 0; i < count; i++)
                if (le16toh(list->entry[i].tag) == tag && (tag != USER || le32toh(list->entry[i].id) == id))
                        return &list->entry[i];
        return NULL;
}

static int acl_add(struct list *list, size_t *count, unsigned tag, unsigned rights, uint32_t id)
{
        struct entry *entry = find_acl_entry(list, *count, tag, id);

        if (entry) {
                entry->rights = htole16((uint16_t)(le16toh(entry->rights) | rights));
                return 0;
        }
        if (*count == ENTRIES_MAX)
                return -E2BIG;
        list->entry[(*count)++] =
                (struct entry){htole16((uint16_t)tag), htole16((uint16_t)rights), htole32(id)};
        return 0;
}

static int compare_entries(const void *a, const void *b)
{
        const struct entry *one = a, *other = b;
        const uint64_t first = (uint64_t)le16toh(one->tag) << 32 | le32toh(one->id);
        const uint64_t second = (uint64_t)le16toh(other->tag) << 32 | le32toh(other->id);

        return (first > second) - (first < second);
}

/* The present list, or one that is equal to the mode. */
static int read_list(int fd, struct list *list, size_t *ret_count)
{
        ssize_t size = fgetxattr(fd, ATTRIBUTE, list, sizeof(*list));
        struct stat st;
        int r;

        if (size >= (ssize_t)sizeof(list->version)) {
                *ret_count = ((size_t)size - sizeof(list->version)) / sizeof(struct entry);
                return le32toh(list->version) == VERSION ? 0 : -EOPNOTSUPP;
        }
        if (size < 0 && errno != ENODATA)
                return errno == ERANGE ? -E2BIG : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        *ret_count = 0;
        list->version = htole32(VERSION);
        r = acl_add(list, ret_count, OWNER, st.st_mode >> 6 & 7, NOBODY);
        if (r >= 0)
                r = acl_add(list, ret_count, GROUP, st.st_mode >> 3 & 7, NOBODY);
        if (r >= 0)
                r = acl_add(list, ret_count, MASK, st.st_mode >> 3 & 7, NOBODY);
        return r < 0 ? r : acl_add(list, ret_count, OTHERS, st.st_mode & 7, NOBODY);
}

/* A list that was inherited, or whose mode was changed, names users whom its mask stops. A wider mask would let them in. */
static void drop_masked(struct list *list, size_t count)
{
        const struct entry *mask = find_acl_entry(list, count, MASK, NOBODY);

        for (size_t i = 0; i < count && mask; i++) {
                struct entry *entry = &list->entry[i];
                unsigned tag = le16toh(entry->tag);

                if (tag == USER || tag == GROUP || tag == OTHER_GROUP)
                        entry->rights &= mask->rights;
        }
}

int acl_allow(int fd, const uid_t *user, size_t count, unsigned rights)
{
        _cleanup_free_ struct list *list = calloc(1, sizeof(*list));
        size_t entries = 0;
        int r = list ? read_list(fd, list, &entries) : -ENOMEM;

        if (r >= 0)
                drop_masked(list, entries);
        for (size_t i = 0; i < count && r >= 0; i++)
                r = acl_add(list, &entries, USER, rights, user[i]);
        if (r >= 0) /* without it the entries of users count for nothing */
                r = acl_add(list, &entries, MASK, rights, NOBODY);
        if (r < 0)
                return r;
        qsort(list->entry, entries, sizeof(struct entry), compare_entries);
        return fsetxattr(fd, ATTRIBUTE, list, sizeof(list->version) + entries * sizeof(struct entry), 0) < 0
                       ? -errno
                       : 0;
}

static bool is_strangers(const struct entry *entry, gid_t group)
{
        uint32_t id = le32toh(entry->id);

        switch (le16toh(entry->tag)) {
        case USER:
                return id != 0 && id != geteuid();
        case GROUP:
                return group != 0 && !group_member(group);
        case OTHER_GROUP:
                return id != 0 && !group_member(id);
        default: /* the owner, and all others: the mode says what they may do */
                return false;
        }
}

enum acl_writers acl_writers(const char *path, gid_t group)
{
        _cleanup_free_ struct list *list = calloc(1, sizeof(*list));
        ssize_t size = list ? getxattr(path, ATTRIBUTE, list, sizeof(*list)) : -1;
        const struct entry *mask;
        size_t count;

        if (list && size < 0 && (errno == ENODATA || errno == EOPNOTSUPP))
                return ACL_WRITERS_BY_MODE;
        if (size < (ssize_t)sizeof(list->version) || le32toh(list->version) != VERSION)
                return ACL_WRITERS_STRANGERS;
        count = ((size_t)size - sizeof(list->version)) / sizeof(struct entry);
        mask = find_acl_entry(list, count, MASK, NOBODY);
        for (size_t i = 0; i < count; i++)
                if (le16toh(list->entry[i].rights) & ACL_WRITE &&
                    (!mask || le16toh(mask->rights) & ACL_WRITE) && is_strangers(&list->entry[i], group))
                        return ACL_WRITERS_STRANGERS;
        return ACL_WRITERS_TRUSTED;
}
