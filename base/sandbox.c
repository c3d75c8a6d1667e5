/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
        SCMP_SYS(process_madvise),
        SCMP_SYS(kcmp),
        SCMP_SYS(kexec_load),
        SCMP_SYS(kexec_file_load),
        SCMP_SYS(reboot),
        SCMP_SYS(swapon),
        SCMP_SYS(swapoff),
        SCMP_SYS(acct),
        SCMP_SYS(iopl),
        SCMP_SYS(ioperm),
        SCMP_SYS(init_module),
        SCMP_SYS(finit_module),
        SCMP_SYS(delete_module),
        SCMP_SYS(mount),
        SCMP_SYS(umount2),
        SCMP_SYS(move_mount),
        SCMP_SYS(open_tree),
        SCMP_SYS(fsopen),
        SCMP_SYS(fsmount),
        SCMP_SYS(mount_setattr),
        SCMP_SYS(open_by_handle_at),
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
        SCMP_SYS(setfsuid),
        SCMP_SYS(setfsgid),
        SCMP_SYS(mknod),
        SCMP_SYS(mknodat),
        SCMP_SYS(add_key),
        SCMP_SYS(request_key),
        SCMP_SYS(keyctl),
        SCMP_SYS(clock_settime),
        SCMP_SYS(settimeofday),
        SCMP_SYS(bpf),
        SCMP_SYS(perf_event_open),
        SCMP_SYS(userfaultfd),
        SCMP_SYS(io_uring_setup),
        SCMP_SYS(io_uring_enter),
        SCMP_SYS(io_uring_register),
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

/* But to oneself, which is how abort() ends a process. */
static int forbid_signals(scmp_filter_ctx filter)
{
        static const int call[] = {SCMP_SYS(kill), SCMP_SYS(tkill), SCMP_SYS(rt_sigqueueinfo),
                                   SCMP_SYS(rt_tgsigqueueinfo), SCMP_SYS(pidfd_send_signal)};
        int r = forbid(filter, call, ELEMENTS(call));

        return r < 0 ? r
                     : seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, SCMP_SYS(tgkill), 1,
                                        SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)getpid()));
}

/* The kernel has no such thing, it is turned off, or a container does not let us. */
static int not_there(int status)
{
        return status == -EINVAL || status == -ENOSYS || status == -EPERM || status == -EACCES ? -EOPNOTSUPP
                                                                                               : status;
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
                r = forbid_processes(filter, sandbox->threads);
        if (r >= 0 && !sandbox->signals)
                r = forbid_signals(filter);
        if (r >= 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return not_there(r);
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

/* What can be done to a file is less than what can be done to, and below, a folder. */
static int add_path(int ruleset, const char *path, uint64_t access)
{
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        struct landlock_path_beneath_attr beneath = {.parent_fd = fd};
        struct stat st;

        if (fd < 0)
                return errno == ENOENT ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        beneath.allowed_access =
                S_ISDIR(st.st_mode) ? access : access & (LANDLOCK_ACCESS_FS_WRITE_FILE | ACCESS_TRUNCATE);
        return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0) < 0 ? -errno
                                                                                                    : 0;
}

int sandbox_write_only(const char *const *path)
{
        long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
        uint64_t writes = writes_of_version(version);
        struct landlock_ruleset_attr attribute = {.handled_access_fs = writes | LANDLOCK_ACCESS_FS_EXECUTE};
        _cleanup_close_ int ruleset = -1;
        int r = 0;

        if (version < 0)
                return not_there(-errno);
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        ruleset = (int)syscall(SYS_landlock_create_ruleset, &attribute, sizeof(attribute), 0);
        if (ruleset < 0)
                return not_there(-errno);
        for (; *path && r >= 0; path++)
                r = add_path(ruleset, *path, writes);
        if (r < 0)
                return r;
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? not_there(-errno) : 0;
}

/* ---- capabilities */

int sandbox_give_up_rights(void)
{
        const uint32_t kept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

        if (syscall(SYS_capget, &header, data) < 0)
                return -errno;
        for (size_t i = 0; i < ELEMENTS(data); i++) {
                data[i].effective &= i == 0 ? kept : 0;
                data[i].permitted &= i == 0 ? kept : 0;
                data[i].inheritable = 0; /* and so is what is ambient */
        }
        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}
