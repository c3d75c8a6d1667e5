/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API client: see client.h. libcurl forbids calls into its multi handle from its own callbacks, and our
 * callbacks run inside them; so everything that touches the handle goes through client_turn_begin()/client_turn_end(), and
 * what callbacks ask for meanwhile (starting, cancelling, freeing) is done at the end of the outermost turn.
 */
#include "kube/client.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/duration.h"
#include "kube/kube-credential.h"
#include "kube/libcurl.h"
#include "kube/path.h"
#include "kube/transfer.h"

/* Not near the usual timeout of a request, 30 s: libcurl (7.88) forgets one of two timeouts that end within a
 * millisecond. */
#define CONNECT_TIMEOUT_MS 20000L
#define OVERDUE_USEC       (2 * USEC_PER_SEC) /* after its timeout a request is ended by us */
#define KEEPALIVE_SEC      30L
#define USER_TIMEOUT_MS    30000
#define BUFFER_SIZE        (512L * 1024)
#define WATCH_BUFFER_SIZE  (32L * 1024) /* held for hours, mostly with nothing in it */

/* After all other sources: a server that sends faster than we read leaves no room for messages and
 * heartbeats otherwise. libcurl takes a hundred buffers in a turn, and then asks for another one (`soon`).
 * Among equals sd-event gives turns by how long a source has been pending, and one that is deferred counts
 * as pending since its first time: it would be the only one to have any. */
#define SOCKET_PRIORITY 1
#define SOON_PRIORITY   2

static int on_timer_wanted(CURLM *multi, long timeout_ms, void *userdata);

/* ---- turns */

static void transfer_destroy(struct kube_transfer *transfer)
{
        struct kube_client *client = transfer->client;

        if (transfer->running) {
                curl_multi_remove_handle(client->multi, transfer->easy);
                client->at_once.running--;
        }
        transfer_unlink(transfer);
        transfer_free(transfer);
}

static void client_destroy(struct kube_client *client)
{
        while (client->transfer)
                transfer_destroy(client->transfer);
        if (client->multi)
                curl_multi_cleanup(client->multi);
        sd_event_source_disable_unref(client->timer);
        sd_event_source_disable_unref(client->soon);
        sd_event_source_disable_unref(client->throttle_timer);
        sd_event_source_disable_unref(client->overdue_timer);
        credential_wipe(&client->credential);
        free(client->user_agent);
        sd_event_unref(client->event);
        free(client);
}

/* 0: it may leave now. */
static uint64_t throttled_until(const struct kube_transfer *transfer)
{
        uint64_t until = throttle_until(&transfer->client->throttles, transfer->resource);

        return until > clock_boottime_usec() ? until : 0;
}

/* So that what waits is looked at, though nothing comes from libcurl. */
static void want_turn(struct kube_client *client)
{
        client->settle_wanted = true;
        (void)on_timer_wanted(client->multi, 0, client);
}

static bool client_has_room(const struct kube_client *client)
{
        return client->at_once.max == 0 || client->at_once.running < client->at_once.now;
}

/* The quickest answer so far tells how far away the server is. */
static void note_distance(struct kube_client *client, const struct kube_transfer *transfer)
{
        curl_off_t sent = 0, answered = 0;

        (void)curl_easy_getinfo(transfer->easy, CURLINFO_PRETRANSFER_TIME_T, &sent);
        (void)curl_easy_getinfo(transfer->easy, CURLINFO_STARTTRANSFER_TIME_T, &answered);
        if (answered > sent && (client->at_once.quickest_usec == 0 ||
                                (uint64_t)(answered - sent) < client->at_once.quickest_usec))
                client->at_once.quickest_usec = (uint64_t)(answered - sent);
}

/* More requests in flight make up for distance: one for each millisecond. They make a slow server no faster, and each takes a
 * connection. */
static unsigned most_at_once(const struct kube_client *client)
{
        uint64_t most = client->at_once.first + client->at_once.quickest_usec / USEC_PER_MSEC;

        return most < client->at_once.max ? (unsigned)most : client->at_once.max;
}

/* Adapts the number of requests in flight as TCP does, since many workers ask the same server: quickly more
 * until it is too much, then half, and more step by step. */
static void note_how_it_went(struct kube_client *client, const struct kube_transfer *transfer)
{
        if (transfer->overloaded) {
                client->at_once.now = client->at_once.now > 1 ? client->at_once.now / 2 : 1;
                client->at_once.successes = 0;
                client->at_once.was_too_much = true;
                return;
        }
        note_distance(client, transfer);
        if (client->at_once.others_wait && client->at_once.now < most_at_once(client) &&
            ++client->at_once.successes >= (client->at_once.was_too_much ? client->at_once.now : 1)) {
                client->at_once.now++;
                client->at_once.successes = 0;
        }
}

static int on_overdue(sd_event_source *source, uint64_t usec, void *userdata);

/* The timer runs on beside many short requests, and looks at what there is when it goes off. */
static void arm_overdue(struct kube_client *client, uint64_t at)
{
        int enabled = SD_EVENT_OFF, r;

        if (client->overdue_timer)
                (void)sd_event_source_get_enabled(client->overdue_timer, &enabled);
        if (enabled != SD_EVENT_OFF)
                return;
        client->overdue_timer = sd_event_source_disable_unref(client->overdue_timer);
        r = sd_event_add_time(client->event, &client->overdue_timer, CLOCK_BOOTTIME, at, 0, on_overdue,
                              client);
        if (r < 0) /* the next request tries again; libcurl's own timeout nearly always holds */
                client->overdue_timer = NULL;
}

static bool is_past_bound(const struct kube_transfer *transfer, uint64_t now)
{
        return transfer->client->bounds_writes && !transfer->reads && now >= transfer->client->writes_until;
}

static void transfer_launch(struct kube_transfer *transfer)
{
        struct kube_client *client = transfer->client;

        uint64_t now = clock_boottime_usec();

        if (is_past_bound(transfer, now)) {
                transfer->is_overdue = true;
                want_turn(client);
                return;
        }
        if (transfer_bound(transfer, now) < 0) {
                transfer->failed_to_start = true;
                want_turn(client);
                return;
        }
        if (transfer->timeout_usec > 0) {
                transfer->overdue_at = now + transfer->timeout_usec + OVERDUE_USEC;
                arm_overdue(client, transfer->overdue_at);
        }
        transfer->running = true;
        client->at_once.running++;
        if (curl_multi_add_handle(client->multi, transfer->easy) == CURLM_OK)
                return;
        transfer->running = false;
        client->at_once.running--;
        transfer->failed_to_start = true;
        want_turn(client); /* nobody else would come by to tell its owner */
}

/* Finished transfers, one by one: on_done may do anything, so the list is asked again each time. */
static bool finish_one(struct kube_client *client)
{
        CURLMsg *message;
        int left;

        while (client->multi && (message = curl_multi_info_read(client->multi, &left))) {
                struct kube_transfer *transfer = NULL;

                if (message->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&transfer);
                transfer_finish(transfer, message->data.result);
                note_how_it_went(client, transfer);
                transfer_destroy(transfer);
                return true;
        }
        return false;
}

/* Does one thing that callbacks asked for during the turn. Returns whether there may be more. */
static bool settle_one(struct kube_client *client)
{
        struct kube_transfer *oldest = NULL; /* that may leave now */
        uint64_t until;

        for (struct kube_transfer *transfer = client->transfer; transfer; transfer = transfer->next) {
                if (transfer->cancelled) {
                        transfer_destroy(transfer);
                        return true;
                }
                if (transfer->failed_to_start || transfer->is_overdue) {
                        transfer_finish(transfer,
                                        transfer->is_overdue ? CURLE_OPERATION_TIMEDOUT : CURLE_FAILED_INIT);
                        note_how_it_went(client, transfer);
                        transfer_destroy(transfer);
                        return true;
                }
                until = transfer->running ? 0 : throttled_until(transfer);
                if (!transfer->running && until == 0)
                        oldest = transfer;
                if (transfer->patient_until > 0 && until > transfer->patient_until) {
                        transfer_finish_held(transfer, until);
                        transfer_destroy(transfer);
                        return true;
                }
        }
        client->at_once.others_wait = oldest && !client_has_room(client);
        if (!oldest || !client_has_room(client))
                return false;
        transfer_launch(oldest);
        return true;
}

static void client_turn_begin(struct kube_client *client)
{
        client->depth++;
}

static void client_turn_end(struct kube_client *client)
{
        assert(client->depth > 0);
        if (client->depth > 1) {
                client->depth--;
                return;
        }
        while (!client->freed && (finish_one(client) || settle_one(client)))
                ;
        client->depth--;
        if (client->freed)
                client_destroy(client);
}

static int on_overdue(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct kube_client *client = userdata;
        uint64_t now = clock_boottime_usec(), next = 0;

        client_turn_begin(client);
        for (struct kube_transfer *transfer = client->transfer; transfer; transfer = transfer->next) {
                if (!transfer->running || transfer->overdue_at == 0)
                        continue;
                transfer->is_overdue = transfer->overdue_at <= now;
                if (!transfer->is_overdue && (next == 0 || transfer->overdue_at < next))
                        next = transfer->overdue_at;
        }
        if (next > 0)
                arm_overdue(client, next);
        client_turn_end(client);
        return 0;
}

/* ---- libcurl and the loop */

/* Without events no transfer would ever end: all that are in flight have failed, at the end of this turn.
 * libcurl is not told: its handle would be useless afterwards. */
static int cannot_listen(struct kube_client *client)
{
        for (struct kube_transfer *transfer = client->transfer; transfer; transfer = transfer->next)
                transfer->failed_to_start = true;
        return 0;
}

static int on_socket_event(sd_event_source *source _unused_, int fd, uint32_t revents, void *userdata)
{
        struct kube_client *client = userdata;
        int action = 0, running;

        if (revents & (EPOLLIN | EPOLLHUP))
                action |= CURL_CSELECT_IN;
        if (revents & EPOLLOUT)
                action |= CURL_CSELECT_OUT;
        if (revents & EPOLLERR)
                action |= CURL_CSELECT_ERR;
        client_turn_begin(client);
        if (curl_multi_socket_action(client->multi, fd, action, &running) != CURLM_OK)
                cannot_listen(client);
        client_turn_end(client);
        return 0;
}

static int on_socket_wanted(CURL *easy _unused_, curl_socket_t fd, int what, void *userdata,
                            void *socket_data)
{
        struct kube_client *client = userdata;
        sd_event_source *source = socket_data;
        uint32_t events = 0;

        if (what == CURL_POLL_REMOVE) {
                sd_event_source_disable_unref(source);
                return 0;
        }
        if (what & CURL_POLL_IN)
                events |= EPOLLIN;
        if (what & CURL_POLL_OUT)
                events |= EPOLLOUT;
        if (source)
                return sd_event_source_set_io_events(source, events) < 0 ? cannot_listen(client) : 0;
        if (sd_event_add_io(client->event, &source, fd, events, on_socket_event, client) < 0)
                return cannot_listen(client);
        if (sd_event_source_set_priority(source, SOCKET_PRIORITY) < 0) {
                sd_event_source_disable_unref(source);
                return cannot_listen(client);
        }
        curl_multi_assign(client->multi, fd, source);
        return 0;
}

static int on_client_soon(sd_event_source *source _unused_, void *userdata)
{
        struct kube_client *client = userdata;
        int running;

        client_turn_begin(client);
        client->settle_wanted = false;
        if (client->multi &&
            curl_multi_socket_action(client->multi, CURL_SOCKET_TIMEOUT, 0, &running) != CURLM_OK)
                cannot_listen(client);
        client_turn_end(client);
        return 0;
}

static int on_curl_timer(sd_event_source *source, uint64_t usec _unused_, void *userdata)
{
        return on_client_soon(source, userdata);
}

/* Each request begins with a time of 0, which needs no timer of the kernel's. There is one time only: a new
 * one takes the place of the last one. */
static int on_timer_wanted(CURLM *multi _unused_, long timeout_ms, void *userdata)
{
        struct kube_client *client = userdata;
        bool is_soon = timeout_ms == 0 || client->settle_wanted;

        if (sd_event_source_set_enabled(client->soon, is_soon ? SD_EVENT_ONESHOT : SD_EVENT_OFF) < 0)
                return -1;
        if (timeout_ms <= 0)
                return sd_event_source_set_enabled(client->timer, SD_EVENT_OFF) < 0 ? -1 : 0;
        if (sd_event_source_set_time_relative(client->timer, (uint64_t)timeout_ms * USEC_PER_MSEC) < 0)
                return -1;
        return sd_event_source_set_enabled(client->timer, SD_EVENT_ONESHOT) < 0 ? -1 : 0;
}

static int on_socket_open(void *userdata _unused_, curl_socket_t fd, curlsocktype purpose _unused_)
{
        int timeout = USER_TIMEOUT_MS;

        /* Without it a peer that vanished while bytes are on their way is noticed after a quarter of an
         * hour. A socket that is no TCP socket does not know the option, and needs it not. */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof(timeout));
        return CURL_SOCKOPT_OK;
}

/* ---- the client */

int kube_client_new(sd_event *event, const char *user_agent, struct kube_client **ret)
{
        struct kube_client *client = calloc(1, sizeof(*client));
        int r = -ENOMEM;

        if (!client)
                return -ENOMEM;
        client->event = sd_event_ref(event);
        client->user_agent = strdup(user_agent);
        if (client->user_agent)
                r = sd_event_add_time_relative(event, &client->timer, CLOCK_MONOTONIC, 0, 1, on_curl_timer,
                                               client);
        if (r >= 0)
                r = sd_event_source_set_enabled(client->timer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_defer(event, &client->soon, on_client_soon, client);
        if (r >= 0)
                r = sd_event_source_set_priority(client->soon, SOON_PRIORITY);
        if (r >= 0)
                r = sd_event_source_set_enabled(client->soon, SD_EVENT_OFF);
        if (r < 0) {
                client_destroy(client);
                return r;
        }
        *ret = client;
        return 0;
}

/* libcurl keeps four connections for each request that is in flight, which are few after a pause: the next requests would have to
 * connect again. */
static void keep_connections(struct kube_client *client)
{
        if (client->multi && client->at_once.max > 0)
                curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)client->at_once.max);
}

int kube_client_load(struct kube_client *client)
{
        const char *reason;
        int r = libcurl_load(&reason);

        if (r == -ELIBACC && client->on_unusable)
                client->on_unusable(reason, client->on_unusable_userdata);
        if (r < 0 || client->multi)
                return r;
        client->multi = curl_multi_init();
        if (!client->multi)
                return -ENOMEM;
        curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_socket_wanted);
        curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
        curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_timer_wanted);
        curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
        keep_connections(client);
        return 0;
}

void kube_client_free(struct kube_client *client)
{
        if (!client)
                return;
        client->freed = true;
        /* libcurl may have more bytes in its hands: their owner is gone by then. */
        for (struct kube_transfer *transfer = client->transfer; transfer; transfer = transfer->next)
                transfer->cancelled = true;
        client_turn_begin(client);
        client_turn_end(client);
}

int kube_client_set_credential(struct kube_client *client, const struct message_credential *credential)
{
        struct kube_credential copy;
        int r = credential->header_count > 0 ? kube_client_load(client)
                                             : 0; /* they are kept in a list of its own */

        if (r >= 0)
                r = credential_copy(credential, &copy);
        if (r < 0)
                return r;
        credential_wipe(&client->credential);
        client->credential = copy;
        client_turn_begin(client);
        client_turn_end(client);
        return 0;
}

bool kube_client_has_credential(const struct kube_client *client)
{
        return client->credential.server != NULL;
}

uint64_t kube_client_credential_serial(const struct kube_client *client)
{
        return client->credential.serial;
}

const char *kube_client_server(const struct kube_client *client)
{
        return client->credential.server ? client->credential.server : "";
}

static int on_throttle_over(sd_event_source *source, uint64_t usec, void *userdata);

static void arm_throttle(struct kube_client *client)
{
        uint64_t next = throttle_next_end(&client->throttles, clock_boottime_usec());

        client->throttle_timer = sd_event_source_disable_unref(client->throttle_timer);
        if (next > 0 && sd_event_add_time(client->event, &client->throttle_timer, CLOCK_BOOTTIME, next, 1,
                                          on_throttle_over, client) < 0)
                client->throttles = (struct throttles){0}; /* rather too early than never */
}

static int on_throttle_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct kube_client *client = userdata;

        arm_throttle(client);
        client_turn_begin(client);
        client_turn_end(client);
        return 0;
}

void kube_client_throttle(struct kube_client *client, const char *resource, uint64_t until_boottime)
{
        if (!throttle_note(&client->throttles, resource, until_boottime))
                return;
        arm_throttle(client);
        if (client->transfer)
                want_turn(client);
}

void kube_client_set_patience(struct kube_client *client, uint64_t patience_usec)
{
        client->patience_usec = patience_usec;
}

void kube_client_set_at_once(struct kube_client *client, unsigned first, unsigned max)
{
        assert(first > 0 && first <= max);
        client->at_once.first = client->at_once.now = first;
        client->at_once.max = max;
        keep_connections(client);
}

uint64_t kube_client_throttled_until(const struct kube_client *client, const char *path)
{
        char resource[THROTTLE_RESOURCE_MAX];

        kube_path_resource(path, resource, sizeof(resource));
        return throttle_until(&client->throttles, resource);
}

void kube_client_on_unusable(struct kube_client *client,
                             void (*on_unusable)(const char *reason, void *userdata), void *userdata)
{
        client->on_unusable = on_unusable;
        client->on_unusable_userdata = userdata;
}

void kube_client_on_warning(struct kube_client *client,
                            void (*on_warning)(const char *text, const struct fiber *asker, void *userdata),
                            void *userdata)
{
        client->on_warning = on_warning;
        client->on_warning_userdata = userdata;
}

size_t kube_client_count(const struct kube_client *client, struct record_counter *counter, size_t max)
{
        static const char *const name[COUNT_CLASSES] = {
                "api_requests_2xx", "api_requests_3xx",    "api_requests_4xx",
                "api_requests_5xx", "api_requests_failed",
        };
        size_t count = max < COUNT_CLASSES ? max : COUNT_CLASSES;

        for (size_t i = 0; i < count; i++)
                counter[i] = (struct record_counter){name[i], client->count[i]};
        if (count < max)
                counter[count++] = (struct record_counter){"api_wishes", client->wishes};
        return count;
}

void kube_client_write_until(struct kube_client *client, uint64_t until_boottime, uint64_t over_boottime)
{
        client->bounds_writes = true;
        client->writes_until = until_boottime;
        client->writes_over = over_boottime;
}

void kube_client_set_dry_run(struct kube_client *client)
{
        client->dry_run = true;
}

void kube_client_on_exchange(struct kube_client *client,
                             void (*on_exchange)(const struct kube_exchange *exchange, void *userdata),
                             void *userdata)
{
        client->on_exchange = on_exchange;
        client->on_exchange_userdata = userdata;
}

/* ---- starting */

/* libcurl sends a request again, whatever its method, if a connection that it has kept breaks before an answer comes. */
static int on_sending(void *userdata, char *remote _unused_, char *local _unused_, int remote_port _unused_,
                      int local_port _unused_)
{
        struct kube_transfer *transfer = userdata;

        if (is_past_bound(transfer, clock_boottime_usec()))
                return CURL_PREREQFUNC_ABORT;
        transfer->sent_count++;
        return CURL_PREREQFUNC_OK;
}

static void set_connection(CURL *easy)
{
        curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
        curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
        curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_SEC);
        curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_SEC);
        curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, on_socket_open);
        curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
}

static int transfer_prepare(struct kube_transfer *transfer, const struct kube_request *request)
{
        struct kube_client *client = transfer->client;
        CURL *easy = transfer->easy;
        int r;

        set_connection(easy);
        curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_sending);
        curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
        curl_easy_setopt(easy, CURLOPT_BUFFERSIZE,
                         request->timeout_usec > 0 ? BUFFER_SIZE : WATCH_BUFFER_SIZE);
        r = transfer_set_request(transfer, request, &client->credential);
        if (r >= 0)
                r = kube_credential_use(easy, &client->credential);
        if (r < 0)
                return r;
        curl_easy_setopt(easy, CURLOPT_USERAGENT, client->user_agent);
        transfer->credential_serial = client->credential.serial;
        return 0;
}

int kube_client_start(struct kube_client *client, const struct kube_request *request,
                      struct kube_transfer **ret_transfer)
{
        struct kube_transfer *transfer;
        int r;

        if (!kube_client_has_credential(client))
                return -ENOKEY;
        r = kube_client_load(client);
        if (r >= 0)
                r = transfer_new(client, request, &transfer);
        if (r < 0)
                return r;
        r = transfer_prepare(transfer, request);
        if (r < 0) {
                transfer_free(transfer);
                return r;
        }
        if (client->patience_usec > 0 && !request->patient)
                transfer->patient_until = clock_boottime_usec() + client->patience_usec;
        transfer_link(transfer);
        if (ret_transfer)
                *ret_transfer = transfer;
        /* The transfer must not end inside this call: the caller does not know it yet. */
        if (client->depth > 0)
                return 0;
        if (throttled_until(transfer) > 0) {
                if (transfer->patient_until > 0)
                        want_turn(client);
        } else if (client_has_room(client)) {
                transfer_launch(transfer);
        } else {
                client->at_once.others_wait = true;
        }
        return 0;
}

void kube_transfer_cancel(struct kube_transfer *transfer)
{
        struct kube_client *client;

        if (!transfer)
                return;
        client = transfer->client;
        transfer->cancelled = true;
        if (client->depth > 0)
                return;
        transfer_destroy(transfer);
        if (client->transfer)
                want_turn(client); /* it may have made room */
}
