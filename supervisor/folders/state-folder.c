/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/folders/state-folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/exit-code.h"
#include "base/text.h"
#include "controller/run/last-life.h"
#include "ipc/log.h"
#include "ipc/message-id.h"
#include "os/folder.h"
#include "supervisor/supervisor.h"

/* linux/magic.h names only some of them. */
#define MAGIC_NFS    0x6969
#define MAGIC_SMB    0x517b
#define MAGIC_SMB2   0xfe534d42
#define MAGIC_CIFS   0xff534d42
#define MAGIC_FUSE   0x65735546
#define MAGIC_CEPH   0x00c36400
#define MAGIC_9P     0x01021997
#define MAGIC_AFS    0x5346414f
#define MAGIC_KAFS   0x6b414653
#define MAGIC_CODA   0x73757245
#define MAGIC_GFS2   0x01161970
#define MAGIC_OCFS   0x7461636f
#define MAGIC_GPFS   0x47504653
#define MAGIC_LUSTRE 0x0bd00bd0
#define MAGIC_VBOX   0x786f4256

static bool is_network_file_system(const char *path)
{
        static const unsigned long magic[] = {MAGIC_NFS,  MAGIC_SMB,  MAGIC_SMB2, MAGIC_CIFS,   MAGIC_FUSE,
                                              MAGIC_CEPH, MAGIC_9P,   MAGIC_AFS,  MAGIC_KAFS,   MAGIC_CODA,
                                              MAGIC_GFS2, MAGIC_OCFS, MAGIC_GPFS, MAGIC_LUSTRE, MAGIC_VBOX};
        struct statfs st;

        if (statfs(path, &st) < 0)
                return false;
        for (size_t i = 0; i < ELEMENTS(magic); i++)
                if ((unsigned long)st.f_type == magic[i])
                        return true;
        return false;
}

static void read_starts(struct supervisor *supervisor)
{
        char buffer[256] = "";
        struct ledger_clock left = {0};
        uint64_t starts = 0;

        supervisor->life.last_exit = -1;
        if (pread(supervisor->lock.state_fd, buffer, sizeof(buffer) - 1, 0) >
            0) /* what cannot be read counts as none */
                (void)sscanf(buffer,
                             "%*d %" SCNu64 " %d %" SCNu64 " %32[0-9a-f-] %" SCNu64 " %" SCNu64 " %" SCNx64
                             " %" SCNu64 " %" SCNu64,
                             &starts, &supervisor->life.last_exit, &supervisor->crash_events.until,
                             left.boot, &left.offset, &left.seen, &supervisor->life.key_sum,
                             &supervisor->lead.ledger_epoch, &supervisor->lead.own_epoch);
        supervisor->life.starts = starts + (supervisor->reload.since == 0); /* a reload is no start */
        ledger_clock_begin(supervisor, &left);
}

/* Written in place, so that a SIGKILL leaves either text; what needs the disk reports that it is full. */
static void write_starts(struct supervisor *supervisor, int last_exit)
{
        struct ledger_clock *clock = &supervisor->clock;
        char buffer[256];
        int length;

        clock->seen = ledger_now(supervisor);
        length = snprintf(buffer, sizeof(buffer),
                          "%d %" PRIu64 " %d %" PRIu64 " %s %" PRIu64 " %" PRIu64 " %" PRIx64 " %" PRIu64
                          " %" PRIu64 "\n",
                          getpid(), supervisor->life.starts, last_exit, supervisor->crash_events.until,
                          clock->boot[0] ? clock->boot : "-", clock->offset, clock->seen,
                          supervisor->life.key_sum, supervisor->lead.ledger_epoch,
                          supervisor->lead.own_epoch);
        if (pwrite(supervisor->lock.state_fd, buffer, (size_t)length, 0) == length &&
            ftruncate(supervisor->lock.state_fd, length) < 0)
                return;
}

static long holder_pid(int fd)
{
        char buffer[64] = "";

        return pread(fd, buffer, sizeof(buffer) - 1, 0) > 0 ? strtol(buffer, NULL, 10) : 0;
}

/* Takes a lock that dies with its process. -EBUSY: another one holds it. */
static int take_lock(const char *folder, const char *name, const char *advice, int *ret_fd,
                     struct error *error)
{
        _cleanup_close_ int fd = -1;
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);

        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return error_set(error, -errno, "%s: %s", path, strerror(errno));
        if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                if (errno != EWOULDBLOCK)
                        return error_set(error, -errno, "%s cannot be locked: %s", path, strerror(errno));
                return error_set(error, -EBUSY, "another instance (pid %ld) uses %s; give each operator %s",
                                 holder_pid(fd), folder, advice);
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

/* Its control socket, and what is in flight, are of one operator: the second one would take them over. */
int runtime_folder_take(struct supervisor *supervisor, struct error *error)
{
        char pid[24];
        int length = snprintf(pid, sizeof(pid), "%d\n", getpid());
        int r = take_lock(supervisor->options->runtime_directory, "control.lock",
                          "a runtime directory of its own", &supervisor->lock.runtime_fd, error);

        /* Only for the message of a second operator: on a full disk that says 0. */
        if (r >= 0 && ftruncate(supervisor->lock.runtime_fd, 0) >= 0)
                (void)!pwrite(supervisor->lock.runtime_fd, pid, (size_t)length, 0);
        return r;
}

int state_folder_take(struct supervisor *supervisor, struct error *error)
{
        const char *folder = supervisor->options->state_directory;
        int r;

        if (is_network_file_system(folder))
                return error_set(error, -EBUSY,
                                 "%s lies on a network, cluster or FUSE file system, whose locks and memory "
                                 "maps cannot "
                                 "be trusted; use a local disk",
                                 folder);
        r = take_lock(folder, "instance", "a state folder of its own", &supervisor->lock.state_fd, error);
        if (r < 0)
                return r;
        read_starts(supervisor);
        write_starts(supervisor, -1);
        return 0;
}

/* The lock file is there still, and is the one that we hold. */
static bool is_locked(int fd, const char *folder, const char *name)
{
        struct stat ours, there;
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);

        if (!path)
                return true;
        if (fstat(fd, &ours) < 0)
                return true;
        return stat(path, &there) < 0 ? errno != ENOENT && errno != ENOTDIR
                                      : ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

bool state_folder_check(struct supervisor *supervisor)
{
        const struct options *options = supervisor->options;

        if (!is_locked(supervisor->lock.state_fd, options->state_directory, "instance")) {
                supervisor_fatal(
                        supervisor, EXIT_CODE_IO, NULL, NULL,
                        "the state directory %s was removed or replaced while the operator ran: the "
                        "next start will not know what has been handled since; leave it alone while "
                        "an operator runs",
                        options->state_directory);
                return false;
        }
        if (!is_locked(supervisor->lock.runtime_fd, options->runtime_directory, "control.lock")) {
                supervisor_fatal(supervisor, EXIT_CODE_IO, NULL, NULL,
                                 "the runtime directory %s was removed or replaced while the operator ran: "
                                 "reconciledctl cannot reach it any more; leave it alone while an operator "
                                 "runs (does something clean up temporary files there?)",
                                 options->runtime_directory);
                return false;
        }
        return true;
}

void state_folder_note_exit(struct supervisor *supervisor)
{
        if (supervisor->lock.state_fd >= 0 && supervisor->event)
                write_starts(supervisor, supervisor->exit_code);
}

void state_folder_note_crash_events(struct supervisor *supervisor, uint64_t now)
{
        supervisor->crash_events.until = now;
        write_starts(supervisor, -1);
}

void state_folder_note_time(struct supervisor *supervisor)
{
        write_starts(supervisor, -1);
}

static bool has_entries(const char *folder, const char *name)
{
        struct dirent *entry;
        bool found = false;
        DIR *directory;
        _cleanup_free_ char *path = format_string("%s/%s", folder, name);

        if (!path)
                return false;
        directory = opendir(path);
        while (directory && !found && (entry = readdir(directory)))
                found = entry->d_name[0] != '.';
        if (directory)
                closedir(directory);
        return found;
}

/* Object stores of an earlier life, whose ledger somebody has removed. */
static bool stores_exist(const struct supervisor *supervisor)
{
        return has_entries(supervisor->options->state_directory, "store") ||
               has_entries(supervisor->secrets.folder, "store");
}

/* ---- --discard-state */

static int empty_store(const char *folder)
{
        int r;
        _cleanup_free_ char *path = format_string("%s/store", folder);

        if (!path)
                return -ENOMEM;
        r = folder_remove(path);
        if (r < 0 && r != -ENOENT)
                return r;
        return mkdir(path, 0700) < 0 ? -errno : 0;
}

/* The ledger goes last: as long as it is there, the next start refuses or discards as this one did. The note
 * of finalizers stays: without it nobody would take those of former watches off. */
static int discard(struct supervisor *supervisor, const char *path, struct error *error)
{
        _cleanup_free_ char *under_way = NULL, *aside = NULL;
        int r = empty_store(supervisor->options->state_directory);

        if (r >= 0)
                r = empty_store(supervisor->secrets.folder);
        under_way = format_string("%s/under-way", supervisor->options->state_directory);
        if (!under_way)
                r = -ENOMEM;
        if (r >= 0 && unlink(under_way) < 0 && errno != ENOENT)
                r = -errno;
        if (r >= 0)
                r = ledger_set_aside(path, "discarded", &aside);
        if (r < 0)
                return error_set(error, r, "--discard-state: %s", strerror(-r));
        log_write(LOG_WARNING, MESSAGE_ID_LEDGER_SET_ASIDE, NULL,
                  "--discard-state: the state folder has another format; its object stores are removed, its "
                  "ledger is set aside as %s; every object is handled again, and deletions that happened "
                  "while the operator was down are found only through finalizers",
                  aside);
        return 0;
}

/* ---- */

static int open_or_discard(struct supervisor *supervisor, const char *path, char **ret_aside,
                           bool *ret_discarded, struct error *error)
{
        int r = ledger_open(path, &supervisor->controller.ledger, ret_aside, error);

        *ret_discarded = r == -EPROTONOSUPPORT && supervisor->options->discard_state;
        if (!*ret_discarded)
                return r;
        error_done(error);
        r = discard(supervisor, path, error);
        return r < 0 ? r : ledger_open(path, &supervisor->controller.ledger, ret_aside, error);
}

/* Removes what an earlier lead of this replica has noted. Its stores go as well: other leaders have handled
 * the deletions of what is gone since then, and the names may be those of other objects. A start that ends
 * in the middle voids the ledger again: the epoch that is noted beside it is still an old one. */
static int remove_void(struct supervisor *supervisor, const char *path, struct error *error)
{
        static const char *const suffix[] = {"-wal", "-shm", ""};
        _cleanup_free_ char *under_way = format_string("%s/under-way", supervisor->options->state_directory);
        int r = empty_store(supervisor->options->state_directory);

        if (r >= 0)
                r = empty_store(supervisor->secrets.folder);
        if (r >= 0)
                r = !under_way ? -ENOMEM : unlink(under_way) < 0 && errno != ENOENT ? -errno : 0;
        for (size_t i = 0; i < ELEMENTS(suffix) && r >= 0; i++) {
                _cleanup_free_ char *file = format_string("%s%s", path, suffix[i]);

                r = !file ? -ENOMEM : unlink(file) < 0 && errno != ENOENT ? -errno : 0;
        }
        if (r < 0)
                return error_set(error, r, "%s and the object stores cannot be removed: %s", path,
                                 strerror(-r));
        log_info(
                "another replica has led: the ledger begins anew, and each object runs once when this replica leads");
        return 0;
}

static void warn_of_loss(const char *path, const char *aside)
{
        if (aside)
                log_write(
                        LOG_ERR, MESSAGE_ID_LEDGER_SET_ASIDE, NULL,
                        "the ledger %s was corrupt and has been set aside as %s; every object is handled "
                        "again, and deletions that happened while the operator was down are found only for "
                        "objects in the object store",
                        path, aside);
        else
                log_warning("the ledger %s is gone, but there are object stores of an earlier life; every "
                            "object is handled again, and deletions are found only for objects in the "
                            "stores",
                            path);
}

int state_ledger_open(struct supervisor *supervisor, bool voids, struct error *error)
{
        _cleanup_free_ char *path = NULL, *aside = NULL;
        bool missing, discarded;
        int r;

        path = format_string("%s/ledger.sqlite", supervisor->options->state_directory);
        if (!path)
                return error_set(error, -ENOMEM, "no memory");
        if (voids && (r = remove_void(supervisor, path, error)) < 0)
                return r;
        supervisor->lead.ledger_is_new = access(path, F_OK) < 0;
        missing = supervisor->lead.ledger_is_new && stores_exist(supervisor);
        supervisor->controller.ledger_folder = supervisor->options->state_directory;
        r = open_or_discard(supervisor, path, &aside, &discarded, error);
        if (r < 0)
                return error_prefix(error, "%s", path);
        supervisor->lead.ledger_is_new = supervisor->lead.ledger_is_new || aside || discarded;
        r = ledger_lost_load(&supervisor->controller, missing || aside || discarded);
        if (r < 0)
                return error_set(error, r, "%s: %s", path, strerror(-r));
        if (missing || aside)
                warn_of_loss(path, aside);
        return 0;
}
