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
#include "config/config.h"
#include "ipc/channel.h"
#include "ipc/log.h"
#include "ledger/ledger.h"
#include "os/cgroup.h"
#include "os/slot.h"
#include "queue/queue.h"
#include "supervisor/metrics.h"
#include "supervisor/options.h"
#include "supervisor/slowest.h"
#include "supervisor/turn.h"
#include "supervisor/watch-place.h"

struct finalizer_try;
struct handler_hash;
struct left;
struct listing;
struct related_cursor;
struct supervisor;
struct under_way;
struct watch;
struct worker;

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

/* A run that a worker was given. */
struct assignment {
        struct queue_run run;       /* its strings belong to the queue's entry until queue_done() */
        bool to_send, is_first;     /* is_first: of its object, as far as the ledger knows */
        uint64_t reloads, restores; /* before it was given out; restores: of its database */
        uint64_t expected_usec, took_usec;
        unsigned place; /* its record (under-way.c) */
};

#define RUNS_AT_ONCE 16

struct worker {
        struct child_slot *child;
        bool stale; /* it was told an older configuration: another one takes its place after its run */
        bool filling;
        struct assignment given[RUNS_AT_ONCE]; /* the first is what it is at, the others have not begun */
        size_t given_count;
        uint64_t expected_usec;    /* of all of them */
        uint64_t started_boottime; /* of the first */
};

#define SETTLE_PRIORITY 10 /* of the loop: after all messages that are there */

/* Changes of one watch that may wait here, unannounced or queued: what bounds our memory. */
#define CREDIT_LIMIT 2000

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
        struct options *options;
        struct config *config;
        sd_event *event;
        enum supervisor_phase phase;
        bool uninstalling;   /* only finalizers are taken off; kept in the ledger (uninstall.c) */
        bool uninstall_told; /* ... and that none is left */
        uint64_t uninstall_realtime, uninstall_by; /* since when, and by which user */
        sd_event_source *uninstall_source;
        bool reloading;  /* ending only to begin anew */
        bool changing;   /* a new configuration is being carried out (reload-apply.c) */
        bool owes_ready; /* systemd waits for the end of that */
        sd_event_source *change_timer;
        struct config **old_config; /* which watches that are leaving still refer to */
        size_t old_config_count;
        int exit_code;
        struct ledger_clock clock;
        struct queue *queue;
        struct ledger *ledger;
        bool ledger_lost;    /* what it does not know may have been handed out all the same */
        struct slots *slots; /* of the watchers */
        char *slots_path;
        char *access_folder;         /* access.c: what handlers are given for themselves */
        struct access_state *access; /* of watches that the credential process has spoken of */
        size_t access_count;
        char *secrets_folder, *secrets_parent; /* secrets.c; parent: "" in the runtime directory */
        bool secrets_on_disk;                  /* there is no memory for them */
        struct under_way *under_way;
        uint64_t unsure_times; /* how often it was not known what had been under way */
        bool runtime_kept;     /* our runtime directory is that of the last life */
        int last_exit;         /* of the last life; -1: it did not end in order */
        struct child_slot *child;
        size_t child_count;
        struct watch *watch; /* places */
        size_t watch_count;  /* places that are or were in use: see FOREACH_WATCH */
        size_t watch_room;   /* of all places */
        struct worker *worker;
        size_t worker_count;
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
        size_t due_synced;     /* watches in sync, when it was last asked what is due */
        uint64_t due_armed;    /* by the ledger's clock: what due_timer waits for; 0 = nothing */
        bool commit_due;       /* something must not be told before the ledger has it */
        uint64_t commit_since; /* it was wanted, and the ledger was busy ever since; 0: it is not */
        bool commit_told;
        sd_event_source *commit_timer;
        sd_event_source *rest_timer; /* rest.c */
        struct slowest slowest;
        struct turns turns;
        sd_event_source *retry_source, *related_source, *list_source;
        sd_event_source *settle_source, *heartbeat_timer, *due_timer, *queue_timer, *kill_timer,
                *extend_timer, *control_source, *fatal_timer;
        struct handler_hash *handler_hash; /* while handlers are looked at: handler.c */
        sd_event_source *handler_source;
        size_t handler_place;      /* of the watch that is judged next */
        char handler_key_name[33]; /* with which key hashes are made */
        uint64_t reloads;          /* that were carried out watch by watch, in this life */
        struct left *left;         /* left.c */
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
int supervisor_init(struct supervisor *supervisor, struct options *options, struct config *config);
int supervisor_run(struct supervisor *supervisor); /* returns the exit code */
void supervisor_done(struct supervisor *supervisor);
/* Calls once, when the loop has nothing else to do; the callback enables *source again for more. */
int supervisor_when_idle(struct supervisor *supervisor, sd_event_source **source,
                         sd_event_handler_t callback);

/* watch.c: the places of watches. Those in use, in order; NULL begins and ends. */
struct watch *watch_next(const struct supervisor *supervisor, const struct watch *watch);
#define FOREACH_WATCH(name, supervisor)                                                                     \
        for (struct watch *name = watch_next(supervisor, NULL); name; name = watch_next(supervisor, name))
unsigned watch_number(const struct watch *watch); /* its place */
/* Of those in use, by name; not one that is leaving. */
struct watch *watch_find(const struct supervisor *supervisor, const char *name);
size_t watches_in_force(const struct supervisor *supervisor);
int watches_new(struct supervisor *supervisor);
/* A free place, for what will be the watch of this configuration. -ENOSPC: there is none. */
int watch_take(struct supervisor *supervisor, const struct config_watch *config, struct watch **ret);
/* How many of its runs may be given to workers; 0 = as many as there is use for: one for each worker may be
 * under way anyway. */
unsigned watch_limit(const struct supervisor *supervisor, const struct config_watch *config);
/* Its watcher is gone and nothing of it runs; -EBUSY; -EAGAIN: it takes another turn. */
int watch_release(struct watch *watch);
void watch_empty(struct watch *watch);

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

/* lost.c: a ledger that was lost, and when it is whole again. */
bool lost_has_stores(const struct supervisor *supervisor);
int lost_load(struct supervisor *supervisor, bool lost);
void lost_settle(struct supervisor *supervisor); /* nothing has run for a while */

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

/* dispatch.c */
/* row: what the ledger knows of it, or NULL; reason: static. */
int dispatch_push(struct watch *watch, const struct record_change *change, enum change_kind kind,
                  const struct ledger_row *row, const char *reason, uint64_t delay_usec);
/* A run of our own: of the finalizer alone. */
bool run_is_without_handler(const char *reason);
/* Our own write to it was a moment ago. */
bool was_written_lately(const struct supervisor *supervisor, const struct ledger_row *row);

/* assign.c */
const struct queue_run *worker_run(const struct worker *worker); /* what it is busy with; NULL: nothing */
bool dispatch_is_under_way(const struct watch *watch, const char *key,
                           const char *uid);          /* a worker has it */
bool assign_may(const struct supervisor *supervisor); /* somebody is free for what is due */
int assign_runs(struct supervisor *supervisor);
void assign_send(struct supervisor *supervisor); /* once the ledger knows of them */
/* What a worker answers is taken from it. -EPROTO: it was not given that, or does not do it yet. */
int assign_take(struct worker *worker, const struct message_done *done, struct assignment *ret);
/* Its database went back in time after it was given out. */
bool assignment_is_outdated(const struct supervisor *supervisor, const struct assignment *given);
/* Asks the worker to end its run of this object, or to give it back if it has not begun. */
void assign_cancel(const struct watch *watch, const char *key, const char *uid, const char *reason);
/* As people count, of a watch or (NULL) of all: what a worker was given and has not begun waits still. */
struct queue_counts assign_count(const struct supervisor *supervisor, const struct watch *watch);
/* What workers have not begun is to come back. */
void assign_recall(struct supervisor *supervisor, const char *reason);

/* rest.c: at the end of a turn. */
void rest_maybe(struct supervisor *supervisor);
/* dispatch-owned.c */
extern const char child_reason[];
int dispatch_owned(struct watch *watch, const struct record_change *change);
/* The first watch of an owned or related kind whose objects are not all known yet, and that is served; NULL:
 * none. Till then nothing of `parent` runs: a handler would take those that are missing for gone. */
const char *owned_awaited(const struct watch *parent);
void owned_known(struct watch *watch); /* its owner may have waited for that */
/* This object may depend on a related one that has changed. */
int owned_related_changed(struct watch *parent, const struct ledger_row *row);
/* A child has changed while the run that has just succeeded was under way: on record, as all that is due. */
int owned_keep_due(const struct watch *watch, struct ledger_row *row);
int dispatch_keys(struct watch *watch, const struct message_keys *keys);
uint64_t resource_version_number(const char *version); /* 0: it is none */
int dispatch_synced(struct watch *watch, const struct message_synced *synced);
int dispatch_checked(struct watch *watch, const struct message_checked *checked);
int dispatch_swept(struct watch *watch, const struct message_swept *swept);

/* related.c */
int related_changed(struct watch *parent, const struct record_change *change); /* -ENOMEM */
int related_recheck(struct watch *watch);             /* when it is in sync for the first time; -ENOMEM */
void related_continue(struct supervisor *supervisor); /* at the end of a turn */
void related_forget(struct watch *watch);

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
int room_begin_next(const struct watch *former, const char *reason, struct watch *watch);

/* health.c */
int health_review(struct watch *watch); /* -ENOMEM */
int dispatch_health(struct watch *watch, const struct message *message);
/* *delay: may be made shorter. 1: the watch is past its deadline, and that is fatal: refusal_fatal(). */
int refusal_note(struct watch *watch, const struct message_done *done, uint64_t *delay);
void refusal_fatal(struct watch *watch);
void refusal_over(struct watch *watch); /* something was written */
/* This object has nothing to say any more. */
void refusal_forget(struct watch *watch, const char *key, const char *uid);
void refusal_free(struct watch *watch);
/* A resource that is absent and need not be there counts as in sync. */
bool watch_is_in_sync(const struct watch *watch);
bool watch_is_in_trouble(const struct watch *watch); /* degraded or failed */
void turn_settle_soon(struct supervisor *supervisor);
/* When the ledger cannot be written now. */
int turn_settle_later(struct supervisor *supervisor);
int handled_add(struct watch *watch, const char *key, const char *uid, uint64_t sequence);
void ledger_failed(struct supervisor *supervisor, int status);

/* backoff.c */
uint64_t retry_delay(const struct config_watch *config, uint64_t attempts);
uint64_t held_delay(uint64_t held_usec);  /* a little longer, so that not all come at once */
uint64_t throttle_units(uint64_t number); /* of retry.throttle: Fibonacci, up to 610 */
/* The ledger's time; that in `row`, where it serves as well. */
uint64_t resync_time(struct watch *watch, const struct ledger_row *row, uint64_t now);

/* outcome.c */
int outcome_done(struct supervisor *supervisor, const struct assignment *given,
                 const struct message_done *done);
#define BEHIND_USEC         (20 * UINT64_C(1000)) /* the watch usually needs less to show our own write */
/* Up to this a delay waits in the queue; above, only in the ledger, where it costs no memory. */
#define DELAY_IN_QUEUE_USEC (60 * UINT64_C(1000000))

/* blame.c */
/* One more crash over this object; returns how long it waits, in quarantine or for its backoff. */
uint64_t blame_row(const struct supervisor *supervisor, const struct config_watch *config,
                   struct ledger_row *row);
void blame_tell(const struct config_watch *config,
                const struct ledger_row *row); /* that it is in quarantine */
/* The worker died first: what it was busy with waits from now on. */
void blame_worker(struct supervisor *supervisor, const struct worker *worker, const char *cause);
/* One more crash over this object, written down, and said when it is in quarantine. -ENOENT: nothing is
 * known of it. */
int blame_object(struct supervisor *supervisor, const struct config_watch *config, const char *key,
                 const char *uid, uint64_t fingerprint, const char *cause);
/* By hand: out of quarantine (release), or merely now. -ENOENT: there is no such object. */
int blame_release(struct supervisor *supervisor, struct watch *watch, const char *key, bool release);

/* under-way.c: which runs workers have, for the case that we are killed ourselves. Reads what the last life
 * has left, so that it runs once, alone if it may be to blame, and begins anew. */
int under_way_begin(struct supervisor *supervisor);
void under_way_blameless(struct supervisor *supervisor); /* whatever comes now is nobody's fault */
void under_way_close(struct supervisor *supervisor);     /* the ledger is closed: what is noted now is all */
void under_way_free(struct under_way *under_way);
void under_way_note(struct worker *worker, struct assignment *given);
/* Noted until the ledger has what it has come to; one that had not begun has left it as it was. */
void under_way_end(struct worker *worker, const struct assignment *given, bool has_begun);
void under_way_committed(struct supervisor *supervisor);

/* unsure.c: rows that may not say what was handled last. */
int unsure_begun(struct supervisor *supervisor, bool *ret); /* by a release that keeps account of it */
int unsure_begin(struct supervisor *supervisor,
                 const char *why); /* NULL: there is nothing new to be unsure of */
int unsure_load(struct watch *watch);
void unsure_over(struct watch *watch); /* all that it has was announced, and judged */
/* Whether it is the same object still as when its row was written: 1, 0; negative: the ledger has failed. */
int unsure_is_same(struct watch *watch, const struct record_change *change, const struct ledger_row *row);

/* retry.c: all of a watch, or of all watches (NULL), that have failed. */
int retry_all(struct supervisor *supervisor, struct watch *watch, uint64_t *ret_count);
int retry_continue(struct supervisor *supervisor); /* at the end of a turn */
/* The server is well again, as far as this watch goes: what waits for that is due soon, at a pace. */
void recover(struct watch *watch);

#include "supervisor/handler.h"

/* pause.c: 0 when that is how it is already, 1 when it is new. */
int pause_load(struct watch *watch);
void pause_apply(struct watch *watch); /* tells the queue whether anything of it may run */
int pause_watch(struct watch *watch, const char *reason, uid_t user);
int pause_resume(struct watch *watch, uid_t user);

/* separation.c: whether handlers can run as the users that they are to run as, added to the problems if not
 * (-EINVAL). And said at the start: which handlers could read what they must not. */
int separation_check(const struct config *config, struct config_problems *problems);
void separation_warn(const struct supervisor *supervisor);

/* limits.c: how limits of handlers hold here. Before the first child is started. */
void limits_prepare(struct supervisor *supervisor);
void limits_judge(struct watch *watch); /* says what is new */

/* release.c */
extern const char release_reason[]; /* of runs that only take our finalizer off */
int release_finalizer(struct supervisor *supervisor, struct watch *watch, const char *key, const char *why,
                      uid_t uid); /* -ENOENT */

/* uninstall.c */
extern const char uninstall_reason[];              /* likewise */
int uninstall_load(struct supervisor *supervisor); /* before the first child is started */
int uninstall(struct supervisor *supervisor, uid_t uid);
int uninstall_cancel(struct supervisor *supervisor, uid_t uid); /* ends in a restart in place */
/* An object that a watcher announces, in the place of everything else that it would mean. */
int uninstall_take(struct watch *watch, const struct record_change *change);
void uninstall_swept(struct watch *watch,
                     const struct message_swept *swept); /* all of its objects were announced */
void uninstall_watch_done(struct watch *watch);
bool uninstall_is_done(const struct supervisor *supervisor);
void uninstall_review(struct supervisor *supervisor); /* says it, once */
void uninstall_write_watch(const struct watch *watch, struct text *json);
void uninstall_write_status(const struct supervisor *supervisor, struct text *json);

/* finalizer.c: our finalizer where it is not as the watch wants it, of objects that need no other run. */
bool finalizer_is_reason(const char *reason); /* of such a run */
int finalizer_review(struct watch *watch, const struct record_change *change);
int finalizer_ended(struct supervisor *supervisor, const struct assignment *given,
                    const struct message_done *done);
void finalizer_forget(struct watch *watch);

/* left.c: finalizers of ours that nobody takes off any more. Says them; negative: the file is not written.
 */
int left_review(struct supervisor *supervisor);
void left_free(struct supervisor *supervisor);
void left_write_status(const struct supervisor *supervisor, struct text *json); /* each with a comma */

/* doubt.c: objects that a watcher has died or hung over. Who is at what, when it fails (-ENOENT: nothing).
 */
int doubt_look(const struct supervisor *supervisor, const struct child_slot *child, struct slot_view *ret);
void doubt_blame(struct supervisor *supervisor, const struct watch *watch, const struct slot_view *view,
                 const char *cause);
int doubt_feed(struct watch *watch);
bool doubt_is(const struct watch *watch, const char *key, const char *uid);
int doubt_release(struct watch *watch, const char *key); /* -ENOENT */

/* due.c: what the ledger says is due. */
void due_arm(struct supervisor *supervisor);

/* owed.c */
int owed_begin(struct watch *watch);
void owed_start(struct watch *watch);
void owed_continue(struct watch *watch);
/* How long the first run of an object waits for the deletion of another one of its name, that the watcher
 * has not told yet. */
uint64_t owed_delay(struct watch *watch, const char *key);

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
