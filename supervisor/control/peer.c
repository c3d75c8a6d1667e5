/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/peer.h"

#include <errno.h>
#include <stdlib.h>

#include "supervisor/control/list-objects.h"
#include "supervisor/supervisor.h"

#define PAGE_SIZE_MAX ((size_t)128 * 1024)

void peer_put_first(struct control_peer *peer)
{
        peer->next = peer->supervisor->control.peer;
        peer->supervisor->control.peer = peer;
}

void peer_take_out(struct control_peer *peer)
{
        struct control_peer **place = &peer->supervisor->control.peer;

        while (*place && *place != peer)
                place = &(*place)->next;
        if (*place)
                *place = peer->next;
}

static void drop_pending(struct control_peer *peer)
{
        sd_event_source_disable_unref(peer->pending.deadline);
        free(peer->pending.order);
        listing_free(peer->pending.listing);
        peer->pending = (struct pending_answer){.try = NULL};
}

void peer_free(struct control_peer *peer)
{
        peer_take_out(peer);
        peer->supervisor->control.count--;
        drop_pending(peer);
        channel_free(peer->channel);
        free(peer);
}

bool peers_await_record(const struct supervisor *supervisor)
{
        const struct control_peer *peer = supervisor->control.peer;

        while (peer && !peer->pending.order)
                peer = peer->next;
        return peer;
}

/* ---- answers */

static int on_answer_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct control_peer *peer = userdata;

        turn_settle_soon(peer->supervisor);
        if (peer->pending.try(peer, TRY_AT_DEADLINE) < 0)
                peer_free(peer);
        return 0;
}

int peer_await(struct control_peer *peer, int (*try)(struct control_peer *peer, enum answer_try when),
               uint64_t usec)
{
        peer->pending.try = try;
        return usec == 0 ? 0
                         : sd_event_add_time_relative(peer->supervisor->event, &peer->pending.deadline,
                                                      CLOCK_MONOTONIC, usec, 1, on_answer_deadline, peer);
}

void peers_try(struct supervisor *supervisor, enum answer_try when)
{
        struct control_peer *next;

        for (struct control_peer *peer = supervisor->control.peer; peer; peer = next) {
                next = peer->next;
                if (peer->pending.try && peer->pending.try(peer, when) < 0)
                        peer_free(peer);
        }
}

int peer_send(struct control_peer *peer, const struct text *document)
{
        size_t offset = 0;
        int r = document->failed ? -ENOMEM : 0;

        if (r < 0)
                return r;
        do {
                size_t left = document->size - offset;
                struct message_reply reply = {
                        .body = document->data + offset,
                        .body_size = left < PAGE_SIZE_MAX ? left : PAGE_SIZE_MAX,
                        .last = left <= PAGE_SIZE_MAX,
                };

                r = channel_send(peer->channel, MESSAGE_REPLY, &reply);
                offset += reply.body_size;
        } while (r >= 0 && offset < document->size);
        drop_pending(peer);
        return r;
}

int peer_send_done(struct control_peer *peer)
{
        return peer_send(peer, &(struct text){.data = (char[]){"{}"}, .size = 2});
}

int peer_refuse(struct control_peer *peer, const char *error)
{
        struct message_reply reply = {.error = error, .body = "", .last = true};

        drop_pending(peer);
        return channel_send(peer->channel, MESSAGE_REPLY, &reply);
}
