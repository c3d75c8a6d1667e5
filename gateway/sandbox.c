/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway is the one process that strangers may talk to. It needs no program, no other process and no
 * new connection: trying to is proof that it is not ours any more, and ends it (and with it the operator).
 */
#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>

#include "base/cleanup.h"
#include "gateway/gateway.h"

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
        SCMP_SYS(connect),
        SCMP_SYS(bind),
        SCMP_SYS(process_vm_readv),
        SCMP_SYS(process_vm_writev),
        SCMP_SYS(kexec_load),
        SCMP_SYS(mount),
        SCMP_SYS(setuid),
        SCMP_SYS(setgid),
        SCMP_SYS(bpf),
        SCMP_SYS(perf_event_open),
#ifndef SANITIZED
        SCMP_SYS(fork),
        SCMP_SYS(vfork),
        SCMP_SYS(clone),
        SCMP_SYS(clone3),
        SCMP_SYS(ptrace),
#endif
};

int gateway_sandbox(void)
{
        scmp_filter_ctx filter;
        int r = 0;

        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return -errno;
        filter = seccomp_init(SCMP_ACT_ALLOW);
        if (!filter)
                return -ENOMEM;
        for (size_t i = 0; i < ELEMENTS(deadly) && r >= 0; i++)
                r = seccomp_rule_add(filter, SCMP_ACT_KILL_PROCESS, deadly[i], 0);
        if (r >= 0)
                r = seccomp_load(filter);
        seccomp_release(filter);
        return r;
}
