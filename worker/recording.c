/* SPDX-License-Identifier: Apache-2.0 */
/* See record.h. */
#include "worker/recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "os/folder.h"
#include "worker/redact.h"

#define PRUNE_EVERY 16 /* runs */

struct record {
        struct worker *worker;
        int folder;        /* -1: by hand, or it cannot be used */
        int fd;            /* by hand: the one file */
        struct text lines; /* of the run that is under way */
        bool has_request;
        bool failure_told;
        unsigned written;
        uint64_t last_name;
};

/* ---- files */

static void tell_failure(struct record *record, const char *path, int error)
{
        if (!record->failure_told)
                log_warning("runs cannot be recorded: %s: %s; they go on unrecorded (said once)", path,
                            strerror(error));
        record->failure_told = true;
}

static int write_all(int fd, const struct text *text)
{
        size_t done = 0;

        while (done < text->size) {
                ssize_t size = write(fd, text->data + done, text->size - done);

                if (size < 0 && errno != EINTR)
                        return -errno;
                done += size > 0 ? (size_t)size : 0;
        }
        return 0;
}

static int name_filter(const struct dirent *entry)
{
        const char *dot = strrchr(entry->d_name, '.');

        return dot && strcmp(dot, ".jsonl") == 0 && entry->d_name[0] != '.';
}

/* The oldest go: by number, and by what all of them take. */
static void prune(const struct record *record)
{
        struct dirent **entry = NULL;
        uint64_t bytes = 0;
        int count = scandirat(record->folder, ".", &entry, name_filter, alphasort);

        for (int i = count - 1; i >= 0; i--) {
                struct stat st;

                if (fstatat(record->folder, entry[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                        bytes += (uint64_t)st.st_size;
                        if (count - i > RECORD_FILES_MAX || bytes > RECORD_BYTES_MAX)
                                (void)unlinkat(record->folder, entry[i]->d_name,
                                               0); /* another worker may have been there first */
                }
                free(entry[i]);
        }
        free(entry);
}

/* Makes the file anew: one that a former worker of our number, or somebody else, left is not written to. */
static int write_file(const struct record *record, const char *hidden, const char *name)
{
        _cleanup_close_ int fd = -1;
        int r;

        if (unlinkat(record->folder, hidden, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(record->folder, hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : write_all(fd, &record->lines);
        if (r >= 0 && renameat(record->folder, hidden, record->folder, name) < 0)
                r = -errno;
        if (fd >= 0 && r < 0)
                (void)unlinkat(record->folder, hidden, 0);
        return r;
}

/* Names sort by time; of one worker they are never the same. */
static void keep_run(struct record *record)
{
        char name[64], hidden[32];
        uint64_t now = clock_realtime_usec();
        int r;

        if (record->folder < 0 || record->lines.failed)
                return;
        record->last_name = now > record->last_name ? now : record->last_name + 1;
        snprintf(name, sizeof(name), "%020" PRIu64 "-%d.jsonl", record->last_name, getpid());
        snprintf(hidden, sizeof(hidden), ".%d.new", getpid());
        r = write_file(record, hidden, name);
        if (r < 0)
                tell_failure(record, hidden, -r);
        if (record->written++ % PRUNE_EVERY == 0)
                prune(record);
}

/* ---- lines */

static void line_begin(struct record *record, const char *type)
{
        text_printf(&record->lines, "{\"type\":\"%s\"", type);
}

static void add_text(struct record *record, const char *name, const char *value)
{
        text_printf(&record->lines, ",\"%s\":", name);
        text_json_string(&record->lines, value ? value : "");
}

static void add_number(struct record *record, const char *name, uint64_t value)
{
        text_printf(&record->lines, ",\"%s\":%" PRIu64, name, value);
}

static void add_body(struct record *record, const char *name, const char *bytes, size_t size)
{
        bool redacted = false;

        text_printf(&record->lines, ",\"%s\":", name);
        redact_append(record->worker, &record->lines, bytes ? bytes : "", size, &redacted);
        if (redacted)
                text_append_string(&record->lines, ",\"redacted\":true");
}

static void line_end(struct record *record)
{
        int r;

        text_append_string(&record->lines, "}\n");
        if (record->fd < 0)
                return;
        r = record->lines.failed ? -ENOMEM : write_all(record->fd, &record->lines);
        if (r < 0)
                tell_failure(record, record->worker->config->trace_file, -r);
        text_clear(&record->lines);
}

static void add_content(struct run *run, const char *type, const char *bytes, size_t size)
{
        struct record *record = run->worker->record;

        line_begin(record, type);
        if (run->watch->config->confidential)
                text_append_string(&record->lines, ",\"redacted\":true");
        else
                add_body(record, "body", bytes, size);
        line_end(record);
}

/* ---- what happens */

void record_request(struct run *run, const struct text *request)
{
        struct record *record = run->worker->record;

        if (!record)
                return;
        if (record->fd < 0)
                text_clear(&record->lines);
        record->has_request = true;
        line_begin(record, "run");
        add_text(record, "watch", run->order->watch);
        add_text(record, "key", run->order->key);
        add_text(record, "uid", run->order->uid);
        add_text(record, "action", run_action_name(run->action));
        add_text(record, "reason", run->order->reason);
        add_number(record, "attempt", run->order->attempt);
        add_number(record, "time", clock_realtime_usec());
        line_end(record);
        add_content(run, "request", request->data, request->size);
}

void record_answer(struct run *run, const char *answer, size_t size)
{
        if (run->worker->record)
                add_content(run, "answer", answer, size);
}

void record_end(struct run *run, enum run_result result, const char *text)
{
        struct record *record = run->worker->record;

        if (!record || (record->fd < 0 && !record->has_request))
                return;
        line_begin(record, "end");
        add_text(record, "result", run_result_name(result));
        add_text(record, "message", text);
        add_number(record, "requeueAfterUsec", run->answer.requeue_after_usec);
        add_number(record, "durationUsec", clock_boottime_usec() - run->started);
        add_number(record, "waitStatus", (uint64_t)(unsigned)run->wait_status);
        line_end(record);
        if (record->fd < 0)
                keep_run(record);
        record->has_request = false;
        text_clear(&record->lines);
}

static void on_exchange(const struct kube_exchange *exchange, void *userdata)
{
        struct record *record = userdata;
        const struct kube_response *response = exchange->response;

        line_begin(record, "exchange");
        add_text(record, "method", exchange->method);
        add_text(record, "path", exchange->path);
        add_body(record, "sent", exchange->body, exchange->body_size);
        add_number(record, "status", (uint64_t)response->http_status);
        add_text(record, "error",
                 response->error.failure == KUBE_FAILURE_NONE ? "" : response->error.message);
        add_body(record, "received", response->body, response->body_size);
        line_end(record);
}

/* ---- its life */

bool record_is_by_hand(const struct record *record)
{
        return record && record->fd >= 0;
}

static int open_trace(struct record *record)
{
        const char *path = record->worker->config->trace_file;

        record->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (record->fd < 0)
                return -errno;
        kube_client_on_exchange(record->worker->client, on_exchange, record);
        return 0;
}

/* Requests may hold anything: only where nobody else can read or replace them. */
static void open_folder(struct record *record)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *path = NULL;

        if (folder_own(record->worker->config->record_folder, &path, &error) < 0) {
                log_warning("runs are not recorded: %s", error_message(&error));
                return;
        }
        record->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (record->folder < 0)
                tell_failure(record, path, errno);
}

int record_new(struct worker *worker, struct record **ret)
{
        const struct message_config_worker *config = worker->config;
        struct record *record;
        int r = 0;

        *ret = NULL;
        if (!config->trace_file[0] && !config->record_folder[0])
                return 0;
        record = calloc(1, sizeof(*record));
        if (!record)
                return -ENOMEM;
        record->worker = worker;
        record->folder = -1;
        record->fd = -1;
        if (config->trace_file[0])
                r = open_trace(record);
        else
                open_folder(record);
        if (r < 0) {
                free(record);
                return r;
        }
        *ret = record;
        return 0;
}

void record_free(struct record *record)
{
        if (!record)
                return;
        if (record->fd >= 0)
                close(record->fd);
        if (record->folder >= 0)
                close(record->folder);
        text_done(&record->lines);
        free(record);
}
