/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The insides of the API client: one transfer, the client's copy of the credential. Private to kube/. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "base/throttle.h"
#include "kube/client.h"
#include "kube/libcurl.h"

/* Warnings of the API server (RFC 7234, 5.5), each once. Bounded: the oldest are forgotten. Private to
 * kube/. */
#define WARNINGS_MAX     64
#define WARNING_TEXT_MAX 512

struct warnings {
        uint64_t seen[WARNINGS_MAX];
        size_t count; /* warnings that were new when they came */
};

enum { COUNT_2XX, COUNT_3XX, COUNT_4XX, COUNT_5XX, COUNT_FAILED, COUNT_CLASSES };

/* `identity` is for people. */
#define CREDENTIAL_TEXTS(X)                                                                                 \
        X(server)                                                                                           \
        X(tls_server_name)                                                                                  \
        X(certificate_authority)                                                                            \
        X(client_certificate)                                                                               \
        X(client_key)                                                                                       \
        X(token)                                                                                            \
        X(username)                                                                                         \
        X(password)                                                                                         \
        X(proxy_url)                                                                                        \
        X(identity)
#define CREDENTIAL_MEMBER(name) char *name;

/* Owned copies; server NULL if there is none yet. */
struct kube_credential {
        uint64_t serial;
        bool insecure;
        CREDENTIAL_TEXTS(CREDENTIAL_MEMBER)
        struct curl_slist *header; /* headers of every request */
};

int credential_copy(const struct message_credential *message, struct kube_credential *ret);
void credential_wipe(struct kube_credential *credential);

struct kube_client {
        sd_event *event;
        CURLM *multi; /* NULL until something is asked for */
        sd_event_source *timer, *soon, *throttle_timer, *overdue_timer;
        struct throttles throttles;
        uint64_t wishes; /* answers with Retry-After */
        struct kube_credential credential;
        char *user_agent;
        struct kube_transfer *transfer; /* all of them */
        uint64_t count[COUNT_CLASSES];
        struct warnings warnings;
        void (*on_unusable)(const char *reason, void *userdata);
        void *on_unusable_userdata;
        void (*on_warning)(const char *text, const struct fiber *asker, void *userdata);
        void *on_warning_userdata;
        void (*on_exchange)(const struct kube_exchange *exchange, void *userdata);
        void *on_exchange_userdata;
        bool bounds_writes;    /* by: */
        uint64_t writes_until; /* CLOCK_BOOTTIME */
        uint64_t writes_over;  /* likewise: the server is asked to give up what it has not done by then */
        bool dry_run, settle_wanted; /* a turn is to come, though libcurl has no need of one */
        uint64_t patience_usec;      /* 0: without end */
        struct {
                unsigned max;   /* 0: as many as are asked for */
                unsigned first; /* enough for a server that is near */
                unsigned now;   /* as many as the server seems to bear */
                unsigned running;
                unsigned successes;     /* in a row, since it grew */
                bool others_wait;       /* for one of these to end */
                bool was_too_much;      /* once */
                uint64_t quickest_usec; /* of all answers; 0: there was none yet */
        } at_once;                      /* requests in flight */
        unsigned depth;                 /* depth of turns: above 0 the multi handle must not be touched */
        bool freed;
};

struct kube_transfer {
        struct kube_transfer *next, *previous;
        struct kube_client *client;
        CURL *easy;
        struct curl_slist *header, *connect_to;
        struct text body;
        char *method, *path; /* for on_exchange; NULL: nobody wants to know */
        char *url; /* of a write whose time is bounded: `timeout` is added as it leaves; else NULL */
        struct text sent;
        size_t body_max;
        uint64_t credential_serial;
        int (*on_data)(struct kube_transfer *transfer, const char *bytes, size_t size, void *userdata);
        void (*on_accepted)(struct kube_transfer *transfer, void *userdata);
        void (*on_done)(struct kube_transfer *transfer, const struct kube_response *response,
                        void *userdata);
        void *userdata;
        char resource[THROTTLE_RESOURCE_MAX];
        uint64_t patient_until; /* CLOCK_BOOTTIME; 0: waits as long as the server wants */
        uint64_t timeout_usec;  /* of the request; 0 if there is none */
        uint64_t overdue_at;    /* CLOCK_BOOTTIME; 0: it may take as long as it wants */
        char error_text[CURL_ERROR_SIZE];
        unsigned sent_count; /* how often it was sent */
        uint64_t server_seconds;
        bool reads;      /* a GET */
        bool overloaded; /* it ended with 429, or its connection was lost */
        const struct fiber *asker;
        bool confidential;
        bool running, cancelled, failed_to_start, is_overdue, stopped_by_owner, too_large, accepted;
        size_t head_size; /* bytes, with that of a 100 Continue, and with what comes after the body in pieces */
};

int transfer_new(struct kube_client *client, const struct kube_request *request, struct kube_transfer **ret);
int transfer_set_request(struct kube_transfer *transfer, const struct kube_request *request,
                         const struct kube_credential *credential);
/* Called as the transfer leaves: says for how long the server may try, if it is a write whose time is
 * bounded. -ENOMEM. */
int transfer_bound(struct kube_transfer *transfer, uint64_t now);
/* Calls on_done, unless it was cancelled. */
void transfer_finish(struct kube_transfer *transfer, CURLcode code);
/* The same for a transfer that was never sent: the server takes no request for its resource before
 * `until`. */
void transfer_finish_held(struct kube_transfer *transfer, uint64_t until);
void transfer_link(struct kube_transfer *transfer);
void transfer_unlink(struct kube_transfer *transfer);
void transfer_free(struct kube_transfer *transfer);
