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

void peer_free(struct control_peer *peer)
{
        peer_take_out(peer);
        peer->supervisor->control.count--;
        sd_event_source_disable_unref(peer->patient);
        peer_drop_order(peer);
        listing_free(peer->listing);
        channel_free(peer->channel);
        free(peer);
}

void peer_drop_order(struct control_peer *peer)
{
        peer->order.serial = 0;
        free(peer->order.answer);
        peer->order.answer = NULL;
        peer->order.patient = sd_event_source_disable_unref(peer->order.patient);
}

/* ---- answers */

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
        return r;
}

int peer_send_done(struct control_peer *peer)
{
        return peer_send(peer, &(struct text){.data = (char[]){"{}"}, .size = 2});
}

int peer_refuse(struct control_peer *peer, const char *error)
{
        struct message_reply reply = {.error = error, .body = "", .last = true};

        return channel_send(peer->channel, MESSAGE_REPLY, &reply);
}
