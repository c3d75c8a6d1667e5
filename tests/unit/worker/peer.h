/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The supervisor's place, for a real reconciled-worker: its channel, a store, an API server, its log. */
#include "ipc/channel.h"
#include "kube/client.h"
#include "object/fingerprint.h"
#include "object/keyed-hash.h"
#include "store/store.h"
#include "tests/unit/kube/server.h"

#define PEER_HASH_KEY "0123456789abcdef" /* the worker's, and of the test program */

struct peer {
        sd_event *event;
        char folder[64];
        pid_t pid;
        struct channel *channel;
        struct store *store;
        struct server server;
        const char *script; /* what the handler does */
        enum trigger trigger;
        uint64_t timeout_usec, grace_usec;
        bool ready, lost;
        unsigned heartbeats, refreshes, throttles;
        struct message *done; /* the last DONE */
        struct ending {
                uint64_t sequence;
                enum run_result result;
        } ended[8]; /* all of them */
        unsigned ended_count;
        uint64_t sequence;     /* of the RUNs that are sent */
        struct message *fatal; /* FATAL */
        /* How the API server answers. */
        const char *patch_status[4]; /* of the PATCH requests in turn; NULL: 200 OK */
        const char *patch_body[4];
        bool holds; /* the next PATCH gets no answer for now, and is then: */
        struct server_connection *held;
        const char *headers;
        const char *discovery; /* NULL: widgets with a status subresource */
        unsigned patches, discoveries;
        struct text requests; /* "METHOD PATH BODY\n" */
};

/* For main(): the program is the only argument. false: the tests cannot run. */
bool peer_prepare(int argc, char *argv[]);

int peer_setup(void **state);
int peer_teardown(void **state);
/* Starts the worker with the peer's script, and waits until it is ready. */
void peer_start(struct peer *peer);
void peer_put(struct peer *peer, const char *uid, const char *version, const char *json);
void peer_send_run(struct peer *peer, enum run_action action, const char *uid);
/* RUN, and waits for DONE. */
const struct message_done *peer_run(struct peer *peer);
const struct message_done *peer_wait_done(struct peer *peer);
void peer_turn(struct peer *peer, uint64_t *deadline);
/* Waits until the worker's log holds this text. */
void peer_wait_log(struct peer *peer, const char *text);
bool peer_log_has(struct peer *peer, const char *text);
char *peer_file(struct peer *peer, const char *name); /* content; NULL when there is none */
