/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
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

static const unsigned deadly[] = {
        SYS_execve,
        SYS_execveat,
        SYS_process_vm_readv,
        SYS_process_vm_writev,
        SYS_pidfd_getfd,
        SYS_process_madvise,
        SYS_kcmp,
        SYS_kexec_load,
        SYS_kexec_file_load,
        SYS_reboot,
        SYS_swapon,
        SYS_swapoff,
        SYS_acct,
        SYS_init_module,
        SYS_finit_module,
        SYS_delete_module,
        SYS_mount,
        SYS_umount2,
        SYS_move_mount,
        SYS_open_tree,
        SYS_fsopen,
        SYS_fsmount,
        SYS_mount_setattr,
        SYS_open_by_handle_at,
        SYS_pivot_root,
        SYS_chroot,
        SYS_unshare,
        SYS_setns,
        SYS_setuid,
        SYS_setgid,
        SYS_setreuid,
        SYS_setregid,
        SYS_setresuid,
        SYS_setresgid,
        SYS_setgroups,
        SYS_setfsuid,
        SYS_setfsgid,
        SYS_mknodat,
        SYS_add_key,
        SYS_request_key,
        SYS_keyctl,
        SYS_clock_settime,
        SYS_settimeofday,
        SYS_bpf,
        SYS_perf_event_open,
        SYS_userfaultfd,
        SYS_io_uring_setup,
        SYS_io_uring_enter,
        SYS_io_uring_register,
#ifdef SYS_mknod /* calls of before, which younger machines do not have */
        SYS_mknod,
#endif
#ifdef SYS_iopl
        SYS_iopl,
        SYS_ioperm,
#endif
#ifndef SANITIZED
#ifdef SYS_fork
        SYS_fork,
        SYS_vfork,
#endif
        SYS_ptrace,
#endif
};

static const unsigned deadly_without_connections[] = {
        SYS_connect,
        SYS_bind,
};

/* ---- the filter: a program that the kernel runs for each system call. Made here, and without allocating:
 * what libseccomp 2.5 loads when an allocation fails in it has gaps, and it says that all is well. */

#if defined(__x86_64__) && !defined(__ILP32__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__powerpc64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARCHITECTURE AUDIT_ARCH_PPC64LE
#elif defined(__riscv) && __riscv_xlen == 64
#define ARCHITECTURE AUDIT_ARCH_RISCV64
#elif defined(__s390x__)
#define ARCHITECTURE AUDIT_ARCH_S390X
#else
#error "which AUDIT_ARCH_ is this machine's?"
#endif

#define X32_CALLS 0x40000000U /* numbers from here on are another set of calls, on x86-64 only */
#define LINES_MAX 256

/* An int in a register of 64 bits. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define FIRST_ARGUMENT offsetof(struct seccomp_data, args[0])
#else
#define FIRST_ARGUMENT (offsetof(struct seccomp_data, args[0]) + 4)
#endif

struct filter {
        struct sock_filter line[LINES_MAX];
        unsigned short count; /* LINES_MAX: it was too small */
};

static void add_instruction(struct filter *filter, unsigned code, uint32_t value, uint8_t skip_if,
                            uint8_t skip_if_not)
{
        if (filter->count < LINES_MAX)
                filter->line[filter->count++] =
                        (struct sock_filter){(uint16_t)code, skip_if, skip_if_not, value};
}

static void load_word(struct filter *filter, size_t offset)
{
        add_instruction(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void filter_returns(struct filter *filter, uint32_t action)
{
        add_instruction(filter, BPF_RET | BPF_K, action, 0, 0);
}

static void begin_filter(struct filter *filter)
{
        load_word(filter, offsetof(struct seccomp_data, arch));
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
        filter_returns(filter, SECCOMP_RET_KILL_PROCESS);
        load_word(filter, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
        add_instruction(filter, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
        filter_returns(filter, SECCOMP_RET_KILL_PROCESS);
#endif
}

static void answer(struct filter *filter, unsigned call, uint32_t action)
{
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
        filter_returns(filter, action);
}

/* Where the first argument compares so with `value` the call is allowed, else it ends with `action`. */
static void answer_unless(struct filter *filter, unsigned call, unsigned compare, uint32_t value,
                          uint32_t action)
{
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
        load_word(filter, FIRST_ARGUMENT);
        add_instruction(filter, BPF_JMP | compare | BPF_K, value, 1, 0);
        filter_returns(filter, action);
        filter_returns(filter, SECCOMP_RET_ALLOW);
}

static void forbid(struct filter *filter, const unsigned *call, size_t count)
{
        for (size_t i = 0; i < count; i++)
                answer(filter, call[i], SECCOMP_RET_KILL_PROCESS);
}

static void forbid_sockets(struct filter *filter, const struct sandbox *sandbox)
{
        if (!sandbox->listens)
                forbid(filter, (const unsigned[]){SYS_listen}, 1);
        if (!sandbox->connects)
                forbid(filter, deadly_without_connections, ELEMENTS(deadly_without_connections));
        /* Said not to exist here, not deadly: the C library's look-up of a name may try it. */
        if (sandbox->local)
                answer_unless(filter, SYS_socket, BPF_JEQ, AF_UNIX, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

/* A thread is a clone as well. What clone3 is asked for stands in memory, where no filter can look: it is
 * said not to exist, and the C library then takes clone. */
static void forbid_processes(struct filter *filter, bool threads)
{
#ifdef SANITIZED
        (void)filter;
        (void)threads;
#else
        if (threads) {
                answer_unless(filter, SYS_clone, BPF_JSET, CLONE_THREAD, SECCOMP_RET_KILL_PROCESS);
                answer(filter, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
        } else {
                forbid(filter, (const unsigned[]){SYS_clone, SYS_clone3}, 2);
        }
#endif
}

/* But to oneself, which is how abort() ends a process. */
static void forbid_signals(struct filter *filter)
{
        static const unsigned call[] = {SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
                                        SYS_pidfd_send_signal};

        forbid(filter, call, ELEMENTS(call));
        answer_unless(filter, SYS_tgkill, BPF_JEQ, (uint32_t)getpid(), SECCOMP_RET_KILL_PROCESS);
}

/* The kernel has no such thing, it is turned off, or a container does not let us. */
static int not_there(int status)
{
        return status == -EINVAL || status == -ENOSYS || status == -EPERM || status == -EACCES ? -EOPNOTSUPP
                                                                                               : status;
}

static int enter(struct filter *filter)
{
        const struct sock_fprog program = {.len = filter->count, .filter = filter->line};
        long r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program);

        if (r > 0) /* a thread that has filters of its own */
                return -EBUSY;
        return r < 0 ? not_there(-errno) : 0;
}

int sandbox_enter(const struct sandbox *sandbox)
{
        struct filter filter = {0};

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        begin_filter(&filter);
        forbid(&filter, deadly, ELEMENTS(deadly));
        forbid_sockets(&filter, sandbox);
        forbid_processes(&filter, sandbox->threads);
        if (!sandbox->signals)
                forbid_signals(&filter);
        filter_returns(&filter, SECCOMP_RET_ALLOW);
        return filter.count < LINES_MAX ? enter(&filter) : -E2BIG;
}

/* ---- Landlock: no library has it in Debian 12, and it is three system calls */

#define WRITES                                                                                              \
        (LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |   \
         LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG |         \
         LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_BLOCK |      \
         LANDLOCK_ACCESS_FS_MAKE_SYM)
#define ACCESS_REFER    (UINT64_C(1) << 13) /* since version 2 */
#define ACCESS_TRUNCATE (UINT64_C(1) << 14) /* since version 3 */

/* The write rights that this version of Landlock knows. */
static uint64_t writes_of_version(long version)
{
        return WRITES | (version >= 2 ? ACCESS_REFER : 0) | (version >= 3 ? ACCESS_TRUNCATE : 0);
}

/* Fewer rights apply to a file than to a folder. */
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
        uint32_t too_many = 0;

        if (syscall(SYS_capget, &header, data) < 0)
                return not_there(-errno);
        for (size_t i = 0; i < ELEMENTS(data); i++) {
                uint32_t keep = i == 0 ? kept : 0;

                too_many |= (data[i].permitted & ~keep) | data[i].inheritable;
                data[i].effective &= keep;
                data[i].permitted &= keep;
                data[i].inheritable = 0; /* and so is what is ambient */
        }
        return too_many && syscall(SYS_capset, &header, data) < 0 ? not_there(-errno) : 0;
}
