/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One operator in one process: the real controller, queue and ledger, and the real order of a run, with a simulated API
 * server, watchers, queues of workers, disk and time. A seed, or a list of steps, decides everything that happens, so each run can be had
 * again. The model (model.h) knows the promises and not the code, and judges by what handlers were shown.
 *
 * The watchers, and what a worker does with runs that it has not begun, follow the real ones (watcher/apply, worker/waiting.c):
 * whoever changes what those tell the supervisor changes it here too.
 *
 * Sizes are as small as they can be (two names, two contents, pages of one), so that boundaries are met often.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "controller/controller.h"
#include "tests/simulation/model.h"
#include "tests/simulation/real-worker.h"

#define NAMES       2
#define WATCHES     2
#define WORKERS     2
#define CONTENTS    2
#define MESSAGE_MAX 8 /* records of a message */
#define INBOX_MAX   256
#define PLACES_MAX  512
#define EVENTS_MAX  4096

/* ---- the API server */

struct sim_object {
        bool exists, deleting;
        unsigned uid, content;
        unsigned selected;   /* a bit for each watch */
        unsigned finalizers; /* likewise */
        uint64_t version;
        unsigned status, note; /* what handlers write, and no trigger sees */
};

struct sim_event {
        unsigned name;
        bool gone; /* `object` is its last state */
        struct sim_object object;
};

struct sim_server {
        struct sim_object object[NAMES];
        uint64_t version;
        unsigned last_uid;
        struct sim_event event[EVENTS_MAX]; /* a ring; `events` counts all */
        uint64_t events;
        unsigned epoch;             /* restores */
        uint64_t restored_boottime; /* the last one */
        struct sim_object backup[NAMES];
        uint64_t backup_version;
        bool has_backup;
        unsigned selectable; /* by these watches; where it is one, they are of different kinds */
};

/* ---- channels: in order, and as slow as the steps want them */

enum sim_type { SIM_KEYS, SIM_SYNCED, SIM_CHECKED, SIM_SWEPT, SIM_CREDIT, SIM_HANDLED, SIM_OWED };

struct sim_change {
        enum change_kind kind;
        unsigned name, uid;
        uint64_t fingerprint, version, sequence;
        bool first;
        enum finalizer_state finalizer;
};

struct sim_message {
        enum sim_type type;
        struct sim_change change[MESSAGE_MAX]; /* also of HANDLED and OWED: name and uid */
        size_t count;
        uint64_t amount, epoch;
        bool restored; /* its watcher has seen that, in this life */
        bool last, again;
};

struct sim_inbox {
        struct sim_message message[INBOX_MAX];
        size_t first, count;
};

/* ---- a watcher */

struct sim_stored {
        bool exists, held;
        struct sim_object object;
        uint64_t fingerprint;
};

struct sim_store { /* outlives the process */
        struct sim_stored stored[NAMES];
        struct {
                unsigned name, uid;
                bool held;
        } tombstone[PLACES_MAX];
        size_t tombstone_count;
        struct sim_change dirty[PLACES_MAX];
        size_t dirty_count;
        struct {
                unsigned name, uid;
        } question[PLACES_MAX]; /* their absence is to be explained */
        size_t question_count;
        uint64_t sequence, position, noted_restore, epoch;
        unsigned server_epoch;
        bool is_filled; /* a list was complete */
};

struct sim_watcher {
        struct sim_store store;
        uint64_t credit, restored_boottime;
        bool synced, swept, owed_complete, checked, saw_restore;
        unsigned sweep_next; /* the name that is swept next; NAMES: none */
        struct sim_inbox to_controller, to_watcher;
};

/* ---- a worker */

struct sim_run {
        bool active, cancelled, begun;
        struct message *message; /* owned */
        const struct message_run *order;
        unsigned watch, name, uid;
        enum run_action action; /* as its handler was told */
        bool handler_ran;
        bool aside, first_of_watch,
                heard;     /* before its handler; as it was told, and whether that was heard */
        int refused;       /* the HTTP status of the answer to its next request; 0: it is carried out */
        bool loses_answer; /* to that one */
};

#define SIM_WRITING 3

struct sim_worker {
        struct real_worker *real;
        struct message *over; /* of the run that has ended last */
        struct sim_run inbox[RUNS_AT_ONCE];
        size_t inbox_count;
        struct sim_run current;              /* its handler is at work */
        struct sim_run writing[SIM_WRITING]; /* have answered */
        struct sim_word {
                bool is_end;
                struct message_answered answered; /* of one that has not ended */
                struct message *done;             /* owned */
        } done[INBOX_MAX];                        /* to the controller */
        size_t done_first, done_count;
};

/* A run that the file `under-way` speaks of. */
struct sim_note {
        enum { NOTE_FREE, NOTE_RUNNING, NOTE_ENDED } state;
        unsigned watch, name, uid;
        uint64_t fingerprint;
        bool without_handler;
};

struct simulation {
        uint64_t random;
        char folder[64], path[96];
        uint64_t boottime, realtime, monotonic;
        struct config config;
        struct config_watch config_watch[WATCHES];
        struct sim_server server;
        struct sim_watcher watcher[WATCHES];
        struct sim_worker worker[WORKERS];
        struct sim_note note[PLACES_MAX];
        struct model model;
        struct controller controller;
        uint64_t wake_at[WAKE_COUNT];
        bool settle_wanted, idle_wanted, page_wanted[WATCHES];
        bool gate_closed; /* the ledger cannot be written now */
        bool is_up, has_ended;
        bool is_ledger_lost; /* since the last end */
        bool is_power_lost;  /* likewise: the note of what was under way says nothing */
        bool is_calm;        /* nobody changes anything, and handlers succeed: it is to come to rest */
        bool is_quiet;       /* no history is printed */
        bool is_slow;        /* the server: each request of a run is answered in a step of its own */
        unsigned workers;    /* of WORKERS, that there are */
        uint64_t steps;
        bool has_news;   /* that the ledger does not have yet */
        uint64_t ends;   /* of the operator */
        unsigned texts;  /* of handlers, so far: each is another one */
        uint64_t stamp;  /* of the handlers */
        uint64_t epochs; /* of stores, so far */
};

/* ---- sim.c */
struct sim_step {
        uint16_t action, argument;
};

#define ACTIONS_MAX 64

/* How often each action comes. */
struct sim_mix {
        unsigned weight[ACTIONS_MAX], total;
};

int simulation_new(uint64_t seed, struct simulation **ret);
void simulation_free(struct simulation *sim);
void simulation_step(struct simulation *sim, const struct sim_step *step);
/* One round in which everything takes its next step. ends: runs as well. False: nothing was to be done. */
bool simulation_round(struct simulation *sim, bool ends);
enum sim_death { DEATH_KILL, DEATH_STOP, DEATH_POWER };
void simulation_down(struct simulation *sim, enum sim_death how);
bool simulation_up(struct simulation *sim, unsigned argument);
void simulation_pass(struct simulation *sim, uint64_t usec);
void simulation_tick(
        struct simulation *sim); /* what follows is later than what was before, and nothing else */
bool simulation_gate(struct simulation *sim, unsigned argument);
bool simulation_lose_ledger(struct simulation *sim, unsigned argument);
void simulation_lose_store(struct simulation *sim, unsigned watch, bool knows);
bool simulation_restored_lately(const struct simulation *sim);
/* Ends all trouble and goes on until nothing is to be done; then all promises must hold. */
void simulation_come_to_rest(struct simulation *sim);
const char *sim_action_name(unsigned action);
unsigned sim_action_count(void);
void sim_mix_new(uint64_t seed, uint64_t *random, struct sim_mix *ret);
struct sim_step sim_random_step(uint64_t *random, const struct sim_mix *mix);
uint64_t sim_random(uint64_t *state);
void sim_tell(struct simulation *sim, const char *format, ...) _printf_(2, 3); /* a line of history */

/* ---- situation.c: what chance rarely makes */
bool situation_reverted(struct simulation *sim, unsigned argument);
bool situation_replaced(struct simulation *sim, unsigned argument);
bool situation_restored(struct simulation *sim, unsigned argument);
bool situation_left(struct simulation *sim, unsigned argument);
bool situation_reselected(struct simulation *sim, unsigned argument);
bool situation_busy(struct simulation *sim, unsigned argument);

/* ---- crowd.c: who waits for whom, in a queue by itself, by a chance of its own */
void crowd_judge(struct simulation *sim, uint64_t seed);

/* ---- names of things */
const char *sim_key(unsigned name);
void sim_uid(unsigned uid, char buffer[16]);
unsigned sim_uid_number(const char *uid);
unsigned sim_name_number(const char *key);
uint64_t sim_fingerprint(const struct sim_object *object);

/* ---- simulated-server.c */
struct sim_object *server_object(struct simulation *sim, unsigned name, unsigned uid); /* NULL: gone */
bool server_act(struct simulation *sim, unsigned action, unsigned argument); /* false: not possible now */
/* What is on its way to a run, or comes from it: an object as the server prints it. */
void server_print(const struct simulation *sim, unsigned name, const struct sim_object *object,
                  char buffer[SIM_JSON_MAX]);
struct sim_object server_parse(const char *json);
void server_answer(struct simulation *sim, unsigned name, const char *method, const char *body,
                   struct sim_reply *ret);
enum {
        SERVER_CREATE,
        SERVER_CHANGE,
        SERVER_RELABEL,
        SERVER_DELETE,
        SERVER_STRIP,
        SERVER_BACKUP,
        SERVER_RESTORE
};

/* ---- simulated-watcher.c */
void watcher_start(struct simulation *sim, unsigned watch);
void watcher_lose_store(struct simulation *sim, unsigned watch); /* its process is not there */
bool watcher_read(struct simulation *sim, unsigned watch);
bool watcher_announce(struct simulation *sim, unsigned watch, unsigned limit);
bool watcher_verify(struct simulation *sim, unsigned watch);
bool watcher_listen(struct simulation *sim, unsigned watch); /* one message */
bool watcher_is_at_rest(const struct simulation *sim, unsigned watch);

/* ---- simulated-worker.c */
void simulation_goes_on(struct simulation *sim); /* the one whose time and server there are */
int workers_start(struct simulation *sim);
void worker_take(struct simulation *sim, unsigned worker, const struct message_run *run, unsigned watch);
void worker_recall(struct simulation *sim, unsigned worker);
void worker_cancel(struct simulation *sim, unsigned worker, uint64_t sequence);
bool worker_begin(struct simulation *sim, unsigned worker);
bool worker_end(struct simulation *sim, unsigned worker, unsigned argument);
bool worker_answer(struct simulation *sim,
                   unsigned worker); /* the handler is over, and the next one may begin */
/* A run waits before its handler, and others begin meanwhile; none of its watch, if it waits for its process. */
bool worker_aside(struct simulation *sim, unsigned worker, unsigned argument);
void worker_heard(struct simulation *sim, unsigned worker, uint64_t sequence);
bool worker_write(struct simulation *sim, unsigned worker,
                  unsigned argument);                        /* one that has answered ends, in any order */
bool worker_return(struct simulation *sim, unsigned worker); /* what has not begun, as one takes long */
/* A slow server answers a run. */
bool worker_serve(struct simulation *sim, unsigned worker, unsigned argument);
void worker_stop(struct simulation *sim, unsigned worker); /* all its runs end */
void worker_kill(struct simulation *sim, unsigned worker);

/* ---- operator.c: the controller's caller */
int operator_start(struct simulation *sim);
void operator_end(struct simulation *sim, bool in_order); /* false: by SIGKILL */
void operator_stop(struct simulation *sim); /* its runs end, cancelled; then it ends in order */
bool operator_hear_watcher(struct simulation *sim, unsigned watch);
bool operator_hear_worker(struct simulation *sim, unsigned worker);
bool operator_settle(struct simulation *sim);
bool operator_idle(struct simulation *sim);
bool operator_page(struct simulation *sim, unsigned watch);
bool operator_wake(struct simulation *sim, bool also_early); /* timers that are due */
uint64_t operator_next_time(const struct simulation *sim);
/* Each row of the ledger is shown to the model. */
void operator_see_rows(struct simulation *sim, unsigned watch);
/* Whether an attempt to write the finalizer of this object is still counted. */
bool operator_remembers(const struct simulation *sim, unsigned watch, unsigned uid);
bool operator_order(struct simulation *sim, unsigned argument); /* by hand */
void operator_reload(struct simulation *sim);
