/* SPDX-License-Identifier: Apache-2.0 */
/* See folder.h. Once each part of a path has been checked, only root and we can replace it; so the path may
 * be opened by its name from then on. */
#include "os/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "os/acl.h"

#define FOLDER_FDS 16

/* If root is not mapped, as in some containers, the owner of "/" counts as root. */
static bool is_trusted_owner(uid_t uid)
{
        struct stat root;

        return uid == 0 || uid == geteuid() || (lstat("/", &root) == 0 && uid == root.st_uid);
}

static int refuse_owner(const char *path, const struct stat *st, struct error *error)
{
        const struct passwd *owner = getpwuid(st->st_uid), *us;
        char name[64];

        snprintf(name, sizeof(name), "%s", owner ? owner->pw_name : "?");
        us = getpwuid(geteuid());
        return error_set(
                error, -EPERM,
                "%s belongs to the user %s (%u), and the operator runs as %s (%u): that user could tamper "
                "with the operator's files; run as its owner, give it to this user (chown), or choose "
                "a folder of this user's own",
                path, name, (unsigned)st->st_uid, us ? us->pw_name : "?", (unsigned)geteuid());
}

/* A process namespace of our own: no other user of the machine sees our volumes. */
static bool in_container(void)
{
        const ino_t first = 0xEFFFFFFC; /* PROC_PID_INIT_INO: that of the machine itself */
        struct stat st;

        return stat("/proc/self/ns/pid", &st) == 0 && st.st_ino != first;
}

/* above: the folder that the volume is mounted in. */
static bool is_volume(const struct stat *above, const struct stat *st)
{
        return st->st_dev != above->st_dev && in_container();
}

bool folder_is_open_volume(const char *path)
{
        struct stat above, st;
        _cleanup_free_ char *parent = format_string("%s/..", path);

        return parent && stat(parent, &above) == 0 && stat(path, &st) == 0 && st.st_mode & S_IWOTH &&
               is_volume(&above, &st);
}

/* Beside its owner and all others: its group, or who is on its list of rights, whose mask the group's bits are then. */
static bool strangers_write(const char *path, const struct stat *st)
{
        enum acl_writers writers;

        if (!(st->st_mode & S_IWGRP))
                return false;
        writers = acl_writers(path, st->st_gid);
        return writers == ACL_WRITERS_STRANGERS ||
               (writers == ACL_WRITERS_BY_MODE && st->st_gid != 0 && !group_member(st->st_gid));
}

static int check_mode(const char *path, const struct stat *st, bool is_parent, bool may_be_open,
                      struct error *error)
{
        bool others = (st->st_mode & S_IWOTH) && !may_be_open;
        bool group = strangers_write(path, st);

        if ((!others && !group) || (is_parent && (st->st_mode & S_ISVTX)))
                return 0;
        return error_set(
                error, -EPERM,
                "%s may be written by others (mode %04o): they could tamper with the operator's files; "
                "remove that right (chmod %s %s), or choose a folder that only this user can write",
                path, (unsigned)(st->st_mode & 07777), others ? "o-w" : "g-w", path);
}

/* Checks one part of the path. st: of the part above it, then of this one. */
static int check_part(const char *path, bool is_last, struct stat *st, struct error *error)
{
        struct stat above = *st;

        if (lstat(path, st) < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        if (!is_trusted_owner(st->st_uid))
                return refuse_owner(path, st, error);
        if (S_ISLNK(st->st_mode))
                return 0; /* where it leads is looked at by itself */
        if (!S_ISDIR(st->st_mode))
                return error_set(error, -ENOTDIR, "%s is not a folder", path);
        return check_mode(path, st, !is_last, !is_last && is_volume(&above, st), error);
}

static int check_parts(const char *path, struct error *error)
{
        _cleanup_free_ char *part = strdup(path);
        struct stat st;
        int r = 0;

        if (!part)
                return error_set(error, -ENOMEM, "no memory");
        if (lstat("/", &st) < 0)
                return error_set(error, -errno, "/: %s", strerror(errno));
        for (char *slash = part + 1; r >= 0 && slash;) {
                char kept;

                slash += strcspn(slash, "/");
                kept = *slash;
                *slash = '\0';
                r = check_part(part, kept == '\0', &st, error);
                *slash = kept;
                slash += strspn(slash, "/");
                if (*slash == '\0')
                        break;
        }
        return r;
}

int folder_own(const char *path, char **ret, struct error *error)
{
        _cleanup_free_ char *whole = NULL;
        int r;

        if (mkdir(path, 0700) < 0 && errno != EEXIST)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        whole = realpath(path, NULL);
        if (!whole)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        r = check_parts(path, error);
        if (r >= 0)
                r = check_parts(whole, error);
        if (r >= 0)
                *ret = TAKE_PTR(whole);
        return r;
}

/* ---- the way to a file */

#define LINKS_MAX 40 /* as the kernel's */

/* Numbers only: the credential process must not ask a user database. */
static int refuse_way(const char *path, const struct stat *st, struct error *error)
{
        if (!is_trusted_owner(st->st_uid))
                return error_set(error, -EPERM, "%s belongs to the user %u", path, (unsigned)st->st_uid);
        return error_set(error, -EPERM, "%s may be written by others (mode %04o)", path,
                         (unsigned)(st->st_mode & 07777));
}

/* In a folder with the sticky bit others can replace nothing that is ours, and make what is missing: a file
 * of that place is somebody's by its owner. */
static bool others_decide(const char *path, const struct stat *st, bool has_file)
{
        if (!is_trusted_owner(st->st_uid))
                return true;
        if (S_ISLNK(st->st_mode) || (st->st_mode & S_ISVTX && !has_file))
                return false;
        return st->st_mode & S_IWOTH || strangers_write(path, st);
}

static int check_way(const char *path, unsigned links, struct error *error);

/* part: a link on the way; rest: what follows it, "" or "/...". */
static int check_link(const char *part, const char *rest, unsigned links, struct error *error)
{
        const char *slash = strrchr(part, '/');
        _cleanup_free_ char *target = calloc(1, PATH_MAX), *next = NULL;

        if (!target)
                return error_set(error, -ENOMEM, "no memory");
        if (links == LINKS_MAX || readlink(part, target, PATH_MAX - 1) < 0)
                return error_set(error, -ELOOP, "%s: too many links", part);
        next = target[0] == '/' ? format_string("%s%s", target, rest)
                                : format_string("%.*s/%s%s", (int)(slash - part), part, target, rest);
        return next ? check_way(next, links + 1, error) : error_set(error, -ENOMEM, "no memory");
}

static int check_folder_of_file(const char *path, struct error *error)
{
        struct stat st;

        if (lstat(path, &st) < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        return others_decide(path, &st, true) ? refuse_way(path, &st, error) : 0;
}

/* What is missing in a folder is for those to make who may write there, sticky bit or not. Cuts the part. */
static int explain_missing(char *part, size_t above, int status, struct error *error)
{
        _cleanup_error_ struct error missing = ERROR_NONE;

        error_set(&missing, status, "%s: %s", part, strerror(-status));
        part[above] = '\0';
        if (status == -ENOENT && check_folder_of_file(part, error) == -EPERM)
                return -EPERM;
        return error_set(error, status, "%s", error_message(&missing));
}

static int check_way(const char *path, unsigned links, struct error *error)
{
        _cleanup_free_ char *part = strdup(path);
        size_t above = 1; /* length of the path of the folder that the part is in */
        struct stat st;

        if (!part)
                return error_set(error, -ENOMEM, "no memory");
        for (size_t end = strspn(path, "/"); path[end]; end += strspn(path + end, "/")) {
                end += strcspn(path + end, "/");
                part[end] = '\0';
                if (lstat(part, &st) < 0)
                        return explain_missing(part, above, -errno, error);
                if (S_ISREG(st.st_mode)) {
                        part[above] = '\0';
                        return check_folder_of_file(part, error);
                }
                if (others_decide(part, &st, false))
                        return refuse_way(part, &st, error);
                if (S_ISLNK(st.st_mode))
                        return check_link(part, path + end, links, error);
                part[end] = path[end];
                above = end;
        }
        return 0;
}

int file_check_source(const char *path, const struct stat *st, uid_t reader, struct error *error)
{
        _cleanup_error_ struct error why = ERROR_NONE;
        int r;

        if (st->st_uid == reader)
                return 0;
        r = check_way(path, 0, &why);
        if (r == -EPERM)
                error_set(error, r,
                          "%s: others decide which file this is, and it could become one that only the "
                          "operator may read: %s; give folders and links on the way to root (chown root, "
                          "chmod go-w), or move the file%s",
                          path, error_message(&why),
                          reader == NOBODY ? "" : ", or give the file itself to the handler's user");
        else if (r < 0)
                error_set(error, r, "%s", error_message(&why));
        else if (reader == NOBODY && others_decide(path, st, true))
                r = error_set(
                        error, -EPERM,
                        "%s belongs to another user, or may be written by others (mode %04o), and it "
                        "names files that the operator reads; give it to root (chown root, chmod go-w)",
                        path, (unsigned)(st->st_mode & 07777));
        return r;
}

bool file_is_of_others(const char *path)
{
        struct stat st;

        return check_way(path, 0, NULL) == -EPERM ||
               (stat(path, &st) == 0 && others_decide(path, &st, true));
}

/* ---- what is in it */

/* nftw() has no place for one: of the tree that is being looked at. */
static __thread struct error *walk_error;

static int check_entry(const char *path, const struct stat *st, int type, struct FTW *place _unused_)
{
        if (type == FTW_NS)
                return 0; /* gone meanwhile */
        if (!is_trusted_owner(st->st_uid))
                return -refuse_owner(path, st, walk_error);
        if (S_ISLNK(st->st_mode))
                return -error_set(walk_error, -EPERM,
                                  "%s is a symbolic link: the operator follows no links to its files; "
                                  "put the file or folder itself there, or remove the link",
                                  path);
        return 0;
}

int folder_check_entry(const char *folder, const char *name, struct error *error)
{
        struct stat st;
        int r;
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);

        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        if (lstat(path, &st) < 0 && errno == ENOENT)
                return 0;
        walk_error = error;
        r = nftw(path, check_entry, FOLDER_FDS, FTW_PHYS);
        walk_error = NULL;
        return r < 0 ? error_set(error, -errno, "%s: %s", path, strerror(errno)) : -r;
}

bool memory_holds(const char *path)
{
        struct statfs st;

        return statfs(path, &st) == 0 && ((unsigned long)st.f_type == TMPFS_MAGIC ||
                                          ((unsigned long)st.f_type & 0xffffffff) == RAMFS_MAGIC);
}

/* ---- removal by descriptors: where others may write, a path may lead elsewhere a moment later */

static int empty_folder(int fd);

static int remove_entry(int fd, const char *name)
{
        int below, r;

        if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
                return 0;
        if (errno != EISDIR)
                return -errno;
        below = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (below < 0)
                return errno == ENOENT ? 0 : -errno;
        r = empty_folder(below);
        return r < 0 ? r : unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

/* Closes the descriptor. */
static int empty_folder(int fd)
{
        DIR *folder = fdopendir(fd);
        const struct dirent *entry;
        int r = 0;

        if (!folder) {
                r = -errno;
                close(fd);
                return r;
        }
        while (r >= 0 && (entry = readdir(folder)))
                if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
                        r = remove_entry(fd, entry->d_name);
        closedir(folder);
        return r;
}

int folder_remove(const char *path)
{
        return remove_entry(AT_FDCWD, path);
}
