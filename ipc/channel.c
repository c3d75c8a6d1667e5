/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A channel: see channel.h. The loop may find it freed by its own callback, so every turn holds a reference.
 */
#include "ipc/channel.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/duration.h"
#include "os/syscall.h"

#define PACKETS_PER_TURN 16 /* then other sources of the loop have their turn */
#define TRAIN_MESSAGES   16 /* of one packet */
#define TRAIN_SIZE       ((size_t)32 * 1024)
#define QUEUE_MAX        ((size_t)16 * 1024 * 1024)

struct packet {
        struct packet *next;
        size_t size;
        char data[];
};

struct channel {
        unsigned references;
        int fd;
        enum role local, remote;
        enum child_state state;
        sd_event_source *source, *pause;
        struct channel_callbacks callbacks;
        void *userdata;
        struct packet *first, *last; /* waiting for room in the kernel's buffer */
        size_t queued;               /* bytes */
        uint64_t waiting_since;      /* CLOCK_MONOTONIC: since when the first of them could not be sent */
        struct text scratch;
        struct text train; /* messages that leave as one packet, while corked */
        unsigned train_messages;
        bool closed, freed, corked;
        bool writing, deaf; /* waits for room; does not listen */
        unsigned quota;     /* packets of one turn */
};

/* One packet at a time is decoded in a process, as a whole, and its messages own copies. */
static char receive_buffer[MESSAGE_SIZE_MAX];

#define PAUSE_USEC (10 * USEC_PER_MSEC)

static void drop_queue(struct channel *channel)
{
        while (channel->first) {
                struct packet *next = channel->first->next;

                explicit_bzero(channel->first->data, channel->first->size);
                free(channel->first);
                channel->first = next;
        }
        channel->last = NULL;
        channel->queued = 0;
}

static void channel_unref(struct channel *channel)
{
        if (--channel->references > 0)
                return;
        drop_queue(channel);
        sd_event_source_disable_unref(channel->pause);
        sd_event_source_disable_unref(channel->source);
        if (channel->fd >= 0)
                close(channel->fd);
        text_done(&channel->scratch);
        text_done(&channel->train);
        free(channel);
}

void channel_free(struct channel *channel)
{
        if (!channel)
                return;
        channel->freed = channel->closed = true;
        if (channel->source)
                sd_event_source_set_enabled(channel->source, SD_EVENT_OFF);
        channel_unref(channel);
}

/* The only caller of on_error: it closes the channel first, so that an error is reported once. */
static void channel_fail(struct channel *channel, int status, const char *format, ...) _printf_(3, 4);
static void channel_fail(struct channel *channel, int status, const char *format, ...)
{
        char reason[256];
        va_list arguments;

        if (channel->closed)
                return;
        va_start(arguments, format);
        vsnprintf(reason, sizeof(reason), format, arguments);
        va_end(arguments);
        channel->closed = true;
        sd_event_source_set_enabled(channel->source, SD_EVENT_OFF);
        drop_queue(channel);
        channel->callbacks.on_error(channel, status, reason, channel->userdata);
}

/* ---- out */

/* A suspended machine's peers are not slow. */
static uint64_t monotonic_usec(const struct channel *channel)
{
        uint64_t now = 0;

        (void)sd_event_now(sd_event_source_get_event(channel->source), CLOCK_MONOTONIC, &now);
        return now;
}

static int update_events(struct channel *channel)
{
        return sd_event_source_set_io_events(channel->source, (channel->deaf ? 0 : EPOLLIN) |
                                                                      (channel->writing ? EPOLLOUT : 0));
}

static int channel_watch_writable(struct channel *channel, bool enabled)
{
        channel->writing = enabled;
        return update_events(channel);
}

static void drop_sent(struct channel *channel)
{
        struct packet *packet = channel->first;

        channel->first = packet->next;
        if (!channel->first)
                channel->last = NULL;
        channel->queued -= packet->size;
        explicit_bzero(packet->data, packet->size);
        free(packet);
}

/* Sends what waits. 1: all gone, 0: the kernel's buffer is full, -ENOBUFS: the kernel has no memory for it
 * now, negative errno otherwise. */
static int send_queued(struct channel *channel)
{
        while (channel->first) {
                ssize_t sent = sys_send(channel->fd, channel->first->data, channel->first->size);

                if (sent == -EAGAIN)
                        return 0;
                if (sent < 0)
                        return (int)sent;
                channel->waiting_since = monotonic_usec(channel);
                drop_sent(channel);
        }
        return 1;
}

static int enqueue_packet(struct channel *channel, const void *bytes, size_t size)
{
        struct packet *packet;

        if (channel->queued + size > QUEUE_MAX)
                return -ENOBUFS;
        packet = malloc(sizeof(*packet) + size);
        if (!packet)
                return -ENOMEM;
        packet->next = NULL;
        packet->size = size;
        memcpy(packet->data, bytes, size);
        if (!channel->first)
                channel->waiting_since = monotonic_usec(channel);
        if (channel->last)
                channel->last->next = packet;
        else
                channel->first = packet;
        channel->last = packet;
        channel->queued += size;
        return channel_watch_writable(channel, true);
}

static int send_packet(struct channel *channel, const void *packet, size_t size)
{
        if (!channel->first) {
                ssize_t sent = sys_send(channel->fd, packet, size);

                if (sent >= 0)
                        return 0;
                /* The read side reports a peer that is gone, once and with the right words. */
                if (sent == -EPIPE || sent == -ECONNRESET)
                        return 0;
                if (sent != -EAGAIN && sent != -ENOBUFS)
                        return (int)sent;
        }
        return enqueue_packet(channel, packet, size);
}

static int may_send(const struct channel *channel, enum message_type type)
{
        if (channel->closed)
                return -ENOTCONN;
        return message_permitted(type, channel->local, channel->remote, channel->state) ? 0 : -EPERM;
}

int channel_forward(struct channel *channel, enum message_type type, const void *packet, size_t size)
{
        int r = may_send(channel, type);

        return r < 0 ? r : send_packet(channel, packet, size);
}

/* Permission was asked for each of them. */
static int send_train(struct channel *channel)
{
        int r = 0;

        if (channel->train.size > 0 && !channel->closed)
                r = send_packet(channel, channel->train.data, channel->train.size);
        if (channel->train.size > 0)
                explicit_bzero(channel->train.data, channel->train.size);
        text_clear(&channel->train);
        channel->train_messages = 0;
        return r;
}

static int join_train(struct channel *channel, enum message_type type, const struct text *message)
{
        int r = may_send(channel, type);

        if (r >= 0 &&
            (channel->train_messages == TRAIN_MESSAGES || channel->train.size + message->size > TRAIN_SIZE))
                r = send_train(channel);
        if (r >= 0)
                r = text_append(&channel->train, message->data, message->size);
        if (r >= 0)
                channel->train_messages++;
        return r;
}

int channel_send(struct channel *channel, enum message_type type, const void *fields)
{
        int r = message_encode(type, fields, &channel->scratch);

        if (r >= 0 && channel->corked)
                r = join_train(channel, type, &channel->scratch);
        else if (r >= 0)
                r = channel_forward(channel, type, channel->scratch.data, channel->scratch.size);
        if (type == MESSAGE_CREDENTIAL && channel->scratch.data)
                explicit_bzero(channel->scratch.data, channel->scratch.size);
        return r;
}

void channel_cork(struct channel *channel)
{
        assert(!channel->corked && channel->train_messages == 0);
        channel->corked = true;
}

int channel_uncork(struct channel *channel)
{
        assert(channel->corked);
        channel->corked = false;
        return send_train(channel);
}

uint64_t channel_waiting_usec(const struct channel *channel)
{
        return channel->first ? monotonic_usec(channel) - channel->waiting_since : 0;
}

size_t channel_queued(const struct channel *channel)
{
        return channel->queued;
}

int channel_flush(struct channel *channel, uint64_t usec)
{
        uint64_t deadline = clock_boottime_usec() + usec;

        while (!channel->closed) {
                struct pollfd pollfd = {.fd = channel->fd, .events = POLLOUT};
                uint64_t now;
                int r = send_queued(channel);

                if (r != 0 && r != -ENOBUFS)
                        return r < 0 ? r : 0;
                now = clock_boottime_usec();
                if (now >= deadline)
                        return -ETIMEDOUT;
                if (poll(&pollfd, 1, (int)((deadline - now) / USEC_PER_MSEC) + 1) < 0 && errno != EINTR)
                        return -errno;
        }
        return -ENOTCONN;
}

static int on_channel_pause_over(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct channel *channel = userdata;

        if (!channel->closed)
                (void)channel_watch_writable(channel, true);
        return 0;
}

/* The socket counts as writable all the while: asking at each turn of the loop would leave none for the
 * heartbeats.
 */
static void pause_writing(struct channel *channel)
{
        int r = channel->pause ? sd_event_source_set_time_relative(channel->pause, PAUSE_USEC)
                               : sd_event_add_time_relative(sd_event_source_get_event(channel->source),
                                                            &channel->pause, CLOCK_MONOTONIC, PAUSE_USEC, 0,
                                                            on_channel_pause_over, channel);

        if (r >= 0)
                r = sd_event_source_set_enabled(channel->pause, SD_EVENT_ONESHOT);
        if (r >= 0)
                (void)channel_watch_writable(channel, false);
}

static void on_channel_writable(struct channel *channel)
{
        int r = send_queued(channel);

        if (r == -ENOBUFS)
                pause_writing(channel);
        if (r == 0 || r == -ENOBUFS)
                return;
        if (r < 0 && r != -EPIPE && r != -ECONNRESET) {
                channel_fail(channel, r, "sending failed: %s", strerror(-r));
                return;
        }
        drop_queue(channel);
        channel_watch_writable(channel, false);
        if (r > 0 && channel->callbacks.on_drained)
                channel->callbacks.on_drained(channel, channel->userdata);
}

/* ---- in */

static void channel_deliver(struct channel *channel, struct message **message)
{
        enum message_type type = (*message)->type;
        int r;

        if (!message_permitted(type, channel->remote, channel->local, channel->state)) {
                channel_fail(channel, -EPROTO, "%s is not permitted in state %s", message_name(type),
                             child_state_name(channel->state));
                return;
        }
        r = channel->callbacks.on_message(channel, message, channel->userdata);
        if (r < 0)
                channel_fail(channel, -EPROTO, "%s was refused: %s", message_name(type), strerror(-r));
}

/* All of a packet before any of it is delivered: what that leads to may read from another channel. */
static int decode_packet(const char *packet, size_t size, struct message *message[static TRAIN_MESSAGES],
                         size_t *count)
{
        size_t used;
        int r = size > 0 ? 0 : -EBADMSG;

        for (*count = 0; r >= 0 && size > 0; packet += used, size -= used) {
                if (*count == TRAIN_MESSAGES)
                        return -EBADMSG;
                r = message_decode_first(packet, size, &used, &message[*count]);
                if (r < 0)
                        return r;
                (*count)++;
        }
        return r;
}

static bool has_credential(struct message *const *message, size_t count)
{
        for (size_t i = 0; i < count; i++)
                if (message[i]->type == MESSAGE_CREDENTIAL)
                        return true;
        return false;
}

/* False if there is nothing more to read at the moment. */
static bool receive_one(struct channel *channel)
{
        struct message *message[TRAIN_MESSAGES] = {NULL};
        size_t count;
        ssize_t size = sys_receive(channel->fd, receive_buffer, sizeof(receive_buffer));
        int r;

        if (size == -EAGAIN)
                return false;
        if (size == 0 || size == -ECONNRESET) {
                channel_fail(channel, -ECONNRESET, "the %s closed its channel", role_title(channel->remote));
                return false;
        }
        if (size < 0) {
                channel_fail(channel, size == -EMSGSIZE ? -EPROTO : (int)size, "%s",
                             size == -EMSGSIZE ? "a packet above the size limit" : strerror((int)-size));
                return false;
        }
        r = decode_packet(receive_buffer, (size_t)size, message, &count);
        if (has_credential(message, count))
                explicit_bzero(receive_buffer, (size_t)size);
        if (r < 0)
                channel_fail(channel, r == -EBADMSG ? -EPROTO : r, "%s",
                             r == -EBADMSG ? "a packet that is not a message" : strerror(-r));
        for (size_t i = 0; i < count; i++) {
                if (r >= 0 && !channel->closed)
                        channel_deliver(channel, &message[i]);
                message_free(message[i]);
        }
        return r >= 0;
}

/* As many as there were the last time: asking the kernel in vain costs as much as a packet. The loop comes
 * back for what is left. */
static void receive_some(struct channel *channel)
{
        unsigned count = 0;

        while (count < channel->quota && !channel->closed && receive_one(channel))
                count++;
        if (count == channel->quota && count < PACKETS_PER_TURN)
                channel->quota *= 2;
        else if (count < channel->quota)
                channel->quota = count > 0 ? count : 1;
}

static int on_channel_io(sd_event_source *source _unused_, int fd _unused_, uint32_t revents, void *userdata)
{
        struct channel *channel = userdata;

        channel->references++;
        if (revents & EPOLLOUT)
                on_channel_writable(channel);
        if (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))
                receive_some(channel);
        channel_unref(channel);
        return 0;
}

int channel_listen(struct channel *channel, bool listens)
{
        int r;

        if (channel->closed || channel->deaf == !listens)
                return 0;
        channel->deaf = !listens;
        r = update_events(channel);
        if (r < 0)
                channel->deaf = listens;
        return r;
}

void channel_read_rest(struct channel *channel)
{
        channel->references++;
        while (!channel->closed && receive_one(channel))
                ;
        channel_unref(channel);
}

/* ---- life */

int channel_new(sd_event *event, int fd, enum role local, enum role remote,
                const struct channel_callbacks *callbacks, void *userdata, struct channel **ret)
{
        struct channel *channel = calloc(1, sizeof(*channel));
        int r;

        if (!channel) {
                close(fd);
                return -ENOMEM;
        }
        *channel = (struct channel){
                .references = 1,
                .fd = fd,
                .local = local,
                .remote = remote,
                .state = CHILD_STARTING,
                .callbacks = *callbacks,
                .userdata = userdata,
                .quota = 1,
        };
        r = sd_event_add_io(event, &channel->source, fd, EPOLLIN, on_channel_io, channel);
        if (r < 0) {
                channel_free(channel);
                return r;
        }
        *ret = channel;
        return 0;
}

void channel_set_state(struct channel *channel, enum child_state state)
{
        channel->state = state;
}

int channel_fd(const struct channel *channel)
{
        return channel->fd;
}
