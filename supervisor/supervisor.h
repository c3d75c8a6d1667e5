/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The supervisor: one struct, owned by main(), that every part gets a pointer to. It holds configuration,
 * queue and ledger, starts and watches the children, and ends everything when one of them fails. It never
 * sees an object.
 *
 * One turn of the loop: messages come in (dispatch.c, outcome.c change queue and ledger), then turn_settle()
 * picks runs, commits the ledger once, and only then lets packets go that depend on what was committed.
 */
#include <systemd/sd-event.h>

#include "base/duration.h"
#include "base/throttle.h"
#include "ipc/channel.h"
#include "ipc/log.h"
#include "os/cgroup.h"
#include "os/slot.h"
#include "supervisor/effects.h"
#include "supervisor/metrics.h"
#include "supervisor/options.h"
#include "supervisor/slowest.h"
#include "supervisor/turn.h"
#include "supervisor/watch-place.h"

struct handler_hash;
struct left;
struct listing;
struct supervisor;
struct under_way;

enum child_kind { KIND_CREDENTIAL, KIND_WATCHER, KIND_WORKER, KIND_GATEWAY, KIND_COUNT };

/* One slot a child, made before the first fork and never moved. */
struct child_slot {
        struct supervisor *supervisor;
        enum child_kind kind;
        size_t index; /* of the watch or worker */
        enum child_state state;
        pid_t pid;
        struct channel *channel;
        uint64_t last_heartbeat; /* CLOCK_MONOTONIC: a suspended machine's children are not hung */
        uint64_t log_dropped;
        struct child_counters counters, past; /* past: of the processes that were here before this one */
        sd_event_source *eof_timer;
        uint64_t end_by; /* CLOCK_MONOTONIC: what a reload has told to end has ended by then; 0 = nothing has
                          */
        bool killed;     /* it has not, and was killed by us */
        bool blameless;  /* it says that what it was busy with is not why it ends */
};

#define SETTLE_PRIORITY 10 /* of the loop: after all messages that are there */

enum supervisor_phase {
        PHASE_STARTING, /* not every child is ready */
        PHASE_RUNNING,
        PHASE_STOPPING_WORKERS, /* asked to stop: what runs may finish */
        PHASE_STOPPING_REST,
        PHASE_TEARDOWN, /* something fatal: everything ends */
};

/* The clock by which what is on record is due: ledger-clock.c. */
struct ledger_clock {
        char boot[33];   /* in which `offset` holds; "": unknown */
        uint64_t offset; /* from CLOCK_BOOTTIME */
        uint64_t seen;   /* what it showed when that was last written down */
};

struct supervisor {
        struct controller controller;
        struct options *options;
        struct config *config;
        sd_event *event;
        enum supervisor_phase phase;
        struct {
                int exit_code; /* 0: it goes on */
                char key[512], cause[1024];
        } end;           /* as the controller has said */
        bool reloading;  /* ending only to begin anew */
        bool changing;   /* a new configuration is being carried out (reload-apply.c) */
        bool owes_ready; /* systemd waits for the end of that */
        sd_event_source *change_timer;
        struct config **old_config; /* which watches that are leaving still refer to */
        size_t old_config_count;
        int exit_code;
        struct ledger_clock clock;
        struct slots *slots; /* of the watchers */
        char *slots_path;
        char *access_folder;         /* access.c: what handlers are given for themselves */
        struct access_state *access; /* of watches that the credential process has spoken of */
        size_t access_count;
        char *secrets_folder, *secrets_parent; /* secrets.c; parent: "" in the runtime directory */
        bool secrets_on_disk;                  /* there is no memory for them */
        struct under_way *under_way;
        bool runtime_kept; /* our runtime directory is that of the last life */
        int last_exit;     /* of the last life; -1: it did not end in order */
        struct child_slot *child;
        size_t child_count;
        struct child_slot *worker_child; /* of the first worker: those of the others follow */
        struct watch_place *place;
        struct message *credential; /* the newest: for children that become ready later */
        struct cgroup_delegation delegation;
        int64_t memory_kills; /* that are known of; -1: the kernel does not tell */
        struct throttles throttles;
        uint64_t started_realtime;
        uint64_t reported; /* the objects that were crashed over until then, by the ledger's clock, have
                              their Events; report.c */
        bool has_reported; /* in this life */
        uint64_t starts;   /* of this state folder, this one included */
        int lock_fd, runtime_lock_fd, control_fd;
        bool told_live, told_ready; /* the gateway, last */
        uint64_t runs_seen;         /* at the last heartbeat */
        bool rested;
        sd_event_source *rest_timer; /* rest.c */
        struct slowest slowest;
        struct turns turns;
        sd_event_source *list_source, *idle_source, *wake_source[WAKE_COUNT];
        sd_event_source *settle_source, *heartbeat_timer, *kill_timer, *extend_timer, *control_source,
                *fatal_timer;
        struct handler_hash *handler_hash; /* while handlers are looked at: handler.c */
        sd_event_source *handler_source;
        size_t handler_place; /* of the watch that is judged next */
        struct left *left;    /* left.c */
        size_t left_count;
        struct control_peer *control_peer;
        uint64_t control_serial; /* of questions to the watchers */
        size_t control_count;
        bool control_full;      /* somebody waits there for whom there is no descriptor */
        char status_text[1024]; /* as last told to systemd */
        char not_reloaded[512]; /* why the file as it is now was not taken; "" */
        uint64_t status_monotonic;
        sd_event_source *status_timer;
        char cause[1024];     /* of death: for the termination message */
        char suspicion[1024]; /* what is the cause, unless a stop explains it (fatal_timer) ... */
        const struct child_slot *suspicious; /* ... and of which child */
};

/* The configuration is owned by the supervisor from here on. */
void supervisor_set_phase(struct supervisor *supervisor, enum supervisor_phase phase);
int supervisor_init(struct supervisor *supervisor, struct options *options, struct config *config);
int supervisor_run(struct supervisor *supervisor); /* returns the exit code */
void supervisor_done(struct supervisor *supervisor);
/* Calls once, when the loop has nothing else to do; the callback enables *source again for more. */
int supervisor_when_idle(struct supervisor *supervisor, sd_event_source **source,
                         sd_event_handler_t callback);

/* state-folder.c: one instance a state folder; the count of starts. */
int state_folder_take(struct supervisor *supervisor, struct error *error);
int runtime_folder_take(struct supervisor *supervisor, struct error *error); /* likewise */
/* false: it is not there any more, and that was fatal. */
bool state_folder_check(struct supervisor *supervisor);
void state_folder_note_exit(struct supervisor *supervisor);
void state_folder_note_reports(struct supervisor *supervisor, uint64_t now);
void state_folder_note_time(struct supervisor *supervisor);

/* ledger-clock.c: all times of the ledger's rows are of this clock, which nobody sets. */
uint64_t ledger_now(const struct supervisor *supervisor);
/* For people, and for other processes of this boot. */
uint64_t ledger_to_realtime(const struct supervisor *supervisor, uint64_t time);
uint64_t ledger_to_boottime(const struct supervisor *supervisor, uint64_t time);
/* left: of the last life; zeros where nothing is known. */
void ledger_clock_begin(struct supervisor *supervisor, const struct ledger_clock *left);
void ledger_clock_note(struct supervisor *supervisor); /* now and then */

/* secrets.c: where what is confidential is kept, so that none of it goes to a disk. */
int secrets_begin(struct supervisor *supervisor, struct error *error); /* the folder, before all stores */
void secrets_warn(const struct supervisor *supervisor); /* where it is a disk, and something needs it */
/* The folder for the store of a watch with this configuration; owned by the caller; NULL: no memory. */
char *secrets_store_folder(const struct supervisor *supervisor, const struct config_watch *config);
char *secrets_kept_folder(const struct supervisor *supervisor);
/* A store is where it belongs: what lies in the other place is of an older release or configuration. */
void secrets_move(const struct supervisor *supervisor, const struct config_watch *config);
/* Removes leftovers of former lives: of older releases on the disk, and in memory what no row refers to. */
int secrets_clean(struct supervisor *supervisor);
void secrets_end(struct supervisor *supervisor);

/* lost.c: whether there is a store of an earlier life. */
bool lost_has_stores(const struct supervisor *supervisor);

/* spawn.c, children.c */
int children_new(struct supervisor *supervisor);
int children_start(struct supervisor *supervisor);
int child_start(struct child_slot *child);
bool child_is_used(const struct child_slot *child); /* not the place of a watcher that nobody wants */
void children_reap(struct supervisor *supervisor);
bool children_all(const struct supervisor *supervisor, enum child_kind kind, enum child_state state);
bool children_gone(const struct supervisor *supervisor);
void child_describe(const struct child_slot *child, char *buffer,
                    size_t size);                            /* "watcher of widgets (pid 12)" */
const char *child_busy_with(const struct child_slot *child); /* a key, or NULL */
const char *child_binary(enum child_kind kind);
enum role child_role(enum child_kind kind);
int spawn_child(struct child_slot *child, int *ret_fd);
/* Starts the spawner, and gives up for good to start anything else. Negative errno. */
int supervisor_close_in(const struct supervisor *supervisor);
/* Nobody else: the end of a child may lead to the start of another one, which leads here. */
void spawner_reap(struct supervisor *supervisor);
void spawner_exited(struct supervisor *supervisor, const char *how); /* it was reaped */
/* false: it hangs, and that was fatal. *longest: raised to how long it has been silent. */
bool spawner_check(struct supervisor *supervisor, uint64_t now, uint64_t *longest);
void child_signal(struct child_slot *child, int signal);
void child_set_state(struct child_slot *child, enum child_state state);
struct child_slot *worker_child(const struct worker *worker);

/* feed.c: configuration, credentials, throttling */
int feed_config(struct child_slot *child);
/* Whether the watcher of a watch is told something else by a new configuration: 1, 0, -ENOMEM. */
int feed_watcher_differs(const struct supervisor *supervisor, const struct config_watch *old,
                         const struct config *config, const struct config_watch *watch);
/* Whether the children can be told of it: -EMSGSIZE, -EINVAL (text that is no UTF-8), -ENOMEM. */
int feed_can_tell(const struct supervisor *supervisor, const struct config *config, struct error *error);
/* How long no credential may be had: what the credential process goes by. */
uint64_t shortest_deadline(const struct config *config);
void feed_ready(struct child_slot *child);
int feed_credential(struct supervisor *supervisor, struct message **message);
void feed_throttle(struct child_slot *from, const struct message_throttle *throttle);
void feed_refresh(struct supervisor *supervisor, const struct message_refresh *refresh);

/* rest.c: at the end of a turn. */
void rest_maybe(struct supervisor *supervisor);
/* turn.c: the loop, until it has ended; its exit code, or a negative errno. */
int turns_run(struct supervisor *supervisor);
void turn_is(struct supervisor *supervisor, const char *what); /* static: who has this turn */
/* What can go on in another turn goes on there. */
bool turn_is_spent(const struct supervisor *supervisor);
void turns_write_status(const struct supervisor *supervisor, struct text *json); /* with a comma */

/* access.c */
struct access_state {
        char *watch;
        bool usable, failing;         /* failing: it is usable, and cannot be renewed */
        struct watch_trouble trouble; /* while it is not usable; its reason also while it fails */
        uint64_t expires_realtime;    /* of the handler's token; 0: it has none */
};
int access_begin(struct supervisor *supervisor, struct error *error);
void access_end(struct supervisor *supervisor);
/* Once the spawner is there: says what is not separated; negative: a handler could not read what it has. */
int access_check(const struct supervisor *supervisor, struct error *error);
const struct access_state *access_of(const struct watch *watch); /* NULL: nothing is known, or all is well */
bool access_awaited(const struct watch *watch); /* nothing of it runs before its handler has a token */
int access_take(struct supervisor *supervisor, const struct message_access *message);
int access_apply(struct watch *watch); /* what is known to a watch that is new */

/* room.c. Whether the watch goes on counting as failed: it was begun anew for that, and is not in sync. */
bool room_is_awaited(struct watch *watch, const struct message_degraded *degraded);
int room_found(struct watch *watch); /* it is in sync */
int room_begin_next(const struct watch_place *former, enum watch_health health, const char *reason,
                    struct watch *watch);

/* health.c */
int health_review(struct watch *watch); /* -ENOMEM */
int health_heard(struct watch *watch, const struct message *message);
/* A resource that is absent and need not be there counts as in sync. */
bool watch_is_in_sync(const struct watch *watch);
bool watch_is_in_trouble(const struct watch *watch); /* degraded or failed */
/* under-way.c: which runs workers have, for the case that we are killed ourselves. Reads what the last life
 * has left, so that it runs once, alone if it may be to blame, and begins anew. */
int under_way_begin(struct supervisor *supervisor);
void under_way_blameless(struct supervisor *supervisor); /* whatever comes now is nobody's fault */
void under_way_close(struct supervisor *supervisor);     /* the ledger is closed: what is noted now is all */
void under_way_free(struct under_way *under_way);
void under_way_note(struct supervisor *supervisor, struct assignment *given);
/* Noted until the ledger has its outcome; a run that had not begun has left it as it was. True: so many wait
 * for that, that the ledger should be committed. */
bool under_way_end(struct supervisor *supervisor, const struct assignment *given, bool has_begun);
void under_way_committed(struct supervisor *supervisor);

#include "supervisor/handler.h"

/* separation.c: whether handlers can run as the users that they are to run as, added to the problems if not
 * (-EINVAL). And said at the start: which handlers could read what they must not. */
int separation_check(const struct config *config, struct config_problems *problems);
void separation_warn(const struct supervisor *supervisor);

/* limits.c: how limits of handlers hold here. Before the first child is started. */
void limits_prepare(struct supervisor *supervisor);
void limits_judge(struct watch *watch); /* says what is new */

/* status.c */
void uninstall_write_watch(const struct watch *watch, struct text *json);
void uninstall_write_status(const struct supervisor *supervisor, struct text *json);

/* left.c: finalizers of ours that nobody takes off any more. Says them; negative: the file is not written.
 */
int left_review(struct supervisor *supervisor);
void left_free(struct supervisor *supervisor);
void left_write_status(const struct supervisor *supervisor, struct text *json); /* each with a comma */

/* doubt.c: objects that a watcher has died or hung over. Who is at what, when it fails (-ENOENT: nothing).
 */
int doubt_look(const struct supervisor *supervisor, const struct child_slot *child, struct slot_view *ret);
int doubt_feed(struct watch *watch);
int doubt_release(struct watch *watch, const char *key); /* -ENOENT */

/* heartbeat.c */
int heartbeat_start(struct supervisor *supervisor);
bool heartbeat_limit(struct config *config); /* to what systemd's watchdog needs; true: it was changed */
void heartbeat_note(struct child_slot *child, const struct message_heartbeat *heartbeat);

/* reload.c */
/* Every problem is told (printed for --check, else logged); `first` gets the first one. */
int config_load_and_tell(const struct options *options, struct config **ret, char *first, size_t size);
void reload(struct supervisor *supervisor);
/* Whether the configuration can be read; else why not. */
bool reload_can_restart(const struct supervisor *supervisor, char *why, size_t size);
void reload_by_restart(struct supervisor *supervisor, const char *why);

/* reload-apply.c: takes the configuration over and begins to carry it out. -ENOMEM: nothing has changed, and
 * it is still the caller's. */
int reload_apply(struct supervisor *supervisor, struct config *config);
/* Goes on with it, as far as that can be done now. */
void reload_watch(struct watch *watch); /* it is begun anew, as it is configured */
void reload_continue(struct supervisor *supervisor);

/* teardown.c */
void stop_gracefully(struct supervisor *supervisor);
/* The cause is logged once, first; message_field may be NULL. */
void supervisor_fatal(struct supervisor *supervisor, int exit_code, const struct child_slot *child,
                      const char *key, const char *format, ...) _printf_(5, 6);
/* The same a moment later, unless a stop was requested by then. The first of several calls counts. */
void supervisor_fatal_unless_stopped(const struct child_slot *child, const char *format, ...) _printf_(2, 3);
void teardown_continue(struct supervisor *supervisor);

/* notify.c */
void notify_ready(struct supervisor *supervisor);
void notify_stopping(struct supervisor *supervisor);
void notify_reloading(const struct supervisor *supervisor);
void notify_not_reloaded(struct supervisor *supervisor, const char *why);
void notify_status(struct supervisor *supervisor);
/* To systemd and, by its termination message, to the kubelet. */
#define TERMINATION_LOG "/dev/termination-log"
void notify_failed(int exit_code, const char *cause);
/* Something inside is broken so that no end in order can be promised: systemd ends everything (SIGABRT). */
void notify_fault(const char *text, int error);

/* control.c, status.c */
/* list.c: the objects that are "failing", "waiting" or "quarantined", of a watch and a namespace ("": of
 * all), as a document that grows page by page. */
int listing_new(struct supervisor *supervisor, const char *state, const char *watch, const char *namespace,
                struct listing **ret); /* -EINVAL: there is no such state */
/* As far as there is time in this turn. 1: it is complete, 0: call again. */
int listing_continue(struct listing *listing);
const struct text *listing_document(const struct listing *listing);
void listing_free(struct listing *listing);
void control_continue(struct supervisor *supervisor); /* at the end of a turn */
/* A watcher has said how far it is. */
int control_take_position(struct watch *watch, const struct message_position *position);
int control_start(struct supervisor *supervisor, struct error *error);
void control_done(struct supervisor *supervisor);
int status_write(struct supervisor *supervisor, struct text *json);
/* Each with a comma behind it (supervisor/json.h). */
void status_write_watch(const struct supervisor *supervisor, size_t index, struct text *json);
void status_write_worker(const struct supervisor *supervisor, size_t index, struct text *json);
/* An object in trouble, for `status` and `get`. */
void status_write_row(const struct supervisor *supervisor, const char *watch, const struct ledger_row *row,
                      struct text *json);
void status_write_doubt(const struct supervisor *supervisor, const struct ledger_doubt *doubt,
                        struct text *json);

/* explain.c: what is known of one key. reason: of the run that has ended, static. */
int explain_write(const struct watch *watch, const char *key, struct text *json);
int explain_write_keys(const struct watch *watch, const char *begun, struct text *json);
void explain_ended(struct supervisor *supervisor, unsigned watch, const struct message_done *done,
                   const char *reason, uint64_t duration_usec);

/* report.c: Events on what the operator has died over, by the first worker that can. */
int reports_send(struct supervisor *supervisor, struct worker *worker);
/* To the worker that counts the Events of that object; back to the sender where that is the one. */
void report_pass_on(struct worker *from, const struct message_report *report);
