/* SPDX-License-Identifier: Apache-2.0 */
#include "os/cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/syscall.h"

#define SUPERVISOR "supervisor" /* the group of ourselves and our children */
#define HANDLER    "handler-"   /* how the names of the groups of runs begin */
#define ROUNDS     100          /* wait for killed processes to be gone: a second */

static const char *const controller_name[CGROUP_CONTROLLER_COUNT] = {
        [CGROUP_MEMORY] = "memory", [CGROUP_PIDS] = "pids", [CGROUP_CPU] = "cpu"};

/* ---- files */

int cgroup_open(const char *group, const char *file, int flags)
{
        _cleanup_free_ char *path = format_string("%s/%s", group, file);
        int fd = path ? open(path, flags | O_CLOEXEC) : -1;

        return !path ? -ENOMEM : fd < 0 ? -errno : fd;
}

int cgroup_write(const char *group, const char *file, const char *value)
{
        _cleanup_close_ int fd = cgroup_open(group, file, O_WRONLY);
        ssize_t r = fd < 0 ? fd : sys_write(fd, value, strlen(value));

        return r < 0 ? (int)r : 0;
}

static int read_open(int fd, char *buffer, size_t size)
{
        ssize_t r = pread(fd, buffer, size - 1, 0);

        if (r < 0)
                return -errno;
        buffer[r] = '\0';
        return 0;
}

/* A whole small file as a string. */
static int read_group_file(const char *group, const char *file, char *buffer, size_t size)
{
        _cleanup_close_ int fd = cgroup_open(group, file, O_RDONLY);

        buffer[0] = '\0';
        return fd < 0 ? fd : read_open(fd, buffer, size);
}

static int64_t read_limit(const char *text)
{
        return text[0] >= '0' && text[0] <= '9' ? strtoll(text, NULL, 10) : -1;
}

static int64_t number_in(int fd, const char *key)
{
        char buffer[4096] = "", *rest = buffer, *line;
        size_t length = key ? strlen(key) : 0;

        if (read_open(fd, buffer, sizeof(buffer)) < 0)
                return -1;
        if (!key)
                return read_limit(buffer);
        while ((line = strsep(&rest, "\n")))
                if (strncmp(line, key, length) == 0 && line[length] == ' ')
                        return read_limit(line + length + 1);
        return -1;
}

int64_t cgroup_read(const char *group, const char *file, const char *key)
{
        _cleanup_close_ int fd = cgroup_open(group, file, O_RDONLY);

        return fd < 0 ? -1 : number_in(fd, key);
}

/* ---- where we are */

/* Takes the list to pieces. */
static bool has_word(char *list, const char *word)
{
        for (char *each; (each = strsep(&list, ",\n"));)
                if (strcmp(each, word) == 0)
                        return true;
        return false;
}

/* "36 35 0:31 /root /mount rw,... - cgroup2 source options": whether this is the hierarchy; where it is
 * mounted, and which of its groups is seen there. */
static bool is_mount_of(char *line, const char *controller, char **ret_root, char **ret_mount)
{
        char *rest = strstr(line, " - "), *field[5], *type, *options;

        if (!rest)
                return false;
        *rest = '\0';
        rest += 3;
        for (size_t i = 0; i < ELEMENTS(field); i++)
                if (!(field[i] = strsep(&line, " ")))
                        return false;
        type = strsep(&rest, " ");
        (void)strsep(&rest, " ");
        options = rest ? rest : (char[]){""};
        *ret_root = field[3];
        *ret_mount = field[4];
        if (!controller)
                return strcmp(type, "cgroup2") == 0;
        if (strcmp(type, "cgroup") != 0)
                return false;
        return has_word(options, controller);
}

/* "4:memory:/path", "0::/path": the path, or NULL. */
static const char *group_path_in(char *line, const char *controller)
{
        char *list, *path = line;

        (void)strsep(&path, ":");
        list = strsep(&path, ":");
        if (!list || !path)
                return NULL;
        if (!controller)
                return list[0] == '\0' ? path : NULL;
        return has_word(list, controller) ? path : NULL;
}

static int own_path(const char *controller, char **ret)
{
        _cleanup_fclose_ FILE *file = fopen("/proc/self/cgroup", "re");
        _cleanup_free_ char *line = NULL;
        size_t size = 0;

        if (!file)
                return -errno;
        while (getline(&line, &size, file) > 0) {
                const char *path;

                line[strcspn(line, "\n")] = '\0';
                path = group_path_in(line, controller);
                if (path)
                        return (*ret = strdup(path)) ? 0 : -ENOMEM;
        }
        return -ENOENT;
}

/* The path of the group `path` below `mount`, where `root` is mounted. */
static int cgroup_join_path(const char *mount, const char *root, const char *path, char **ret)
{
        size_t length = strcmp(root, "/") == 0 ? 0 : strlen(root);

        if (strncmp(path, root, length) != 0 || (path[length] != '/' && path[length] != '\0'))
                return -ENOENT;
        path += length;
        *ret = format_string("%s%s", mount, strcmp(path, "/") == 0 ? "" : path);
        return *ret ? 0 : -ENOMEM;
}

/* path NULL: the mount itself. */
static int find_mount(const char *controller, const char *path, char **ret)
{
        _cleanup_fclose_ FILE *file = fopen("/proc/self/mountinfo", "re");
        _cleanup_free_ char *line = NULL;
        char *root, *mount;
        size_t size = 0;

        if (!file)
                return -errno;
        while (getline(&line, &size, file) > 0)
                if (is_mount_of(line, controller, &root, &mount)) {
                        int r = path ? cgroup_join_path(mount, root, path, ret)
                                     : ((*ret = strdup(mount)) ? 0 : -ENOMEM);

                        if (r != -ENOENT)
                                return r;
                }
        return -ENOENT;
}

/* The folder of the group that this process is in. controller: NULL for version 2, else of version 1. */
static int own_folder(const char *controller, char **ret)
{
        _cleanup_free_ char *path = NULL;
        int r = own_path(controller, &path);

        return r < 0 ? r : find_mount(controller, path, ret);
}

/* ---- what the kernel has done to ourselves */

/* The counter of the group that this process was started in, or -1. */
static int open_kills(void)
{
        _cleanup_free_ char *folder = NULL, *legacy = NULL;
        int fd = -1;

        if (own_folder(NULL, &folder) >= 0 && cgroup_read(folder, "memory.events", "oom_kill") >= 0)
                fd = cgroup_open(folder, "memory.events", O_RDONLY);
        else if (own_folder("memory", &legacy) >= 0)
                fd = cgroup_open(legacy, "memory.oom_control", O_RDONLY);
        return fd < 0 ? -1 : fd;
}

int64_t cgroup_memory_kills(void)
{
        static bool opened;
        static int fd; /* as long as this process lives: it is asked for before and after each run */

        if (!opened)
                fd = open_kills();
        opened = true;
        return fd < 0 ? -1 : number_in(fd, "oom_kill");
}

/* ---- controllers */

static unsigned controllers_in(const char *group, const char *file)
{
        char buffer[1024], *rest = buffer, *word;
        unsigned found = 0;

        if (read_group_file(group, file, buffer, sizeof(buffer)) < 0)
                return 0;
        while ((word = strsep(&rest, " \n")))
                for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
                        if (strcmp(word, controller_name[i]) == 0)
                                found |= CGROUP_BIT(i);
        return found;
}

static void say_missing(unsigned controllers, char *why, size_t size)
{
        size_t used = (size_t)snprintf(why, size, "control groups of version 2 have no controller");
        const char *separator = " ";

        for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
                if (!(controllers & CGROUP_BIT(i)) && used < size) {
                        used += (size_t)snprintf(why + used, size - used, "%s%s", separator,
                                                 controller_name[i]);
                        separator = ", ";
                }
        if (controllers == CGROUP_BIT(CGROUP_CONTROLLER_COUNT) - 1)
                why[0] = '\0';
}

unsigned cgroup_look(char *why, size_t size)
{
        _cleanup_free_ char *mount = NULL;
        unsigned found;

        if (find_mount(NULL, NULL, &mount) < 0) {
                snprintf(why, size, "there are no control groups of version 2 here");
                return 0;
        }
        found = controllers_in(mount, "cgroup.controllers");
        say_missing(found, why, size);
        if (found != CGROUP_BIT(CGROUP_CONTROLLER_COUNT) - 1 && strlen(why) + 40 < size)
                snprintf(why + strlen(why), size - strlen(why), " on this machine");
        return found;
}

/* ---- groups of runs */

int cgroup_make(const char *folder, const char *name, char **ret_path)
{
        char *path = format_string("%s/" HANDLER "%s", folder, name);
        int r;

        if (!path)
                return -ENOMEM;
        if (mkdir(path, 0755) < 0) {
                r = -errno;
                free(path);
                return r;
        }
        *ret_path = path;
        return 0;
}

int cgroup_kill(const char *group)
{
        return cgroup_write(group, "cgroup.kill", "1");
}

int cgroup_remove(const char *group)
{
        return rmdir(group) < 0 ? -errno : 0;
}

/* "handler-PID-NUMBER": whether the worker that made it lives, beside us: of another operator, which has
 * been started in the same group. */
static bool is_in_use(const char *folder, const char *name)
{
        long worker = strtol(name + strlen(HANDLER), NULL, 10), pid;
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *path = format_string("%s/" SUPERVISOR "/cgroup.procs", folder);

        if (!path)
                return true;
        file = fopen(path, "re");
        while (file && fscanf(file, "%ld", &pid) == 1)
                if (pid == worker)
                        return true;
        return false;
}

/* Ends the processes of a former life that was killed: none of them may go on, and none is waited for. */
static void remove_groups(const char *folder)
{
        const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
        struct dirent **entry = NULL;
        int count = scandir(folder, &entry, NULL, NULL);

        for (int i = 0; i < count; i++) {
                _cleanup_free_ char *path = NULL;

                if (strncmp(entry[i]->d_name, HANDLER, strlen(HANDLER)) == 0 &&
                    !is_in_use(folder, entry[i]->d_name) &&
                    (path = format_string("%s/%s", folder, entry[i]->d_name))) {
                        (void)cgroup_kill(path);
                        for (int round = 0; cgroup_remove(path) == -EBUSY && round < ROUNDS; round++)
                                (void)nanosleep(&pause, NULL);
                }
                free(entry[i]);
        }
        free(entry);
}

/* ---- delegation */

/* In a container with control groups of its own, whatever is visible is the container's; only the machine's
 * own root has no type. */
static bool is_root_of_container(const char *folder)
{
        _cleanup_free_ char *path = NULL, *type = NULL;

        if (own_path(NULL, &path) < 0 || (strcmp(path, "/") != 0 && strcmp(path, "/" SUPERVISOR) != 0))
                return false;
        type = format_string("%s/cgroup.type", folder);
        if (!type)
                return false;
        return access(type, F_OK) == 0 && access(folder, W_OK) == 0;
}

/* systemd marks what it has delegated. A container's own is taken only for limits: others may be put into it
 * while it runs, and not every runtime finds another place for them. */
static bool is_delegated(const char *folder, bool limits)
{
        static const char *const mark[] = {"user.delegate", "trusted.delegate"};
        char value;

        for (size_t i = 0; i < ELEMENTS(mark); i++)
                if (getxattr(folder, mark[i], &value, 1) == 1 && value == '1')
                        return true;
        return limits && is_root_of_container(folder);
}

/* The group that we are in, or, where we have moved already, the one above it. */
static int find_delegated(bool limits, char **ret)
{
        _cleanup_free_ char *folder = NULL;
        char *slash;
        int r = own_folder(NULL, &folder);

        if (r < 0 || !folder)
                return r < 0 ? r : -ENOENT;
        slash = strrchr(folder, '/');
        if (slash && strcmp(slash + 1, SUPERVISOR) == 0) {
                *slash = '\0';
                if (!is_delegated(folder, limits))
                        *slash = '/';
        }
        if (!is_delegated(folder, limits))
                return -EPERM;
        *ret = TAKE_PTR(folder);
        return 0;
}

/* A group with processes of its own cannot have controllers for groups below it. */
static int move_down(const char *folder)
{
        _cleanup_free_ char *path = format_string("%s/" SUPERVISOR, folder);

        if (!path)
                return -ENOMEM;
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
                return -errno;
        return cgroup_write(path, "cgroup.procs", "0");
}

static void turn_on(const char *folder)
{
        char order[32];

        for (unsigned i = 0; i < CGROUP_CONTROLLER_COUNT; i++) {
                snprintf(order, sizeof(order), "+%s", controller_name[i]);
                (void)cgroup_write(folder, "cgroup.subtree_control", order); /* asked for afterwards */
        }
}

void cgroup_take(bool limits, struct cgroup_delegation *ret)
{
        _cleanup_free_ char *folder = NULL;
        unsigned available;
        int r = find_delegated(limits, &folder);

        *ret = (struct cgroup_delegation){0};
        if (r < 0) {
                (void)cgroup_look(ret->why, sizeof(ret->why));
                if (r == -EPERM && !ret->why[0])
                        snprintf(ret->why, sizeof(ret->why),
                                 "no control group is delegated to the operator (Delegate=)");
                return;
        }
        r = move_down(folder);
        if (r < 0) {
                snprintf(ret->why, sizeof(ret->why), "the control group %.150s: %s%s", folder, strerror(-r),
                         r == -EROFS ? " (ProtectControlGroups=)" : "");
                return;
        }
        remove_groups(folder);
        available = controllers_in(folder, "cgroup.controllers");
        turn_on(folder);
        ret->controllers = controllers_in(folder, "cgroup.subtree_control");
        if (available != ret->controllers)
                snprintf(ret->why, sizeof(ret->why),
                         "controllers of the control group %.150s cannot be turned on: it holds other "
                         "processes",
                         folder);
        else
                say_missing(ret->controllers, ret->why, sizeof(ret->why));
        ret->folder = TAKE_PTR(folder);
}

void cgroup_delegation_done(struct cgroup_delegation *delegation)
{
        free(delegation->folder);
        delegation->folder = NULL;
}
