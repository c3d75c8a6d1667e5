/* SPDX-License-Identifier: Apache-2.0 */
/* No library has it in Debian 12, and it is three system calls. */
#include "os/sandbox/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/syscall.h"

#define WRITES                                                                                              \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |   \
         LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |         \
         LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |      \
         LANDLOCK_ACCESS_FS_MAKE_SYM)
#define ACCESS_REFER    (UINT64_C(1) << 13) /* since version 2 */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14) /* since version 3 */

#define READS (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)

/* What libraries read once they are loaded, and what they load later: modules, locales, time zones, certificates of
 * the system, settings of TLS. Of /proc others hide their memory and environment themselves, and of /dev there is no
 * more, since memory for everybody lies there (/dev/shm). */
static const char *const read_by_libraries[] = {
        "/usr",
        "/lib",
        "/lib64",
        "/opt",
        "/nix/store",
        "/gnu/store",
        "/proc",
        "/sys",
        "/dev/null",
        "/dev/zero",
        "/dev/random",
        "/dev/urandom",
        "/etc/ld.so.cache",
        "/etc/localtime",
        "/etc/ssl",
        "/etc/pki",
        "/etc/gnutls",
        "/etc/crypto-policies",
        NULL,
};

/* The write rights that this version of Landlock knows. */
static uint64_t writes_of_version(long version)
{
        return WRITES | (version >= 2 ? ACCESS_REFER : 0) | (version >= 3 ? ACCESS_TRUNCATE : 0);
}

/* What is not there, or not for us, needs no rule. Fewer rights apply to a file than to a folder. */
static int add_path(int ruleset, const char *path, uint64_t access)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        struct landlock_path_beneath_attr beneath = {.parent_fd = fd};
        struct stat st;

        if (fd < 0)
                return errno == ENOENT || errno == ENOTDIR || errno == EACCES || errno == ELOOP ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        beneath.allowed_access = S_ISDIR(st.st_mode)
                                         ? access
                                         : access & (LANDLOCK_ACCESS_FS_WRITE_FILE |
                                                     LANDLOCK_ACCESS_FS_READ_FILE | ACCESS_TRUNCATE);
        return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0 ? -errno
                                                                                                    : 0;
}

static int add_paths(int ruleset, const char *const *path, uint64_t access)
{
        int r = 0;

        for (; *path && r >= 0; path++)
                r = add_path(ruleset, *path, access);
        return r;
}

static int restrict_self(int ruleset, const char *const *writes, const char *const *reads, uint64_t handled)
{
        int r = add_paths(ruleset, writes, handled & ~(uint64_t)(LANDLOCK_ACCESS_FS_EXECUTE | READS));

        if (r >= 0 && reads)
                r = add_paths(ruleset, reads, READS);
        if (r >= 0 && reads)
                r = add_paths(ruleset, read_by_libraries, READS);
        if (r < 0)
                return r;
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? sys_not_there(-errno) : 0;
}

static long landlock_version(void)
{
        return syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
}

bool landlock_exists(void)
{
        return landlock_version() >= 0;
}

int landlock_restrict(const char *const *writes, const char *const *reads)
{
        long version = landlock_version();
        struct landlock_ruleset_attr attribute = {.handled_access_fs = writes_of_version(version) |
                                                                       LANDLOCK_ACCESS_FS_EXECUTE |
                                                                       (reads ? READS : 0)};
        _cleanup_close_ int ruleset = -1;

        if (version < 0)
                return sys_not_there(-errno);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        ruleset = (int)syscall(SYS_landlock_create_ruleset, &attribute, sizeof(attribute), 0);
        if (ruleset < 0)
                return sys_not_there(-errno);
        return restrict_self(ruleset, writes, reads, attribute.handled_access_fs);
}
