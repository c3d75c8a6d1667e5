/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* The leak check of a sanitized build looks at its own process from a clone. */
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static const int deadly[] = {
        SCMP_SYS(execve),
        SCMP_SYS(execveat),
        SCMP_SYS(process_vm_readv),
        SCMP_SYS(process_vm_writev),
        SCMP_SYS(pidfd_getfd),
        SCMP_SYS(kexec_load),
        SCMP_SYS(init_module),
        SCMP_SYS(finit_module),
        SCMP_SYS(mount),
        SCMP_SYS(pivot_root),
        SCMP_SYS(chroot),
        SCMP_SYS(unshare),
        SCMP_SYS(setns),
        SCMP_SYS(setuid),
        SCMP_SYS(setgid),
        SCMP_SYS(setreuid),
        SCMP_SYS(setregid),
        SCMP_SYS(setresuid),
        SCMP_SYS(setresgid),
        SCMP_SYS(setgroups),
        SCMP_SYS(bpf),
        SCMP_SYS(perf_event_open),
        SCMP_SYS(userfaultfd),
        SCMP_SYS(io_uring_setup),
#ifndef SANITIZED
        SCMP_SYS(fork),
        SCMP_SYS(vfork),
        SCMP_SYS(ptrace),
#endif
};

static const int deadly_without_connections[] = {
        SCMP_SYS(connect),
        SCMP_SYS(bind),
};

static int forbid(scmp_filter_ctx filter, const int *call, size_t count)
{
        int r = 0;

        for (size_t i = 0; i < count && r >= 0; i++)
                r = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, call[i], 0);
        return r;
}

/* Said not to exist here, not deadly: the C library's look-up of a name may try it. */
static int only_local_sockets(scmp_filter_ctx filter)
{
        return seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
                                SCMP_A0(SCMP_CMP_NE, AF_UNIX));
}

static int forbid_sockets(scmp_filter_ctx filter, const struct sandbox *sandbox)
{
        int r = 0;

        if (!sandbox->listens)
                r = forbid(filter, (const int[]){SCMP_SYS(listen)}, 1);
        if (r >= 0 && !sandbox->connects)
                r = forbid(filter, deadly_without_connections, ELEMENTS(deadly_without_connections));
        return r >= 0 && sandbox->local ? only_local_sockets(filter) : r;
}

/* A thread is a clone as well. What clone3 is asked for stands in memory, where no filter can look: it is
 * said not to exist, and the C library then takes clone. */
static int forbid_processes(scmp_filter_ctx filter, bool threads)
{
#ifdef SANITIZED
        (void)filter;
        (void)threads;
        return 0;
#else
        int r;

        if (!threads)
                return forbid(filter, (const int[]){SCMP_SYS(clone), SCMP_SYS(clone3)}, 2);
        r = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(clone), 1,
                             SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
        return r < 0 ? r : seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
#endif
}

int sandbox_enter(const struct sandbox *sandbox)
{
        scmp_filter_ctx filter;
        int r;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        filter = seccomp_init(SCMP_ACT_ALLOW);
        if (!filter)
                return -ENOMEM;
        r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
        if (r >= 0)
                r = seccomp_attr_set(filter, SCMP_FLTATR_API_SYSRAWRC, 1);
        if (r >= 0)
                r = forbid(filter, deadly, ELEMENTS(deadly));
        if (r >= 0)
                r = forbid_sockets(filter, sandbox);
        if (r >= 0)
                r = forbid_processes(filter, sandbox->connects);
        if (r >= 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r == -EINVAL || r == -ENOSYS ? -EOPNOTSUPP : r;
}

/* ---- Landlock: no library has it in Debian 12, and it is three system calls */

#define WRITES                                                                                              \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |   \
         LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |         \
         LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |      \
         LANDLOCK_ACCESS_FS_MAKE_SYM)
#define ACCESS_REFER    (UINT64_C(1) << 13) /* since version 2 */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14) /* since version 3 */

/* Of what this kernel knows. */
static uint64_t writes_of_version(long version)
{
        return WRITES | (version >= 2 ? ACCESS_REFER : 0) | (version >= 3 ? ACCESS_TRUNCATE : 0);
}

static int add_folder(int ruleset, const char *folder, uint64_t access)
{
        _cleanup_close_ int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        struct landlock_path_beneath_attr beneath = {.allowed_access = access, .parent_fd = fd};

        if (fd < 0)
                return -errno;
        return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0 ? -errno
                                                                                                    : 0;
}

int sandbox_write_only_below(const char *folder)
{
        long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        struct landlock_ruleset_attr attribute = {.handled_access_fs = writes_of_version(version)};
        _cleanup_close_ int ruleset = -1;
        int r;

        if (version < 0)
                return errno == ENOSYS ? -EOPNOTSUPP : -errno;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        ruleset = (int)syscall(SYS_landlock_create_ruleset, &attribute, sizeof(attribute), 0);
        if (ruleset < 0)
                return -errno;
        r = add_folder(ruleset, folder, attribute.handled_access_fs);
        if (r < 0)
                return r;
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
