/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The supervisor: one struct, owned by main(), that every part gets a pointer to. It starts and watches the
 * children, ends all of them when one fails, and carries out what the controller (lib/controller) decides.
 * It never sees an object.
 *
 * One turn of the loop: messages come in and are passed to the controller; then, at its end (loop.c), the
 * controller picks runs, commits the ledger once, and only then lets packets go that depend on that commit.
 *
 *   children/  slots of processes, what they are told, what they say, how they end
 *   watches/   places of watches: from their begin to their end, their health
 *   handlers/  what handlers run as, with which access and limits, and by which stamp they are known
 *   folders/   state, runtime and memory folders, and the files in them
 *   reload/    the configuration: read again, and taken over by a restart in place
 *   control/   answers for reconciledctl, and for the gateway
 *
 * This header brings those of its parts along. Calls go down only. A part that cannot go on calls
 * supervisor_fatal(), which notes the cause; the loop ends the operator after the dispatch (teardown.c).
 */
#include <systemd/sd-event.h>

#include "base/siphash.h"
#include "base/throttle.h"
#include "controller/controller.h"
#include "ipc/channel.h"
#include "ledger/ledger.h"
#include "os/cgroup.h"
#include "os/slot.h"
#include "supervisor/carry-out.h"
#include "supervisor/children/child-slot.h"
#include "supervisor/children/lead-state.h"
#include "supervisor/control/slowest.h"
#include "supervisor/fatal.h"
#include "supervisor/folders/ledger-clock.h"
#include "supervisor/options.h"
#include "supervisor/reload/reload.h"
#include "supervisor/turn.h"
#include "supervisor/watches/place.h"

struct access_state;
struct control_peer;
struct leftover_finalizer;
struct under_way;

/* How far the operator is in its life. */
enum supervisor_phase {
        PHASE_FOLLOWING, /* another replica leads: watchers and workers are not started */
        PHASE_STARTING,  /* not every child is ready */
        PHASE_RUNNING,
        PHASE_STOPPING_WORKERS, /* asked to stop: runs that are in flight may finish */
        PHASE_STOPPING_REST,
        PHASE_TEARDOWN, /* something fatal: everything ends */
};

struct supervisor {
        struct controller controller;
        struct options *options;
        struct config *config;
        sd_event *event;
        enum supervisor_phase phase;
        int exit_code;
        struct supervisor_end end; /* fatal.c */
        sd_event_source *kill_timer;

        struct child_slot *child;
        size_t child_count;
        struct child_slot *worker_child; /* of the first worker: those of the others follow */
        const struct channel_callbacks *child_callbacks; /* take what children say */
        struct message *credential; /* the newest: for children that become ready later */
        struct throttles throttles;
        struct supervisor_lead lead;
        struct cgroup_delegation delegation;
        int64_t memory_kills; /* number of memory kills; -1 if the kernel does not report it */
        struct {
                uint64_t until; /* crashes until then, by the ledger's clock, have their Events */
                bool sent;      /* in this life */
        } crash_events;
        struct {
                bool told_live, told_ready; /* last */
        } gateway;
        struct {
                sd_event_source *timer;
                uint64_t runs_seen; /* at the last check */
                bool rested;
        } heartbeat;
        sd_event_source *listen_timer; /* loop.c */

        struct watch_place *place; /* one for each place of the controller's */
        struct slots *slots;       /* of watchers and workers: which object each is at */
        char *slots_path;

        struct {
                char *folder; /* with a folder for each handler that is given something */
                struct access_state *state;
                size_t count;
        } access;

        struct {
                int state_fd, runtime_fd; /* -1: not held */
        } lock;
        struct {
                uint64_t starts; /* of this state folder, this one included */
                uint64_t started_realtime, started_boottime;
                int last_exit;     /* of the last life; -1: it did not end in order */
                bool runtime_kept; /* our runtime directory is that of the last life */
                uint64_t key_sum;  /* of hash.key; 0: unknown */
        } life;
        struct ledger_clock clock;
        uint8_t hash_key[SIPHASH_KEY_SIZE]; /* folders/hash-key.h */
        struct {
                char *folder, *parent; /* parent: "" in the runtime directory */
                bool on_disk;          /* there is no memory for them */
        } secrets;
        struct under_way *under_way;
        struct {
                struct leftover_finalizer *item;
                size_t count;
        } leftover;

        struct registry *measured; /* metrics of handlers */
        struct {
                bool restarting;         /* ending only to begin again */
                struct reload_life next; /* ... with this */
                uint64_t since;          /* of the restart in place that this life began with; 0: a start */
                uint64_t pause_usec;     /* how long it took; 0: this life began with a start */
                char refused[512];       /* why the file as it is now was not taken; "" */
        } reload;

        struct {
                struct control_peer *peer;
                uint64_t serial; /* of questions to the watchers */
                size_t count;
                bool is_full; /* a peer waits for which there is no descriptor */
                int fd;
                sd_event_source *source, *list_source;
        } control;
        struct slowest slowest;
        struct {
                char text[1024]; /* as last told to systemd */
                uint64_t monotonic;
                sd_event_source *timer, *extend_timer;
        } notify;

        struct turns turns;
        sd_event_source *settle_source, *idle_source, *wake_source[WAKE_COUNT];
};

/* Takes over the configuration of `life`. Returns an exit code after having said why. */
int supervisor_init(struct supervisor *supervisor, struct options *options, const struct reload_life *life);
int supervisor_run(struct supervisor *supervisor); /* returns the exit code */
void supervisor_done(struct supervisor *supervisor);

/* Sets the controller's phase too: after PHASE_RUNNING no run begins, and in PHASE_TEARDOWN the controller does
 * nothing more. */
static inline void supervisor_set_phase(struct supervisor *supervisor, enum supervisor_phase phase)
{
        supervisor->phase = phase;
        supervisor->controller.is_ending = phase > PHASE_RUNNING;
        supervisor->controller.is_over = supervisor->controller.is_over || phase == PHASE_TEARDOWN;
}
