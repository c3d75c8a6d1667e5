/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The peers that are connected to the control socket. Functions that answer return a negative errno if the
 * connection is to be closed. */
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/text.h"
#include "ipc/channel.h"

struct control_peer;
struct supervisor;

enum answer_try { TRY_AT_TURN_END, TRY_WHEN_IDLE, TRY_AT_DEADLINE };

/* An answer that cannot be given at once. A peer has one at most. */
struct pending_answer {
        int (*try)(struct control_peer *peer,
                   enum answer_try when); /* sends it, if it can; NULL: none is pending */
        sd_event_source *deadline;
        uint64_t serial;         /* of what the watchers were asked, or of the order in the leader record */
        size_t missing;          /* watchers that have not said yet what they were asked */
        char *order;             /* the answer to an order that is carried out */
        struct listing *listing; /* the answer is being made */
};

struct control_peer {
        struct control_peer *next;
        struct supervisor *supervisor;
        struct channel *channel;
        uid_t uid;
        bool is_ours; /* a process that descends from us, or may: it is refused */
        struct pending_answer pending;
};

/* Sends the answer: nothing is pending then. */
int peer_send(struct control_peer *peer, const struct text *document);
int peer_send_done(struct control_peer *peer); /* {} */
int peer_refuse(struct control_peer *peer, const char *error);
/* usec: until it must be answered, whatever is missing; 0 if there is no such time. */
int peer_await(struct control_peer *peer, int (*try)(struct control_peer *peer, enum answer_try when),
               uint64_t usec);
void peers_try(struct supervisor *supervisor, enum answer_try when);
/* Whether a peer waits until the leader record has its order. That takes some seconds at most. */
bool peers_await_record(const struct supervisor *supervisor);

/* The list of all is in the order in which they were last heard. */
void peer_put_first(struct control_peer *peer);
void peer_take_out(struct control_peer *peer);
void peer_free(struct control_peer *peer);
