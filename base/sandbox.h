/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a process gives up for good, once it is set up: a process that reads what strangers write runs no
 * program, starts no process and looks into none. Doing so all the same is proof that it is not ours any
 * more, and ends it (SIGSYS), and with it the operator. A library of its own: only who uses it links
 * libseccomp.
 */
#include <stdbool.h>

struct sandbox {
        bool connects; /* opens connections, and resolves names for them, which takes threads */
        bool listens;  /* makes sockets that others connect to */
        bool local;    /* has sockets of this machine only (AF_UNIX) */
};

/* Seccomp, with NoNewPrivs. Threads that run already are included. -EOPNOTSUPP: the kernel has none. */
int sandbox_enter(const struct sandbox *sandbox);

/* From now on nothing is written, made or removed outside `folder` (Landlock); descriptors that are open
 * stay as they are. -EOPNOTSUPP: the kernel has no Landlock, or it is turned off. */
int sandbox_write_only_below(const char *folder);
