/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/recording.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/duration.h"
#include "object/keyed-hash.h"
#include "object/scan-value.h"
#include "os/file.h"
#include "os/folder.h"
#include "worker/confidential.h"
#include "json/json.h"

static void keep_only(cJSON *object, const char *const *name, size_t count)
{
        cJSON *member = object ? object->child : NULL;

        while (member) {
                cJSON *next = member->next;
                bool keep = false;

                for (size_t i = 0; i < count; i++)
                        keep = keep || (member->string && strcmp(member->string, name[i]) == 0);
                if (!keep)
                        cJSON_Delete(cJSON_DetachItemViaPointer(object, member));
                member = next;
        }
}

/* Items of a SecretList lack their kind. */
static bool is_to_go(const struct worker *worker, const cJSON *value)
{
        const char *version = json_text_of(value, "apiVersion");
        const char *kind = json_text_of(value, "kind");

        return kind && (strcmp(kind, "Secret") == 0 || strcmp(kind, "SecretList") == 0 ||
                        (version && is_confidential(worker, version, kind)));
}

static void reduce(cJSON *object)
{
        static const char *const of_object[] = {"apiVersion", "kind", "metadata", "type"};
        static const char *const of_metadata[] = {"name", "namespace", "uid"};

        keep_only(object, of_object, ELEMENTS(of_object));
        keep_only(json_member(object, "metadata"), of_metadata, ELEMENTS(of_metadata));
}

/* Its keys, each with the same word. NULL: the Secret has none, or no memory. */
static cJSON *redact_values(const cJSON *secret, const char *name, const char *word)
{
        const cJSON *values = json_member(secret, name), *value;
        cJSON *words = cJSON_IsObject(values) ? cJSON_CreateObject() : NULL;

        if (words)
                cJSON_ArrayForEach(value, values) cJSON_AddStringToObject(words, value->string, word);
        return words;
}

/* A handler that gets a recorded request again finds the keys that it looks for, and what it reads of `data` is
 * base64. */
static void reduce_secret(cJSON *secret)
{
        cJSON *data = redact_values(secret, "data", "cmVkYWN0ZWQ=");
        cJSON *strings = redact_values(secret, "stringData", "redacted");

        reduce(secret);
        if (data)
                cJSON_AddItemToObject(secret, "data", data);
        if (strings)
                cJSON_AddItemToObject(secret, "stringData", strings);
}

static bool redact(const struct worker *worker, cJSON *value)
{
        cJSON *member;
        bool found = false;

        if (is_to_go(worker, value)) {
                reduce_secret(value);
                return true;
        }
        cJSON_ArrayForEach(member, value) found = redact(worker, member) || found;
        return found;
}

/* Escapes may hide the word "Secret". */
static bool may_hold_secret(const struct worker *worker, const char *bytes, size_t size)
{
        for (size_t i = 0; i < worker->watch_count; i++)
                if (worker->watch[i].config->confidential)
                        return true;
        return memmem(bytes, size, "Secret", 6) || memmem(bytes, size, "\\u", 2);
}

/* In valid JSON, a string has no line break. */
static void append_on_one_line(struct text *out, const char *bytes, size_t size)
{
        size_t start = out->size;

        if (text_append(out, bytes, size) < 0)
                return;
        for (size_t i = start; i < out->size; i++)
                if (out->data[i] == '\n' || out->data[i] == '\r')
                        out->data[i] = ' ';
}

/* ---- what is larger than a tree may be: a request with many objects, an answer that is refused. Its members, and the elements of
 * those that are lists, are read one by one, and what is too large by itself is left out. */

static int append_piece(const struct worker *worker, struct text *out, struct span piece, bool *ret_redacted)
{
        bool too_large = scan_count_values(piece.start, piece.size) > JSON_SERVED_MAX;
        _cleanup_json_ cJSON *tree = too_large ? NULL : json_parse_served(piece.start, piece.size);
        _cleanup_free_ char *left = NULL;

        if (!tree && !too_large)
                return -EBADMSG;
        if (tree && !redact(worker, tree)) {
                append_on_one_line(out, piece.start, piece.size);
                return 0;
        }
        *ret_redacted = true;
        left = tree ? cJSON_PrintUnformatted(tree) : NULL;
        return text_append_string(out, left ? left : "null");
}

static int append_elements(const struct worker *worker, struct text *out, struct span list,
                           bool *ret_redacted)
{
        struct scan_walk walk;
        bool any = false;

        text_append_string(out, "[");
        SCAN_ELEMENTS(walk, list) {
                text_append_string(out, any ? "," : "");
                any = true;
                if (append_piece(worker, out, walk.value, ret_redacted) < 0)
                        return -EBADMSG;
        }
        text_append_string(out, "]");
        return walk.status;
}

static int append_members(const struct worker *worker, struct text *out, struct span object,
                          bool *ret_redacted)
{
        struct scan_walk walk;
        bool any = false;
        int r = 0;

        text_append_string(out, "{");
        SCAN_MEMBERS(walk, object) {
                text_append_string(out, any ? "," : "");
                any = true;
                r = append_piece(worker, out, walk.key, ret_redacted);
                text_append_string(out, ":");
                if (r >= 0)
                        r = walk.value.start[0] == '['
                                    ? append_elements(worker, out, walk.value, ret_redacted)
                                    : append_piece(worker, out, walk.value, ret_redacted);
                if (r < 0)
                        return r;
        }
        text_append_string(out, "}");
        return walk.status;
}

/* The beginning of a list shows that its items are Secrets. */
static bool is_large_secret(const struct worker *worker, struct span object)
{
        struct span version = scan_get(object, "apiVersion"), kind = scan_get(object, "kind");
        _cleanup_free_ char *text =
                format_string("{\"apiVersion\":%.*s,\"kind\":%.*s}", version.start ? (int)version.size : 2,
                              version.start ? version.start : "\"\"", kind.start ? (int)kind.size : 2,
                              kind.start ? kind.start : "\"\"");
        _cleanup_json_ cJSON *tree = text ? json_parse_bounded(text, strlen(text)) : NULL;

        return !tree || is_to_go(worker, tree);
}

static void append_large(const struct worker *worker, struct text *out, struct span whole,
                         bool *ret_redacted)
{
        size_t before = out->size;
        bool is_object = whole.size > 0 && whole.start[0] == '{';

        if (is_object && !is_large_secret(worker, whole) &&
            append_members(worker, out, whole, ret_redacted) >= 0)
                return;
        if (!out->failed)
                out->size = before;
        *ret_redacted = true;
        text_append_string(out, "null");
}

static void redact_append(const struct worker *worker, struct text *out, const char *bytes, size_t size,
                          bool confidential, bool *ret_redacted)
{
        _cleanup_json_ cJSON *tree = NULL;
        _cleanup_free_ char *left = NULL;
        bool suspect = confidential || may_hold_secret(worker, bytes, size);

        while (size > 0 && strchr(" \t\r\n", bytes[size - 1]))
                size--;
        if (size == 0) {
                text_append_string(out, "null");
                return;
        }
        if (scan_count_values(bytes, size) > JSON_SERVED_MAX) {
                struct span whole = {bytes + skip_space(bytes, size, 0), size - skip_space(bytes, size, 0)};

                append_large(worker, out, confidential ? (struct span){0} : whole, ret_redacted);
                return;
        }
        tree = json_parse_served(bytes, size);
        if (!tree || (confidential && !cJSON_IsObject(tree))) {
                /* A text that only begins like JSON could hold anything. */
                *ret_redacted = *ret_redacted || suspect;
                if (suspect)
                        text_append_string(out, "null");
                else
                        text_json_bytes(out, bytes, size);
                return;
        }
        if (confidential)
                reduce(tree);
        if (!confidential && (!suspect || !redact(worker, tree))) {
                append_on_one_line(out, bytes, size);
                return;
        }
        *ret_redacted = true;
        left = cJSON_PrintUnformatted(tree);
        text_append_string(out, left ? left : "null");
}

#define PRUNE_EVERY 16 /* number of runs between two searches for files to delete */

struct recording {
        struct worker *worker;
        int folder; /* -1: by hand, or it cannot be used */
        int fd;     /* by hand: the one file */
        bool failure_told;
        unsigned written;
        uint64_t last_name;
};

/* ---- files */

static void tell_failure(struct recording *recording, const char *path, int error)
{
        if (!recording->failure_told)
                log_warning("runs cannot be recorded: %s: %s; they go on unrecorded (said once)", path,
                            strerror(error));
        recording->failure_told = true;
}

static int name_filter(const struct dirent *entry)
{
        const char *dot = strrchr(entry->d_name, '.');

        return dot && strcmp(dot, ".jsonl") == 0 && entry->d_name[0] != '.';
}

/* Deletes the oldest files if there are too many, or if they take too much room. */
static void prune(const struct recording *recording)
{
        struct dirent **entry = NULL;
        uint64_t bytes = 0;
        int count = scandirat(recording->folder, ".", &entry, name_filter, alphasort);

        for (int i = count - 1; i >= 0; i--) {
                struct stat st;

                if (fstatat(recording->folder, entry[i]->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                        bytes += (uint64_t)st.st_size;
                        if (count - i > RECORDING_FILES_MAX || bytes > RECORDING_BYTES_MAX)
                                (void)unlinkat(recording->folder, entry[i]->d_name,
                                               0); /* another worker may have deleted it first */
                }
                free(entry[i]);
        }
        free(entry);
}

/* Makes a new file: one that a former worker with our PID, or somebody else, has left is not written to. */
static int write_recording(const struct recording *recording, const struct text *lines, const char *hidden,
                           const char *name)
{
        _cleanup_close_ int fd = -1;
        int r;

        if (unlinkat(recording->folder, hidden, 0) < 0 && errno != ENOENT)
                return -errno;
        fd = openat(recording->folder, hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        r = fd < 0 ? -errno : file_write_all(fd, lines->data, lines->size);
        if (r >= 0 && renameat(recording->folder, hidden, recording->folder, name) < 0)
                r = -errno;
        if (fd >= 0 && r < 0)
                (void)unlinkat(recording->folder, hidden, 0);
        return r;
}

/* Names sort by time; a worker uses none twice. */
static void keep_run(struct recording *recording, const struct text *lines)
{
        char name[64], hidden[32];
        uint64_t now = clock_realtime_usec();
        int r;

        if (recording->folder < 0 || lines->failed)
                return;
        recording->last_name = now > recording->last_name ? now : recording->last_name + 1;
        snprintf(name, sizeof(name), "%020" PRIu64 "-%d.jsonl", recording->last_name, getpid());
        snprintf(hidden, sizeof(hidden), ".%d.new", getpid());
        r = write_recording(recording, lines, hidden, name);
        if (r < 0)
                tell_failure(recording, hidden, -r);
        if (recording->written++ % PRUNE_EVERY == 0)
                prune(recording);
}

/* ---- lines */

static void line_begin(struct text *lines, const char *type)
{
        text_append_string(lines, "{");
        json_string(lines, "type", type);
}

/* true: something of it was left out. */
static bool add_body(const struct recording *recording, struct text *lines, const char *name,
                     const char *bytes, size_t size, bool confidential)
{
        bool redacted = false;

        text_printf(lines, "\"%s\":", name);
        redact_append(recording->worker, lines, bytes ? bytes : "", size, confidential, &redacted);
        text_append_string(lines, ",");
        return redacted;
}

static void line_end(struct recording *recording, struct text *lines)
{
        int r;

        json_close(lines, "}\n");
        if (recording->fd < 0)
                return;
        r = lines->failed ? -ENOMEM : file_write_all(recording->fd, lines->data, lines->size);
        if (r < 0)
                tell_failure(recording, recording->worker->config->trace_file, -r);
        text_clear(lines);
}

/* What was left out cannot be compared, but its hash can: the key is of this session alone. Finalizers are no secret and no part of
 * it, since a dry run does not keep ours. */
static void add_digest(struct text *lines, const char *json, size_t size)
{
        static const char *const passed_over[] = {"managedFields", "resourceVersion",   "uid",
                                                  "generation",    "creationTimestamp", "selfLink",
                                                  "finalizers"};
        _cleanup_json_ cJSON *tree = json_parse_served(json, size);
        _cleanup_free_ char *left = NULL;
        char digest[24];

        if (!cJSON_IsObject(tree))
                return;
        for (size_t i = 0; i < ELEMENTS(passed_over); i++)
                cJSON_DeleteItemFromObjectCaseSensitive(json_member(tree, "metadata"), passed_over[i]);
        left = cJSON_PrintUnformatted(tree);
        if (!left)
                return;
        snprintf(digest, sizeof(digest), "%016" PRIx64,
                 keyed_hash_end(keyed_hash_of(HASHED_BODY), left, strlen(left)));
        json_string(lines, "digest", digest);
}

static void add_content(struct run *run, const char *type, const char *bytes, size_t size)
{
        struct recording *recording = run->worker->recording;

        line_begin(&run->record, type);
        if (run->watch->config->confidential ||
            add_body(recording, &run->record, "body", bytes, size, false))
                json_bool(&run->record, "redacted", true);
        /* The object itself, with which an exchange by hand is compared. */
        if (run->watch->config->confidential && recording->fd >= 0 && run->json)
                add_digest(&run->record, run->json, strlen(run->json));
        line_end(recording, &run->record);
}

/* ---- what happens */

void recording_request(struct run *run, const struct text *request)
{
        struct recording *recording = run->worker->recording;
        struct text *lines = &run->record;

        if (!recording)
                return;
        text_clear(lines);
        line_begin(lines, "run");
        json_string(lines, "watch", run->order->watch);
        json_string(lines, "key", run->order->key);
        json_string(lines, "uid", run->order->uid);
        json_string(lines, "action", run_told_action(run->action, run->watch->config->own_action));
        json_string(lines, "reason", run_reason_name(run->order->reason));
        json_uint64(lines, "attempt", run->order->attempt);
        json_uint64(lines, "time", clock_realtime_usec());
        line_end(recording, lines);
        add_content(run, "request", request->data, request->size);
}

void recording_answer(struct run *run, const char *answer, size_t size)
{
        if (run->worker->recording)
                add_content(run, "answer", answer, size);
}

void recording_end(struct run *run, enum run_result result, const char *text)
{
        struct recording *recording = run->worker->recording;
        struct text *lines = &run->record;

        if (!recording || (recording->fd < 0 && lines->size == 0)) /* no request was made */
                return;
        line_begin(lines, "end");
        json_string(lines, "result", run_result_name(result));
        json_string(lines, "message", text);
        json_uint64(lines, "requeueAfterUsec", answer_requeue_after(&run->answer, clock_realtime_usec()));
        json_uint64(lines, "durationUsec", clock_boottime_usec() - run->started);
        json_uint64(lines, "waitStatus", (uint64_t)(unsigned)run->handler.wait_status);
        line_end(recording, lines);
        if (recording->fd < 0)
                keep_run(recording, lines);
}

static void on_exchange(const struct kube_exchange *exchange, void *userdata)
{
        struct recording *recording = userdata;
        const struct kube_response *response = exchange->response;
        bool confidential = exchange->confidential, redacted; /* a patch does not name its kind */
        char words[CONFIDENTIAL_WORDS_MAX];
        _cleanup_text_ struct text lines = TEXT_EMPTY;

        line_begin(&lines, "exchange");
        json_string(&lines, "method", exchange->method);
        json_string(&lines, "path", exchange->path);
        redacted = add_body(recording, &lines, "sent", exchange->body, exchange->body_size, confidential);
        json_uint64(&lines, "status", (uint64_t)response->http_status);
        json_string(&lines, "error",
                    response->error.failure == KUBE_FAILURE_NONE
                            ? ""
                            : confidential_words(confidential, &response->error, words, sizeof(words)));
        redacted =
                add_body(recording, &lines, "received", response->body, response->body_size, confidential) ||
                redacted;
        if (redacted) {
                json_bool(&lines, "redacted", true);
                add_digest(&lines, response->body, response->body_size);
        }
        line_end(recording, &lines);
}

/* ---- its life */

bool recording_is_by_hand(const struct recording *recording)
{
        return recording && recording->fd >= 0;
}

static int open_trace(struct recording *recording)
{
        const char *path = recording->worker->config->trace_file;

        recording->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (recording->fd < 0)
                return -errno;
        kube_client_on_exchange(recording->worker->client, on_exchange, recording);
        return 0;
}

/* Requests may hold anything, so the folder must be one that others can neither read nor replace. */
static void open_folder(struct recording *recording)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *path = NULL;

        if (folder_own(recording->worker->config->record_folder, &path, &error) < 0) {
                log_warning("runs are not recorded: %s", error_message(&error));
                return;
        }
        recording->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (recording->folder < 0)
                tell_failure(recording, path, errno);
}

int recording_new(struct worker *worker, struct recording **ret)
{
        const struct message_config_worker *config = worker->config;
        struct recording *recording;
        int r = 0;

        *ret = NULL;
        if (!config->trace_file[0] && !config->record_folder[0])
                return 0;
        recording = calloc(1, sizeof(*recording));
        if (!recording)
                return -ENOMEM;
        recording->worker = worker;
        recording->folder = -1;
        recording->fd = -1;
        if (config->trace_file[0])
                r = open_trace(recording);
        else
                open_folder(recording);
        if (r < 0) {
                free(recording);
                return r;
        }
        *ret = recording;
        return 0;
}

void recording_free(struct recording *recording)
{
        if (!recording)
                return;
        if (recording->fd >= 0)
                close(recording->fd);
        if (recording->folder >= 0)
                close(recording->folder);
        free(recording);
}
