/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One end of a SOCK_SEQPACKET connection inside an sd-event loop: packets in, decoded and checked for
 * permission; packets out, queued in user space when the kernel's buffer is full (a default socketpair takes
 * some 93 packets of 1 KB), with a bound. A packet is a message, or some of them, one after the other.
 *
 * The owner of the channel owns the policy: errors are reported once through `on_error`, after which the channel
 * is closed and silent; it never exits, never logs. Callbacks may free the channel.
 */
#include <systemd/sd-event.h>

#include "ipc/message.h"

struct channel;

struct channel_callbacks {
        /* A permitted, decoded message; the channel frees it afterwards (set *message to NULL by TAKE_PTR to
         * keep it). A negative return is a protocol violation and leads to on_error(-EPROTO, ...). */
        int (*on_message)(struct channel *channel, struct message **message, void *userdata);
        /* status: -ECONNRESET the peer is gone (EOF); -EPROTO a violation, with `reason` naming the message;
         * -ENOBUFS the peer does not read and the bound is reached; other negative errno from the kernel. */
        void (*on_error)(struct channel *channel, int status, const char *reason, void *userdata);
        /* Optional: the queue in user space became empty after it had been in use. */
        void (*on_drained)(struct channel *channel, void *userdata);
};

/* `fd` is taken over (closed by channel_free, also when this fails). local and remote name the roles of the
 * two ends. The state against which permission is checked starts as CHILD_STARTING. */
int channel_new(sd_event *event, int fd, enum role local, enum role remote,
                const struct channel_callbacks *callbacks, void *userdata, struct channel **ret);
void channel_free(struct channel *channel);

void channel_set_state(struct channel *channel, enum child_state state);

/* Sends or queues. Returns 0, -EPERM when the table does not allow it in this state (a bug of ours),
 * -EMSGSIZE, -ENOMEM, -ENOBUFS (bound reached), -ENOTCONN (closed). */
int channel_send(struct channel *channel, enum message_type type, const void *fields);
/* Sends an encoded packet as it is (forwarding); same returns. */
int channel_forward(struct channel *channel, enum message_type type, const void *packet, size_t size);
/* Messages that are sent between cork and uncork leave as one packet at the end (as several if they are large): the
 * peer is woken once, and reads once. The end returns what channel_send() does. */
void channel_cork(struct channel *channel);
int channel_uncork(struct channel *channel);
size_t channel_queued(const struct channel *channel); /* bytes waiting in user space */
/* How long none of the queue could be sent; 0 if it is empty. */
uint64_t channel_waiting_usec(const struct channel *channel);
/* While the channel does not listen, it is not woken: messages wait in the kernel. The end of the peer is still
 * noticed. */
int channel_listen(struct channel *channel, bool listens);
/* Delivers every packet that is there now: the last words of a peer that has ended. */
void channel_read_rest(struct channel *channel);
/* Tries to empty the queue for at most `usec`, blocking (for the last words before an exit). */
int channel_flush(struct channel *channel, uint64_t usec);
int channel_fd(const struct channel *channel);
DEFINE_CLEANUP(struct channel *, channel_free);
