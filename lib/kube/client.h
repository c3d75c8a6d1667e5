/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * HTTP to one API server: libcurl's multi interface inside an sd-event loop. TLS is verified unless the
 * kubeconfig says insecure-skip-tls-verify. Credentials come as messages and live only in memory
 * (CURLOPT_*_BLOB); they are wiped when replaced.
 *
 * HTTP/1.1, one connection a watch and for each request in flight, TCP keepalive and TCP_USER_TIMEOUT, so that a dead peer is noticed;
 * connect timeout 20 s. A request with a timeout ends by it, whatever libcurl does. Accept-Encoding: identity. Its buffer has 512 KB.
 *
 * A transfer ends with exactly one on_done, unless it is cancelled by its owner (then with none). Callbacks
 * may start and cancel transfers, the running one included, and free the client.
 */
#include <systemd/sd-event.h>

#include "ipc/message.h"
#include "kube/kube-error.h"

struct fiber;
struct kube_client;
struct kube_transfer;

struct kube_response {
        int http_status;         /* 200 ...; 0 when no answer came */
        struct kube_error error; /* failure NONE for 2xx */
        const char *body;        /* complete body, NUL-terminated ("" when it was streamed); not owned */
        size_t body_size;
        uint64_t server_seconds;    /* its Date: since 1970; 0: it has none */
        uint64_t credential_serial; /* with which the request was made: for REFRESH after a 401 */
        /* The request was sent twice, because a reused connection broke before an answer came. The
         * server may have carried it out twice, and the second time may have been refused because of the first. */
        bool repeated;
};

struct kube_request {
        const char *method;       /* "GET", "PATCH" ... */
        const char *path;         /* "/api/v1/...?limit=500", starting with '/'; already escaped */
        const char *content_type; /* for a body; NULL: application/json */
        const char *accept;       /* NULL: application/json */
        const void *body;         /* copied */
        size_t body_size;
        uint64_t timeout_usec; /* limit of the whole transfer; 0 = none (watches) */
        /* NULL: the body is collected (at most body_max bytes, default 16 MiB) for on_done. Otherwise each
         * piece of a 2xx body as it comes; negative return ends the transfer (on_done with CANCELLED).
         * Bodies of other answers are always collected (1 MiB). */
        int (*on_data)(struct kube_transfer *transfer, const char *bytes, size_t size, void *userdata);
        /* May be NULL. Called once, when the head of a 2xx answer is complete: the watch is established. */
        void (*on_accepted)(struct kube_transfer *transfer, void *userdata);
        void (*on_done)(struct kube_transfer *transfer, const struct kube_response *response,
                        void *userdata);
        size_t body_max;
        bool patient;      /* waits as long as the server asks, whatever the client's patience: nobody
                                    * waits for this request */
        bool confidential; /* what it writes or reads is: warnings are not quoted, and kube_exchange says so */
        const struct fiber *asker; /* who waits for it; NULL: no fiber */
        void *userdata;
};

int kube_client_new(sd_event *event, const char *user_agent, struct kube_client **ret);
void kube_client_free(struct kube_client *client); /* transfers end without on_done */
/* Replaces server and credential; running transfers go on with the old one. */
int kube_client_set_credential(struct kube_client *client, const struct message_credential *credential);
bool kube_client_has_credential(const struct kube_client *client);
uint64_t kube_client_credential_serial(const struct kube_client *client);
const char *kube_client_server(const struct kube_client *client); /* "" before the first credential */
/* From now on writes are dry runs (dryRun=All): the server answers with the result, and stores nothing. */
void kube_client_set_dry_run(struct kube_client *client);
/* Called with each request and its answer when the transfer has ended, before on_done. The callback
 * must not touch the client. */
struct kube_exchange {
        const char *method, *path;
        const void *body;
        size_t body_size;
        bool confidential;
        const struct kube_response *response;
};
void kube_client_on_exchange(struct kube_client *client,
                             void (*on_exchange)(const struct kube_exchange *exchange, void *userdata),
                             void *userdata);
/* No request to this resource (kube_path_resource(); "": none at all) leaves before this time
 * (CLOCK_BOOTTIME); requests started meanwhile wait, as long as they are patient. */
void kube_client_throttle(struct kube_client *client, const char *resource, uint64_t until_boottime);
/* A request that would be held back for longer ends at once, unsent, as KUBE_FAILURE_HELD with
 * retry_after_sec. 0, the default: they all wait. */
void kube_client_set_patience(struct kube_client *client, uint64_t patience_usec);
/* At most `first` requests are in flight, each with a connection of its own; the others wait, the oldest goes first. Half as many
 * after a 429 or a lost connection, and one more after as many successes while others wait (after each success before the first
 * such loss): up to `first`, and one for each millisecond that the server is away, and `max` at most. As many connections are kept
 * for later requests. Without this call: all. */
void kube_client_set_at_once(struct kube_client *client, unsigned first, unsigned max);
/* From now on, nothing but a GET leaves after this time (CLOCK_BOOTTIME): it fails unsent. A write that is
 * in flight then cannot be called back, but asks the server (`timeout`) to give it up unless it is done by
 * over_boottime. until 0: no write leaves at all. */
void kube_client_write_until(struct kube_client *client, uint64_t until_boottime, uint64_t over_boottime);
uint64_t kube_client_throttled_until(const struct kube_client *client, const char *path); /* 0 */
/* Called when libcurl is not available: nothing will be answered, and each request fails with -ELIBACC. The
 * callback must not touch the client. */
void kube_client_on_unusable(struct kube_client *client,
                             void (*on_unusable)(const char *reason, void *userdata), void *userdata);
/* Each text of the server's `Warning` headers once, among the last 64; on one line. For a confidential request it is
 * KUBE_WARNING_HIDDEN: a policy that only warns quotes what it finds weak. The callback must not touch the client. */
#define KUBE_WARNING_HIDDEN "(the server's words are not shown: they may quote what is confidential)"
void kube_client_on_warning(struct kube_client *client,
                            void (*on_warning)(const char *text, const struct fiber *asker, void *userdata),
                            void *userdata);
/* 2xx, 4xx, 5xx and failures counted, by class, for heartbeats. */
size_t kube_client_count(const struct kube_client *client, struct record_counter *counter, size_t max);

/* Loads libcurl (libcurl.h), as the first request does otherwise. The loop should do that, not a fiber: the code of thirty
 * libraries begins, and would touch much of a stack that is kept. -ELIBACC; another error may pass. */
int kube_client_load(struct kube_client *client);
/* *ret_transfer may be NULL when the caller never cancels. */
int kube_client_start(struct kube_client *client, const struct kube_request *request,
                      struct kube_transfer **ret_transfer);
void kube_transfer_cancel(struct kube_transfer *transfer);

DEFINE_CLEANUP(struct kube_client *, kube_client_free);
