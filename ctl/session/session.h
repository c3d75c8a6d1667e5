/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One handler without its operator: the processes that a run takes (a credential process, watchers of the
 * object and of what comes with it, one worker), started, fed and ended by reconciledctl as the supervisor
 * would, in a folder of their own that is removed at the end. What they do goes to a trace.
 */
#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/error.h"
#include "config/config.h"

struct session;

struct session_options {
        const struct config *config;
        const struct config_watch *watch; /* NULL: a replay, of any watch */
        const char *runtime_directory; /* of the operator that may know `previous`; NULL: nobody is asked */
        const char *object;            /* "namespace/name", "name"; NULL: all that there are (of a file) */
        bool apply;                    /* writes are kept */
        bool tty;                      /* the handler gets our terminal, */
        char *const *command;          /* or this in its place; NULL */
        const char *selector;          /* of labels, beside that of the watch; NULL */
        size_t limit;                  /* of objects; 0: none */
        /* After each run, with its lines in session_trace_path(); NULL: nobody wants to know. An error ends the session. is_over:
         * false: the server or another writer was in its way, and it runs again. */
        int (*on_run)(const struct session *session, bool is_over, void *userdata);
        void *userdata;
        bool follow; /* runs that wait for children go on until they end */
};

/* What is run again: everything as it was recorded. */
struct session_replay {
        const char *watch, *key, *uid;
        enum run_reason reason;
        enum run_action action;
        uint64_t attempt;
        const char *request; /* without its id */
};

/* 0 or a negative errno with a text in *error. */
int session_new(const struct session_options *options, struct session **ret, struct error *error);
void session_free(struct session *session); /* ends its processes, removes the folder */
void session_use_kubeconfig(struct session *session,
                            const char *path); /* borrowed; NULL: the configuration's */
const char *session_folder(const struct session *session);

/* Runs the handler for each object. Returns 0 when all runs have ended, with or without success, else an exit
 * code whose reason was printed. */
int session_run(struct session *session);
int session_replay(struct session *session, const struct session_replay *replay, size_t count);
const char *session_trace_path(
        const struct session *session); /* lines are appended, also after it was cut to nothing */
/* The JSON lines of all runs so far, owned by the caller. */
int session_trace(const struct session *session, char **ret);
DEFINE_CLEANUP(struct session *, session_free);

/* Calls `visit` for each line that a worker has written of its runs (worker/recording.h). A negative return ends the
 * walk, which returns it. -EBADMSG if a line is no JSON. */
int trace_visit(const char *lines, int (*visit)(const cJSON *line, const char *type, void *userdata),
                void *userdata);
