/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A process that reads foreign input gives up rights for good, once it is set up: it runs no program, starts
 * no process and looks into none. A process that tries to is not ours any more: that ends it (SIGSYS), and
 * with it the operator.
 */
#include <stdbool.h>

struct sandbox {
        bool connects; /* opens connections */
        bool listens;  /* makes sockets that others connect to */
        bool local;    /* has sockets of this machine only (AF_UNIX) */
        bool threads;  /* makes some */
        bool signals;  /* sends them to others */
        bool rights;   /* keeps root's, where it has them: see sandbox_give_up_rights() */
};

/* Seccomp, with NoNewPrivs. Threads that run already are included. -EOPNOTSUPP: the kernel has none, or
 * whoever started us forbids it. */
int sandbox_enter(const struct sandbox *sandbox);

/* From now on this thread, and what it starts, writes, makes or removes nothing but these files and what is
 * below these folders, and executes nothing (Landlock); descriptors that are open stay as they are. NULL at
 * the end; what does not exist is left out. -EOPNOTSUPP as above. */
int sandbox_write_only(const char *const *path);

/* Keeps of root's rights (capabilities) only those to read and write files of others. The process can
 * execute nothing, so it gets none back. Other users have none. -EOPNOTSUPP: not allowed (systemd's
 * @privileged may forbid capset as a whole). */
int sandbox_give_up_rights(void);
