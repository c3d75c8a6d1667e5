/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was under way when the supervisor itself was ended by force: by somebody's SIGKILL, or because a
 * handler took so much that the kernel ended the whole container. The runs that workers have stand in a
 * mapped file of the runtime directory (plain stores, no system call), which outlives us and no machine: one
 * that went down blames nobody.
 *
 * The next start makes suspects of them. That is no punishment: a suspect runs as soon as nothing else does,
 * alone, and any end of that run clears it. Only when the same happens again while a suspect runs, and by
 * that nothing else, a crash is counted. So one SIGKILL costs nobody anything, and what brings everything
 * down each time is in quarantine after one death more than `quarantine.after`.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <systemd/sd-id128.h>
#include <unistd.h>

#include "base/duration.h"
#include "supervisor/supervisor.h"

#define VERSION UINT32_C(0x77617901)

struct record {
        _Atomic uint32_t busy; /* written last and taken back first */
        uint64_t fingerprint;
        char watch[64], key[320], uid[68];
};

struct file {
        uint32_t version, count;
        sd_id128_t boot;
        struct record record[];
};

struct under_way {
        char *path;
        struct file *file;
        size_t size;
};

static size_t file_size(size_t count)
{
        return sizeof(struct file) + count * sizeof(struct record);
}

/* Null where the kernel does not say: that is like no other one. */
static sd_id128_t this_boot(void)
{
        sd_id128_t boot = SD_ID128_NULL;

        (void)sd_id128_get_boot(&boot);
        return boot;
}

/* ---- what the last life has left */

static bool is_text(const char *text, size_t size)
{
        return text[0] != '\0' && strnlen(text, size) < size;
}

static bool is_noted(const struct record *record)
{
        return atomic_load_explicit(&record->busy, memory_order_relaxed) == 1 &&
               is_text(record->watch, sizeof(record->watch)) && is_text(record->key, sizeof(record->key)) &&
               is_text(record->uid, sizeof(record->uid));
}

/* NULL: there is none, or none that says anything. */
static struct file *read_file(const char *path)
{
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        _cleanup_free_ struct file *file = NULL;
        sd_id128_t boot = this_boot();
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || (size_t)st.st_size < file_size(0) ||
            (size_t)st.st_size > file_size(WORKERS_MAX * RUNS_AT_ONCE))
                return NULL;
        file = malloc((size_t)st.st_size);
        if (!file || pread(fd, file, (size_t)st.st_size, 0) != st.st_size)
                return NULL;
        if (file->version != VERSION || (size_t)st.st_size != file_size(file->count) ||
            sd_id128_is_null(boot) || !sd_id128_equal(file->boot, boot))
                return NULL;
        return TAKE_PTR(file);
}

/* 1: it is a suspect now; 2: a crash was counted; 0: it is not ours any more. */
static int judge(struct supervisor *supervisor, const struct record *record, bool alone)
{
        const struct config_watch *config = config_watch_find(supervisor->config, record->watch);
        struct ledger_row row = {0};
        int r = config ? ledger_get(supervisor->ledger, record->watch, record->key, record->uid, &row)
                       : -ENOENT;

        if (r < 0)
                return r == -ENOENT ? 0 : r;
        if (alone && ledger_row_is_suspect(&row)) {
                r = blame_object(supervisor, config, record->key, record->uid, record->fingerprint,
                                 "the whole operator was killed while it ran, alone");
                ledger_row_done(&row);
                return r < 0 ? r : 2;
        }
        row.crashed_realtime = ledger_now(supervisor);
        r = ledger_put(supervisor->ledger, record->watch, &row);
        ledger_row_done(&row);
        return r < 0 ? r : 1;
}

static void tell(const struct record *record, bool counted)
{
        log_write(counted ? LOG_WARNING : LOG_NOTICE, NULL,
                  LOG_FIELDS({"RECONCILED_WATCH", record->watch}, {"RECONCILED_KEY", record->key},
                             {"RECONCILED_UID", record->uid}),
                  counted ? "%s of watch %s ran alone when the operator was killed as a whole: a crash is "
                            "counted"
                          : "%s of watch %s ran when the operator was killed as a whole: it runs alone the "
                            "next time",
                  record->key, record->watch);
}

static int judge_all(struct supervisor *supervisor, const struct file *file)
{
        size_t noted = 0;
        int r = 0;

        for (size_t i = 0; i < file->count; i++)
                noted += is_noted(&file->record[i]);
        for (size_t i = 0; i < file->count && r >= 0; i++) {
                if (!is_noted(&file->record[i]))
                        continue;
                r = judge(supervisor, &file->record[i], noted == 1);
                if (r > 0)
                        tell(&file->record[i], r == 2);
        }
        return r < 0 ? r : ledger_commit(supervisor->ledger);
}

/* ---- the file of this life */

/* Space that is not there would kill us when we write to it: it is taken before. */
static int map_file(struct under_way *under_way, size_t count)
{
        size_t size = file_size(count);
        _cleanup_close_ int fd = -1;
        void *map;
        int r;

        if (unlink(under_way->path) < 0 && errno != ENOENT)
                return -errno;
        fd = open(under_way->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return -errno;
        r = posix_fallocate(fd, 0, (off_t)size);
        if (r != 0)
                return -r;
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (map == MAP_FAILED)
                return -errno;
        under_way->file = map;
        under_way->size = size;
        under_way->file->count = (uint32_t)count;
        under_way->file->boot = this_boot();
        under_way->file->version = VERSION;
        return 0;
}

int under_way_begin(struct supervisor *supervisor)
{
        struct under_way *under_way = calloc(1, sizeof(*under_way));
        _cleanup_free_ struct file *left = NULL;
        int r = 0;

        if (!under_way)
                return -ENOMEM;
        supervisor->under_way = under_way;
        if (asprintf(&under_way->path, "%s/under-way", supervisor->options->runtime_directory) < 0) {
                under_way->path = NULL;
                return -ENOMEM;
        }
        left = read_file(under_way->path);
        if (left)
                r = judge_all(supervisor, left);
        return r < 0 ? r : map_file(under_way, supervisor->worker_count * RUNS_AT_ONCE);
}

void under_way_end(struct supervisor *supervisor)
{
        if (supervisor->under_way && supervisor->under_way->file)
                (void)unlink(supervisor->under_way->path);
}

void under_way_free(struct under_way *under_way)
{
        if (!under_way)
                return;
        if (under_way->file)
                munmap(under_way->file, under_way->size);
        free(under_way->path);
        free(under_way);
}

/* ---- notes */

static struct record *record_of(const struct worker *worker, unsigned place)
{
        const struct supervisor *supervisor = worker->child->supervisor;

        return &supervisor->under_way->file->record[worker->child->index * RUNS_AT_ONCE + place];
}

static bool copy(char *to, size_t size, const char *from)
{
        size_t length = strlen(from) + 1;

        if (length > size)
                return false;
        memcpy(to, from, length);
        return true;
}

void under_way_note(struct worker *worker, struct assignment *given)
{
        const struct queue_run *run = &given->run;
        struct record *record;

        given->place = (unsigned)__builtin_ctz(~worker->places); /* there are as many as it may be given */
        worker->places |= 1U << given->place;
        record = record_of(worker, given->place);
        record->fingerprint = run->fingerprint;
        if (copy(record->watch, sizeof(record->watch),
                 worker->child->supervisor->watch[run->watch].config->name) &&
            copy(record->key, sizeof(record->key), run->key) &&
            copy(record->uid, sizeof(record->uid), run->uid))
                atomic_store_explicit(&record->busy, 1, memory_order_release);
}

void under_way_forget(struct worker *worker, const struct assignment *given)
{
        worker->places &= ~(1U << given->place);
        atomic_store_explicit(&record_of(worker, given->place)->busy, 0, memory_order_release);
        /* Nothing that is written there next may be seen before. */
        atomic_thread_fence(memory_order_seq_cst);
}
