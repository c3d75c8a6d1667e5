/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `reconciledctl replay DIR`: the requests that an operator with `record` has kept are put to the handlers
 * as they are now; their answers are compared, and nothing is sent to any API server.
 */
#include "ctl/session/replay.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "config/config.h"
#include "ctl/check/ctl-check.h"
#include "ctl/ctl-answer.h"
#include "ctl/output/output.h"
#include "ctl/session/internal.h"
#include "ctl/session/session.h"
#include "ipc/message.h"
#include "os/file.h"
#include "json/json.h"

#define RECORD_MAX ((size_t)64 * 1024 * 1024)

/* What one run was asked, and what came of it. */
struct recorded {
        char *file;
        cJSON *run, *request, *answer, *end;
        char *text; /* of the request, without its id */
        bool redacted;
};

struct replay {
        const struct ctl_run_options *options;
        const struct config *config;
        struct recorded *recorded;
        struct session_replay *order;
        size_t count, skipped, redacted;
        size_t position, different; /* while comparing */
        struct recorded again;
        cJSON *differences; /* for programs */
};

static void recorded_done(struct recorded *recorded)
{
        free(recorded->file);
        free(recorded->text);
        cJSON_Delete(recorded->run);
        cJSON_Delete(recorded->request);
        cJSON_Delete(recorded->answer);
        cJSON_Delete(recorded->end);
        *recorded = (struct recorded){0};
}

static int take_trace_line(const cJSON *line, const char *type, void *userdata)
{
        struct recorded *recorded = userdata;
        cJSON **place = strcmp(type, "run") == 0       ? &recorded->run
                        : strcmp(type, "request") == 0 ? &recorded->request
                        : strcmp(type, "answer") == 0  ? &recorded->answer
                        : strcmp(type, "end") == 0     ? &recorded->end
                                                       : NULL;

        if (!place)
                return 0;
        recorded->redacted = recorded->redacted || ctl_is(line, "redacted");
        cJSON_Delete(*place);
        *place = cJSON_Duplicate(line, true);
        /* Each process counts its requests itself. */
        cJSON_DeleteItemFromObjectCaseSensitive(json_member(*place, "body"), "id");
        return *place ? 0 : -ENOMEM;
}

/* ---- reading the folder */

static bool has_watch(const struct replay *replay, const char *name)
{
        for (size_t i = 0; i < replay->config->watch_count; i++)
                if (!replay->config->watch[i].owner && strcmp(replay->config->watch[i].name, name) == 0)
                        return !replay->options->watch || strcmp(replay->options->watch, name) == 0;
        return false;
}

/* The action as handlers see it, also for schedules and `startup`. */
static bool recorded_action(const char *name, enum run_action *ret)
{
        *ret = ACTION_RECONCILE;
        if (strcmp(name, "schedule") == 0 || strcmp(name, "startup") == 0)
                return true;
        for (enum run_action action = 0; action < ACTION_COUNT; action++)
                if (strcmp(run_action_name(action), name) == 0) {
                        *ret = action;
                        return true;
                }
        return false;
}

/* false: it cannot be run again, and is counted. */
static bool prepare_replay(struct replay *replay, struct recorded *recorded, struct session_replay *ret)
{
        cJSON *body = recorded->request ? json_member(recorded->request, "body") : NULL;
        enum run_action action;
        enum run_reason reason;

        if (!recorded->run || !recorded->end || !cJSON_IsObject(body) ||
            !has_watch(replay, json_text(recorded->run, "watch")) ||
            !recorded_action(json_text(recorded->run, "action"), &action) ||
            !run_reason_parse(json_text(recorded->run, "reason"), &reason))
                return false;
        recorded->text = cJSON_PrintUnformatted(body);
        *ret = (struct session_replay){
                .watch = json_text(recorded->run, "watch"),
                .key = json_text(recorded->run, "key"),
                .uid = json_text(recorded->run, "uid"),
                .reason = reason,
                .action = action,
                .attempt = ctl_number(recorded->run, "attempt"),
                .request = recorded->text,
        };
        return recorded->text != NULL;
}

static int read_one(struct replay *replay, const char *folder, const char *name)
{
        struct recorded *recorded = &replay->recorded[replay->count];
        _cleanup_free_ char *path = format_string("%s/%s", folder, name), *content = NULL;
        size_t size;
        int r;

        *recorded = (struct recorded){.file = strdup(name)};
        if (!recorded->file || !path)
                return -ENOMEM;
        r = file_read(path, RECORD_MAX, &content, &size);
        if (r >= 0)
                r = trace_visit(content, take_trace_line, recorded);
        if (r < 0) {
                utf8_clean(path);
                fprintf(stderr, "reconciledctl: %s: %s; left out\n", path,
                        r == -EBADMSG ? "is not a record (lines of JSON)" : strerror(-r));
                replay->skipped++;
        } else if (prepare_replay(replay, recorded, &replay->order[replay->count])) {
                replay->redacted += recorded->redacted;
                replay->count++;
                return 0;
        } else {
                replay->skipped++;
        }
        recorded_done(recorded);
        return r == -ENOMEM ? r : 0;
}

static int is_record(const struct dirent *entry)
{
        size_t size = strlen(entry->d_name);

        return entry->d_name[0] != '.' && size > 6 && strcmp(entry->d_name + size - 6, ".jsonl") == 0;
}

static int read_records(struct replay *replay, const char *folder)
{
        struct dirent **entry = NULL;
        int count = scandir(folder, &entry, is_record, alphasort), r = 0;

        if (count < 0) {
                fprintf(stderr, "reconciledctl: %s: %s\n", folder, strerror(errno));
                return -errno;
        }
        replay->recorded = calloc((size_t)count + 1, sizeof(*replay->recorded));
        replay->order = calloc((size_t)count + 1, sizeof(*replay->order));
        if (!replay->recorded || !replay->order)
                r = -ENOMEM;
        for (int i = 0; i < count; i++) {
                if (r >= 0)
                        r = read_one(replay, folder, entry[i]->d_name);
                free(entry[i]);
        }
        free(entry);
        return r;
}

/* ---- comparing */

static const cJSON *body_of(const cJSON *line)
{
        const cJSON *body = line ? json_member(line, "body") : NULL;

        return cJSON_IsNull(body) ? NULL : body;
}

static bool is_same_json(const cJSON *a, const cJSON *b)
{
        return a == b || (a && b && json_equal(a, b));
}

/* A success has no message. */
static const char *recorded_result(const struct recorded *side)
{
        const char *message = json_text(side->end, "message");

        return message[0] ? message : json_text(side->end, "result");
}

static void add_side(cJSON *difference, const char *name, const struct recorded *side)
{
        const cJSON *answer = body_of(side->answer);
        cJSON *item = cJSON_AddObjectToObject(difference, name);

        cJSON_AddStringToObject(item, "result", recorded_result(side));
        cJSON_AddNumberToObject(item, "waitStatus", (double)ctl_number(side->end, "waitStatus"));
        cJSON_AddItemToObject(item, "answer", answer ? cJSON_Duplicate(answer, true) : cJSON_CreateNull());
}

static void add_difference(cJSON *list, const struct recorded *before, const struct recorded *after)
{
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "watch", json_text(before->run, "watch"));
        cJSON_AddStringToObject(item, "key", json_text(before->run, "key"));
        cJSON_AddStringToObject(item, "action", json_text(before->run, "action"));
        cJSON_AddStringToObject(item, "file", before->file);
        add_side(item, "recorded", before);
        add_side(item, "now", after);
        cJSON_AddItemToArray(list, item);
}

/* How the handler ended and what it said; not what became of it on the API server. */
static void compare_answers(struct replay *replay)
{
        const struct recorded *before = &replay->recorded[replay->position++], *after = &replay->again;
        int status_before = (int)ctl_number(before->end, "waitStatus");
        int status_after = (int)ctl_number(after->end, "waitStatus");

        if (status_before == status_after && is_same_json(body_of(before->answer), body_of(after->answer)))
                return;
        replay->different++;
        if (replay->options->json) {
                add_difference(replay->differences, before, after);
                return;
        }
        ctl_line("%s: %s %s (%s)", json_text(before->run, "watch"), json_text(before->run, "action"),
                 json_text(before->run, "key"), before->file);
        if (status_before != status_after) {
                ctl_line("    - result: %s", recorded_result(before));
                ctl_line("    + result: %s", recorded_result(after));
        }
        (void)difference_print(body_of(before->answer), body_of(after->answer), "    ");
}

static int compare_line(const cJSON *line, const char *type, void *userdata)
{
        struct replay *replay = userdata;
        int r = take_trace_line(line, type, &replay->again);

        if (r >= 0 && strcmp(type, "end") == 0) {
                if (replay->position >= replay->count)
                        return -EBADMSG;
                compare_answers(replay);
                recorded_done(&replay->again);
        }
        return r;
}

static int run_again(struct replay *replay)
{
        _cleanup_(session_free_pointer) struct session *session = NULL;
        _cleanup_error_ struct error error = ERROR_NONE;
        _cleanup_free_ char *trace = NULL;
        int r;

        r = session_new(&(struct session_options){.config = replay->config}, &session, &error);
        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s\n", error_message(&error));
                return r == -EOPNOTSUPP ? EXIT_CODE_CONFIGURATION : EXIT_CODE_SOFTWARE;
        }
        r = session_replay(session, replay->order, replay->count);
        if (r != EXIT_CODE_OK)
                return r;
        if (session_trace(session, &trace) < 0 || trace_visit(trace, compare_line, replay) < 0 ||
            replay->position != replay->count) {
                fputs("reconciledctl: the results of the runs cannot be read\n", stderr);
                return EXIT_CODE_SOFTWARE;
        }
        return replay->different > 0 ? EXIT_CODE_FAILED : EXIT_CODE_OK;
}

static void tell_replay(struct replay *replay)
{
        _cleanup_json_ cJSON *answer = cJSON_CreateObject();

        if (!replay->options->json) {
                printf("%zu %s: %zu as recorded, %zu different", replay->count,
                       counted(replay->count, "run", "runs"), replay->count - replay->different,
                       replay->different);
                if (replay->redacted > 0)
                        printf("; %zu with Secrets, each value of which is \"redacted\"", replay->redacted);
                if (replay->skipped > 0)
                        printf("; %zu left out (of a confidential or another watch, or unreadable)",
                               replay->skipped);
                puts("");
                return;
        }
        cJSON_AddNumberToObject(answer, "runs", (double)replay->count);
        cJSON_AddNumberToObject(answer, "different", (double)replay->different);
        cJSON_AddNumberToObject(answer, "redacted", (double)replay->redacted);
        cJSON_AddNumberToObject(answer, "leftOut", (double)replay->skipped);
        cJSON_AddItemToObject(answer, "differences", TAKE_PTR(replay->differences));
        (void)ctl_print_json(answer);
}

int ctl_replay(const struct ctl_run_options *options)
{
        _cleanup_(config_free_pointer) struct config *config = ctl_load_config(options->config);
        struct replay replay = {.options = options, .config = config};
        int r;

        if (!config)
                return EXIT_CODE_CONFIGURATION;
        replay.differences = cJSON_CreateArray();
        r = read_records(&replay, options->object) < 0 ? EXIT_CODE_IO : EXIT_CODE_OK;
        if (r == EXIT_CODE_OK && replay.count + replay.skipped == 0) {
                fprintf(stderr,
                        "reconciledctl: %s has no record in it (*.jsonl, of an operator with --record)\n",
                        options->object);
                r = EXIT_CODE_USAGE;
        }
        if (r == EXIT_CODE_OK && replay.count > 0)
                r = run_again(&replay);
        if (r == EXIT_CODE_OK || r == EXIT_CODE_FAILED)
                tell_replay(&replay);
        for (size_t i = 0; i < replay.count; i++)
                recorded_done(&replay.recorded[i]);
        recorded_done(&replay.again);
        free(replay.recorded);
        free(replay.order);
        cJSON_Delete(replay.differences);
        return r;
}
