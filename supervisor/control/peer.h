/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Who is connected to the control socket. Functions that answer return a negative errno if the connection is to be closed. */
#include <stdbool.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "base/text.h"
#include "ipc/channel.h"

struct supervisor;

struct control_peer {
        struct control_peer *next;
        struct supervisor *supervisor;
        struct channel *channel;
        uid_t uid;
        bool is_ours;             /* a process that descends from us, or may: it is refused */
        uint64_t asked;           /* serial of what the watchers were asked for its sake */
        size_t missing;           /* watchers that have not answered that */
        sd_event_source *patient; /* till then it waits */
        struct listing *listing;  /* the answer that is being made for it */
        struct {                  /* an order that was carried out, and is not in the leader record yet */
                uint64_t serial;  /* 0: none */
                char *answer;
                sd_event_source *patient;
        } order;
};

int peer_send(struct control_peer *peer, const struct text *document);
int peer_send_done(struct control_peer *peer); /* {} */
int peer_refuse(struct control_peer *peer, const char *error);
void peer_drop_order(struct control_peer *peer); /* it was confirmed, or will not be */

/* The list of all is in the order in which they were last heard. */
void peer_put_first(struct control_peer *peer);
void peer_take_out(struct control_peer *peer);
void peer_free(struct control_peer *peer);
