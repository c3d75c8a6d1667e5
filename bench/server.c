/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An API server that has its answers ready: so that a benchmark measures who asks, not who answers. It
 * serves one resource (example.com/v1 widgets) with N objects of a given size, in pages made before the
 * first request, and a watch whose events are made when they are asked for. Of what is written it remembers
 * what bench/written.h says; the pages stay as they were made.
 *
 *     bench-server --objects N --size BYTES --kubeconfig FILE [--sent FILE]
 *
 *     POST /bench/events?count=N   each running watch gets N MODIFIED events, each about another object
 *     POST /bench/gone             each running watch gets an ERROR 410 and ends
 *     GET /bench/counts            {"requests": N, "lists": N, "watches": N, "writes": N}
 *
 * --sent: appends the time (CLOCK_MONOTONIC, ns) at which each event was handed to the kernel.
 *
 * One thread a connection, which is what makes it as simple as this.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/written.h"

#define PAGE_LIMIT_DEFAULT 500
#define EVENT_MARGIN       1024
#define FRAME_SIZE         290 /* of an object without its padding, which is the same in all its versions */
#define WIDGETS            "/apis/example.com/v1/widgets"

static struct {
        size_t objects, size;
        char *padding; /* fills an object up to its size */
        int sent_fd;
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct event *event; /* asked for so far: each watch follows on its own */
        uint64_t event_count, event_room, gone, next_object;
        uint32_t *round;         /* of each object */
        struct written *written; /* likewise */
        atomic_ulong requests, lists, watches, writes;
        struct page *page; /* by number, for the limit below */
        size_t page_count, page_limit;
} bench = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .sent_fd = -1};

struct event {
        uint32_t object, round;
};

struct page {
        char *body;
        size_t size;
};

struct stream {
        uint64_t event, gone; /* how far it has got */
        char *line;
        size_t room, size, position;
        bool over, silent; /* silent: of a kind of which nothing ever changes */
};

struct request {
        char *body;
        size_t size;
};

static _Noreturn void die(const char *what)
{
        fprintf(stderr, "bench-server: %s: %s\n", what, strerror(errno));
        exit(1);
}

static void *must(void *pointer)
{
        if (!pointer)
                die("memory");
        return pointer;
}

/* ---- objects */

static const char *or_nothing(const char *text)
{
        return text ? text : "";
}

/* Bytes that the object needs, and something around it; under the lock, as the next one. */
static size_t object_room(size_t number)
{
        return bench.size + EVENT_MARGIN + written_size(&bench.written[number]);
}

/* round 0: as listed; later ones differ in spec, so that each is a reason to run. */
static size_t write_object(char *out, size_t number, uint64_t version, uint64_t round)
{
        const struct written *written = &bench.written[number];
        size_t room = object_room(number);
        int head =
                snprintf(out, room,
                         "{\"apiVersion\":\"example.com/"
                         "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"widget-%07zu\","
                         "\"namespace\":\"default\",\"uid\":\"00000000-0000-4000-8000-%012zu\","
                         "\"resourceVersion\":\"%llu\","
                         "\"generation\":%llu,\"creationTimestamp\":\"2026-01-01T00:00:00Z\"%s%s},"
                         "%s%s%s\"spec\":{\"round\":%llu,\"padding\":\"",
                         number, number, (unsigned long long)version, (unsigned long long)round + 1,
                         written->annotations ? ",\"annotations\":" : "", or_nothing(written->annotations),
                         written->status ? "\"status\":" : "", or_nothing(written->status),
                         written->status ? "," : "", (unsigned long long)round);
        size_t used = (size_t)head, padding = bench.size > FRAME_SIZE ? bench.size - FRAME_SIZE : 0;

        memcpy(out + used, bench.padding, padding);
        memcpy(out + used + padding, "\"}}", 3);
        return used + padding + 3;
}

static uint64_t first_version(void)
{
        return (uint64_t)bench.objects + 1000;
}

static void make_page(size_t number)
{
        size_t first = number * bench.page_limit,
               last = first + bench.page_limit < bench.objects ? first + bench.page_limit : bench.objects;
        size_t room = EVENT_MARGIN;
        char *body, *out;

        for (size_t i = first; i < last; i++)
                room += object_room(i);
        out = body = must(malloc(room));
        out += snprintf(out, EVENT_MARGIN,
                        "{\"kind\":\"WidgetList\",\"apiVersion\":\"example.com/v1\",\"metadata\":"
                        "{\"resourceVersion\":\"%llu\"",
                        (unsigned long long)first_version());
        if (last < bench.objects)
                out += snprintf(out, EVENT_MARGIN, ",\"continue\":\"%zu\",\"remainingItemCount\":%zu", last,
                                bench.objects - last);
        out += snprintf(out, EVENT_MARGIN, "},\"items\":[");
        for (size_t i = first; i < last; i++) {
                if (i > first)
                        *out++ = ',';
                out += write_object(out, i, i + 1, 0);
        }
        out += snprintf(out, EVENT_MARGIN, "]}");
        bench.page[number] = (struct page){body, (size_t)(out - body)};
}

static void make_pages(size_t limit)
{
        for (size_t i = 0; i < bench.page_count; i++)
                free(bench.page[i].body);
        free(bench.page);
        bench.page_limit = limit;
        bench.page_count = bench.objects ? (bench.objects + limit - 1) / limit : 1;
        bench.page = must(calloc(bench.page_count, sizeof(struct page)));
        for (size_t i = 0; i < bench.page_count; i++)
                make_page(i);
}

/* ---- answers */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *body,
                              size_t size, enum MHD_ResponseMemoryMode mode)
{
        struct MHD_Response *response = MHD_create_response_from_buffer(size, (void *)(uintptr_t)body, mode);
        enum MHD_Result r;

        if (!response)
                return MHD_NO;
        MHD_add_response_header(response, "Content-Type", "application/json");
        r = MHD_queue_response(connection, status, response);
        MHD_destroy_response(response);
        return r;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status, const char *body)
{
        return answer(connection, status, body, strlen(body), MHD_RESPMEM_MUST_COPY);
}

static const char *argument(struct MHD_Connection *connection, const char *name)
{
        const char *value = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);

        return value ? value : "";
}

static size_t numeric(struct MHD_Connection *connection, const char *name, size_t otherwise)
{
        const char *value = argument(connection, name);

        return value[0] ? strtoul(value, NULL, 10) : otherwise;
}

/* A page as it was prepared; for another limit than the last one, made anew (once). */
static enum MHD_Result list(struct MHD_Connection *connection)
{
        size_t limit = numeric(connection, "limit", bench.objects ? bench.objects : 1),
               first = numeric(connection, "continue", 0);
        const struct page *page;

        bench.lists++;
        if (strcmp(argument(connection, "limit"), "1") == 0) { /* what is the newest version? */
                char body[256];

                snprintf(body, sizeof(body),
                         "{\"kind\":\"WidgetList\",\"apiVersion\":\"example.com/v1\",\"metadata\":"
                         "{\"resourceVersion\":\"%llu\"},\"items\":[]}",
                         (unsigned long long)(first_version() + bench.event_count));
                return answer_text(connection, 200, body);
        }
        pthread_mutex_lock(&bench.lock);
        if (limit != bench.page_limit)
                make_pages(limit);
        page = first / limit < bench.page_count ? &bench.page[first / limit] : NULL;
        pthread_mutex_unlock(&bench.lock);
        if (!page)
                return answer_text(connection, 410,
                                   "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\"}");
        return answer(connection, 200, page->body, page->size, MHD_RESPMEM_PERSISTENT);
}

/* ---- the watch */

static void note_sent(void)
{
        struct timespec now;
        char text[32];
        int size;

        if (bench.sent_fd < 0)
                return;
        clock_gettime(CLOCK_MONOTONIC, &now);
        size = snprintf(text, sizeof(text), "%lld%09ld\n", (long long)now.tv_sec, now.tv_nsec);
        if (write(bench.sent_fd, text, (size_t)size) != size)
                die("--sent");
}

static void next_event(struct stream *stream)
{
        uint64_t number = stream->event++;
        struct event event;
        char *out;

        pthread_mutex_lock(&bench.lock);
        event = bench.event[number];
        if (stream->room < object_room(event.object)) {
                stream->room = object_room(event.object);
                stream->line = must(realloc(stream->line, stream->room));
        }
        out = stream->line;
        out += snprintf(out, stream->room, "{\"type\":\"MODIFIED\",\"object\":");
        out += write_object(out, event.object, first_version() + number + 1, event.round);
        out += snprintf(out, 3, "}\n");
        pthread_mutex_unlock(&bench.lock);
        stream->size = (size_t)(out - stream->line);
        stream->position = 0;
        note_sent();
}

static void end_gone(struct stream *stream)
{
        stream->size =
                (size_t)snprintf(stream->line, EVENT_MARGIN,
                                 "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
                                 "\"status\":\"Failure\",\"reason\":\"Expired\",\"code\":410}}\n");
        stream->position = 0;
        stream->over = true;
}

/* Waits until there is something; the client that goes away meanwhile is noticed with the next event. */
static void wait_for_more(struct stream *stream)
{
        pthread_mutex_lock(&bench.lock);
        while (stream->silent || (stream->event >= bench.event_count && stream->gone >= bench.gone))
                pthread_cond_wait(&bench.changed, &bench.lock);
        pthread_mutex_unlock(&bench.lock);
        if (stream->gone < bench.gone)
                end_gone(stream);
        else
                next_event(stream);
}

static ssize_t read_stream(void *userdata, uint64_t position, char *buffer, size_t max)
{
        struct stream *stream = userdata;
        size_t used = 0;

        (void)position;
        while (used < max) {
                size_t piece = stream->size - stream->position;

                if (piece == 0) {
                        if (stream->over)
                                return used ? (ssize_t)used : MHD_CONTENT_READER_END_OF_STREAM;
                        if (used > 0 && stream->event >= bench.event_count && stream->gone >= bench.gone)
                                break;
                        wait_for_more(stream);
                        continue;
                }
                if (piece > max - used)
                        piece = max - used;
                memcpy(buffer + used, stream->line + stream->position, piece);
                stream->position += piece;
                used += piece;
        }
        return (ssize_t)used;
}

static void free_stream(void *userdata)
{
        struct stream *stream = userdata;

        free(stream->line);
        free(stream);
}

static enum MHD_Result watch(struct MHD_Connection *connection, bool silent)
{
        struct stream *stream = must(calloc(1, sizeof(*stream)));
        unsigned long long version = strtoull(argument(connection, "resourceVersion"), NULL, 10);
        struct MHD_Response *response;
        enum MHD_Result r;

        stream->room = bench.size + EVENT_MARGIN;
        stream->line = must(malloc(stream->room));
        pthread_mutex_lock(&bench.lock);
        stream->event = version > first_version() ? version - first_version() : 0;
        if (stream->event > bench.event_count)
                stream->event = bench.event_count;
        stream->gone = bench.gone;
        stream->silent = silent;
        pthread_mutex_unlock(&bench.lock);
        bench.watches++;
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, (size_t)256 * 1024, read_stream,
                                                     stream, free_stream);
        if (!response)
                return MHD_NO;
        MHD_add_response_header(response, "Content-Type", "application/json");
        r = MHD_queue_response(connection, 200, response);
        MHD_destroy_response(response);
        return r;
}

/* ---- requests */

static bool is_watch(struct MHD_Connection *connection)
{
        const char *value = argument(connection, "watch");

        return strcmp(value, "1") == 0 || strcmp(value, "true") == 0;
}

/* Under the lock. */
static void add_event(uint32_t object)
{
        if (bench.event_count == bench.event_room) {
                bench.event_room = bench.event_room ? 2 * bench.event_room : 1024;
                bench.event = must(reallocarray(bench.event, bench.event_room, sizeof(*bench.event)));
        }
        bench.event[bench.event_count++] = (struct event){object, bench.round[object]};
}

static void add_changes(size_t count)
{
        for (size_t i = 0; i < count && bench.objects > 0; i++) {
                uint32_t object = (uint32_t)(bench.next_object++ % bench.objects);

                bench.round[object]++;
                add_event(object);
        }
}

/* The object as it is now; a write is an event of its own. */
static enum MHD_Result one_object(struct MHD_Connection *connection, const char *url,
                                  const struct request *patch)
{
        const char *name = strstr(url, "/widgets/widget-");
        size_t number = name ? strtoul(name + strlen("/widgets/widget-"), NULL, 10) : SIZE_MAX, size;
        char *body;

        if (number >= bench.objects)
                return answer_text(connection, 404,
                                   "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                                   "\"reason\":\"NotFound\",\"code\":404}");
        pthread_mutex_lock(&bench.lock);
        if (patch) {
                written_merge(&bench.written[number], patch->body, patch->size);
                add_event((uint32_t)number);
                pthread_cond_broadcast(&bench.changed);
        }
        body = must(malloc(object_room(number)));
        size = write_object(body, number, first_version() + bench.event_count, bench.round[number]);
        pthread_mutex_unlock(&bench.lock);
        return answer(connection, 200, body, size, MHD_RESPMEM_MUST_FREE);
}

static enum MHD_Result control(struct MHD_Connection *connection, const char *url)
{
        char body[160];

        pthread_mutex_lock(&bench.lock);
        if (strcmp(url, "/bench/events") == 0)
                add_changes(numeric(connection, "count", 1));
        else if (strcmp(url, "/bench/gone") == 0)
                bench.gone++;
        pthread_cond_broadcast(&bench.changed);
        pthread_mutex_unlock(&bench.lock);
        snprintf(body, sizeof(body), "{\"requests\":%lu,\"lists\":%lu,\"watches\":%lu,\"writes\":%lu}",
                 bench.requests, bench.lists, bench.watches, bench.writes);
        return answer_text(connection, 200, body);
}

static const struct {
        const char *url, *body;
} document[] = {
        {"/version", "{\"major\":\"1\",\"minor\":\"26\",\"gitVersion\":\"v1.26.0\"}"},
        {"/api", "{\"kind\":\"APIVersions\",\"versions\":[\"v1\"]}"},
        {"/apis", "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[{\"name\":\"example.com\","
                  "\"versions\":"
                  "[{\"groupVersion\":\"example.com/v1\",\"version\":\"v1\"}],\"preferredVersion\":"
                  "{\"groupVersion\":\"example.com/v1\",\"version\":\"v1\"}}]}"},
        {"/apis/example.com/v1",
         "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"example.com/"
         "v1\",\"resources\":["
         "{\"name\":\"widgets\",\"singularName\":\"widget\",\"namespaced\":true,\"kind\":\"Widget\","
         "\"verbs\":"
         "[\"get\",\"list\",\"watch\",\"patch\",\"update\"]},"
         "{\"name\":\"widgets/"
         "status\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Widget\",\"verbs\":"
         "[\"get\",\"patch\",\"update\"]}]}"},
        {"/api/v1",
         "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"v1\",\"resources\":["
         "{\"name\":\"namespaces\",\"singularName\":\"\",\"namespaced\":false,\"kind\":\"Namespace\","
         "\"verbs\":"
         "[\"get\",\"list\",\"watch\"]}]}"},
        {"/api/v1/namespaces/kube-system",
         "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"kube-system\",\"uid\":"
         "\"11111111-1111-4111-8111-111111111111\",\"resourceVersion\":\"1\"}}"},
};

/* Some clients look at these as well. */
static const char empty_list[] =
        "{\"kind\":\"List\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"1\"},"
        "\"items\":[]}";

static bool is_other_list(const char *url)
{
        return strcmp(url, "/api/v1/namespaces") == 0 ||
               strcmp(url, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions") == 0;
}

/* As a server of 1.26 that does not send initial events. */
static enum MHD_Result watch_widgets(struct MHD_Connection *connection)
{
        if (argument(connection, "sendInitialEvents")[0])
                return answer_text(
                        connection, 422,
                        "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":"
                        "\"Invalid\",\"code\":422,\"message\":\"sendInitialEvents is forbidden\"}");
        return watch(connection, false);
}

static enum MHD_Result handle(struct MHD_Connection *connection, const char *method, const char *url,
                              const struct request *request)
{
        bench.requests++;
        if (strncmp(url, "/bench/", 7) == 0)
                return control(connection, url);
        if (strcmp(method, "GET") != 0) {
                bench.writes++;
                return one_object(connection, url, request);
        }
        if (strcmp(url, WIDGETS) == 0)
                return is_watch(connection) ? watch_widgets(connection) : list(connection);
        if (is_other_list(url))
                return is_watch(connection) ? watch(connection, true)
                                            : answer_text(connection, 200, empty_list);
        for (size_t i = 0; i < sizeof(document) / sizeof(document[0]); i++)
                if (strcmp(url, document[i].url) == 0)
                        return answer_text(connection, 200, document[i].body);
        return one_object(connection, url, NULL);
}

static enum MHD_Result on_access(void *userdata, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data, size_t *size,
                                 void **state)
{
        struct request *request = *state;

        (void)userdata, (void)version;
        if (!request) {
                *state = must(calloc(1, sizeof(*request)));
                return MHD_YES;
        }
        if (*size > 0) {
                request->body = must(realloc(request->body, request->size + *size));
                memcpy(request->body + request->size, data, *size);
                request->size += *size;
                *size = 0;
                return MHD_YES;
        }
        return handle(connection, method, url, request);
}

static void on_completed(void *userdata, struct MHD_Connection *connection, void **state,
                         enum MHD_RequestTerminationCode code)
{
        struct request *request = *state;

        (void)userdata, (void)connection, (void)code;
        if (request)
                free(request->body);
        free(request);
}

/* ---- start */

static void write_kubeconfig(const char *path, unsigned port)
{
        char temporary[4096];
        FILE *file;

        snprintf(temporary, sizeof(temporary), "%s.new", path);
        file = fopen(temporary, "w");
        if (!file)
                die(temporary);
        fprintf(file,
                "apiVersion: v1\nkind: Config\ncurrent-context: bench\n"
                "clusters: [{name: bench, cluster: {server: \"http://127.0.0.1:%u\"}}]\n"
                "users: [{name: bench, user: {}}]\n"
                "contexts: [{name: bench, context: {cluster: bench, user: bench}}]\n",
                port);
        if (fclose(file) != 0 || rename(temporary, path) < 0)
                die(path);
}

static void serve(const char *kubeconfig)
{
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct MHD_Daemon *daemon = MHD_start_daemon(
                MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL, 0, NULL,
                NULL, on_access, NULL, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                (size_t)1024 * 1024, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
        const union MHD_DaemonInfo *info;
        sigset_t signals;
        int received;

        if (!daemon)
                die("listening");
        info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
        write_kubeconfig(kubeconfig, info->port);
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        sigwait(&signals, &received);
        _exit(0); /* watches wait for ever */
}

int main(int argc, char **argv)
{
        static const struct option option[] = {
                {"objects", required_argument, NULL, 'n'},
                {"size", required_argument, NULL, 's'},
                {"kubeconfig", required_argument, NULL, 'k'},
                {"sent", required_argument, NULL, 't'},
                {0},
        };
        const char *kubeconfig = NULL, *sent = NULL;
        sigset_t signals;
        int c;

        bench.size = 3000;
        while ((c = getopt_long(argc, argv, "", option, NULL)) != -1) {
                if (c == 'n')
                        bench.objects = strtoul(optarg, NULL, 10);
                else if (c == 's')
                        bench.size = strtoul(optarg, NULL, 10);
                else if (c == 'k')
                        kubeconfig = optarg;
                else if (c == 't')
                        sent = optarg;
                else
                        return 64;
        }
        if (!kubeconfig) {
                fprintf(stderr, "bench-server: --kubeconfig FILE is missing\n");
                return 64;
        }
        if (sent && (bench.sent_fd = open(sent, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) < 0)
                die(sent);
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        sigaddset(&signals, SIGINT);
        pthread_sigmask(SIG_BLOCK, &signals, NULL); /* for every thread: only main() waits for them */
        bench.padding = must(malloc(bench.size + 1));
        memset(bench.padding, 'x', bench.size);
        bench.round = must(calloc(bench.objects + 1, sizeof(*bench.round)));
        bench.written = must(calloc(bench.objects + 1, sizeof(*bench.written)));
        make_pages(PAGE_LIMIT_DEFAULT);
        serve(kubeconfig);
}
