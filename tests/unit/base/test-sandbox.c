/* SPDX-License-Identifier: Apache-2.0 */
/* The sandbox, by trying to break out of it: each attempt in a process of its own, which must die of it, or
 * be refused. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <netdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "os/sandbox/landlock.h"
#include "os/sandbox/sandbox.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1 /* its leak check needs processes */
#endif

static const struct sandbox with_connections = {.connects = true,
                                                .threads = true,
                                                .code = true}, /* a watcher */
        without = {.connects = false}, gateway = {.local = true},
                            supervisor = {.connects = true,
                                          .listens = true,
                                          .local = true,
                                          .threads = true,
                                          .children = true,
                                          .code = true};

/* Exit status of a process that enters the sandbox and tries; -1: it was ended for it. */
static int try_in(const struct sandbox *sandbox, int (*attempt)(void))
{
        pid_t pid = fork();
        int status;

        if (pid == 0) {
                prctl(PR_SET_DUMPABLE, 0); /* no core file of a death that is meant */
                if (sandbox_enter(sandbox) < 0)
                        _exit(99);
                _exit(attempt());
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (WIFSIGNALED(status)) {
                assert_int_equal(WTERMSIG(status), SIGSYS);
                return -1;
        }
        return WEXITSTATUS(status);
}

static int attempt_execve(void)
{
        char *const argument[] = {(char[]){"/bin/true"}, NULL}, *const environment[] = {NULL};

        execve(argument[0], argument, environment);
        return 1;
}

static int attempt_setuid(void)
{
        return setuid(1) < 0 ? 1 : 0;
}

static int attempt_unshare(void)
{
        return (int)syscall(SYS_unshare, 0);
}

static int attempt_look_into_another(void)
{
        return (int)syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0);
}

static int attempt_connect(void)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/nonexistent/socket"};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        return connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ENOENT ? 0 : 1;
}

static int attempt_listen(void)
{
        return listen(socket(AF_UNIX, SOCK_STREAM, 0), 1) < 0 ? 1 : 0;
}

static int attempt_network(void)
{
        return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == EAFNOSUPPORT ? 0 : 1;
}

static int attempt_raw(void)
{
        return socket(AF_PACKET, SOCK_RAW, 0) < 0 && errno == EAFNOSUPPORT ? 0 : 1;
}

static void test_local(void **state)
{
        (void)state;
        assert_int_equal(try_in(&supervisor, attempt_network), 0);
        assert_int_equal(try_in(&supervisor, attempt_raw), 0);
        assert_int_equal(try_in(&supervisor, attempt_connect), 0);
        assert_int_equal(try_in(&supervisor, attempt_listen), 1); /* not bound, but it lives */
        assert_int_equal(try_in(&supervisor, attempt_execve), -1);
        assert_int_equal(try_in(&with_connections, attempt_network), 1);
}

static int attempt_signal(void)
{
        return kill(getppid(), 0) < 0 ? 1 : 0;
}

static int attempt_abort(void)
{
        signal(SIGABRT, SIG_IGN);
        return raise(SIGABRT) != 0;
}

static int attempt_signal_by_thread(void)
{
        return (int)syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static void test_signals(void **state)
{
        (void)state;
        assert_int_equal(try_in(&with_connections, attempt_signal), -1);
        assert_int_equal(try_in(&without, attempt_signal_by_thread), -1);
        assert_int_equal(try_in(&without, attempt_abort), 0);
        assert_int_equal(try_in(&supervisor, attempt_signal), 0);
}

/* ---- what is on the list, and what is not */

/* 0: it has failed so. */
static int failed(long r, int error)
{
        return r >= 0 ? 1 : errno == error ? 0 : 2;
}

static int attempt_signal_by_descriptor(void)
{
        const struct f_owner_ex owner = {F_OWNER_PID, getppid()};
        pid_t parent = getppid();
        int fd[2];

        if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) < 0)
                return 3;
        return failed(fcntl(fd[0], F_SETOWN, parent), EINVAL) +
               failed(fcntl(fd[0], F_SETOWN_EX, &owner), EINVAL) +
               failed(fcntl(fd[0], F_SETSIG, SIGTERM), EINVAL) +
               failed(ioctl(fd[0], FIOSETOWN, &parent), ENOTTY) +
               failed(ioctl(fd[0], SIOCSPGRP, &parent), ENOTTY);
}

static int attempt_limits(void)
{
        struct rlimit limit;

        if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
                return 3;
        return failed(setrlimit(RLIMIT_NOFILE, &limit), EPERM) +
               failed(prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit), EPERM) +
               failed(prlimit(getppid(), RLIMIT_NOFILE, &limit, NULL), EPERM);
}

static int attempt_sockets(void)
{
        return failed(socket(AF_UNIX, SOCK_SEQPACKET, 0), ESOCKTNOSUPPORT) +
               failed(socket(AF_NETLINK, SOCK_RAW, 0), EAFNOSUPPORT) +
               failed(socket(AF_VSOCK, SOCK_STREAM, 0), EAFNOSUPPORT) +
               failed(socket(AF_ALG, SOCK_SEQPACKET, 0), EAFNOSUPPORT) +
               failed(socket(AF_PACKET, SOCK_RAW, 0), EAFNOSUPPORT);
}

static int attempt_raw_internet(void)
{
        return failed(socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, 1), ESOCKTNOSUPPORT);
}

static int attempt_unlisted_by_any(void)
{
        int r = failed(syscall(4000), ENOSYS);

        r += failed(syscall(SYS_inotify_init1, 0), ENOSYS);
        r += failed(syscall(SYS_setpriority, 0, 0, 1), ENOSYS);
        r += failed(syscall(SYS_shmget, 0, 4096, 0600), ENOSYS);
        r += failed(syscall(SYS_setpgid, 0, 0), ENOSYS);
        r += failed(syscall(SYS_symlinkat, "/", -1, "x"), ENOSYS);
        return r;
}

static int attempt_unlisted(void)
{
        return attempt_unlisted_by_any() + failed(syscall(SYS_pidfd_open, getppid(), 0), ENOSYS);
}

/* What only the supervisor needs; it sets nobody's limits all the same. */
static int attempt_of_supervisor(void)
{
        struct rlimit limit;

        return (syscall(SYS_pidfd_open, getppid(), 0) < 0) + (socket(AF_UNIX, SOCK_SEQPACKET, 0) < 0) +
               (prlimit(getppid(), RLIMIT_NOFILE, NULL, &limit) < 0) +
               failed(waitpid(-1, NULL, WNOHANG), ECHILD) + (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0) +
               failed(prlimit(getppid(), RLIMIT_NOFILE, &limit, NULL), EPERM);
}

static int attempt_names(void)
{
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        struct addrinfo *found = NULL;
        int r = getaddrinfo("localhost", "443", &hints, &found);

        if (r == 0)
                freeaddrinfo(found);
        return r == 0 ? 0 : 1;
}

static void test_list(void **state)
{
        static int (*const attempt[])(void) = {attempt_signal_by_descriptor, attempt_limits, attempt_sockets,
                                               attempt_unlisted};

        (void)state;
        for (size_t i = 0; i < sizeof(attempt) / sizeof(attempt[0]); i++) {
                assert_int_equal(try_in(&gateway, attempt[i]), 0);
                assert_int_equal(try_in(&with_connections, attempt[i]), 0);
        }
        assert_int_equal(try_in(&with_connections, attempt_raw_internet), 0);
        assert_int_equal(try_in(&with_connections, attempt_names), 0);
        assert_int_equal(try_in(&supervisor, attempt_signal_by_descriptor), 0);
        assert_int_equal(try_in(&supervisor, attempt_unlisted_by_any), 0);
        assert_int_equal(try_in(&supervisor, attempt_of_supervisor), 0);
}

#ifndef SANITIZED
static int attempt_new_code(void)
{
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

        return failed(mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
                                      MAP_FAILED
                              ? 0
                              : -1,
                      EPERM) +
               failed(mprotect(page, 4096, PROT_READ | PROT_EXEC), EPERM);
}

static int attempt_dumpable(void)
{
        return failed(prctl(PR_SET_DUMPABLE, 1), EINVAL) + (prctl(PR_SET_NAME, "other") != 0);
}

static void test_process(void **state)
{
        (void)state;
        assert_int_equal(try_in(&gateway, attempt_new_code), 0);
        assert_int_equal(try_in(&with_connections, attempt_new_code), 2);
        assert_int_equal(try_in(&gateway, attempt_dumpable), 0);
        assert_int_equal(try_in(&with_connections, attempt_dumpable), 0);
}
#endif

/* ---- rights */

static bool has_right(unsigned right)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {0};

        return syscall(SYS_capget, &header, data) == 0 &&
               (data[0].effective | data[0].permitted | data[0].inheritable) & (1U << right);
}

/* 0: as it must be. Reading what is others' stays: a key in somebody's folder. */
static int attempt_rights(void)
{
        bool read = has_right(CAP_DAC_READ_SEARCH);

        if (sandbox_give_up_rights() < 0)
                return 1;
        if (has_right(CAP_SYS_ADMIN) || has_right(CAP_SETUID) || has_right(CAP_KILL) ||
            has_right(CAP_SYS_PTRACE) || has_right(CAP_NET_ADMIN))
                return 2;
        if (has_right(CAP_DAC_READ_SEARCH) != read)
                return 3;
        return geteuid() == 0 && setuid(1) == 0 ? 4 : 0;
}

static void test_rights(void **state)
{
        int status;
        pid_t pid = fork();

        (void)state;
        if (pid == 0)
                _exit(attempt_rights());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void test_programs_and_privileges(void **state)
{
        static int (*const attempt[])(void) = {attempt_execve, attempt_setuid, attempt_unshare,
                                               attempt_look_into_another, attempt_listen};

        (void)state;
        for (size_t i = 0; i < sizeof(attempt) / sizeof(attempt[0]); i++) {
                assert_int_equal(try_in(&without, attempt[i]), -1);
                assert_int_equal(try_in(&with_connections, attempt[i]), -1);
        }
}

static long number;

static int attempt_number(void)
{
        return (int)syscall(number, -1, -1, -1, -1, -1, -1);
}

static void test_each(void **state)
{
        static const long call[] = {
                SYS_execve,
                SYS_keyctl,
                SYS_umount2,
                SYS_mknodat,
                SYS_io_uring_enter,
                SYS_kcmp,
                SYS_setfsuid,
                SYS_open_tree,
                SYS_execveat,
                SYS_process_vm_readv,
                SYS_pidfd_getfd,
                SYS_kexec_load,
                SYS_process_vm_writev,
                SYS_init_module,
                SYS_finit_module,
                SYS_mount,
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
                SYS_bpf,
                SYS_userfaultfd,
                SYS_io_uring_setup,
                SYS_perf_event_open,
#ifndef SANITIZED
                SYS_ptrace,
#ifdef SYS_fork
                SYS_fork,
                SYS_vfork,
#endif
#endif
        };

        (void)state;
        for (size_t i = 0; i < sizeof(call) / sizeof(*call); i++) {
                number = call[i];
                assert_int_equal(try_in(&with_connections, attempt_number), -1);
                assert_int_equal(try_in(&supervisor, attempt_number), -1);
        }
}

#ifdef __x86_64__
/* What is forbidden by one name is not to be had by another: x32's numbers, and those of 32 bits. */
static int attempt_old_execve(void)
{
        int r;

        __asm__ volatile("int $0x80" : "=a"(r) : "a"(11), "b"(0), "c"(0), "d"(0) : "memory");
        return r == 0;
}

static void test_other_numbers(void **state)
{
        (void)state;
        number = 0x40000000 | SYS_getpid;
        assert_int_equal(try_in(&with_connections, attempt_number), -1);
        assert_int_equal(try_in(&with_connections, attempt_old_execve), -1);
}
#endif

static void test_connections(void **state)
{
        (void)state;
        assert_int_equal(try_in(&without, attempt_connect), -1);
        assert_int_equal(try_in(&with_connections, attempt_connect), 0);
}

#ifndef SANITIZED
static int attempt_fork(void)
{
        return fork() < 0 ? 1 : 0;
}

static int attempt_vfork(void)
{
        pid_t pid =
                (pid_t)syscall(SYS_clone, 0x4000 | 0x100 | SIGCHLD, 0, 0, 0, 0); /* CLONE_VFORK | CLONE_VM */

        if (pid == 0)
                _exit(0);
        return 1;
}

static int attempt_ptrace(void)
{
        return (int)ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static void *thread(void *userdata)
{
        return userdata;
}

static int attempt_thread(void)
{
        char told = 0;
        pthread_t id;
        void *back = NULL;

        return pthread_create(&id, NULL, thread, &told) == 0 && pthread_join(id, &back) == 0 && back == &told
                       ? 0
                       : 1;
}

static void test_processes(void **state)
{
        (void)state;
        assert_int_equal(try_in(&without, attempt_fork), -1);
        assert_int_equal(try_in(&with_connections, attempt_fork), -1);
        assert_int_equal(try_in(&with_connections, attempt_vfork), -1);
        assert_int_equal(try_in(&with_connections, attempt_ptrace), -1);
        assert_int_equal(try_in(&without, attempt_thread), -1);
        assert_int_equal(try_in(&with_connections, attempt_thread), 0); /* names are resolved in one */
        assert_int_equal(try_in(&supervisor, attempt_thread), 0);       /* that of the ledger */
        assert_int_equal(try_in(&supervisor, attempt_fork), -1);
}
#endif

/* ---- writing */

static char inside[64], outside[64], file[80];

static bool can_write(const char *folder)
{
        char path[128];
        int fd;

        snprintf(path, sizeof(path), "%s/file", folder);
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (fd < 0)
                return false;
        close(fd);
        return unlink(path) == 0;
}

static bool can_change(const char *folder)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/made", folder);
        return mkdir(path, 0700) == 0 && rmdir(path) == 0;
}

/* 0: as it must be; 77: this kernel has no Landlock, and then nothing else has changed. */
static int attempt_writes(void)
{
        const char *const path[] = {inside, "/nonexistent", file, NULL};
        int r = landlock_restrict(path, NULL);

        if (r == -EOPNOTSUPP)
                return can_write(inside) && can_write(outside) ? 77 : 1;
        if (r < 0)
                return 2;
        if (!can_write(inside) || !can_change(inside))
                return 3;
        if (can_write(outside) || errno != EACCES || can_change(outside))
                return 4;
        if (open(file, O_WRONLY | O_TRUNC) < 0 || unlink(file) == 0)
                return 5;
        if (attempt_execve() != 1 || errno != EACCES)
                return 6;
        return open("/etc/passwd", O_RDONLY) < 0 ? 7 : 0; /* reading stays */
}

static bool can_read(const char *path)
{
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

/* As attempt_writes(): a watcher, which reads its own folder and what libraries need. */
static int attempt_reads(void)
{
        const char *const writes[] = {inside, outside, NULL}, *const reads[] = {"/etc", inside, NULL};
        int r = landlock_restrict(writes, reads);

        if (r == -EOPNOTSUPP)
                return can_read(file) ? 77 : 1;
        if (r < 0)
                return 2;
        if (can_read(file) || errno != EACCES || can_read(outside))
                return 3;
        if (!can_write(inside) || !can_read(inside) || can_write("/etc"))
                return 4;
        return can_read("/etc/passwd") && can_read("/proc/self/maps") && can_read("/dev/urandom") &&
                               attempt_names() == 0
                       ? 0
                       : 5;
}

static void test_files(int (*attempt)(void))
{
        int status, fd;
        pid_t pid;

        snprintf(inside, sizeof(inside), "/tmp/reconciled-sandbox-XXXXXX");
        snprintf(outside, sizeof(outside), "/tmp/reconciled-sandbox-XXXXXX");
        assert_non_null(mkdtemp(inside));
        assert_non_null(mkdtemp(outside));
        snprintf(file, sizeof(file), "%s/file", outside);
        fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        close(fd);
        pid = fork();
        if (pid == 0)
                _exit(attempt());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        unlink(file);
        rmdir(inside);
        rmdir(outside);
        assert_true(WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
                print_message(
                        "this kernel has no Landlock: what is promised is that nothing else changes\n");
        else
                assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_writing(void **state)
{
        (void)state;
        test_files(attempt_writes);
}

static void test_reading(void **state)
{
        (void)state;
        test_files(attempt_reads);
}

int main(void)
{
        const struct CMUnitTest test[] = {
                cmocka_unit_test(test_programs_and_privileges),
                cmocka_unit_test(test_each),
#ifdef __x86_64__
                cmocka_unit_test(test_other_numbers),
#endif
                cmocka_unit_test(test_connections),
                cmocka_unit_test(test_local),
                cmocka_unit_test(test_signals),
                cmocka_unit_test(test_list),
                cmocka_unit_test(test_rights),
#ifndef SANITIZED
                cmocka_unit_test(test_process),
                cmocka_unit_test(test_processes),
#endif
                cmocka_unit_test(test_writing),
                cmocka_unit_test(test_reading),
        };

        return cmocka_run_group_tests(test, NULL, NULL);
}
