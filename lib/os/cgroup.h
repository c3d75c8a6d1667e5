/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Control groups. Version 2, where a part of the hierarchy has been delegated to us (systemd: Delegate=):
 * the supervisor moves itself and so all its children one level down, and each run of a handler gets a group
 * beside them. Nothing is made in a group that nobody has delegated. Version 1 is only looked at: to know
 * whether the kernel has killed a process of ours for lack of memory.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cgroup_controller { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_CPU, CGROUP_CONTROLLER_COUNT };
#define CGROUP_BIT(controller) (1U << (controller))

struct cgroup_delegation {
        char *folder;         /* below it groups are made; NULL: none is delegated */
        unsigned controllers; /* bits: which limits hold for groups below it */
        char why[256];        /* no folder, or not every controller */
};

/* Looks whether a group is delegated to this process, and takes it: moves this process into its group
 * "supervisor", turns the controllers on, and ends and removes groups that a former life has left. A second
 * call in the same process (a reload) has the same result. limits: whether there are some that need it.
 * Never fails: `why` says what is missing. */
void cgroup_take(bool limits, struct cgroup_delegation *ret);
void cgroup_delegation_done(struct cgroup_delegation *delegation);

/* The controllers of this machine's (or container's) version 2 hierarchy; `why`: for people. */
unsigned cgroup_look(char *why, size_t size);

/* How many processes of the group that this process is in (when it first asks) the kernel has ended for lack
 * of memory; -1 if it does not report that. */
int64_t cgroup_memory_kills(void);

/* A new group for one run. 0 or negative errno. */
int cgroup_make(const char *folder, const char *name, char **ret_path);
int cgroup_open(const char *group, const char *file, int flags); /* or a negative errno */
int cgroup_write(const char *group, const char *file, const char *value);
/* The number after `key` ("oom_kill 3"), or the whole file's (key NULL); -1 when there is none. */
int64_t cgroup_read(const char *group, const char *file, const char *key);
/* Everything in it gets SIGKILL, also what is being forked. */
int cgroup_kill(const char *group);
int cgroup_remove(const char *group); /* -EBUSY: somebody is in it */
