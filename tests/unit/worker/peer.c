/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/worker/peer.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>

#include "base/duration.h"
#include "ipc/child.h"
#include "object/keyed-hash.h"
#include "os/descendants.h"
#include "os/syscall.h"
#include "store/record.h"
#include "store/writer.h"

#define DEADLINE_USEC (30 * USEC_PER_SEC)

static const char *peer_worker; /* the program */

bool peer_prepare(int argc, char *argv[])
{
        if (argc != 2)
                return false;
        peer_worker = argv[1];
        signal(SIGPIPE, SIG_IGN);
        return sys_set_subreaper() >= 0 && keyed_hash_begin(PEER_HASH_KEY, SIPHASH_KEY_SIZE) >= 0;
}

/* ---- files */

static void path_of(const struct peer *peer, const char *name, char *ret, size_t size)
{
        snprintf(ret, size, "%s/%s", peer->folder, name);
}

char *peer_file(struct peer *peer, const char *name)
{
        struct text text = TEXT_EMPTY;
        char path[128], buffer[4096];
        ssize_t size;
        int fd;

        path_of(peer, name, path, sizeof(path));
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return NULL;
        while ((size = sys_read(fd, buffer, sizeof(buffer))) > 0)
                text_append(&text, buffer, (size_t)size);
        close(fd);
        return text_take(&text);
}

bool peer_log_has(struct peer *peer, const char *text)
{
        _cleanup_free_ char *log = peer_file(peer, "log");

        return log && strstr(log, text);
}

/* ---- the API server */

static const char widgets[] =
        "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"example.com/"
        "v1\",\"resources\":["
        "{\"name\":\"widgets\",\"singularName\":\"widget\",\"namespaced\":true,\"kind\":\"Widget\","
        "\"verbs\":[\"patch\"]},"
        "{\"name\":\"widgets/"
        "status\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"Widget\",\"verbs\":[\"patch\"]}]}";

static void note(struct peer *peer, const char *request)
{
        const char *end = strstr(request, " HTTP/1.1\r\n"), *body = strstr(request, "\r\n\r\n");

        assert_non_null(end);
        assert_non_null(body);
        text_append(&peer->requests, request, (size_t)(end - request));
        text_printf(&peer->requests, " %s\n", body + 4);
}

static void on_request(struct server_connection *connection, const char *request)
{
        struct peer *peer =
                (struct peer *)(void *)((char *)connection->server - offsetof(struct peer, server));
        const char *status = NULL, *body = NULL;

        note(peer, request);
        if (strncmp(request, "GET ", 4) == 0) {
                peer->discoveries++;
                server_answer(connection, "200 OK", "", peer->discovery ? peer->discovery : widgets);
                return;
        }
        if (peer->patches < ELEMENTS(peer->patch_status)) {
                status = peer->patch_status[peer->patches];
                body = peer->patch_body[peer->patches];
        }
        peer->patches++;
        if (peer->holds) {
                peer->holds = false;
                peer->held = connection;
                return;
        }
        server_answer(connection, status ? status : "200 OK", peer->headers ? peer->headers : "",
                      body ? body : "{}");
}

/* ---- the channel */

static void send_config(struct peer *peer)
{
        char store[128], script[128];
        struct record_string exec[] = {{"/bin/bash"}, {script}, {peer->folder}};
        struct record_watch watch = {
                .name = "widgets",
                .api_version = "example.com/v1",
                .kind = "Widget",
                .finalizer_key = "test.example.com/finalizer",
                .finalizers = "test.example.com/finalizer",
                .children_key = "test.example.com/children",
                .patched_key = "test.example.com/patched",
                .trigger = peer->trigger,
                .trigger_jq = "[.spec, .status | tostring]",
                .store_folder = store,
                .handler_exec = exec,
                .handler_exec_count = ELEMENTS(exec),
                .handler_timeout_usec = peer->timeout_usec,
                .handler_grace_usec = peer->grace_usec,
        };
        struct message_config_worker config = {
                .operator_name = "test.example.com",
                .former_names = "",
                .watch = &watch,
                .hash_key = PEER_HASH_KEY,
                .hash_key_size = SIPHASH_KEY_SIZE,
                .watch_count = 1,
                .heartbeat_usec = 50 * USEC_PER_MSEC,
        };

        path_of(peer, "store", store, sizeof(store));
        path_of(peer, "script", script, sizeof(script));
        assert_int_equal(channel_send(peer->channel, MESSAGE_CONFIG_WORKER, &config), 0);
        channel_set_state(peer->channel, CHILD_CONFIGURED);
}

static void send_credential(struct peer *peer)
{
        struct message_credential credential = {
                .serial = 7,
                .server = peer->server.url,
                .tls_server_name = "",
                .certificate_authority = "",
                .client_certificate = "",
                .client_key = "",
                .token = "s3cret",
                .username = "",
                .password = "",
                .proxy_url = "",
                .default_namespace = "",
                .identity = "",
        };

        assert_int_equal(channel_send(peer->channel, MESSAGE_CREDENTIAL, &credential), 0);
}

static int on_message(struct channel *channel, struct message **message, void *userdata)
{
        struct peer *peer = userdata;

        switch ((*message)->type) {
        case MESSAGE_HELLO:
                send_config(peer);
                break;
        case MESSAGE_READY:
                channel_set_state(channel, CHILD_RUNNING);
                peer->ready = true;
                break;
        case MESSAGE_HEARTBEAT:
                peer->heartbeats++;
                break;
        case MESSAGE_REFRESH:
                assert_int_equal((*message)->refresh.serial, 7);
                peer->refreshes++;
                break;
        case MESSAGE_THROTTLE:
                peer->throttles++;
                break;
        case MESSAGE_DONE:
                if (peer->ended_count < ELEMENTS(peer->ended))
                        peer->ended[peer->ended_count++] = (struct ending){
                                (*message)->done.sequence, (enum run_result)(*message)->done.result};
                message_free(peer->done);
                peer->done = TAKE_PTR(*message);
                break;
        case MESSAGE_FATAL:
                peer->fatal = TAKE_PTR(*message);
                break;
        default:
                return -EPROTO;
        }
        return 0;
}

static void on_error(struct channel *channel, int status, const char *reason, void *userdata)
{
        struct peer *peer = userdata;

        (void)channel;
        if (status != -ECONNRESET)
                fail_msg("the channel failed: %s", reason);
        peer->lost = true;
}

static const struct channel_callbacks callbacks = {.on_message = on_message, .on_error = on_error};

/* ---- the worker */

static void become_worker(struct peer *peer, int fd)
{
        char path[128];
        int log;

        path_of(peer, "log", path, sizeof(path));
        log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (log < 0 || dup2(log, 2) < 0 || dup2(fd, CHILD_CHANNEL_FD) < 0 || sys_close_from(4) < 0)
                _exit(120);
        setenv("KUBECONFIG", "/secret/kubeconfig", 1);
        setenv("NOTIFY_SOCKET", "/run/notify", 1);
        setenv("MY_TOKEN", "s3cret", 1);
        setenv("TZ", "UTC", 1);
        unsetenv("PATH");
        execl(peer_worker, peer_worker, "--log", "json", (char *)NULL);
        _exit(121);
}

static void write_script(struct peer *peer)
{
        char path[128];
        FILE *file;

        path_of(peer, "script", path, sizeof(path));
        file = fopen(path, "we");
        assert_non_null(file);
        fprintf(file, "folder=$1\n%s\n", peer->script);
        assert_int_equal(fclose(file), 0);
}

void peer_turn(struct peer *peer, uint64_t *deadline)
{
        if (*deadline == 0)
                *deadline = clock_boottime_usec() + DEADLINE_USEC;
        if (clock_boottime_usec() > *deadline) {
                _cleanup_free_ char *log = peer_file(peer, "log");

                fail_msg("nothing came; the worker's log: %s", log ? log : "");
        }
        assert_true(sd_event_run(peer->event, 100 * USEC_PER_MSEC) >= 0);
}

void peer_start(struct peer *peer)
{
        uint64_t deadline = 0;
        int pair[2];

        write_script(peer);
        assert_int_equal(sys_socketpair_seqpacket(pair), 0);
        peer->pid = fork();
        if (peer->pid == 0)
                become_worker(peer, pair[1]);
        close(pair[1]);
        assert_int_equal(channel_new(peer->event, pair[0], ROLE_SUPERVISOR, ROLE_WORKER, &callbacks, peer,
                                     &peer->channel),
                         0);
        while (!peer->ready && !peer->lost)
                peer_turn(peer, &deadline);
        assert_true(peer->ready);
        send_credential(peer);
}

void peer_put(struct peer *peer, const char *uid, const char *version, const char *json)
{
        struct store_object object = {
                .key = (char[]){"default/a"},
                .uid = strdup(uid),
                .resource_version = strdup(version),
                .json = strdup(json),
                .json_size = strlen(json),
        };

        assert_int_equal(fingerprint_object(peer->trigger, NULL, json, strlen(json), &object.fingerprint),
                         0);
        assert_int_equal(store_put(peer->store, &object), 0);
        assert_int_equal(store_commit(peer->store), 0);
        free(object.uid);
        free(object.resource_version);
        free(object.json);
}

void peer_send_run(struct peer *peer, enum run_action action, const char *uid)
{
        struct message_run run = {
                .sequence = peer->sequence,
                .watch = "widgets",
                .key = "default/a",
                .uid = uid,
                .action = action,
                .reason = RUN_CHANGED,
                .attempt = 3,
                .last_error = "it \"failed\"",
                .generation = store_generation(peer->store),
        };

        message_free(TAKE_PTR(peer->done));
        assert_int_equal(channel_send(peer->channel, MESSAGE_RUN, &run), 0);
}

const struct message_done *peer_wait_done(struct peer *peer)
{
        uint64_t deadline = 0;

        while (!peer->done && !peer->lost)
                peer_turn(peer, &deadline);
        if (!peer->done) {
                fail_msg("the worker is gone");
                return NULL; /* the analyzer does not know that fail_msg() ends the test */
        }
        assert_int_equal(peer->done->done.sequence, peer->sequence);
        assert_string_equal(peer->done->done.key, "default/a");
        return &peer->done->done;
}

const struct message_done *peer_run(struct peer *peer)
{
        peer_send_run(peer, ACTION_RECONCILE, "u1");
        return peer_wait_done(peer);
}

void peer_wait_log(struct peer *peer, const char *text)
{
        uint64_t deadline = 0;

        while (!peer_log_has(peer, text))
                peer_turn(peer, &deadline);
}

/* ---- setup */

int peer_setup(void **state)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct peer *peer = calloc(1, sizeof(*peer));
        char path[128];

        assert_non_null(peer);
        peer->script = "exit 0";
        peer->sequence = 42;
        peer->timeout_usec = 20 * USEC_PER_SEC;
        peer->grace_usec = 5 * USEC_PER_SEC;
        strncpy(peer->folder, "/tmp/reconciled-test-worker-XXXXXX", sizeof(peer->folder) - 1);
        assert_non_null(mkdtemp(peer->folder));
        assert_true(sd_event_new(&peer->event) >= 0);
        path_of(peer, "store", path, sizeof(path));
        assert_int_equal(store_writer_new(path, NULL, &peer->store, &error), 0);
        server_start(&peer->server, peer->event);
        peer->server.on_request = on_request;
        *state = peer;
        return 0;
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *place)
{
        (void)status;
        (void)type;
        (void)place;
        return remove(path);
}

/* Whatever the test was: the worker goes when we do, in order, and nothing of its handlers stays. */
int peer_teardown(void **state)
{
        struct peer *peer = *state;
        uint64_t deadline = clock_boottime_usec() + 10 * USEC_PER_SEC;
        int status = 0;
        pid_t pid = 0;

        channel_free(peer->channel);
        while (peer->pid > 0 && (pid = sys_reap(peer->pid, &status)) == 0 &&
               clock_boottime_usec() < deadline)
                sd_event_run(peer->event, 10 * USEC_PER_MSEC);
        assert_true(peer->pid == 0 || pid == peer->pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_false(descendants_reap());
        server_stop(&peer->server);
        store_free(peer->store);
        message_free(peer->done);
        message_free(peer->fatal);
        text_done(&peer->requests);
        sd_event_unref(peer->event);
        nftw(peer->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
        free(peer);
        return 0;
}
