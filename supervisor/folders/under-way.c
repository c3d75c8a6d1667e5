/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/folders/under-way.h"
#include "base/text.h"
#include "os/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <systemd/sd-id128.h>
#include <unistd.h>
#include <xxhash.h>

#include "controller/change/unsure.h"
#include "controller/run/last-life.h"
#include "ipc/log.h"
#include "ipc/run-reason.h"
#include "supervisor/supervisor.h"

#define VERSION   UINT32_C(0x77617902)
#define ENDED_MAX 256            /* runs that wait for their commit: then there is one at once */
#define UNLISTED  ((unsigned)-1) /* the place of a run that does not fit */

enum record_state { RECORD_FREE, RECORD_RUNNING, RECORD_ENDED };

struct record {
        _Atomic uint32_t state; /* written last and taken back first */
        uint32_t without_handler;
        uint64_t fingerprint;
        uint64_t checksum; /* of the two fields before and of the texts */
        char text[1000];   /* watch, key, uid, each with its zero */
};

enum life { LIFE_OPEN = 1, LIFE_STOPPING, LIFE_CLOSED };

struct file {
        uint32_t version, count;
        sd_id128_t boot;
        _Atomic uint32_t life;
        _Atomic uint32_t unlisted; /* runs that have no record */
        struct record record[];
};

struct under_way {
        char *path;
        int fd;
        struct file *file;
        size_t size;
        unsigned *free; /* places; the last one is taken first, so that few pages are written */
        unsigned *ended;
        size_t free_count, ended_count;
};

static size_t file_size(size_t count)
{
        return sizeof(struct file) + count * sizeof(struct record);
}

static size_t runs_of_worker(const struct supervisor *supervisor)
{
        return supervisor->config->window > RUNS_AT_ONCE ? supervisor->config->window : RUNS_AT_ONCE;
}

/* Runs in flight, runs that have ended, and while no commit succeeds, all that had begun before. */
static size_t record_count(const struct supervisor *supervisor)
{
        return 2 * supervisor->controller.worker_count * runs_of_worker(supervisor) + ENDED_MAX;
}

/* Zeros if the kernel does not report it: they match no boot. */
static sd_id128_t this_boot(void)
{
        sd_id128_t boot = SD_ID128_NULL;

        (void)sd_id128_get_boot(&boot);
        return boot;
}

/* ---- what the last life has left */

/* The three texts of a record; false: it has none. */
static bool read_record_texts(const char *text, size_t size, const char *ret[3])
{
        const char *end = text + size;

        for (size_t i = 0; i < 3; i++) {
                const char *zero = text < end ? memchr(text, '\0', (size_t)(end - text)) : NULL;

                if (!zero || zero == text)
                        return false;
                ret[i] = text;
                text = zero + 1;
        }
        return true;
}

static uint64_t record_sum(const struct record *record, size_t text_size)
{
        return XXH3_64bits_withSeed(record->text, text_size, record->fingerprint + record->without_handler);
}

static bool is_intact(const struct record *record)
{
        const char *text[3];

        return read_record_texts(record->text, sizeof(record->text), text) &&
               record->checksum ==
                       record_sum(record, (size_t)(text[2] - record->text) + strlen(text[2]) + 1);
}

/* The group is not looked at: Kubernetes gives what a volume holds to the group of the pod (fsGroup). */
static bool is_our_file(int fd, struct stat *ret)
{
        return fstat(fd, ret) >= 0 && S_ISREG(ret->st_mode) && ret->st_uid == geteuid() &&
               (ret->st_mode & 07) == 0;
}

/* -ENOENT: there is none; -EBADMSG: it is not what we have written. */
static int read_under_way(const char *path, struct file **ret)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        _cleanup_free_ struct file *file = NULL;
        struct stat st = {0};
        size_t size;

        if (fd < 0)
                return errno == ENOENT ? -ENOENT : -EBADMSG;
        if (!is_our_file(fd, &st))
                return -EBADMSG;
        size = (size_t)st.st_size;
        if (size < file_size(0) || size > file_size(2 * WORKERS_MAX * GIVEN_MAX + ENDED_MAX))
                return -EBADMSG;
        file = malloc(size);
        if (!file)
                return -ENOMEM;
        if (pread(fd, file, size, 0) != st.st_size || file->version != VERSION ||
            size != file_size(file->count))
                return -EBADMSG;
        *ret = TAKE_PTR(file);
        return 0;
}

static int judge_all(struct supervisor *supervisor, struct file *file, bool suspects)
{
        size_t running = 0;
        int r = 0;

        for (size_t i = 0; i < file->count; i++)
                running += file->record[i].state == RECORD_RUNNING;
        for (size_t i = 0; i < file->count && r >= 0; i++) {
                const struct record *record = &file->record[i];
                const char *text[3];

                if (record->state == RECORD_FREE || !is_intact(record) ||
                    !read_record_texts(record->text, sizeof(record->text), text))
                        continue;
                r = last_life_judge(&supervisor->controller,
                                    &(struct noted_run){text[0], text[1], text[2], record->fingerprint,
                                                        record->without_handler != 0},
                                    suspects && record->state == RECORD_RUNNING, running == 1);
        }
        return r < 0 ? r : ledger_commit(supervisor->controller.ledger);
}

/* NULL if the file is intact. */
static const char *why_doubtful(const struct file *file)
{
        sd_id128_t boot = this_boot();

        if (file->life != LIFE_CLOSED && (sd_id128_is_null(boot) || !sd_id128_equal(file->boot, boot)))
                return "the machine went down while the operator ran";
        for (size_t i = 0; i < file->count; i++)
                if (file->record[i].state != RECORD_FREE && !is_intact(&file->record[i]))
                        return "the record of a run in flight is damaged";
        return file->unlisted > 0 ? "the name of an object that ran was too long to be recorded" : NULL;
}

/* At the first start the file is not there yet, and the ledger has no note of it. */
static int judge_missing(struct supervisor *supervisor, const char **ret_doubt)
{
        bool kept = false;
        int r = unsure_begun(&supervisor->controller, &kept);

        if (r >= 0 && kept && supervisor->life.last_exit != 0)
                *ret_doubt = "the record of the runs in flight is missing";
        return r;
}

static int judge_last_life(struct supervisor *supervisor, const char *path)
{
        _cleanup_free_ struct file *file = NULL;
        const char *doubt = NULL;
        int r = read_under_way(path, &file);

        if (r == -ENOENT) {
                r = judge_missing(supervisor, &doubt);
        } else if (r == -EBADMSG) {
                doubt = "the record of the runs in flight is not valid";
                r = 0;
        } else if (r >= 0) {
                doubt = why_doubtful(file);
                r = judge_all(supervisor, file,
                              !doubt && file->life == LIFE_OPEN && supervisor->life.runtime_kept);
        }
        return r < 0 ? r : unsure_begin(&supervisor->controller, doubt);
}

/* ---- the file of this life */

/* Space that is not there would kill us when we write to it: it is taken before. */
static int make_records(struct under_way *under_way, const char *path, size_t count)
{
        struct file *file;
        int r;

        under_way->size = file_size(count);
        if (unlink(path) < 0 && errno != ENOENT)
                return -errno;
        under_way->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (under_way->fd < 0)
                return -errno;
        r = posix_fallocate(under_way->fd, 0, (off_t)under_way->size);
        if (r != 0)
                return -r;
        file = mmap(NULL, under_way->size, PROT_READ | PROT_WRITE, MAP_SHARED, under_way->fd, 0);
        if (file == MAP_FAILED)
                return -errno;
        under_way->file = file;
        file->count = (uint32_t)count;
        file->boot = this_boot();
        file->version = VERSION;
        file->life = LIFE_OPEN;
        return fsync(under_way->fd) < 0 ? -errno : 0;
}

/* Begins the file, on the disk before anything runs: what lies there now may say that nothing is in
 * flight. */
static int begin_file(struct supervisor *supervisor)
{
        struct under_way *under_way = supervisor->under_way;
        size_t count = record_count(supervisor);
        _cleanup_free_ char *path = NULL;
        int r;

        under_way->free = calloc(count, sizeof(*under_way->free));
        under_way->ended = calloc(count, sizeof(*under_way->ended));
        if (!under_way->free || !under_way->ended)
                return -ENOMEM;
        while (under_way->free_count < count) {
                under_way->free[under_way->free_count] = (unsigned)(count - 1 - under_way->free_count);
                under_way->free_count++;
        }
        path = format_string("%s.new", under_way->path);
        if (!path)
                return -ENOMEM;
        r = make_records(under_way, path, count);
        if (r >= 0 && rename(path, under_way->path) < 0)
                r = -errno;
        return r < 0 ? r : file_sync_folder(supervisor->options->state_directory);
}

int under_way_begin(struct supervisor *supervisor)
{
        struct under_way *under_way = calloc(1, sizeof(*under_way));
        int r;

        if (!under_way)
                return -ENOMEM;
        under_way->fd = -1;
        supervisor->under_way = under_way;
        under_way->path = format_string("%s/under-way", supervisor->options->state_directory);
        if (!under_way->path)
                return -ENOMEM;
        r = judge_last_life(supervisor, under_way->path);
        return r < 0 ? r : begin_file(supervisor);
}

static struct file *file_of(const struct supervisor *supervisor)
{
        return supervisor->under_way ? supervisor->under_way->file : NULL;
}

void under_way_blameless(struct supervisor *supervisor)
{
        if (file_of(supervisor))
                file_of(supervisor)->life = LIFE_STOPPING;
}

void under_way_close(struct supervisor *supervisor)
{
        if (!file_of(supervisor))
                return;
        file_of(supervisor)->life = LIFE_CLOSED;
        if (fdatasync(supervisor->under_way->fd) < 0)
                log_warning("%s cannot be synced: %s", supervisor->under_way->path, strerror(errno));
}

void under_way_free(struct under_way *under_way)
{
        if (!under_way)
                return;
        if (under_way->file)
                munmap(under_way->file, under_way->size);
        if (under_way->fd >= 0)
                close(under_way->fd);
        free(under_way->free);
        free(under_way->ended);
        free(under_way->path);
        free(under_way);
}

/* ---- notes */

/* How many bytes they take; 0: they do not fit. */
static size_t write_texts(struct record *record, const char *const text[3])
{
        char *to = record->text, *end = to + sizeof(record->text);

        for (size_t i = 0; i < 3; i++) {
                size_t size = strlen(text[i]) + 1;

                if (size > (size_t)(end - to))
                        return 0;
                to = (char *)memcpy(to, text[i], size) + size;
        }
        return (size_t)(to - record->text);
}

void under_way_note(struct supervisor *supervisor, struct assignment *given)
{
        struct under_way *under_way = supervisor->under_way;
        const struct queue_run *run = &given->run;
        const char *const text[3] = {supervisor->controller.watch[run->watch].config->name, run->key,
                                     run->uid};
        struct record *record;
        size_t size;

        given->place = under_way->free_count > 0 ? under_way->free[under_way->free_count - 1] : UNLISTED;
        record = &under_way->file->record[given->place == UNLISTED ? 0 : given->place];
        size = given->place == UNLISTED ? 0 : write_texts(record, text);
        if (size == 0) {
                given->place = UNLISTED;
                under_way->file->unlisted++;
                return;
        }
        assert(record->state == RECORD_FREE);
        under_way->free_count--;
        record->fingerprint = run->fingerprint;
        record->without_handler = run_is_without_handler(run->reason);
        record->checksum = record_sum(record, size);
        atomic_store_explicit(&record->state, RECORD_RUNNING, memory_order_release);
}

static void release(struct under_way *under_way, unsigned place)
{
        if (place == UNLISTED) {
                under_way->file->unlisted--;
                return;
        }
        assert(under_way->file->record[place].state != RECORD_FREE);
        atomic_store_explicit(&under_way->file->record[place].state, RECORD_FREE, memory_order_release);
        under_way->free[under_way->free_count++] = place;
}

bool under_way_end(struct supervisor *supervisor, const struct assignment *given, bool has_begun)
{
        struct under_way *under_way = supervisor->under_way;

        if (!has_begun) {
                release(under_way, given->place);
        } else {
                if (given->place != UNLISTED)
                        atomic_store_explicit(&under_way->file->record[given->place].state, RECORD_ENDED,
                                              memory_order_release);
                assert(under_way->ended_count < record_count(supervisor));
                under_way->ended[under_way->ended_count++] = given->place;
        }
        /* Later writes to the record must not be visible before this one. */
        atomic_thread_fence(memory_order_seq_cst);
        return under_way->ended_count >= ENDED_MAX;
}

void under_way_committed(struct supervisor *supervisor)
{
        struct under_way *under_way = supervisor->under_way;

        while (under_way->ended_count > 0)
                release(under_way, under_way->ended[--under_way->ended_count]);
        atomic_thread_fence(memory_order_seq_cst);
}
