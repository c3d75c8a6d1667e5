/* SPDX-License-Identifier: Apache-2.0 */
#include "os/descendants.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/text.h"
#include "os/syscall.h"

#define ROUND_USEC      (10 * USEC_PER_MSEC)
#define GENERATIONS_MAX 10000 /* no real process has that many ancestors */

struct entry {
        pid_t pid, parent, group;
        bool ours, zombie;
};

/* The children of this process that are spared; a process has one set of them. */
static struct {
        struct spared_child {
                pid_t pid;
                uid_t user;
        } * child;
        size_t count;
} spared;

struct table {
        struct entry *entry;
        size_t count, allocated;
};

int descendants_spare(pid_t child, uid_t user)
{
        struct spared_child *grown = reallocarray(spared.child, spared.count + 1, sizeof(*grown));

        if (!grown)
                return -ENOMEM;
        spared.child = grown;
        grown[spared.count++] = (struct spared_child){child, user};
        return 0;
}

void descendants_spare_no_more(pid_t child)
{
        for (size_t i = 0; i < spared.count; i++)
                if (spared.child[i].pid == child) {
                        spared.child[i] = spared.child[--spared.count];
                        break;
                }
        if (spared.count == 0) {
                free(spared.child);
                spared.child = NULL;
        }
}

static bool is_spared(pid_t pid)
{
        for (size_t i = 0; i < spared.count; i++)
                if (spared.child[i].pid == pid)
                        return true;
        return false;
}

static bool is_users_spared(uid_t user)
{
        for (size_t i = 0; i < spared.count; i++)
                if (spared.child[i].user == user)
                        return true;
        return false;
}

/* The process group shows whose process this was if it has lost its parent. */
static bool belongs_to_spared(const struct entry *entry)
{
        return is_spared(entry->pid) || is_spared(entry->group);
}

static void closedir_pointer(DIR **folder)
{
        if (*folder)
                closedir(*folder);
}

static int table_add(struct table *table, struct entry added)
{
        if (table->count == table->allocated) {
                size_t allocated = table->allocated ? 2 * table->allocated : 256;
                struct entry *entry = reallocarray(table->entry, allocated, sizeof(*entry));

                if (!entry)
                        return -ENOMEM;
                table->entry = entry;
                table->allocated = allocated;
        }
        table->entry[table->count++] = added;
        return 0;
}

/* The beginning of a file of /proc/PID. False if the process is gone meanwhile, or hidden. */
static bool read_proc_file(pid_t pid, const char *name, char *text, size_t size)
{
        _cleanup_close_ int fd = -1;
        char path[64];
        ssize_t length;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        length = fd < 0 ? -1 : sys_read(fd, text, size - 1);
        if (length <= 0)
                return false;
        text[length] = '\0';
        return true;
}

/* "pid (name) state parent group ...": the name may hold anything, brackets too. False: gone meanwhile, or
 * hidden. */
static bool read_process(pid_t pid, struct entry *ret)
{
        char text[512], state;
        const char *rest;

        *ret = (struct entry){.pid = pid};
        if (!read_proc_file(pid, "stat", text, sizeof(text)))
                return false;
        rest = strrchr(text, ')');
        if (!rest || sscanf(rest, ") %c %d %d", &state, &ret->parent, &ret->group) != 3)
                return false;
        ret->zombie = state == 'Z' || state == 'X';
        return true;
}

/* DESCENDANTS_ANY if it is gone or hidden. The owner of its files in /proc proves nothing: a process can make that root. */
static uid_t read_user(pid_t pid)
{
        char text[1024];
        const char *line;
        unsigned user;

        if (!read_proc_file(pid, "status", text, sizeof(text)))
                return DESCENDANTS_ANY;
        line = strstr(text, "\nUid:");
        return line && sscanf(line, "\nUid: %u", &user) == 1 ? (uid_t)user : DESCENDANTS_ANY;
}

/* The process belongs to a spared one that runs as another user: a user who starts processes without a pause
 * holds up only their own. */
static bool is_of_others(pid_t pid, uid_t user)
{
        uid_t its;

        if (user == DESCENDANTS_ANY || spared.count == 0)
                return false;
        its = read_user(pid);
        return its != user && its != DESCENDANTS_ANY && is_users_spared(its);
}

static int table_read(struct table *table)
{
        _cleanup_(closedir_pointer) DIR *folder = opendir("/proc");
        const struct dirent *item;
        int r = 0;

        if (!folder)
                return -errno;
        while (r >= 0 && (item = readdir(folder))) {
                struct entry entry;

                if (item->d_name[0] >= '1' && item->d_name[0] <= '9' &&
                    read_process((pid_t)strtol(item->d_name, NULL, 10), &entry))
                        r = table_add(table, entry);
        }
        return r;
}

/* As the kernel lists them. -ENOENT: this kernel keeps no such lists, or the thread has ended. */
static int add_children_of(struct table *table, const char *thread)
{
        _cleanup_free_ char *path = format_string("/proc/self/task/%s/children", thread);
        _cleanup_fclose_ FILE *list = path ? fopen(path, "re") : NULL;
        int pid, r = 0;

        if (!list)
                return path ? -errno : -ENOMEM;
        while (r >= 0 && fscanf(list, "%d", &pid) == 1)
                r = table_add(table, (struct entry){.pid = pid, .parent = getpid(), .group = getpgid(pid)});
        return r >= 0 && ferror(list) ? -EIO : r;
}

/* Our children alone, whether they have ended or not: a machine may have thousands of processes. Nobody but us
 * takes one from the list while it is read. */
static int table_read_children(struct table *table)
{
        _cleanup_(closedir_pointer) DIR *folder = opendir("/proc/self/task");
        const struct dirent *item;
        int r = 0;

        if (!folder)
                return -errno;
        while (r >= 0 && (item = readdir(folder)))
                if (item->d_name[0] != '.')
                        r = add_children_of(table, item->d_name);
        if (r >= 0)
                return 0;
        table->count = 0;
        return table_read(table);
}

/* ---- one process */

enum kin { KIN_NO, KIN_YES, KIN_AGAIN };

/* /proc does not show this process: it is gone, or of another user (hidepid, systemd's ProtectProc), or it
 * hides itself (PR_SET_DUMPABLE), as ours do. None of ours that is of another user has descendants of our
 * user: NoNewPrivs sees to that. */
static enum kin judge_hidden(pid_t pid)
{
        struct rlimit limit;

        if (prlimit(pid, RLIMIT_CORE, NULL, &limit) == 0)
                return KIN_YES;
        return errno == EPERM ? KIN_NO : KIN_AGAIN;
}

static enum kin judge_ancestors(pid_t pid)
{
        /* 0: above the first process of our namespace. */
        for (unsigned depth = 0; pid > 0 && depth < GENERATIONS_MAX; depth++) {
                struct entry entry;

                if (pid == getpid())
                        return KIN_YES;
                if (!read_process(pid, &entry))
                        return judge_hidden(pid);
                pid = entry.parent;
        }
        return pid > 0 ? KIN_YES : KIN_NO;
}

bool descendants_may_include(pid_t pid)
{
        enum kin kin = KIN_AGAIN;

        /* A process whose parent ends meanwhile gets another one. */
        for (int tries = 0; tries < 10 && kin == KIN_AGAIN; tries++)
                kin = judge_ancestors(pid);
        return kin != KIN_NO;
}

/* ---- all */

static int compare_pids(const void *a, const void *b)
{
        const struct entry *left = a, *right = b;

        return (left->pid > right->pid) - (left->pid < right->pid);
}

static bool is_our_process(const struct table *table, pid_t pid)
{
        const struct entry wanted = {.pid = pid}, *found;

        if (pid == getpid())
                return true;
        found = bsearch(&wanted, table->entry, table->count, sizeof(wanted), compare_pids);
        return found && found->ours;
}

/* One pass for each generation; parents nearly always have the lower pid, so one pass is enough. */
static size_t table_mark(struct table *table, uid_t user)
{
        size_t count = 0;
        bool found;

        do {
                found = false;
                for (size_t i = 0; i < table->count; i++)
                        if (!table->entry[i].ours && !belongs_to_spared(&table->entry[i]) &&
                            is_our_process(table, table->entry[i].parent)) {
                                table->entry[i].ours = found = true;
                                count += !table->entry[i].zombie && !is_of_others(table->entry[i].pid, user);
                        }
        } while (found);
        return count;
}

static int compare_groups(const void *a, const void *b)
{
        const struct entry *first = a, *second = b;

        return (first->group > second->group) - (first->group < second->group);
}

/* A group gets a signal as a whole, so no fork in it escapes; that of a zombie as well, which may have forked
 * after the table was read. */
static void kill_group(const struct entry *member, size_t count)
{
        size_t ours = 0;

        for (size_t i = 0; i < count; i++)
                ours += member[i].ours;
        if (ours == count && member->group > 1 && member->group != getpgrp()) {
                (void)sys_kill(-member->group, SIGKILL);
                return;
        }
        for (size_t i = 0; i < count; i++)
                if (member[i].ours && !member[i].zombie)
                        (void)sys_kill(member[i].pid, SIGKILL);
}

/* However many groups there are: a handler decides that. */
static void table_kill(const struct table *table)
{
        qsort(table->entry, table->count, sizeof(*table->entry), compare_groups);
        for (size_t first = 0, next; first < table->count; first = next) {
                for (next = first + 1;
                     next < table->count && table->entry[next].group == table->entry[first].group;)
                        next++;
                kill_group(&table->entry[first], next - first);
        }
}

ssize_t descendants_kill(uid_t user)
{
        struct table table = {0};
        int r = table_read(&table);
        size_t count = 0;

        if (r >= 0 && table.count > 0) {
                qsort(table.entry, table.count, sizeof(*table.entry), compare_pids);
                count = table_mark(&table, user);
                table_kill(&table);
        }
        free(table.entry);
        return r < 0 ? r : (ssize_t)count;
}

void descendants_reap_ended(void)
{
        siginfo_t info;
        int status;

        do
                info.si_pid = 0;
        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 &&
               !is_spared(info.si_pid) && sys_reap(info.si_pid, &status) > 0);
}

/* Reaps one by one: the code that spares a child reaps it as well. A child that is reaped here may have
 * forked after the table was read, and its child is ours now: only a pass that finds no child proves that
 * none is left. Nothing escapes: the topmost of what is left is our child, and stays until we reap it. */
static bool reap_others(uid_t user)
{
        struct table table = {0};
        bool left = table_read_children(&table) < 0;
        int status;

        FOREACH_ARRAY(entry, table.entry, table.count)
                if (entry->parent == getpid() && !is_spared(entry->pid)) {
                        bool of_others = is_of_others(entry->pid, user);

                        if ((sys_reap(entry->pid, &status) > 0 || !is_spared(entry->group)) && !of_others)
                                left = true;
                }
        free(table.entry);
        return left;
}

bool descendants_reap_of(uid_t user)
{
        pid_t pid;
        int status;

        if (spared.count > 0)
                return reap_others(user);

        do
                pid = sys_reap(-1, &status);
        while (pid > 0);
        return pid == 0;
}

bool descendants_reap(void)
{
        return descendants_reap_of(DESCENDANTS_ANY);
}

void descendants_end(uint64_t usec)
{
        const struct timespec pause = {.tv_nsec = (long)ROUND_USEC * 1000};
        uint64_t end = clock_boottime_usec() + usec;
        sigset_t child;
        bool taken = false;

        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        while (descendants_reap() && clock_boottime_usec() < end) {
                (void)descendants_kill(DESCENDANTS_ANY);
                if (sigtimedwait(&child, NULL, &pause) == SIGCHLD)
                        taken = true;
        }
        if (taken) /* the signal may have been for a spared child, for whose end somebody waits */
                (void)sys_kill(getpid(), SIGCHLD);
}
