/* SPDX-License-Identifier: Apache-2.0 */
#include "worker/run-state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit-code.h"
#include "ipc/message-id.h"
#include "store/suspect.h"
#include "worker/recording.h"

int run_finish(struct run *run, enum run_result result, const char *format, ...)
{
        char text[RUN_MESSAGE_MAX];
        va_list arguments;

        if (run->end.is_set)
                return -ESHUTDOWN;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        utf8_clean(text);
        run->end.is_set = true;
        run->end.result = result;
        run->end.text = strdup(text);
        return -ESHUTDOWN;
}

int run_finish_too_large(struct run *run)
{
        run->handler.ran = false;
        return run_finish(run, RESULT_UNAVAILABLE, "%s", run->excess);
}

int run_cut_off(struct run *run)
{
        return run_finish(run, RESULT_CANCELLED, "the run was cut off because the operator stops");
}

static void run_forget_last_write(struct run *run)
{
        struct record_write *write = &run->writes.item[--run->writes.count];

        free((char *)(uintptr_t)write->object);
        free((char *)(uintptr_t)write->fields);
}

void run_note_write(struct run *run, enum child_write what, const char *object, const char *fields)
{
        struct record_write *write = &run->writes.item[run->writes.count];

        if (run->writes.count == RUN_WRITES_MAX) {
                run->writes.left_out++;
                return;
        }
        *write = (struct record_write){.what = what, .object = strdup(object), .fields = strdup(fields)};
        run->writes.count++;
        if (write->object && write->fields)
                return;
        run_forget_last_write(run);
        run->writes.left_out++;
}

void run_forget_writes(struct run *run)
{
        while (run->writes.count > 0)
                run_forget_last_write(run);
}

bool run_is_of_deletion(const struct run *run)
{
        return run->order->action == ACTION_DELETED || run->action == ACTION_DELETED;
}

bool run_is_replay(const struct run *run)
{
        return run->worker->config->replay_folder[0] != '\0';
}

/* Trying again would read the same. Only the watcher may build the store again, when it starts. */
int run_store_damaged(struct run *run, const struct record_watch *config)
{
        run->dropped = true;
        (void)store_suspect_mark(config->store_folder, "it has a wrong checksum");
        return child_fatal(run->worker->child, EXIT_CODE_IO,
                           "the object store of watch %s is damaged: a checksum that was read for %s is "
                           "wrong; the next start builds it anew from the API server",
                           config->name, run->order->key);
}

void run_log_line(const char *line, void *userdata)
{
        const struct run *run = userdata;
        char attempt[24], sequence[24];

        if (recording_is_by_hand(run->worker->recording)) {
                fprintf(stderr, "%s\n", line);
                return;
        }
        snprintf(attempt, sizeof(attempt), "%llu", (unsigned long long)run->order->attempt);
        snprintf(sequence, sizeof(sequence), "%llu", (unsigned long long)run->order->sequence);
        log_write(LOG_INFO, MESSAGE_ID_HANDLER_OUTPUT,
                  LOG_FIELDS({"RECONCILED_WATCH", run->order->watch}, {"RECONCILED_KEY", run->order->key},
                             {"RECONCILED_UID", run->order->uid},
                             {"RECONCILED_ACTION",
                              run_told_action(run->action, run->watch->config->own_action)},
                             {"RECONCILED_ATTEMPT", attempt}, {"RECONCILED_RUN", sequence}),
                  "%s", line);
}
