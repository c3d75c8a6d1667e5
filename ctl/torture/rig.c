/* SPDX-License-Identifier: Apache-2.0 */
#include "ctl/torture/rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/text.h"
#include "ctl/ctl-answer.h"
#include "ctl/torture/as-cluster.h"
#include "ctl/torture/quiet.h"
#include "kube/libcurl.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/syscall.h"
#include "os/temporary.h"
#include "json/json.h"

#define ENDS_MAX       5 /* of the operator by itself; then it is of no use to start it again */
#define LOOK_MSEC      10
#define QUIET_USEC     (120 * USEC_PER_MSEC)
#define QUIET_MAX      (800 * USEC_PER_MSEC) /* while a watch seems to be behind, which a selector can make it */
#define ANSWER_SECONDS 30L

/* ---- the server */

static size_t rig_take_bytes(const char *bytes, size_t size, size_t count, void *userdata)
{
        return text_append(userdata, bytes, size * count) < 0 ? 0 : size * count;
}

static struct curl_slist *rig_add_header(struct curl_slist *list, const char *name, const char *value)
{
        _cleanup_free_ char *line = format_string("%s: %s", name, value);
        struct curl_slist *grown = line ? curl_slist_append(list, line) : NULL;

        return grown ? grown : list;
}

static const char *body_type(const char *method, const cJSON *body)
{
        if (strcmp(method, "PATCH") != 0)
                return "application/json";
        return cJSON_IsArray(body) ? "application/json-patch+json" : "application/merge-patch+json";
}

static int perform(CURL *curl, const char *method, const char *url, const char *body,
                   struct curl_slist *header, struct text *answer)
{
        long status = 0;
        CURLcode code;

        curl_easy_setopt(curl, CURLOPT_URL, url);
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, header);
        curl_easy_setopt(curl, CURLOPT_PROXY, "");
        curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(curl, CURLOPT_TIMEOUT, ANSWER_SECONDS);
        curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, rig_take_bytes);
        curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
        if (body)
                curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
        code = curl_easy_perform(curl);
        if (code != CURLE_OK)
                return -EIO;
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
        return (int)status;
}

int rig_request(struct rig *rig, const char *method, const char *path, const cJSON *body, cJSON **ret)
{
        _cleanup_free_ char *json = body ? cJSON_PrintUnformatted(body) : NULL;
        _cleanup_free_ char *url = format_string("%s%s", rig->server.url, path);
        _cleanup_free_ char *bearer = format_string("Bearer %s", rig->server.token);
        _cleanup_text_ struct text answer = TEXT_EMPTY;
        struct curl_slist *header = NULL;
        const char *reason = "";
        CURL *curl;
        int r;

        r = libcurl_load(&reason);
        curl = r >= 0 && url && bearer && (json || !body) ? curl_easy_init() : NULL;
        if (!curl)
                return error_set(rig->error, r < 0 ? r : -ENOMEM, "libcurl: %s", reason);
        header = rig_add_header(header, "Authorization", bearer);
        header = rig_add_header(header, "User-Agent", "torture");
        header = rig_add_header(header, "Content-Type", body_type(method, body));
        r = perform(curl, method, url, json, header, &answer);
        curl_slist_free_all(header);
        curl_easy_cleanup(curl);
        if (r < 0)
                return error_set(rig->error, r, "%s %s: the API server in memory does not answer", method,
                                 path);
        if (ret)
                *ret = json_parse(answer.data, answer.size);
        return r;
}

/* ---- the operator */

_noreturn_ static void exec_operator(const struct rig *rig, const char *path, int log, pid_t parent)
{
        static const char *const variable[] = {"NOTIFY_SOCKET",        "WATCHDOG_USEC",     "WATCHDOG_PID",
                                               "STATE_DIRECTORY",      "RUNTIME_DIRECTORY", "LISTEN_FDS",
                                               "CREDENTIALS_DIRECTORY"};
        const char *argument[] = {path,
                                  "--dry-run-handlers",
                                  "--log",
                                  "text",
                                  "--config",
                                  rig->config,
                                  "--state-directory",
                                  rig->state,
                                  "--runtime-directory",
                                  rig->runtime,
                                  NULL};
        sigset_t none;

        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        (void)setpgid(0, 0); /* Ctrl-C is not for it */
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(127);
        for (size_t i = 0; i < ELEMENTS(variable); i++)
                unsetenv(variable[i]);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execv(path, (char *const *)(uintptr_t)argument);
        _exit(127);
}

int rig_start(struct rig *rig)
{
        _cleanup_free_ char *path = program_path("supervisor", "reconciled");
        _cleanup_close_ int log = open(rig->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        pid_t parent = getpid(), pid;

        if (!path || log < 0)
                return error_set(rig->error, path ? -errno : -ENOMEM, "%s: %s", rig->log, strerror(errno));
        pid = sys_fork();
        if (pid == 0)
                exec_operator(rig, path, log, parent);
        if (pid < 0)
                return error_set(rig->error, pid, "the operator cannot be started: %s", strerror(-pid));
        rig->operator_pid = pid;
        return 0;
}

/* What the operator has started becomes our child when it dies (we are its subreaper), and dies as well. */
static bool has_others(const struct rig *rig)
{
        _cleanup_free_ char *path = format_string("/proc/self/task/%d/children", (int)getpid());
        _cleanup_fclose_ FILE *file = path ? fopen(path, "re") : NULL;
        int pid;

        while (file && fscanf(file, "%d", &pid) == 1) {
                if (pid == rig->server.pid)
                        continue;
                (void)sys_kill(pid, SIGKILL);
                return true;
        }
        return false;
}

void rig_kill(struct rig *rig)
{
        if (rig->operator_pid > 0) {
                (void)sys_kill(rig->operator_pid, SIGKILL);
                (void)waitpid(rig->operator_pid, NULL, 0);
        }
        rig->operator_pid = 0;
        while (has_others(rig)) {
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        continue;
                (void)poll(NULL, 0, 1);
        }
}

int rig_forget(struct rig *rig)
{
        int r = folder_remove(rig->state);

        return r < 0 && r != -ENOENT ? error_set(rig->error, r, "%s: %s", rig->state, strerror(-r)) : 0;
}

int rig_order(const struct rig *rig, const char *command, const char *const *argument, struct error *error)
{
        return ctl_command(rig->runtime, command, (char **)(uintptr_t)argument, error);
}

/* The last line of its log that is an error, for the one who asks why. */
static char *last_words(const struct rig *rig)
{
        _cleanup_free_ char *content = NULL;
        size_t size;
        char *line;

        if (file_read(rig->log, (size_t)64 << 20, &content, &size) < 0 || size == 0)
                return strdup("it has logged nothing");
        if (content[size - 1] == '\n')
                content[size - 1] = '\0';
        line = strrchr(content, '\n');
        return strdup(line ? line + 1 : content);
}

/* 0: it runs; else it has ended by itself, and runs again. */
static int look_after(struct rig *rig)
{
        _cleanup_free_ char *words = NULL;
        int status;

        if (rig->operator_pid == 0 || waitpid(rig->operator_pid, &status, WNOHANG) != rig->operator_pid)
                return 0;
        rig->operator_pid = 0;
        rig->ends++;
        rig_kill(rig);
        if (rig->ends <= ENDS_MAX)
                return rig_start(rig);
        words = last_words(rig);
        return error_set(rig->error, -ECHILD, "the operator has ended %u times by itself: %s", rig->ends,
                         words ? words : "");
}

/* ---- waiting */

static volatile sig_atomic_t interrupted;

static void on_interrupt_signal(int signal _unused_)
{
        interrupted = 1;
}

void rig_catch_interrupts(void)
{
        static const int interrupt[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
        const struct sigaction action = {.sa_handler = on_interrupt_signal};

        for (size_t i = 0; i < ELEMENTS(interrupt); i++)
                (void)sigaction(interrupt[i], &action, NULL);
}

bool rig_was_interrupted(void)
{
        return interrupted;
}

static int read_objects(struct rig *rig)
{
        cJSON *answer = NULL;
        int r = rig_request(rig, "GET", "/devserver/objects", NULL, &answer);

        if (r < 0)
                return r;
        cJSON_Delete(rig->objects);
        rig->objects = cJSON_DetachItemFromObjectCaseSensitive(answer, "items");
        rig->version = strtoull(json_text(answer, "resourceVersion"), NULL, 10);
        cJSON_Delete(answer);
        return rig->objects ? 0
                            : error_set(rig->error, -EPROTO, "the API server in memory lists no objects");
}

static bool rig_read_status(struct rig *rig)
{
        cJSON *status = NULL;

        if (ctl_query(rig->runtime, "status", NULL, &status, NULL) < 0)
                return false;
        cJSON_Delete(rig->status);
        rig->status = status;
        return true;
}

static bool has_hit(struct rig *rig, uint64_t fault)
{
        _cleanup_json_ cJSON *list = NULL;
        const cJSON *each;

        if (fault == 0 || rig_request(rig, "GET", "/devserver/faults", NULL, &list) < 0)
                return false;
        cJSON_ArrayForEach(each, list) if (ctl_number(each, "id") == fault) return ctl_number(each, "hit") >
                0;
        return false;
}

int rig_list_waiting(const struct rig *rig, cJSON **ret)
{
        static const char *const waiting[] = {"waiting", "", "", NULL};

        return ctl_query(rig->runtime, "list", (char **)(uintptr_t)waiting, ret, NULL);
}

/* Runs that are due later are still to be done, unless a handler or the configuration has named the time. An operator that does not
 * answer is asked again. */
static bool owes_runs(const struct rig *rig)
{
        _cleanup_json_ cJSON *answer = NULL;

        return quiet_waiting(rig->status) > 0 &&
               (rig_list_waiting(rig, &answer) < 0 || quiet_owes(rig->status, answer));
}

/* 1: some objects became ready; 0: none had to. */
static int rig_make_ready(struct rig *rig)
{
        const cJSON *each;
        int given = 0;

        cJSON_ArrayForEach(each, rig->objects)
        {
                _cleanup_json_ cJSON *patch = as_cluster_would(json_member(each, "object"));
                _cleanup_free_ char *place = format_string("%s/status", json_text(each, "path"));
                int r = patch && place ? rig_request(rig, "PATCH", place, patch, NULL) : 0;

                if (r < 0)
                        return r;
                given += r / 100 == 2; /* it may be gone */
        }
        return given > 0;
}

/* An operator that never rests comes to no end, either. */
#define WAITS_MAX 4 /* times the timeout */

struct waiting {
        uint64_t begun, runs;  /* when, and how many runs there had been */
        uint64_t since, moved; /* it looks quiet since then; something has moved last then */
        uint64_t mark;         /* of how far all is */
};

static int rig_out_of_time(struct rig *rig, const struct waiting *waiting)
{
        uint64_t now = clock_monotonic_usec(), timeout = rig->trial->options->timeout_usec;
        uint64_t runs = rig->status ? quiet_runs(rig->status) : 0;
        _cleanup_free_ char *what = NULL;

        if (now - waiting->moved < timeout && now - waiting->begun < WAITS_MAX * timeout)
                return 0;
        what = rig->status ? quiet_obstacle(rig->status) : last_words(rig);
        return error_set(rig->error, -ETIMEDOUT, "it comes to no end, after %llu runs: %s",
                         (unsigned long long)(runs > waiting->runs ? runs - waiting->runs : runs),
                         what ? what : "");
}

/* 1: quiet. */
static int look_once(struct rig *rig, struct waiting *waiting)
{
        uint64_t now = clock_monotonic_usec(), mark;
        bool known;
        int r = interrupted ? error_set(rig->error, -EINTR, "interrupted") : look_after(rig);

        if (r >= 0)
                r = read_objects(rig);
        if (r >= 0)
                r = rig_make_ready(rig);
        if (r < 0)
                return r;
        known = r == 0 && rig_read_status(rig);
        mark = rig->version + (known ? quiet_mark(rig->status) : 0);
        if (mark != waiting->mark)
                waiting->since = waiting->moved = now;
        waiting->mark = mark;
        if (!known || quiet_is_busy(rig->status) || owes_runs(rig)) {
                waiting->since = now;
                return rig_out_of_time(rig, waiting);
        }
        if (rig_out_of_time(rig, waiting) < 0)
                return -ETIMEDOUT;
        return now - waiting->since >= (quiet_is_behind(rig->status, rig->objects) ? QUIET_MAX : QUIET_USEC);
}

int rig_wait(struct rig *rig, uint64_t fault)
{
        uint64_t now = clock_monotonic_usec();
        struct waiting waiting = {.begun = now, .since = now, .moved = now};
        int r;

        if (rig->status && rig->operator_pid > 0)
                waiting.runs = quiet_runs(rig->status);
        while ((r = look_once(rig, &waiting)) == 0) {
                if (has_hit(rig, fault))
                        return 1;
                (void)poll(NULL, 0, LOOK_MSEC);
        }
        return r < 0 ? r : 0;
}

/* ---- the beginning, and the end */

static int make_places(struct rig *rig)
{
        const char *folder = rig->folder;

        rig->config = format_string("%s/reconciled.yaml", folder);
        rig->state = format_string("%s/state", folder);
        rig->runtime = format_string("%s/run", folder);
        rig->log = format_string("%s/log", folder);
        rig->request_log = format_string("%s/requests", folder);
        rig->gate = format_string("%s/gate", folder);
        if (!rig->config || !rig->state || !rig->runtime || !rig->log || !rig->request_log || !rig->gate)
                return -ENOMEM;
        return mkdir(folder, 0700) < 0 ? -errno : 0;
}

int rig_open(struct rig *rig, const struct trial *trial, const char *record, bool gated, struct error *error)
{
        _cleanup_free_ char *account = trial_account(trial), *words = NULL;
        int r;

        *rig = (struct rig){
                .trial = trial, .error = error, .folder = format_string("%s/rig", trial->folder)};
        r = rig->folder ? make_places(rig) : -ENOMEM;
        if (r >= 0)
                r = try_server_start(&rig->server, rig->folder,
                                     (const char *const[]){"--load-as-is", "--load", trial->manifests,
                                                           "--request-log", rig->request_log,
                                                           "--service-account", account, NULL},
                                     rig->log);
        if (r >= 0)
                r = trial_write_config(trial, rig->config, rig->server.kubeconfig, record,
                                       gated ? rig->gate : NULL);
        if (r >= 0)
                return 0;
        words = r == -EIO ? last_words(rig) : NULL;
        return error_set(error, r, "the API server in memory cannot be started: %s",
                         words ? words : strerror(-r));
}

void rig_close(struct rig *rig)
{
        rig_kill(rig);
        try_server_end(&rig->server);
        temporary_folder_remove(rig->folder);
        cJSON_Delete(rig->status);
        cJSON_Delete(rig->objects);
        free(rig->folder);
        free(rig->config);
        free(rig->state);
        free(rig->runtime);
        free(rig->log);
        free(rig->request_log);
        free(rig->gate);
        *rig = (struct rig){0};
}
