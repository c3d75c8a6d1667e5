/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A process that reads foreign input gives up rights for good, once it is set up: it runs no program, starts
 * no process and looks into none. A process that tries to is not ours any more: that ends it (SIGSYS), and
 * with it the operator. It also makes no other calls than those on a list: what is not on it fails with
 * ENOSYS, as on an older kernel, for an update of a library must not end operators everywhere; and an argument
 * that is not on it fails as on a kernel that does not know it.
 */
#include <stdbool.h>

struct sandbox {
        bool connects; /* opens connections */
        bool listens;  /* makes sockets that others connect to, of each kind */
        bool local;    /* has sockets of this machine only (AF_UNIX) */
        bool threads;  /* makes some */
        bool children; /* signals and reaps them, and looks at their limits */
        bool code;     /* loads libraries later on */
        bool rights;   /* keeps root's, where it has them: see sandbox_give_up_rights() */
};

/* Seccomp, with NoNewPrivs. Threads that run already are included. -EOPNOTSUPP: the kernel has none, or
 * whoever started us forbids it. */
int sandbox_enter(const struct sandbox *sandbox);

/* Keeps of root's rights (capabilities) only those to read and write files of others. The process can
 * execute nothing, so it gets none back. Other users have none. -EOPNOTSUPP: not allowed (systemd's
 * @privileged may forbid capset as a whole). */
int sandbox_give_up_rights(void);
