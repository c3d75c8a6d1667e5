/* SPDX-License-Identifier: Apache-2.0 */
/* Requests, answers and the loop: see reconciled-kit.h. */
#define _POSIX_C_SOURCE 200809L
#include "reconciled-kit.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reconciled-kit-json.h"

#define REQUEST_VERSION 1
#define EXIT_DATA       65
#define MOST_PARALLEL   128               /* as in the configuration */
#define STACK_SIZE      ((size_t)8 << 20) /* as of the main thread; some C libraries give a thread much less */

/* ---- logging */

/* "namespace/name: " of the object that the thread has in work: the operator cannot know it when the process has several
 * requests. "" in the main thread. */
static _Thread_local const char *object_key = "";

/* Each line with its level, and none of another thread between them. */
static void log_lines(const char *level, const char *format, va_list arguments)
{
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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

                fprintf(to, "%s: %s%.*s\n", level, object_key, (int)length, text);
                text += length;
        } while (*text && *++text);
        pthread_mutex_lock(&lock);
        if (fclose(to) == 0 && write(STDERR_FILENO, lines, all) < 0)
                errno = 0; /* there is nobody to report it to */
        pthread_mutex_unlock(&lock);
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
        request->epoch = rk_integer(rk_get(whole, "epoch"), 0);
        request->dry_run = rk_boolean(rk_get(whole, "dryRun"), false);
        request->children = rk_get(whole, "children");
        request->related = rk_get(whole, "related");
        request->previous = rk_get(whole, "previous");
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

/* ---- standard input and output */

/* Not a stream of stdio: with musl, exit() in a thread waits for the lock of a stream that the main thread reads. */
struct input {
        int descriptor;
        char *text; /* what was read; belongs to the memory */
        struct rk_block *memory;
        size_t size, room;
        size_t done; /* bytes of the line that was returned last */
};

/* Standard input and output become the kit's own: what the handler prints, and programs that it starts, do not disturb
 * the protocol. */
static int take_streams(int *requests, int *answers)
{
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

        *requests = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        *answers = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        if (*requests < 0 || *answers < 0 || nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 ||
            dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
                return -1;
        close(nothing);
        setvbuf(stdout, NULL, _IOLBF, 0);
        return 0;
}

/* Room for one more byte and a NUL. */
static void make_input_room(struct input *input)
{
        size_t room = input->room > 0 ? 2 * input->room : (size_t)64 * 1024;
        char *text;

        if (input->size + 1 < input->room)
                return;
        text = rk_allocate(&input->memory, room);
        if (input->size > 0)
                memcpy(text, input->text, input->size);
        input->text = text;
        input->room = room;
}

/* The next line, with a NUL in the place of its newline; it is good until the next call. NULL: there are no more. */
static const char *read_line(struct input *input, size_t *size)
{
        size_t seen = 0; /* bytes that are no newline */
        ssize_t got;
        char *end;

        input->size -= input->done;
        if (input->size > 0)
                memmove(input->text, input->text + input->done, input->size);
        do {
                make_input_room(input);
                end = memchr(input->text + seen, '\n', input->size - seen);
                seen = input->size;
                if (end)
                        break;
                got = read(input->descriptor, input->text + input->size, input->room - input->size - 1);
                if (got > 0)
                        input->size += (size_t)got;
        } while (got > 0 || (got < 0 && errno == EINTR));
        input->done = end ? (size_t)(end - input->text) + 1 : input->size;
        if (!end && input->size > 0)
                end = input->text + input->size; /* the last line may lack its newline */
        if (!end)
                return NULL;
        *end = '\0';
        *size = (size_t)(end - input->text);
        return input->text;
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

/* As one line. False: nobody reads answers any more. */
static bool put_answer(struct rk_request *request, const struct rk_value *answer, int answers)
{
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        char *text, head[40] = "{";
        size_t size;
        bool is_written;

        /* The id comes first: it tells whose answer is too long. */
        if (request->id != 0)
                snprintf(head, sizeof(head), "{\"id\":%lld%s", request->id, rk_count(answer) > 0 ? "," : "");
        text = rk_print(&request->memory, answer, &size);
        text[size++] = '\n'; /* in the place of the NUL */
        pthread_mutex_lock(&lock);
        is_written = write_all(answers, head, strlen(head)) && write_all(answers, text + 1, size - 1);
        pthread_mutex_unlock(&lock);
        return is_written;
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

/* ---- threads: the main thread reads, and those of the pool call the functions */

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a handler of signals uses them");
static atomic_int in_work; /* requests that were read and have no answer */
static atomic_int asked_to_stop;

struct server {
        const struct rk_handler *handler;
        int answers;
        int threads; /* of the pool */
        pthread_t thread[MOST_PARALLEL];
        pthread_mutex_t lock; /* of what follows */
        pthread_cond_t given, taken;
        struct rk_request next; /* its memory goes to the thread that takes it */
        bool has_next, is_over;
};

/* SIGTERM: at once while it waits for a request, or else when the answers are written. Threads do not block the signal, as
 * programs that they start would inherit that; the kernel prefers the main thread. */
static void stop(int number)
{
        (void)number;
        asked_to_stop = 1;
        if (in_work == 0)
                _exit(EXIT_SUCCESS);
}

static void catch_stop(void)
{
        struct sigaction action = {.sa_handler = stop, .sa_flags = SA_RESTART};

        sigemptyset(&action.sa_mask);
        sigaction(SIGTERM, &action, NULL);
}

/* Waits while all threads are at work: then nothing more is read, and requests stay where they are. */
static void give_request(struct server *server, const struct rk_request *request)
{
        pthread_mutex_lock(&server->lock);
        assert(server->threads > 0 && !server->is_over);
        while (server->has_next)
                pthread_cond_wait(&server->taken, &server->lock);
        server->next = *request;
        server->has_next = true;
        pthread_cond_signal(&server->given);
        pthread_mutex_unlock(&server->lock);
}

/* False: there are no more. */
static bool take_request(struct server *server, struct rk_request *request)
{
        bool found;

        pthread_mutex_lock(&server->lock);
        while (!server->has_next && !server->is_over)
                pthread_cond_wait(&server->given, &server->lock);
        found = server->has_next;
        if (found)
                *request = server->next;
        server->has_next = false;
        pthread_cond_signal(&server->taken);
        pthread_mutex_unlock(&server->lock);
        return found;
}

static const char *make_key(struct rk_request *request)
{
        const char *space = request->namespace_name;
        size_t size = strlen(space) + strlen(request->name) + sizeof("/: ");
        char *text = rk_allocate(&request->memory, size);

        snprintf(text, size, "%s%s%s: ", space, *space ? "/" : "", request->name);
        return text;
}

/* What a thread of the pool does. */
static void *work(void *argument)
{
        struct server *server = argument;
        struct rk_request request;

        while (take_request(server, &request)) {
                assert(request.id != 0 && in_work > 0);
                object_key = make_key(&request);
                if (!asked_to_stop &&
                    !put_answer(&request, answer_to(server->handler, &request), server->answers))
                        asked_to_stop = 1;
                object_key = "";
                rk_forget(&request.memory);
                /* The main thread may be reading, and nothing would wake it. */
                if (atomic_fetch_sub(&in_work, 1) == 1 && asked_to_stop)
                        _exit(EXIT_SUCCESS);
        }
        return NULL;
}

/* Fewer threads than wanted are slower, and no reason to answer nobody. Without any, the main thread calls the functions. */
static void start_threads(struct server *server, int wanted)
{
        pthread_attr_t attributes;
        int error = 0;

        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, STACK_SIZE);
        while (server->threads < wanted && error == 0) {
                error = pthread_create(&server->thread[server->threads], &attributes, work, server);
                server->threads += error == 0;
        }
        pthread_attr_destroy(&attributes);
        if (error != 0)
                rk_warning("only %d of %d threads can be created: %s", server->threads, wanted,
                           strerror(error));
}

/* Returns when each request that was given has its answer. */
static void end_threads(struct server *server)
{
        pthread_mutex_lock(&server->lock);
        server->is_over = true;
        pthread_cond_broadcast(&server->given);
        pthread_mutex_unlock(&server->lock);
        for (int i = 0; i < server->threads; i++)
                pthread_join(server->thread[i], NULL);
        assert(!server->has_next);
}

/* ---- the loop */

/* In the main thread. Whether there may be another request; *status is the exit status otherwise. */
static bool serve_one(const struct server *server, struct rk_request *request, const char *line,
                      const char *why, int *status)
{
        struct rk_value *answer = why ? refuse(request, line, why) : answer_to(server->handler, request);
        bool goes_on = answer && put_answer(request, answer, server->answers) && request->id != 0;

        if (!answer)
                *status = EXIT_DATA;
        rk_forget(&request->memory);
        return goes_on;
}

/* Returns the exit status. */
static int serve_all(struct server *server, struct input *input)
{
        int status = EXIT_SUCCESS;
        const char *line;
        size_t size;

        while (!asked_to_stop && (line = read_line(input, &size)) && !asked_to_stop) {
                struct rk_request request = {0};
                const char *why;

                in_work++;
                why = read_request(&request, line, size);
                if (!why && request.id != 0 && server->threads > 0) {
                        give_request(server, &request);
                        continue;
                }
                if (!serve_one(server, &request, line, why, &status))
                        break; /* it stays in work: no signal takes the place of this status */
                in_work--;
        }
        return status;
}

static bool is_complete(const struct rk_handler *handler)
{
        if (handler->finalize || handler->deleted || handler->unselected)
                return handler->reconcile;
        return handler->reconcile || handler->startup || (handler->schedules && handler->schedules->name);
}

int rk_serve_parallel(const struct rk_handler *handler, int parallel)
{
        struct server server = {.handler = handler,
                                .lock = PTHREAD_MUTEX_INITIALIZER,
                                .given = PTHREAD_COND_INITIALIZER,
                                .taken = PTHREAD_COND_INITIALIZER};
        struct input input = {0};
        int status;

        assert(is_complete(handler));
        assert(parallel >= 1 && parallel <= MOST_PARALLEL);
        if (take_streams(&input.descriptor, &server.answers) < 0) {
                rk_error("standard input and output cannot be taken: %s", strerror(errno));
                return EXIT_FAILURE;
        }
        catch_stop();
        if (parallel > 1)
                start_threads(&server, parallel);
        status = serve_all(&server, &input);
        end_threads(&server);
        rk_forget(&input.memory);
        close(input.descriptor);
        close(server.answers);
        return status;
}

int rk_serve(const struct rk_handler *handler)
{
        return rk_serve_parallel(handler, 1);
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
