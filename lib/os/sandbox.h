/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a process gives up for good, once it is set up: a process that reads what strangers write runs no
 * program, starts no process and looks into none. Doing so all the same is proof that it is not ours any
 * more, and ends it (SIGSYS), and with it the operator.
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

/* Of root's rights (capabilities) only those to read and write files of others are kept, by who can execute
 * nothing and so gets none back. Whoever is not root has none. -EOPNOTSUPP: not allowed (capset may be
 * forbidden as a whole, by systemd's @privileged). */
int sandbox_give_up_rights(void);
