/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "os/syscall.h"

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

/* What supervisor, watchers, gateway and credential process, glibc, SQLite, libcurl with OpenSSL, LMDB, jq and libmicrohttpd with
 * GnuTLS need once they are set up, on Debian 12 and later. The calls that are made most come first. */
static const unsigned allowed[] = {
        SYS_read,
        SYS_write,
        SYS_recvfrom,
        SYS_sendto,
        SYS_epoll_pwait,
        SYS_epoll_ctl,
        SYS_futex,
        SYS_recvmsg,
        SYS_sendmsg,
        SYS_pwrite64,
        SYS_pread64,
        SYS_close,
        SYS_timerfd_settime,
        SYS_clock_gettime,
        /* descriptors */
        SYS_readv,
        SYS_writev,
        SYS_preadv,
        SYS_pwritev,
        SYS_preadv2,
        SYS_pwritev2,
        SYS_lseek,
        SYS_dup,
        SYS_dup3,
        SYS_close_range,
        SYS_pipe2,
        SYS_eventfd2,
        SYS_signalfd4,
        SYS_timerfd_create,
        SYS_timerfd_gettime,
        SYS_epoll_create1,
        SYS_ppoll,
        SYS_pselect6,
        SYS_sendfile,
        SYS_fadvise64,
        SYS_readahead,
        SYS_flock,
        SYS_fsync,
        SYS_fdatasync,
        SYS_ftruncate,
        SYS_fallocate,
        /* files, as far as Landlock and the file system allow */
        SYS_openat,
        SYS_faccessat,
        SYS_faccessat2,
        SYS_fstat,
        SYS_newfstatat,
        SYS_statx,
        SYS_fstatfs,
        SYS_statfs,
        SYS_readlinkat,
        SYS_getdents64,
        SYS_getcwd,
        SYS_mkdirat,
        SYS_unlinkat,
        SYS_renameat2,
        SYS_fchmod,
        SYS_fchmodat,
        SYS_fchown,
        SYS_fchownat,
        SYS_fsetxattr,
        SYS_fgetxattr,
        SYS_getxattr,
        SYS_fremovexattr,
        SYS_utimensat,
        SYS_umask,
        /* sockets that are there */
        SYS_connect,
        SYS_accept4,
        SYS_getsockname,
        SYS_getpeername,
        SYS_getsockopt,
        SYS_setsockopt,
        SYS_sendmmsg,
        SYS_recvmmsg,
        SYS_shutdown,
        /* memory */
        SYS_brk,
        SYS_munmap,
        SYS_mremap,
        SYS_madvise,
        SYS_mincore,
        SYS_msync,
        SYS_mlock,
        SYS_mlock2,
        SYS_munlock,
        SYS_membarrier,
        SYS_memfd_create, /* a large entry for the journal */
        /* threads and signals: to whom, says the filter of what is deadly */
        SYS_clone,
        SYS_clone3,
        SYS_set_robust_list,
        SYS_get_robust_list,
        SYS_set_tid_address,
        SYS_rseq,
        SYS_sched_yield,
        SYS_sched_getaffinity,
        SYS_sched_getparam,
        SYS_sched_getscheduler,
        SYS_sched_get_priority_max,
        SYS_sched_get_priority_min,
        SYS_getpriority,
        SYS_getcpu,
        SYS_tgkill,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_rt_sigpending,
        SYS_rt_sigsuspend,
        SYS_rt_sigtimedwait,
        SYS_sigaltstack,
        SYS_restart_syscall,
        SYS_exit,
        SYS_exit_group,
        /* time */
        SYS_clock_getres,
        SYS_clock_nanosleep,
        SYS_nanosleep,
        SYS_gettimeofday,
        SYS_times,
        SYS_getitimer,
        SYS_setitimer,
        /* oneself and the machine */
        SYS_getpid,
        SYS_getppid,
        SYS_gettid,
        SYS_getpgid,
        SYS_getsid,
        SYS_getuid,
        SYS_geteuid,
        SYS_getgid,
        SYS_getegid,
        SYS_getresuid,
        SYS_getresgid,
        SYS_getgroups,
        SYS_getrusage,
        SYS_capget,
        SYS_uname,
        SYS_sysinfo,
        SYS_getrandom,
#ifdef SYS_getrlimit /* not every machine has these */
        SYS_getrlimit,
#endif
#ifdef SYS_renameat
        SYS_renameat,
#endif
#ifdef SYS_sync_file_range
        SYS_sync_file_range,
#endif
#ifdef SYS_accept
        SYS_accept,
#endif
#ifdef SYS_time
        SYS_time,
#endif
#ifdef SYS_open /* calls of before, which younger machines do not have */
        SYS_open,
        SYS_access,
        SYS_stat,
        SYS_lstat,
        SYS_readlink,
        SYS_mkdir,
        SYS_rmdir,
        SYS_unlink,
        SYS_rename,
        SYS_chmod,
        SYS_dup2,
        SYS_pipe,
        SYS_poll,
        SYS_select,
        SYS_pause,
        SYS_alarm,
        SYS_getpgrp,
        SYS_epoll_create,
        SYS_epoll_wait,
        SYS_eventfd,
        SYS_signalfd,
        SYS_getdents,
#endif
#ifdef SYS_epoll_pwait2
        SYS_epoll_pwait2,
#endif
#ifdef SYS_futex_waitv
        SYS_futex_waitv,
#endif
#ifdef SANITIZED
        SYS_ptrace,
        SYS_wait4,
        SYS_personality,
#endif
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
#define LINES_MAX 512

/* The lower half of a register of 64 bits: an int. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ARGUMENT(n)   offsetof(struct seccomp_data, args[n])
#define UPPER_HALF(n) (ARGUMENT(n) + 4)
#else
#define ARGUMENT(n)   (offsetof(struct seccomp_data, args[n]) + 4)
#define UPPER_HALF(n) offsetof(struct seccomp_data, args[n])
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

static void filter_answer(struct filter *filter, unsigned call, uint32_t action)
{
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1);
        filter_returns(filter, action);
}

/* Allows the call if the comparison of its first argument with `value` holds, else applies `action`. */
static void answer_unless(struct filter *filter, unsigned call, unsigned compare, uint32_t value,
                          uint32_t action)
{
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
        load_word(filter, ARGUMENT(0));
        add_instruction(filter, BPF_JMP | compare | BPF_K, value, 1, 0);
        filter_returns(filter, action);
        filter_returns(filter, SECCOMP_RET_ALLOW);
}

/* Applies `action` if the first argument is `value`. */
static void answer_value(struct filter *filter, unsigned call, uint32_t value, uint32_t action)
{
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
        load_word(filter, ARGUMENT(0));
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
        filter_returns(filter, action);
        load_word(filter, offsetof(struct seccomp_data, nr));
}

static void forbid(struct filter *filter, const unsigned *call, size_t count)
{
        for (size_t i = 0; i < count; i++)
                filter_answer(filter, call[i], SECCOMP_RET_KILL_PROCESS);
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
        else
                answer_value(filter, SYS_socket, AF_NETLINK, SECCOMP_RET_ERRNO | EAFNOSUPPORT);
}

/* A thread is a clone as well. The arguments of clone3 are in memory, where no filter can look: it fails with
 * ENOSYS, and the C library then takes clone. */
static void forbid_processes(struct filter *filter, bool threads)
{
#ifdef SANITIZED
        (void)filter;
        (void)threads;
#else
        if (threads) {
                answer_unless(filter, SYS_clone, BPF_JSET, CLONE_THREAD, SECCOMP_RET_KILL_PROCESS);
                filter_answer(filter, SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS);
        } else {
                forbid(filter, (const unsigned[]){SYS_clone, SYS_clone3}, 2);
        }
#endif
}

/* Forbids signals, but not those to oneself: abort() ends a process so. */
static void forbid_signals(struct filter *filter)
{
        static const unsigned call[] = {SYS_kill, SYS_tkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
                                        SYS_pidfd_send_signal};

        forbid(filter, call, ELEMENTS(call));
        answer_unless(filter, SYS_tgkill, BPF_JEQ, (uint32_t)getpid(), SECCOMP_RET_KILL_PROCESS);
}

/* ---- what is allowed: a second filter. Of what both say, the kernel takes the stricter. */

/* The call goes on with these values of an argument (of its bits in `mask`) only. Others end with this errno, as on a
 * kernel that does not know them. */
static void demand(struct filter *filter, unsigned call, size_t argument, uint32_t mask,
                   const uint32_t *value, uint8_t count, uint32_t error)
{
        add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, call, 0, (uint8_t)(count + 4));
        load_word(filter, argument);
        add_instruction(filter, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
        for (uint8_t i = 0; i < count; i++)
                add_instruction(filter, BPF_JMP | BPF_JEQ | BPF_K, value[i], (uint8_t)(count - i), 0);
        filter_returns(filter, SECCOMP_RET_ERRNO | error);
        load_word(filter, offsetof(struct seccomp_data, nr));
}

#define DEMAND(filter, call, argument, mask, error, ...)                                                    \
        demand(filter, call, argument, mask, (const uint32_t[]){__VA_ARGS__},                               \
               ELEMENTS(((const uint32_t[]){__VA_ARGS__})), error)

#define ALL_BITS     0xffffffffU
#define SOCKET_KINDS 0xfU /* without SOCK_CLOEXEC and its like */

/* No raw sockets, none of the machine itself (AF_VSOCK, AF_ALG), none of the kind of our control socket, but for
 * the one who makes it. AF_NETLINK, which
 * the C library tries with each name, is refused by the other filter: that one leaves nothing in the kernel's log. */
static void allow_sockets(struct filter *filter, const struct sandbox *sandbox)
{
        if (sandbox->local) {
                DEMAND(filter, SYS_socket, ARGUMENT(0), ALL_BITS, EAFNOSUPPORT, AF_UNIX);
        } else {
                answer_value(filter, SYS_socket, AF_NETLINK, SECCOMP_RET_ALLOW);
                DEMAND(filter, SYS_socket, ARGUMENT(0), ALL_BITS, EAFNOSUPPORT, AF_INET, AF_INET6, AF_UNIX);
        }
        if (sandbox->listens) {
                filter_answer(filter, SYS_bind, SECCOMP_RET_ALLOW);
                filter_answer(filter, SYS_listen, SECCOMP_RET_ALLOW);
        } else {
                DEMAND(filter, SYS_socket, ARGUMENT(1), SOCKET_KINDS, ESOCKTNOSUPPORT, SOCK_STREAM,
                       SOCK_DGRAM);
        }
        DEMAND(filter, SYS_socketpair, ARGUMENT(0), ALL_BITS, EAFNOSUPPORT, AF_UNIX);
        filter_answer(filter, SYS_socket, SECCOMP_RET_ALLOW);
        filter_answer(filter, SYS_socketpair, SECCOMP_RET_ALLOW);
}

/* Not allowed: signals to others when something happens to a descriptor (F_SETOWN, F_SETSIG, FIOSETOWN). */
static void allow_descriptors(struct filter *filter)
{
        DEMAND(filter, SYS_fcntl, ARGUMENT(1), ALL_BITS, EINVAL, F_GETFL, F_SETFL, F_GETFD, F_SETFD, F_SETLK,
               F_SETLKW, F_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_OFD_GETLK, F_DUPFD, F_DUPFD_CLOEXEC,
               F_ADD_SEALS, F_GET_SEALS);
        filter_answer(filter, SYS_fcntl, SECCOMP_RET_ALLOW);
        DEMAND(filter, SYS_ioctl, ARGUMENT(1), ALL_BITS, ENOTTY, FIONBIO, FIONREAD, FIOCLEX, FIONCLEX,
               TCGETS, TIOCGWINSZ, SIOCGIFINDEX, SIOCGIFNAME);
        filter_answer(filter, SYS_ioctl, SECCOMP_RET_ALLOW);
}

/* The kernel says to whom it may do that: they have to be of the same user. */
static void allow_children(struct filter *filter)
{
        static const unsigned call[] = {SYS_wait4, SYS_waitid, SYS_kill, SYS_pidfd_open,
                                        SYS_pidfd_send_signal};

        for (size_t i = 0; i < ELEMENTS(call); i++)
                filter_answer(filter, call[i], SECCOMP_RET_ALLOW);
        answer_value(filter, SYS_prctl, PR_SET_CHILD_SUBREAPER, SECCOMP_RET_ALLOW);
}

/* Not allowed: new limits, or those of another process; to be dumpable again. */
static void allow_process(struct filter *filter, bool children)
{
        if (!children)
                DEMAND(filter, SYS_prlimit64, ARGUMENT(0), ALL_BITS, EPERM, 0, (uint32_t)getpid());
        DEMAND(filter, SYS_prlimit64, ARGUMENT(2), ALL_BITS, EPERM, 0);
        DEMAND(filter, SYS_prlimit64, UPPER_HALF(2), ALL_BITS, EPERM, 0);
        filter_answer(filter, SYS_prlimit64, SECCOMP_RET_ALLOW);
#ifndef SANITIZED
        DEMAND(filter, SYS_prctl, ARGUMENT(0), ALL_BITS, EINVAL, PR_SET_NAME, PR_GET_NAME, PR_GET_DUMPABLE,
               PR_SET_VMA, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_READ);
#endif
        filter_answer(filter, SYS_prctl, SECCOMP_RET_ALLOW);
}

/* Libraries and modules of the C library are loaded when they are needed first. Where none is, no memory becomes code. (On
 * s390x the arguments of mmap are in memory.) */
static void allow_memory(struct filter *filter, bool code)
{
#if !defined(SANITIZED) && !defined(__s390x__)
        if (!code) {
                DEMAND(filter, SYS_mmap, ARGUMENT(2), PROT_EXEC, EPERM, 0);
                DEMAND(filter, SYS_mprotect, ARGUMENT(2), PROT_EXEC, EPERM, 0);
        }
#else
        (void)code;
#endif
        filter_answer(filter, SYS_mmap, SECCOMP_RET_ALLOW);
        filter_answer(filter, SYS_mprotect, SECCOMP_RET_ALLOW);
}

static int install_filter(struct filter *filter, unsigned flags)
{
        const struct sock_fprog program = {.len = filter->count, .filter = filter->line};
        long r;

        if (filter->count >= LINES_MAX)
                return -E2BIG;
        r = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC | flags, &program);
        if (r > 0) /* a thread that has filters of its own */
                return -EBUSY;
        return r < 0 ? sys_not_there(-errno) : 0;
}

/* What is on no list does not exist here: a library that has learned a new call takes the old one, and the kernel's
 * log has the number (audit type 1326). */
static int enter_allowed(const struct sandbox *sandbox)
{
        struct filter filter = {0};
        int r;

        begin_filter(&filter);
        for (size_t i = 0; i < ELEMENTS(allowed); i++)
                filter_answer(&filter, allowed[i], SECCOMP_RET_ALLOW);
        allow_descriptors(&filter);
        allow_sockets(&filter, sandbox);
        allow_memory(&filter, sandbox->code);
        if (sandbox->children)
                allow_children(&filter);
        allow_process(&filter, sandbox->children);
        filter_returns(&filter, SECCOMP_RET_ERRNO | ENOSYS);
        r = install_filter(&filter, SECCOMP_FILTER_FLAG_LOG);
        return r == -EOPNOTSUPP ? install_filter(&filter, 0)
                                : r; /* a kernel that cannot log them, as gVisor */
}

int sandbox_enter(const struct sandbox *sandbox)
{
        struct filter filter = {0};
        int r;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        begin_filter(&filter);
        forbid(&filter, deadly, ELEMENTS(deadly));
        forbid_sockets(&filter, sandbox);
        forbid_processes(&filter, sandbox->threads);
        if (!sandbox->children)
                forbid_signals(&filter);
        filter_returns(&filter, SECCOMP_RET_ALLOW);
        r = install_filter(&filter, 0);
        return r < 0 ? r : enter_allowed(sandbox);
}

/* ---- capabilities */

int sandbox_give_up_rights(void)
{
        const uint32_t kept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
        uint32_t too_many = 0;

        if (syscall(SYS_capget, &header, data) < 0)
                return sys_not_there(-errno);
        for (size_t i = 0; i < ELEMENTS(data); i++) {
                uint32_t keep = i == 0 ? kept : 0;

                too_many |= (data[i].permitted & ~keep) | data[i].inheritable;
                data[i].effective &= keep;
                data[i].permitted &= keep;
                data[i].inheritable = 0; /* and so is what is ambient */
        }
        return too_many && syscall(SYS_capset, &header, data) < 0 ? sys_not_there(-errno) : 0;
}
