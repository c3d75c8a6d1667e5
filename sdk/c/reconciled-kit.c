/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, answers and the loop: see reconciled-kit.h. */
#define _POSIX_C_SOURCE 200809L
#include "reconciled-kit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reconciled-kit-json.h"

#define REQUEST_VERSION 1
#define EXIT_DATA       65

/* ---- logging */

/* Each line with its level, all of them by one write. */
static void log_lines(const char *level, const char *format, va_list arguments)
{
        struct rk_block *memory = NULL;
        va_list again;
        int size;
        char *text, *lines = NULL;
        size_t all;
        FILE *to;

        va_copy(again, arguments);
        size = vsnprintf(NULL, 0, format, again);
        va_end(again);
        to = open_memstream(&lines, &all);
        if (size < 0 || !to)
                return;
        text = rk_allocate(&memory, (size_t)size + 1);
        vsnprintf(text, (size_t)size + 1, format, arguments);
        do {
                size_t length = strcspn(text, "\n");

                fprintf(to, "%s: %.*s\n", level, (int)length, text);
                text += length;
        } while (*text && *++text);
        if (fclose(to) == 0 && write(STDERR_FILENO, lines, all) < 0)
                errno = 0; /* there is nobody to tell */
        free(lines);
        rk_forget(&memory);
}

#define LOG(level)                                                                                          \
        va_list arguments;                                                                                  \
        va_start(arguments, format);                                                                        \
        log_lines((level), format, arguments);                                                              \
        va_end(arguments)

void rk_info(const char *format, ...)
{
        LOG("info");
}

void rk_warning(const char *format, ...)
{
        LOG("warning");
}

void rk_error(const char *format, ...)
{
        LOG("error");
}

/* ---- failures */

static struct rk_value *failure(struct rk_request *request, const char *format, va_list arguments)
{
        va_list again;
        int size;
        char *text;

        va_copy(again, arguments);
        size = vsnprintf(NULL, 0, format, again);
        va_end(again);
        assert(size >= 0);
        text = rk_allocate(&request->memory, (size_t)size + 1);
        vsnprintf(text, (size_t)size + 1, format, arguments);
        return rk_build(request, "{'error': %s}", text);
}

struct rk_value *rk_temporary(struct rk_request *request, long long retry_after_msec, const char *format,
                              ...)
{
        struct rk_value *answer;
        char after[32];
        va_list arguments;

        assert(retry_after_msec >= 0);
        va_start(arguments, format);
        answer = failure(request, format, arguments);
        va_end(arguments);
        snprintf(after, sizeof(after), "%lldms", retry_after_msec);
        if (retry_after_msec > 0)
                rk_set(request, answer, "retryAfter", rk_build(request, "%s", after));
        return answer;
}

struct rk_value *rk_permanent(struct rk_request *request, const char *format, ...)
{
        struct rk_value *answer;
        va_list arguments;

        va_start(arguments, format);
        answer = failure(request, format, arguments);
        va_end(arguments);
        rk_set(request, answer, "permanent", rk_build(request, "true"));
        return answer;
}

struct rk_value *rk_want_integer(struct rk_request *request, const struct rk_value *value, const char *name,
                                 long long *ret)
{
        *ret = rk_integer(value, 0);
        return *ret == rk_integer(value, 1) ? NULL
                                            : rk_permanent(request, "%s is not an integer in range", name);
}

/* ---- one request */

static void fill(struct rk_request *request)
{
        const struct rk_value *whole = request->whole, *metadata;

        request->id = rk_integer(rk_get(whole, "id"), 0);
        request->version = rk_integer(rk_get(whole, "version"), REQUEST_VERSION);
        request->action = rk_text(rk_get(whole, "action"), NULL);
        request->reason = rk_text(rk_get(whole, "reason"), "");
        request->attempt = rk_integer(rk_get(whole, "attempt"), 1);
        request->last_error = rk_text(rk_get(whole, "lastError"), "");
        request->watch = rk_text(rk_get(whole, "watch"), "");
        request->children = rk_get(whole, "children");
        request->related = rk_get(whole, "related");
        request->object = rk_get(whole, "object");
        metadata = rk_get(request->object, "metadata");
        request->name = rk_text(rk_get(metadata, "name"), "");
        request->namespace_name = rk_text(rk_get(metadata, "namespace"), "");
        request->uid = rk_text(rk_get(metadata, "uid"), "");
}

static rk_function *find_schedule(const struct rk_handler *handler, const char *name)
{
        for (const struct rk_schedule *each = handler->schedules; each && each->name; each++)
                if (strcmp(each->name, name) == 0)
                        return each->function;
        return NULL;
}

static rk_function *find_function(const struct rk_handler *handler, const char *action, const char *watch)
{
        const struct {
                const char *action;
                rk_function *function;
        } known[] = {{"reconcile", handler->reconcile}, {"finalize", handler->finalize},
                     {"deleted", handler->deleted},     {"unselected", handler->unselected},
                     {"startup", handler->startup},     {"schedule", find_schedule(handler, watch)}};

        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
                if (strcmp(known[i].action, action) == 0)
                        return known[i].function;
        return NULL;
}

/* What is said of an action without a function. An error is what the configuration asks for: the work would be missed
 * without a word. */
static struct rk_value *answer_of_nobody(struct rk_request *request)
{
        const char *action = request->action, *watch = request->watch;

        if (strcmp(action, "reconcile") == 0)
                return rk_permanent(request,
                                    "the handler has no function that reconciles objects of the watch %s: "
                                    "set rk_handler.reconcile",
                                    watch);
        if (strcmp(action, "schedule") == 0)
                return rk_permanent(request,
                                    "the handler has no function for the schedule %s: add {\"%s\", ...} to "
                                    "rk_handler.schedules",
                                    watch, watch);
        if (strcmp(action, "startup") == 0)
                return rk_permanent(request,
                                    "the handler has no function for startup: set rk_handler.startup");
        return NULL;
}

static struct rk_value *answer_to(const struct rk_handler *handler, struct rk_request *request)
{
        rk_function *function = find_function(handler, request->action, request->watch);
        struct rk_value *answer;

        if (request->version != REQUEST_VERSION)
                return rk_permanent(request,
                                    "the request has version %lld, and this kit knows %d: use a newer kit",
                                    request->version, REQUEST_VERSION);
        answer = function ? function(request) : answer_of_nobody(request);
        if (!answer)
                return rk_build(request, "{}");
        if (!rk_is_object(answer))
                return rk_temporary(request, 0,
                                    "the function for %s answered with something that is no object",
                                    request->action);
        return answer;
}

/* ---- the loop */

static volatile sig_atomic_t is_busy, asked_to_stop;

/* SIGTERM: at once while it waits for a request, or else when the answer is written. */
static void stop(int number)
{
        (void)number;
        asked_to_stop = 1;
        if (!is_busy)
                _exit(EXIT_SUCCESS);
}

static void catch_stop(void)
{
        struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};

        sigemptyset(&action.sa_mask);
        sigaction(SIGTERM, &action, NULL);
}

/* Standard input and output become the kit's own: what the handler prints, and programs that it starts, do not disturb
 * the protocol. */
static int take_streams(FILE **requests, int *answers)
{
        int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
            nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

        *answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        *requests = input < 0 ? NULL : fdopen(input, "r");
        if (!*requests || *answers < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
            dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return -1;
        close(nothing);
        setvbuf(stdout, NULL, _IOLBF, 0);
        return 0;
}

static bool write_all(int descriptor, const char *text, size_t size)
{
        while (size > 0) {
                ssize_t written = write(descriptor, text, size);

                if (written < 0 && errno != EINTR)
                        return false;
                if (written > 0) {
                        text += written;
                        size -= (size_t)written;
                }
        }
        return true;
}

/* NULL: it is read. Otherwise why it is not. */
static const char *read_request(struct rk_request *request, const char *line, size_t size)
{
        const char *why;
        size_t place;

        request->whole = rk_parse(&request->memory, line, size, NULL, &why, &place);
        if (!request->whole) {
                rk_error("the request cannot be read: %s, at byte %zu", why, place);
                return why;
        }
        fill(request);
        if (request->action)
                return NULL;
        why = "it is no object with an action";
        rk_error("the request cannot be read: %s", why);
        return why;
}

/* The answer to a request that cannot be read: nested too deeply, say. Others wait for the process, so it goes on.
 * The operator writes the id first. NULL: there is none. */
static struct rk_value *refuse(struct rk_request *request, const char *line, const char *why)
{
        char text[160];

        request->id = 0;
        if (sscanf(line, " { \"id\" : %18lld", &request->id) != 1 || request->id == 0)
                return NULL;
        snprintf(text, sizeof(text), "the request cannot be read: %s", why);
        return rk_build(request, "{'error': %s, 'permanent': true}", text);
}

/* Whether there may be another request; *status is the exit status otherwise. */
static bool serve_one(const struct rk_handler *handler, const char *line, size_t size, int answers,
                      int *status)
{
        struct rk_request request = {0};
        const char *why = read_request(&request, line, size);
        struct rk_value *answer = why ? refuse(&request, line, why) : answer_to(handler, &request);
        bool goes_on = false;
        char *text, head[40] = "{";

        if (answer) {
                if (request.id != 0)
                        snprintf(head, sizeof(head), "{\"id\":%lld%s", request.id,
                                 rk_count(answer) > 0 ? "," : "");
                text = rk_print(&request.memory, answer, &size);
                text[size++] = '\n'; /* in the place of the NUL */
                /* The id comes first: it tells whose answer is too long. */
                goes_on = write_all(answers, head, strlen(head)) && write_all(answers, text + 1, size - 1) &&
                          request.id != 0;
        } else {
                *status = EXIT_DATA;
        }
        rk_forget(&request.memory);
        return goes_on;
}

static bool is_complete(const struct rk_handler *handler)
{
        if (handler->finalize || handler->deleted || handler->unselected)
                return handler->reconcile;
        return handler->reconcile || handler->startup || (handler->schedules && handler->schedules->name);
}

int rk_serve(const struct rk_handler *handler)
{
        FILE *requests;
        char *line = NULL;
        size_t room = 0;
        ssize_t size;
        int answers, status = EXIT_SUCCESS;

        assert(is_complete(handler));
        if (take_streams(&requests, &answers) < 0) {
                rk_error("standard input and output cannot be taken: %s", strerror(errno));
                return EXIT_FAILURE;
        }
        catch_stop();
        while ((size = getline(&line, &room, requests)) > 0) {
                is_busy = 1;
                if (!serve_one(handler, line, (size_t)size, answers, &status))
                        break;
                is_busy = 0;
                if (asked_to_stop)
                        break;
        }
        free(line);
        fclose(requests);
        close(answers);
        return status;
}

/* ---- testing */

static void set_default(struct rk_request *request, struct rk_value *object, const char *key,
                        const char *text)
{
        if (!rk_get(object, key))
                rk_set(request, object, key, rk_build(request, "%s", text));
}

bool rk_answers(rk_function *function, const char *action, const char *object, const char *expected)
{
        const struct rk_schedule schedules[] = {{"test", function}, {NULL, NULL}};
        struct rk_handler handler = {function, function, function, function, function, schedules};
        struct rk_request request = {0};
        struct rk_value *whole = rk_build(&request, object), *metadata;
        const struct rk_value *wanted, *answer;
        size_t size;
        bool same;

        set_default(&request, whole, "apiVersion", "example.com/v1");
        set_default(&request, whole, "kind", "Test");
        metadata = rk_get(whole, "metadata") ? rk_copy(&request, rk_get(whole, "metadata"))
                                             : rk_build(&request, "{}");
        set_default(&request, metadata, "name", "test");
        set_default(&request, metadata, "namespace", "default");
        set_default(&request, metadata, "uid", "00000000-0000-4000-8000-000000000000");
        rk_set(&request, whole, "metadata", metadata);
        request.whole =
                rk_build(&request,
                         "{'version': 1, 'action': %s, 'reason': 'added', 'attempt': 1, 'lastError': '', "
                         "'watch': 'test', 'object': %v}",
                         action, whole);
        fill(&request);
        answer = answer_to(&handler, &request);
        wanted = rk_build(&request, expected);
        same = rk_same(answer, wanted);
        if (!same)
                fprintf(stderr, "answer   %s\nexpected %s\n", rk_print(&request.memory, answer, &size),
                        rk_print(&request.memory, wanted, &size));
        rk_forget(&request.memory);
        return same;
}
