/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/session/session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/duration.h"
#include "base/exit-code.h"
#include "base/text.h"
#include "children/child-process.h"
#include "config/access.h"
#include "config/config-message.h"
#include "ctl/session/internal.h"
#include "ipc/channel.h"
#include "ipc/message.h"
#include "ipc/role.h"
#include "ipc/spawn.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/syscall.h"
#include "os/temporary.h"
#include "json/json.h"

#define TRACE_MAX ((size_t)1024 * 1024 * 1024)
#define CREDIT    1024
#define TRIES_MAX 3 /* of a run that another one helps */

/* ---- the end */

static void session_end(struct session *session, int exit_code)
{
        if (session->stopping)
                return;
        session->stopping = true;
        session->exit_code = exit_code;
        FOREACH_ARRAY(process, session->process, session->process_count)
                if (process->child.state == CHILD_RUNNING)
                        child_process_stop(&process->child, USEC_PER_SEC);
                else
                        child_process_signal(&process->child, SIGKILL);
}

_printf_(3, 4) static void session_fail(struct session *session, int exit_code, const char *format, ...)
{
        va_list arguments;

        if (session->stopping)
                return;
        fputs("reconciledctl: ", stderr);
        va_start(arguments, format);
        vfprintf(stderr, format, arguments);
        va_end(arguments);
        fputc('\n', stderr);
        session_end(session, exit_code);
}

static void end_when_all_are_gone(struct session *session)
{
        for (size_t i = 0; i < session->process_count; i++)
                if (session->process[i].child.state != CHILD_GONE)
                        return;
        sd_event_exit(session->event, 0);
}

static void session_child_exited(struct session_process *process, int status)
{
        char how[128];

        channel_read_rest(process->child.channel);
        child_process_set_state(&process->child, CHILD_GONE);
        child_death_describe(status, "", how, sizeof(how));
        session_fail(process->session, EXIT_CODE_SOFTWARE, "the %s %s", role_title(process->child.role),
                     how);
}

static int on_child(sd_event_source *source _unused_, const struct signalfd_siginfo *info _unused_,
                    void *userdata)
{
        struct session *session = userdata;
        int status;
        pid_t pid;

        while ((pid = sys_reap(-1, &status)) > 0) {
                if (tty_take_end(session->tty, pid, status))
                        continue;
                for (size_t i = 0; i < session->process_count; i++)
                        if (session->process[i].child.pid == pid &&
                            session->process[i].child.state != CHILD_GONE)
                                session_child_exited(&session->process[i], status);
        }
        if (session->stopping)
                end_when_all_are_gone(session);
        return 0;
}

/* Ctrl-C is for what has the terminal. */
static int on_interrupt(sd_event_source *source _unused_, const struct signalfd_siginfo *info,
                        void *userdata)
{
        struct session *session = userdata;

        if ((info->ssi_signo == SIGINT || info->ssi_signo == SIGQUIT) && tty_is_busy(session->tty))
                return 0;
        session_end(session, 128 + (int)info->ssi_signo);
        return 0;
}

/* ---- their configuration and orders */

static void give_credential(struct session_process *process)
{
        const struct message *credential = process->session->credential;

        if (credential && process->child.role != ROLE_CREDENTIAL && process->child.state == CHILD_RUNNING)
                (void)channel_send(process->child.channel, MESSAGE_CREDENTIAL, &credential->credential);
}

static void on_ready(struct session_process *process)
{
        child_process_set_state(&process->child, CHILD_RUNNING);
        give_credential(process);
        if (process->child.role == ROLE_WATCHER)
                (void)channel_send(process->child.channel, MESSAGE_CREDIT,
                                   &(struct message_credit){process->watch->name, CREDIT});
}

/* ---- runs */

static bool all_are_there(const struct session *session)
{
        if (session->options.watch && session->options.watch->handler.kubernetes_account &&
            !session->has_token && !session->replay)
                return false;
        for (size_t i = 0; i < session->process_count; i++)
                if (session->process[i].child.state != CHILD_GONE &&
                    (session->process[i].child.state != CHILD_RUNNING ||
                     (session->process[i].child.role == ROLE_WATCHER && !session->process[i].synced)))
                        return false;
        return true;
}

static int session_send_run(struct session *session, const char *settling, const char *first_error)
{
        const struct key *key = &session->key[session->next];
        int r = session_ask_previous(session, key->key, key->uid);
        struct message_run run = {
                .sequence = session->next + 1,
                .watch = session->options.watch->name,
                .key = key->key,
                .uid = key->uid,
                .action = ACTION_RECONCILE,
                .reason = settling ? RUN_SETTLING : RUN_TRIED,
                .attempt = 1,
                .settling = settling,
                .first_error = first_error,
                .previous_version = session->previous_version,
        };

        return r < 0 ? r : channel_send(session->process[PLACE_WORKER].child.channel, MESSAGE_RUN, &run);
}

static int send_replay(struct session *session)
{
        const struct session_replay *replay = &session->replay[session->next];
        struct message_run run = {
                .sequence = session->next + 1,
                .watch = replay->watch,
                .key = replay->key,
                .uid = replay->uid,
                .action = replay->action,
                .reason = replay->reason,
                .attempt = replay->attempt,
        };

        return channel_send(session->process[PLACE_WORKER].child.channel, MESSAGE_RUN, &run);
}

static void run_next(struct session *session)
{
        size_t count = session->replay ? session->replay_count : session->key_count;
        int r;

        if (session->options.limit > 0 && count > session->options.limit)
                count = session->options.limit;

        if (session->next >= count) {
                session_end(session, EXIT_CODE_OK);
                return;
        }
        r = session->replay ? send_replay(session) : session_send_run(session, NULL, NULL);
        if (r < 0)
                session_fail(session, EXIT_CODE_SOFTWARE, "no message can be sent to the worker: %s",
                             strerror(-r));
}

static int compare_session_keys(const void *a, const void *b)
{
        return strcmp(((const struct key *)a)->key, ((const struct key *)b)->key);
}

/* What changes while it is listed is announced twice. */
static void order_keys(struct session *session)
{
        size_t count = 0;

        if (session->key_count > 0)
                qsort(session->key, session->key_count, sizeof(*session->key), compare_session_keys);
        for (size_t i = 0; i < session->key_count; i++)
                if (count > 0 && strcmp(session->key[count - 1].key, session->key[i].key) == 0) {
                        free(session->key[i].key);
                        free(session->key[i].uid);
                } else {
                        session->key[count++] = session->key[i];
                }
        session->key_count = count;
}

static void begin_when_ready(struct session *session)
{
        const struct config_watch *watch = session->options.watch;

        if (session->started || session->stopping || !all_are_there(session))
                return;
        session->started = true;
        order_keys(session);
        if (!session->replay && session->key_count == 0 && !session->options.on_run)
                session_fail(session, EXIT_CODE_USAGE,
                             "%s%sthere is no %s (%s) that the watch %s selects: namespaces, selectors and "
                             "filter decide that",
                             session->options.object ? session->options.object : "",
                             session->options.object ? ": " : "in this file ", watch->kind,
                             watch->api_version, watch->name);
        else
                run_next(session);
}

static int on_session_again(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct session *session = userdata;
        const struct message_done *done = &session->settling->done;
        int r;

        session->again = sd_event_source_disable_unref(session->again);
        r = session_send_run(session, done->settling, done->message);
        if (r < 0)
                session_fail(session, EXIT_CODE_SOFTWARE, "no message can be sent to the worker: %s",
                             strerror(-r));
        return 0;
}

/* An operator would try again later, when the server has recovered, or with the newest version. */
static bool run_again_helps(enum run_result result)
{
        return result == RESULT_CONFLICT || result == RESULT_UNAVAILABLE || result == RESULT_BEHIND;
}

static void on_run_done(struct session *session, struct message **message)
{
        const struct message_done *done = &(*message)->done;
        bool is_over;
        int r;

        if (done->result == RESULT_SETTLING && session->options.follow && !session->stopping) {
                message_free(session->settling);
                session->settling = TAKE_PTR(*message);
                done = &session->settling->done;
                fprintf(stderr, "%s\n", done->message);
                if (sd_event_add_time_relative(session->event, &session->again, CLOCK_MONOTONIC,
                                               done->settle_after_usec, 1, on_session_again, session) < 0)
                        session_fail(session, EXIT_CODE_SOFTWARE, "no memory");
                return;
        }
        is_over =
                !session->options.on_run || !run_again_helps(done->result) || session->tries++ == TRIES_MAX;
        r = session->options.on_run ? session->options.on_run(session, is_over, session->options.userdata)
                                    : 0;
        session->next += is_over;
        session->tries = is_over ? 0 : session->tries;
        if (r < 0)
                session_fail(session, EXIT_CODE_SOFTWARE, "the trace of a run: %s", strerror(-r));
        else
                run_next(session);
}

/* ---- what they say */

static int take_keys(struct session *session, const struct message_keys *keys)
{
        FOREACH_ARRAY(change, keys->change, keys->change_count) {
                struct key *grown;

                if (session->started || change->kind != CHANGE_UPDATED)
                        continue;
                grown = reallocarray(session->key, session->key_count + 1, sizeof(*grown));
                if (!grown)
                        return -ENOMEM;
                session->key = grown;
                grown[session->key_count] = (struct key){strdup(change->key), strdup(change->uid)};
                if (!grown[session->key_count].key || !grown[session->key_count++].uid)
                        return -ENOMEM;
        }
        return 0;
}

static int from_watcher(struct session_process *process, const struct message *message)
{
        struct session *session = process->session;

        switch (message->type) {
        case MESSAGE_KEYS:
                (void)channel_send(
                        process->child.channel, MESSAGE_CREDIT,
                        &(struct message_credit){process->watch->name, message->keys.change_count});
                return process->watch == session->options.watch ? take_keys(session, &message->keys) : 0;
        case MESSAGE_SWEPT: /* all that exists was announced */
                process->synced = true;
                break;
        case MESSAGE_DEGRADED:
                if (message->degraded.health == WATCH_ABSENT)
                        process->synced = true;
                else
                        session_fail(session, EXIT_CODE_UNAVAILABLE, "watch %s: %s", process->watch->name,
                                     message->degraded.reason);
                break;
        default:
                break;
        }
        return 0;
}

static void take_access(struct session *session, const struct message_access *access)
{
        session->has_token = access->usable;
        if (!access->usable && access->reason[0])
                session_fail(session,
                             access->exit_code > 0 ? (int)access->exit_code : EXIT_CODE_NO_PERMISSION, "%s",
                             access->reason);
}

static int session_send_config(struct session_process *process)
{
        int r = session_configure(process);

        child_process_set_state(&process->child, CHILD_CONFIGURED);
        return r;
}

static int session_deliver(struct session_process *process, struct message **message)
{
        struct session *session = process->session;

        switch ((*message)->type) {
        case MESSAGE_CREDENTIAL:
                message_free(session->credential);
                session->credential = TAKE_PTR(*message);
                for (size_t i = 0; i < session->process_count; i++)
                        give_credential(&session->process[i]);
                return 0;
        case MESSAGE_REFRESH:
                return channel_send(session->process[PLACE_CREDENTIAL].child.channel, MESSAGE_REFRESH,
                                    &(*message)->refresh);
        case MESSAGE_ACCESS:
                take_access(session, &(*message)->access);
                return 0;
        case MESSAGE_DONE:
                on_run_done(session, message);
                return 0;
        default:
                return process->child.role == ROLE_WATCHER ? from_watcher(process, *message) : 0;
        }
}

static int take_message(struct session_process *process, struct message **message)
{
        if ((*message)->type == MESSAGE_SIGNALLED)
                return 0; /* a signal to the whole group has come to us, too */
        switch (child_reaction(process->child.state, child_event_of((*message)->type))) {
        case ACT_CONFIGURE:
                return session_send_config(process);
        case ACT_START:
                on_ready(process);
                return 0;
        case ACT_DELIVER:
                return session_deliver(process, message);
        case ACT_DIE:
                if ((*message)->type != MESSAGE_FATAL)
                        return -EPROTO;
                session_fail(process->session, (int)(*message)->fatal.exit_code, "%s",
                             (*message)->fatal.reason);
                return 0;
        case ACT_IGNORE:
                return 0;
        default:
                return -EPROTO;
        }
}

static int on_session_message(struct channel *channel _unused_, struct message **message, void *userdata)
{
        struct session_process *process = userdata;
        int r = take_message(process, message);

        if (r < 0)
                session_fail(process->session, EXIT_CODE_SOFTWARE, "no message can be sent to the %s: %s",
                             role_title(process->child.role), strerror(-r));
        begin_when_ready(process->session);
        return 0;
}

/* Its end comes with SIGCHLD. */
static void on_session_error(struct channel *channel _unused_, int status, const char *reason,
                             void *userdata)
{
        struct session_process *process = userdata;

        if (status != -ECONNRESET)
                session_fail(process->session, EXIT_CODE_SOFTWARE, "the %s: %s",
                             role_title(process->child.role), reason);
}

/* ---- the beginning */

static int start_session_process(struct session_process *process)
{
        static const struct channel_callbacks callbacks = {.on_message = on_session_message,
                                                           .on_error = on_session_error};
        _cleanup_free_ char *path = child_program_path(process->child.role);
        int fd, r;

        if (!path)
                return -ENOMEM;
        r = spawn_with_channel(path, "text", &process->child.pid, &fd);
        return r < 0 ? r
                     : child_process_open(&process->child, process->session->event, fd, &callbacks, process);
}

static int start_all(struct session *session)
{
        int r = 0;

        for (size_t i = session->replay ? PLACE_WORKER : 0; i < session->process_count && r >= 0; i++)
                r = start_session_process(&session->process[i]);
        return r;
}

/* The watch's own objects, and those that come with them in a request. */
static bool is_needed(const struct session_options *options, const struct config_watch *watch)
{
        return options->watch && (watch == options->watch ||
                                  (watch->owner && strcmp(watch->owner, options->watch->name) == 0));
}

static int add_processes(struct session *session)
{
        const struct config *config = session->options.config;

        session->process = calloc(PLACE_WATCHERS + config->watch_count, sizeof(*session->process));
        if (!session->process)
                return -ENOMEM;
        for (size_t i = 0; i < PLACE_WATCHERS + config->watch_count; i++)
                session->process[i].child.state = CHILD_GONE;
        session->process[PLACE_CREDENTIAL].child.role = ROLE_CREDENTIAL;
        session->process[PLACE_WORKER].child.role = ROLE_WORKER;
        session->process_count = PLACE_WATCHERS;
        for (size_t i = 0; i < config->watch_count; i++) {
                struct session_process *process = &session->process[session->process_count];

                if (!is_needed(&session->options, &config->watch[i]))
                        continue;
                process->child.role = ROLE_WATCHER;
                process->watch = &config->watch[i];
                process->store_folder = format_string("%s/%s", session->folder, process->watch->name);
                if (!process->store_folder)
                        return -ENOMEM;
                session->process_count++;
        }
        for (size_t i = 0; i < session->process_count; i++)
                session->process[i].session = session;
        return 0;
}

static int make_folders(struct session *session, struct error *error)
{
        int r = temporary_folder_new(config_needs_memory(session->options.config), &session->folder, error);

        if (r < 0)
                return r;
        if (config_needs_memory(session->options.config) && !session->options.config->secrets_allow_disk &&
            !memory_holds(session->folder))
                return error_set(
                        error, -EOPNOTSUPP,
                        "Secrets would reach a disk: neither $TMPDIR nor " MEMORY_SHARED
                        " is memory (tmpfs); let TMPDIR name a folder in memory, or allow a disk with "
                        "secrets: {allowDisk: true}");
        session->trace = format_string("%s/trace", session->folder);
        session->requests = format_string("%s/requests", session->folder);
        session->access_folder = format_string("%s/handlers", session->folder);
        if (!session->access_folder || !session->trace || !session->requests)
                return error_set(error, -ENOMEM, "no memory");
        if (mkdir(session->requests, 0700) < 0)
                return error_set(error, -errno, "%s: %s", session->requests, strerror(errno));
        return config_access_folders(session->options.config, session->access_folder,
                                     (const char *const[]){session->folder, NULL}, error);
}

static int prepare_loop(struct session *session)
{
        static const int interrupt[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
        sigset_t mask;
        int r;

        sigemptyset(&mask);
        sigaddset(&mask, SIGCHLD);
        for (size_t i = 0; i < ELEMENTS(interrupt); i++)
                sigaddset(&mask, interrupt[i]);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        signal(SIGCHLD, SIG_DFL); /* as handed down, it may be ignored, and is never sent then */
        r = sd_event_default(&session->event);
        if (r >= 0)
                r = sd_event_add_signal(session->event, NULL, SIGCHLD, on_child, session);
        for (size_t i = 0; i < ELEMENTS(interrupt) && r >= 0; i++)
                r = sd_event_add_signal(session->event, NULL, interrupt[i], on_interrupt, session);
        return r;
}

int session_new(const struct session_options *options, struct session **ret, struct error *error)
{
        _cleanup_(session_free_pointer) struct session *session = calloc(1, sizeof(*session));
        int r;

        if (!session)
                return error_set(error, -ENOMEM, "no memory");
        session->options = *options;
        if (getrandom(session->hash_key, sizeof(session->hash_key), 0) != sizeof(session->hash_key))
                return error_set(error, -EIO, "the kernel gives no random numbers: %s", strerror(errno));
        r = make_folders(session, error);
        if (r < 0)
                return r;
        r = add_processes(session);
        if (r >= 0)
                r = prepare_loop(session);
        if (r >= 0 && options->tty)
                r = tty_open(session->event, session->folder, options->watch, options->command,
                             &session->tty);
        if (r < 0)
                return error_set(error, r, "%s", strerror(-r));
        *ret = TAKE_PTR(session);
        return 0;
}

int session_run(struct session *session)
{
        int r = start_all(session);

        if (r < 0)
                session_fail(session, EXIT_CODE_SOFTWARE, "the processes of a run cannot be started: %s",
                             strerror(-r));
        end_when_all_are_gone(session);
        r = sd_event_loop(session->event);
        return r < 0 ? EXIT_CODE_SOFTWARE : session->exit_code;
}

static int write_request(const struct session *session, size_t number, const char *request)
{
        _cleanup_fclose_ FILE *file = NULL;
        _cleanup_free_ char *path = format_string("%s/%zu", session->requests, number);

        if (!path)
                return -ENOMEM;
        file = fopen(path, "wxe");
        return file && fputs(request, file) >= 0 && fflush(file) == 0 ? 0 : -errno;
}

int session_replay(struct session *session, const struct session_replay *replay, size_t count)
{
        int r = 0;

        for (size_t i = 0; i < count && r >= 0; i++)
                r = write_request(session, i + 1, replay[i].request);
        if (r < 0) {
                fprintf(stderr, "reconciledctl: %s: %s\n", session->requests, strerror(-r));
                return EXIT_CODE_IO;
        }
        session->replay = replay;
        session->replay_count = count;
        return session_run(session);
}

int session_trace(const struct session *session, char **ret)
{
        size_t size;

        return file_read(session->trace, TRACE_MAX, ret, &size);
}

const char *session_trace_path(const struct session *session)
{
        return session->trace;
}

void session_use_kubeconfig(struct session *session, const char *path)
{
        session->kubeconfig = path;
}

const char *session_folder(const struct session *session)
{
        return session->folder;
}

void session_free(struct session *session)
{
        if (!session)
                return;
        FOREACH_ARRAY(process, session->process, session->process_count) {
                if (process->child.state != CHILD_GONE) {
                        child_process_signal(&process->child, SIGKILL);
                        (void)waitpid(process->child.pid, NULL, 0);
                }
                child_process_done(&process->child);
                free(process->store_folder);
        }
        for (size_t i = 0; i < session->key_count; i++) {
                free(session->key[i].key);
                free(session->key[i].uid);
        }
        tty_close(session->tty);
        sd_event_source_disable_unref(session->again);
        sd_event_unref(session->event);
        message_free(session->credential);
        message_free(session->settling);
        temporary_folder_remove(session->folder);
        free(session->key);
        free(session->process);
        free(session->folder);
        free(session->trace);
        free(session->requests);
        free(session->access_folder);
        free(session->previous_version);
        free(session);
}

int trace_visit(const char *lines, int (*visit)(const cJSON *line, const char *type, void *userdata),
                void *userdata)
{
        while (*lines) {
                size_t size = strcspn(lines, "\n");
                _cleanup_json_ cJSON *line = json_parse(lines, size);
                int r;

                if (!line)
                        return -EBADMSG;
                r = visit(line, json_text(line, "type"), userdata);
                if (r < 0)
                        return r;
                lines += size + (lines[size] == '\n');
        }
        return 0;
}
