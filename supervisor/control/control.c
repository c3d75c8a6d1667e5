/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/control/control.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/text.h"
#include "config/differ.h"
#include "controller/due/push.h"
#include "controller/due/retry.h"
#include "controller/effects.h"
#include "controller/order/by-hand.h"
#include "controller/order/uninstall.h"
#include "controller/run/assign.h"
#include "os/descendants.h"
#include "os/syscall.h"
#include "supervisor/children/doubtful.h"
#include "supervisor/control/explain.h"
#include "supervisor/control/list-objects.h"
#include "supervisor/control/orders.h"
#include "supervisor/control/peer.h"
#include "supervisor/control/run-history.h"
#include "supervisor/control/status-document.h"
#include "supervisor/control/tell-gateway.h"
#include "supervisor/handlers/access-state.h"
#include "supervisor/lead.h"
#include "supervisor/supervisor.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

#define PEERS_MAX         16
#define ACCEPT_PAUSE_USEC (500 * USEC_PER_MSEC)
#define PATIENCE_USEC     (500 * USEC_PER_MSEC) /* with watchers, before a status */

/* The list is in the order in which peers were last heard. The one that has been silent for the longest and
 * has nothing to read gives way: a probe must get through although others keep connections open. */
static void make_room(struct supervisor *supervisor)
{
        struct control_peer *idle = NULL, *last = NULL;

        for (struct control_peer *peer = supervisor->control.peer; peer; peer = peer->next) {
                last = peer;
                if (channel_queued(peer->channel) == 0)
                        idle = peer;
        }
        if (last && supervisor->control.count >= PEERS_MAX)
                peer_free(idle ? idle : last);
}

/* ---- queries */

/* Watchers that do not answer in time are shown as they were last heard. */
static int try_status(struct control_peer *peer, enum answer_try when)
{
        _cleanup_text_ struct text json = TEXT_EMPTY;

        if (peer->pending.missing > 0 && when != TRY_AT_DEADLINE)
                return 0;
        return status_write(peer->supervisor, &json) < 0 ? -ENOMEM : peer_send(peer, &json);
}

/* Only the watchers know how many objects there are, and up to which version. */
static int answer_status(struct control_peer *peer, const struct message_query *query _unused_,
                         struct watch *watch _unused_)
{
        struct supervisor *supervisor = peer->supervisor;
        struct message_ask ask = {.serial = ++supervisor->control.serial};

        peer->pending.serial = ask.serial;
        FOREACH_WATCH(each, &supervisor->controller)
                if (child_of(each)->process.channel && child_of(each)->process.state == CHILD_RUNNING &&
                    channel_send(child_of(each)->process.channel, MESSAGE_ASK, &ask) >= 0)
                        peer->pending.missing++;
        return peer->pending.missing == 0 ? try_status(peer, TRY_AT_DEADLINE)
                                          : peer_await(peer, try_status, PATIENCE_USEC);
}

int control_take_position(struct watch *watch, const struct message_position *position)
{
        struct supervisor *supervisor = supervisor_of(watch);

        watch->objects = position->objects;
        if (text_replace(&watch_place_of(watch)->missing_namespaces, position->missing_namespaces) < 0 ||
            text_replace(&watch_place_of(watch)->refused_namespaces, position->refused_namespaces) < 0)
                return -ENOMEM;
        if (watch->synced && position->resource_version[0] &&
            text_replace(&watch->resource_version, position->resource_version) < 0)
                return -ENOMEM;
        for (struct control_peer *peer = supervisor->control.peer; peer; peer = peer->next)
                if (peer->pending.serial == position->serial && peer->pending.missing > 0)
                        peer->pending.missing--;
        turn_settle_soon(supervisor);
        return 0;
}

static int answer_health(struct control_peer *peer, const struct message_query *query _unused_,
                         struct watch *watch _unused_)
{
        _cleanup_text_ struct text json = TEXT_EMPTY;
        struct health health;

        health_get(peer->supervisor, &health);
        text_printf(&json, "{\"live\":%s,\"ready\":%s,\"reason\":", health.live ? "true" : "false",
                    health.ready ? "true" : "false");
        text_json(&json, "?}", health.reason);
        return peer_send(peer, &json);
}

/* As SIGHUP. A restart in place that is under way reads the file anyway. */
static int answer_reload(struct control_peer *peer, const struct message_query *query _unused_,
                         struct watch *watch _unused_)
{
        struct supervisor *supervisor = peer->supervisor;
        const struct config *next;
        _cleanup_text_ struct text json = TEXT_EMPTY;
        char key[DIFFER_KEY_SIZE] = "";

        if (supervisor->phase > PHASE_RUNNING && !supervisor->reload.restarting)
                return peer_refuse(peer, "the operator is stopping");
        if (!supervisor->reload.restarting)
                reload(supervisor);
        if (!supervisor->reload.restarting && supervisor->phase > PHASE_RUNNING)
                return peer_refuse(peer, "the operator's program has been replaced by another version: the "
                                         "operator ends, and whatever started it has to start it again");
        if (!supervisor->reload.restarting && supervisor->reload.refused[0])
                return peer_refuse(peer, supervisor->reload.refused);
        text_append_string(&json, "{");
        json_bool(&json, "restarted", supervisor->reload.restarting);
        next = supervisor->reload.next.config;
        json_bool(&json, "programOnly",
                  supervisor->reload.restarting && next &&
                          !config_differs(supervisor->config, next, key, sizeof(key)));
        json_close(&json, "}");
        return peer_send(peer, &json);
}

/* Only the leader knows how objects are, and can do something about them. */
static int refuse_follower(struct control_peer *peer)
{
        const struct supervisor_lead *lead = &peer->supervisor->lead;
        char why[400];

        if (lead->leader[0])
                snprintf(why, sizeof(why),
                         "this replica follows, and has no objects: ask the one that leads, %s",
                         lead->leader);
        else
                snprintf(why, sizeof(why), "this replica follows, and has no objects; no replica leads yet");
        return peer_refuse(peer, why);
}

static int answer_step_down(struct control_peer *peer, const struct message_query *query,
                            struct watch *watch _unused_)
{
        const char *successor = query->argument[0].value;
        char why[512];
        int r;

        if (!peer->supervisor->lead.child)
                return peer_refuse(peer, "there is one replica only: the configuration has no `replicas`");
        if (strlen(successor) >= sizeof(peer->supervisor->lead.successor) ||
            strspn(successor, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(successor))
                return peer_refuse(peer, "the successor is none: give the `member` of its status");
        r = lead_step_down(peer->supervisor, successor, why, sizeof(why));
        if (r == -EBUSY)
                return peer_refuse(peer, "this replica does not lead");
        return r < 0 ? peer_refuse(peer, why) : peer_send_done(peer);
}

static int refuse_watch(struct control_peer *peer, const char *name)
{
        const struct supervisor *supervisor = peer->supervisor;
        _cleanup_text_ struct text error = TEXT_EMPTY;
        unsigned others = 0;

        text_printf(&error, "there is no watch %s; the watches are", name);
        FOREACH_WATCH(watch, &supervisor->controller)
                if (!watch->config->owner)
                        text_printf(&error, "%s %s", others++ ? "," : "", watch->config->name);
        if (others == 0)
                text_append_string(&error, " none now");
        return error.failed ? -ENOMEM : peer_refuse(peer, error.data);
}

static int refuse_list(struct control_peer *peer, const char *name)
{
        _cleanup_text_ struct text error = TEXT_EMPTY;

        text_printf(&error, "there is no list %s; the lists are failing, waiting or quarantined", name);
        return error.failed ? -ENOMEM : peer_refuse(peer, error.data);
}

static int on_control_idle(sd_event_source *source _unused_, void *userdata)
{
        turn_is(userdata, "list");
        peers_try(userdata, TRY_WHEN_IDLE);
        turn_settle_soon(userdata);
        return 0;
}

static int try_listing(struct control_peer *peer, enum answer_try when)
{
        struct supervisor *supervisor = peer->supervisor;
        int r;

        if (when == TRY_AT_TURN_END)
                return turn_when_idle(supervisor, &supervisor->control.list_source, on_control_idle);
        r = turn_is_spent(supervisor) ? 0 : listing_continue(peer->pending.listing);
        if (r == 0 || r == -ENOMEM)
                return r;
        return r < 0 ? peer_refuse(peer, "the ledger cannot be read")
                     : peer_send(peer, listing_document(peer->pending.listing));
}

/* STATE WATCH NAMESPACE, the last two "" for all. */
static int answer_list(struct control_peer *peer, const struct message_query *query,
                       struct watch *watch _unused_)
{
        const char *name = query->argument[1].value;
        int r;

        if (name[0] && !watch_find(&peer->supervisor->controller, name))
                return refuse_watch(peer, name);
        r = listing_new(peer->supervisor, query->argument[0].value, name, query->argument[2].value,
                        &peer->pending.listing);
        if (r == -EINVAL)
                return refuse_list(peer, query->argument[0].value);
        turn_settle_soon(peer->supervisor);
        return r < 0 ? r : peer_await(peer, try_listing, 0);
}

void control_continue(struct supervisor *supervisor)
{
        peers_try(supervisor, TRY_AT_TURN_END);
}

static int answer_from_ledger(struct control_peer *peer, const struct message_query *query,
                              struct watch *watch,
                              int (*write)(const struct watch *watch, const char *key, struct text *json))
{
        _cleanup_text_ struct text json = TEXT_EMPTY;
        int r = write(watch, query->argument[1].value, &json);

        if (r == -ENOMEM)
                return r;
        return r < 0 ? peer_refuse(peer, "the ledger cannot be read") : peer_send(peer, &json);
}

/* watch: named by the first argument, if the command is of a watch. */
static const struct command {
        const char *name;
        size_t arguments;
        bool of_watch;
        int (*answer)(struct control_peer *peer, const struct message_query *query, struct watch *watch);
        bool runs;    /* something: not while the operator is being uninstalled */
        bool follows; /* also while another replica leads */
        int (*write)(const struct watch *watch, const char *key,
                     struct text *json); /* instead of `answer` */
} command[] = {
        {"status", 0, false, answer_status, .follows = true},
        {"health", 0, false, answer_health, .follows = true},
        {"explain", 2, true, .write = explain_write},               /* WATCH KEY */
        {"history", 2, true, .write = history_write},               /* WATCH KEY; "": all keys */
        {"previous", 2, true, .write = explain_write_previous},     /* WATCH KEY; "": the folder */
        {"list", 3, false, answer_list},                            /* STATE WATCH NAMESPACE */
        {"keys", 2, true, .write = explain_write_keys},             /* WATCH BEGINNING */
        {"retry", 2, true, order_by_hand, .runs = true},            /* WATCH KEY */
        {"retry-all", 1, true, order_retry_many, .runs = true},     /* WATCH */
        {"retry-failed", 0, false, order_retry_many, .runs = true}, /* of all watches */
        {"retry-failed", 1, true, order_retry_many, .runs = true},  /* WATCH */
        {"release", 2, true, order_by_hand, .runs = true},          /* WATCH KEY */
        {"release-finalizer", 3, true, order_release_finalizer, .runs = true}, /* WATCH KEY WHY */
        {"pause", 2, true, order_pause},                                       /* WATCH WHY */
        {"resume", 1, true, order_resume},                                     /* WATCH */
        {"reload", 0, false, answer_reload, .follows = true},
        {"step-down", 1, false, answer_step_down, .follows = true}, /* SUCCESSOR; "": any */
        {"uninstall", 0, false, order_uninstall},
        {"uninstall-cancel", 0, false, order_uninstall_cancel},
};

static int answer_query(struct control_peer *peer, const struct message_query *query)
{
        for (size_t i = 0; i < ELEMENTS(command); i++) {
                struct watch *watch = NULL;

                if (strcmp(query->command, command[i].name) != 0 ||
                    query->argument_count != command[i].arguments)
                        continue;
                if (!command[i].follows && peer->supervisor->phase == PHASE_FOLLOWING)
                        return refuse_follower(peer);
                if (command[i].of_watch)
                        watch = watch_find(&peer->supervisor->controller, query->argument[0].value);
                /* Owned and related objects have no runs: their owners do. */
                if (command[i].of_watch && (!watch || watch->config->owner))
                        return refuse_watch(peer, query->argument[0].value);
                if (command[i].runs && peer->supervisor->controller.uninstall.active)
                        return peer_refuse(peer, "the operator is being uninstalled and runs nothing else");
                turn_is(peer->supervisor, command[i].name);
                return command[i].write ? answer_from_ledger(peer, query, watch, command[i].write)
                                        : command[i].answer(peer, query, watch);
        }
        return peer_refuse(peer, "this version of reconciled does not know the command");
}

static int on_peer_message(struct channel *channel _unused_, struct message **message, void *userdata)
{
        struct control_peer *peer = userdata;

        peer_take_out(peer);
        peer_put_first(peer);
        if ((*message)->type != MESSAGE_QUERY)
                return -EPROTO;
        if (peer->pending.try)
                return -EPROTO; /* it has not waited for the answer */
        if (peer->is_ours)
                return peer_refuse(peer, "the operator takes no orders from processes that it has started, "
                                         "handlers included");
        if ((*message)->query.version != PROTOCOL_VERSION)
                return peer_refuse(peer, "reconciledctl and reconciled are of different versions");
        return answer_query(peer, &(*message)->query);
}

static void on_peer_error(struct channel *channel _unused_, int status _unused_, const char *reason _unused_,
                          void *userdata)
{
        struct control_peer *peer = userdata;

        turn_settle_soon(peer->supervisor);
        peer_free(peer);
}

static const struct channel_callbacks callbacks = {.on_message = on_peer_message, .on_error = on_peer_error};

/* ---- connections */

static bool read_peer(int fd, struct ucred *ret)
{
        socklen_t size = sizeof(*ret);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &size) == 0 &&
               (ret->uid == 0 || ret->uid == getuid());
}

/* While the peer lives, no other process has its PID. A kernel before 6.5 cannot hold on to the peer: there
 * we look at the process that has the PID now. */
static bool peer_lives(int fd, pid_t pid)
{
        int number = -1;
        socklen_t size = sizeof(number);
        _cleanup_close_ int pidfd = -1;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &number, &size) == 0)
                pidfd = number;
        else if (errno == ENOPROTOOPT)
                pidfd = sys_pidfd_open(pid);
        return pidfd >= 0 && poll(&(struct pollfd){.fd = pidfd, .events = POLLIN}, 1, 0) == 0;
}

/* A watcher, a gateway or a handler that has been taken over runs as our user as well. A peer with pid 0 is not
 * in our process namespace. Root has other means than the socket of another user's operator. */
static bool peer_is_ours(int fd, const struct ucred *peer)
{
        if (peer->pid == 0 || (peer->uid == 0 && geteuid() != 0))
                return false;
        return descendants_may_include(peer->pid) || !peer_lives(fd, peer->pid);
}

static void add_peer(struct supervisor *supervisor, int fd, const struct ucred *who)
{
        struct control_peer *peer = calloc(1, sizeof(*peer));

        if (!peer) {
                close(fd);
                return;
        }
        peer->supervisor = supervisor;
        peer->uid = who->uid;
        peer->is_ours = peer_is_ours(fd, who);
        peer_put_first(peer);
        supervisor->control.count++;
        if (channel_new(supervisor->event, fd, ROLE_SUPERVISOR, ROLE_CONTROL, &callbacks, peer,
                        &peer->channel) < 0)
                peer_free(peer);
        else
                channel_set_state(peer->channel, CHILD_RUNNING);
}

static int on_accept_again(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;

        (void)sd_event_source_set_enabled(supervisor->control.source, SD_EVENT_ON);
        return 0;
}

/* The peer goes on trying: without a pause the loop would do nothing else. */
static void accept_later(struct supervisor *supervisor, int error)
{
        if (!supervisor->control.is_full)
                log_warning("cannot answer reconciledctl, which waits: %s", strerror(error));
        supervisor->control.is_full = true;
        if (sd_event_add_time_relative(supervisor->event, NULL, CLOCK_BOOTTIME, ACCEPT_PAUSE_USEC, 0,
                                       on_accept_again, supervisor) >= 0)
                (void)sd_event_source_set_enabled(supervisor->control.source, SD_EVENT_OFF);
}

static int on_connect(sd_event_source *source _unused_, int fd, uint32_t revents _unused_, void *userdata)
{
        struct supervisor *supervisor = userdata;
        struct ucred who;
        int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (peer < 0) {
                if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                        accept_later(supervisor, errno);
                return 0;
        }
        supervisor->control.is_full = false;
        if (!read_peer(peer, &who)) {
                close(peer);
                return 0;
        }
        make_room(supervisor);
        add_peer(supervisor, peer, &who);
        return 0;
}

int control_start(struct supervisor *supervisor, struct error *error)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int length = snprintf(address.sun_path, sizeof(address.sun_path), "%s/control.sock",
                              supervisor->options->runtime_directory);
        int r;

        if (length < 0 || (size_t)length >= sizeof(address.sun_path))
                return error_set(error, -ENAMETOOLONG, "%s: the path is too long for a socket",
                                 supervisor->options->runtime_directory);
        supervisor->control.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (supervisor->control.fd < 0)
                return error_set(error, -errno, "%s", strerror(errno));
        (void)unlink(address.sun_path); /* of a former life: the lock beside it says that it is over */
        if (bind(supervisor->control.fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
            chmod(address.sun_path, 0600) < 0 || listen(supervisor->control.fd, PEERS_MAX) < 0)
                return error_set(error, -errno, "%s: %s", address.sun_path, strerror(errno));
        r = sd_event_add_io(supervisor->event, &supervisor->control.source, supervisor->control.fd, EPOLLIN,
                            on_connect, supervisor);
        return r < 0 ? error_set(error, r, "%s", strerror(-r)) : 0;
}

void control_done(struct supervisor *supervisor)
{
        while (supervisor->control.peer)
                peer_free(supervisor->control.peer);
        sd_event_source_disable_unref(supervisor->control.source);
        if (supervisor->control.fd >= 0)
                close(supervisor->control.fd);
}
