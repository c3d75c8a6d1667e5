/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reconciled-plugin-host FILE: loads a plugin and speaks the protocol of `serve` for it, a request a line on
 * stdin, an answer a line on stdout. It owns both descriptors: the plugin sees /dev/null and the log, so
 * that nothing it prints is taken for an answer. It is expected to be killed; it keeps nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/exit-code.h"
#include "object/scan.h"
#include "os/file.h"
#include "plugin/reconciled-plugin.h"

struct host {
        const struct reconciled_plugin *plugin;
        void *state;
        int requests, answers; /* descriptors */
        struct text input;
};

static volatile sig_atomic_t asked_to_end;

/* ---- what came */

static char *span_text(struct span value)
{
        char *text;

        if (!value.start)
                return strdup("");
        return scan_string(value, &text) < 0 ? NULL : text;
}

/* ---- what is said */

static void begin_answer(struct span id, struct text *out)
{
        text_append_string(out, "{\"id\":");
        text_append(out, id.start, id.size);
}

static void say_error(struct span id, const char *error, bool permanent, struct text *out)
{
        begin_answer(id, out);
        text_json(out, ",\"error\":?", error);
        text_append_string(out, permanent ? ",\"permanent\":true}\n" : "}\n");
}

/* NULL: the answer may be sent. */
static const char *find_fault(const char *json, struct span *ret_whole)
{
        struct span id = {0};

        if (scan_value(json, strlen(json), ret_whole) < 0 || ret_whole->start[0] != '{')
                return "the plugin's answer is no JSON object";
        if (strspn(ret_whole->start + ret_whole->size, " \t\r\n") !=
            strlen(ret_whole->start + ret_whole->size))
                return "the plugin's answer is followed by something else";
        if (scan_find(*ret_whole, &(struct scan_wanted){"id", &id}, 1) < 0)
                return "the plugin's answer is no JSON object";
        return id.start ? "the plugin's answer: id: belongs to the host" : NULL;
}

static void say_answer(struct span id, char *json, struct text *out)
{
        struct span whole = {0};
        const char *fault = json ? find_fault(json, &whole) : NULL;
        size_t inner;

        if (fault) {
                say_error(id, fault, true, out);
                return;
        }
        begin_answer(id, out);
        inner = whole.size > 0 ? 1 + strspn(whole.start + 1, " \t\r\n") : 0;
        if (inner == 0 || whole.start[inner] == '}') {
                text_append_string(out, "}\n");
                return;
        }
        /* Outside of strings a line may end anywhere; inside it may not. */
        for (char *c = json; *c; c++)
                if (*c == '\n' || *c == '\r')
                        *c = ' ';
        text_append_string(out, ",");
        text_append(out, whole.start + inner, whole.size - inner);
        text_append_string(out, "\n");
}

/* ---- a run */

static void set_term(void (*handler)(int))
{
        struct sigaction action = {.sa_handler = handler};
        sigset_t term;

        sigemptyset(&term);
        sigaddset(&term, SIGTERM);
        sigaction(SIGTERM, &action, NULL);
        /* Blocked while idle: ppoll() alone takes it then, and cannot miss it. */
        sigprocmask(handler == SIG_DFL ? SIG_UNBLOCK : SIG_BLOCK, &term, NULL);
}

static void on_term(int signal _unused_)
{
        asked_to_end = 1;
}

static void call(struct host *host, const struct reconciled_request *request, struct span id,
                 struct text *out)
{
        struct reconciled_answer answer = {0};
        int result;

        set_term(SIG_DFL);
        result = host->plugin->run(host->state, request, &answer);
        set_term(on_term);
        fflush(stdout);
        if (result == RECONCILED_DONE)
                say_answer(id, answer.json, out);
        else
                say_error(id, answer.error ? answer.error : "the plugin did not say why",
                          result == RECONCILED_PERMANENT, out);
        free(answer.json);
        free(answer.error);
}

/* The line is without its newline and NUL-terminated. */
static int serve_line(struct host *host, const char *line, size_t size)
{
        _cleanup_free_ char *action = NULL, *namespace_name = NULL, *name = NULL, *uid = NULL;
        _cleanup_text_ struct text out = TEXT_EMPTY;
        struct span whole, id = {0}, attempt = {0}, given_action = {0}, given_object = {0};
        const struct scan_wanted wanted[] = {
                {"id", &id}, {"attempt", &attempt}, {"action", &given_action}, {"object", &given_object}};
        struct scan_object object = {0};

        if (scan_value(line, size, &whole) < 0 || scan_find(whole, wanted, ELEMENTS(wanted)) < 0 ||
            !id.start || !given_object.start ||
            scan_object(given_object.start, given_object.size, &object) < 0)
                return -EBADMSG;
        action = span_text(given_action);
        namespace_name = span_text(object.namespace_name);
        name = span_text(object.name);
        uid = span_text(object.uid);
        if (!action || !namespace_name || !name || !uid)
                return -EBADMSG;
        call(host,
             &(struct reconciled_request){
                     .json = line,
                     .json_size = size,
                     .action = action,
                     .namespace_name = namespace_name,
                     .name = name,
                     .uid = uid,
                     .attempt = attempt.start ? strtoull(attempt.start, NULL, 10) : 0,
             },
             id, &out);
        return out.failed ? -ENOMEM : file_write_all(host->answers, out.data, out.size);
}

static int serve_lines(struct host *host)
{
        int r = 0;

        while (r >= 0 && host->input.size > 0) {
                char *line = host->input.data, *newline = memchr(line, '\n', host->input.size);

                if (!newline)
                        break;
                *newline = '\0';
                r = serve_line(host, line, (size_t)(newline - line));
                text_consume(&host->input, (size_t)(newline - line) + 1);
        }
        return r;
}

/* 0: there is nothing more to come; 1: there may be. */
static int read_some(struct host *host)
{
        struct pollfd wait = {.fd = host->requests, .events = POLLIN};
        char buffer[65536];
        sigset_t none;
        ssize_t n;

        sigemptyset(&none);
        if (ppoll(&wait, 1, NULL, &none) < 0)
                return errno == EINTR ? !asked_to_end : -errno;
        n = read(host->requests, buffer, sizeof(buffer));
        if (n <= 0)
                return n == 0 || errno == EINTR ? (n != 0) : -errno;
        return text_append(&host->input, buffer, (size_t)n) < 0 ? -ENOMEM : 1;
}

static int serve_requests(struct host *host)
{
        int r;

        set_term(on_term);
        while ((r = read_some(host)) > 0) {
                r = serve_lines(host);
                if (r < 0)
                        break;
        }
        return r;
}

/* ---- the start */

static int load_plugin(struct host *host, const char *path)
{
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        const struct reconciled_plugin *(*describe)(void) = NULL;
        void *symbol = library ? dlsym(library, "reconciled_plugin") : NULL;

        if (!symbol) {
                fprintf(stderr, "the plugin cannot be loaded: %s\n", dlerror());
                return -ELIBBAD;
        }
        memcpy(&describe, &symbol, sizeof(describe)); /* ISO C knows no such cast */
        host->plugin = describe();
        if (!host->plugin || !host->plugin->run) {
                fprintf(stderr, "%s: reconciled_plugin() returns no table with run()\n", path);
                return -ELIBBAD;
        }
        if (host->plugin->version != RECONCILED_PLUGIN_VERSION) {
                fprintf(stderr,
                        "%s was built for version %u of reconciled-plugin.h; this host knows version %d\n",
                        path, host->plugin->version, RECONCILED_PLUGIN_VERSION);
                return -ELIBBAD;
        }
        return 0;
}

/* Moves the protocol away from the descriptors that a plugin, or a library of its, may print to. */
static int take_descriptors(struct host *host)
{
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

        host->requests = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        host->answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (null < 0 || host->requests < 0 || host->answers < 0 || dup2(null, STDIN_FILENO) < 0 ||
            dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return -errno;
        setvbuf(stdout, NULL, _IOLBF, 0);
        return 0;
}

static int host_run(struct host *host, const char *path)
{
        int r = take_descriptors(host);

        if (r >= 0)
                r = load_plugin(host, path);
        if (r < 0)
                return EXIT_CODE_SOFTWARE;
        if (host->plugin->start && host->plugin->start(&host->state) != 0) {
                fprintf(stderr, "%s: its start() has failed\n", path);
                return EXIT_CODE_SOFTWARE;
        }
        r = serve_requests(host);
        if (r < 0)
                fprintf(stderr, "the requests to the plugin cannot be followed: %s\n", strerror(-r));
        if (host->plugin->stop)
                host->plugin->stop(host->state);
        return r < 0 ? EXIT_CODE_SOFTWARE : EXIT_CODE_OK;
}

int main(int argc, char **argv)
{
        struct host host = {.input = TEXT_EMPTY};
        int r;

        if (argc != 2) {
                fprintf(stderr,
                        "usage: %s PLUGIN.so\nStarted by reconciled-worker; see reconciled-handler(7).\n",
                        argc > 0 ? argv[0] : "reconciled-plugin-host");
                return EXIT_CODE_USAGE;
        }
        r = host_run(&host, argv[1]);
        text_done(&host.input);
        return r;
}
