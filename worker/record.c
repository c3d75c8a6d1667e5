/* SPDX-License-Identifier: Apache-2.0 */
/* See record.h. */
#include "worker/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "worker/redact.h"

#define PRUNE_EVERY 16 /* runs */

struct record {
        struct worker *worker;
        const char *folder; /* "" : by hand */
        int fd;             /* by hand: the one file */
        struct text lines;  /* of the run that is under way */
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
        int count = scandir(record->folder, &entry, name_filter, alphasort);

        for (int i = count - 1; i >= 0; i--) {
                _cleanup_free_ char *path = NULL;
                struct stat st;

                if (asprintf(&path, "%s/%s", record->folder, entry[i]->d_name) < 0)
                        path = NULL;
                if (path && lstat(path, &st) == 0) {
                        bytes += (uint64_t)st.st_size;
                        if (count - i > RECORD_FILES_MAX || bytes > RECORD_BYTES_MAX)
                                (void)unlink(path); /* another worker may have been there first */
                }
                free(entry[i]);
        }
        free(entry);
}

/* Names sort by time; of one worker they are never the same. */
static void keep_run(struct record *record)
{
        _cleanup_free_ char *path = NULL, *hidden = NULL;
        _cleanup_close_ int fd = -1;
        uint64_t name = clock_realtime_usec();
        int r;

        record->last_name = name > record->last_name ? name : record->last_name + 1;
        if (asprintf(&path, "%s/%020" PRIu64 "-%d.jsonl", record->folder, record->last_name, getpid()) < 0)
                path = NULL;
        if (asprintf(&hidden, "%s/.%d.new", record->folder, getpid()) < 0)
                hidden = NULL;
        if (!path || !hidden || record->lines.failed)
                return;
        fd = open(hidden, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : write_all(fd, &record->lines);
        if (r >= 0 && rename(hidden, path) < 0)
                r = -errno;
        if (r < 0) {
                (void)unlink(hidden);
                tell_failure(record, hidden, -r);
        }
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
        record->folder = config->record_folder;
        record->fd = -1;
        if (config->trace_file[0])
                r = open_trace(record);
        else if (mkdir(record->folder, 0700) < 0 && errno != EEXIST)
                tell_failure(record, record->folder, errno);
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
        text_done(&record->lines);
        free(record);
}
