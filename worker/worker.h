/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The worker: takes a key, reads the newest object from the store, runs the handler, carries its answer out
 * on the API server, says DONE. One run at a time; nothing blocks the loop, so heartbeats go on while a
 * handler runs. What it is given meanwhile waits here for a moment, and goes back if it would wait for
 * longer.
 */
#include "ipc/child.h"
#include "jq/program.h"
#include "kube/resource.h"
#include "object/scan.h"
#include "process/process.h"
#include "store/store.h"
#include "worker/run/answer.h"

#define WAITING_MAX 64 /* a supervisor gives fewer at once */

struct run;
/* How long a run waits in its worker for a resource that Retry-After holds back. */
#define RUN_PATIENCE_USEC USEC_PER_SEC

struct applied;
struct coprocess;
struct dependents;
struct park_plan;
struct sibling;
struct kind;
struct recorder;
struct recording;

struct worker_watch {
        const struct record_watch *config;
        struct store *reader;
        struct kube_resource resource;
        bool discovered;
        bool told_status_dropped;
        struct jq_program *trigger_program; /* of trigger: {jq: ...} */
        struct jq_program *names_program;   /* of related objects: which of them; NULL = all */
        char **environment;                 /* of handlers, as far as it is the same for each run */
        size_t environment_count;
        struct process_user *user;   /* as whom its handler runs; NULL: as we do */
        struct coprocess *coprocess; /* of a serve handler or a plugin, once it has run */
};

struct worker {
        struct child *child;
        struct message *config_message;
        const struct message_config_worker *config;
        struct kube_client *client;
        struct worker_watch *watch;
        size_t watch_count;
        struct run *run;                      /* NULL: idle */
        struct message *waiting[WAITING_MAX]; /* RUNs that have not begun, in their order */
        size_t waiting_count;
        sd_event_source *next_source, *patience_timer;
        uint64_t refresh_serial;
        uint64_t runs;
        struct recorder *recorder;   /* of Events */
        struct recording *recording; /* of runs; NULL: not wanted */
        struct kind *kind;           /* of children, looked up */
        size_t kind_count;
        struct applied *applied;    /* ... and what they are since then */
        bool stopping, events_over; /* Events that still wait are not waited for any more */
};

extern const struct child_operations worker_operations;
void worker_done(struct worker *worker);
struct worker_watch *worker_watch_find(struct worker *worker, const char *name);
void worker_run_ended(
        struct worker *worker); /* run.c: the run is freed; ends the process when it was told to stop */
void worker_part_ended(struct worker *worker); /* one of those that a stop waits for */

/* waiting.c */
/* Begins it, or keeps it for when those before it have ended. */
int waiting_take(struct worker *worker, struct message **message);
/* All that have not begun go back. */
int waiting_return(struct worker *worker);
void waiting_done(struct worker *worker);

/* run.c */
int run_start(struct worker *worker, struct message **message);
/* Ends what runs: TERM now, KILL after `grace_usec`. The run ends as CANCELLED. */
void run_cancel(struct run *run, uint64_t grace_usec);
void run_free(struct run *run);

struct run {
        struct worker *worker;
        struct worker_watch *watch;
        struct message *message;
        const struct message_run *order;
        struct store_object object; /* as read; its json is what the handler was given */
        bool has_object;
        enum run_action action; /* as it is run: finalize for an object that is being deleted */
        bool carrying_out;      /* the handler has answered; before that things are made ready for it */
        uint64_t fingerprint;
        char *json;    /* the object with apiVersion and kind */
        char *related; /* the related objects, as a JSON array; NULL: the watch has none */
        char *excess;  /* why its request is too large; NULL: it is not, as far as is known */
        uint64_t related_fingerprint;
        char *recorded;          /* of a replay: the request, in the place of one that is made */
        struct process *process; /* exec */
        char *output;            /* serve: the line that the answer points into */
        struct answer answer;
        uint64_t started;
        bool handler_ran, handler_done, cancelled;
        bool not_started;       /* its program cannot be started, whatever the object is */
        uint64_t handler_stamp; /* of its files, when its process was started; 0: none was */
        bool changed;           /* since the attempt that is being undone */
        bool fetching;          /* unselected.c */
        sd_event_source *cancel_timer;
        uint64_t cancel_at; /* CLOCK_BOOTTIME; 0: not planned */
        /* carrying out: write.c */
        struct kube_transfer *transfer;
        /* conflict.c: of the patch that is under way */
        void (*on_written)(struct kube_transfer *, const struct kube_response *, void *);
        void (*again)(struct run *);
        unsigned conflicts; /* in a row */
        sd_event_source *conflict_timer;
        bool rebased; /* `current` is no more what was read and our own changes alone */
        bool foreign; /* ... and others have changed what triggers runs: nothing is claimed as known */
        bool foreign_essence; /* likewise, whatever the trigger is */
        struct kube_discovery *discovery;
        struct sibling *sibling; /* sibling.c: the other watches of its kind; NULL: not looked for */
        size_t sibling_count;
        const char *heir;      /* the watch that our list of children was given to; borrowed; NULL */
        struct sibling *asked; /* whose selection is being asked for */
        struct dependents *dependents;
        struct park_plan *resumed; /* the same attempt, which has waited for kinds to be served; owned */
        char *current;             /* the object after our last write; NULL: as read */
        char *current_version;     /* its resourceVersion */
        uint64_t own_fingerprint;
        char *own_version;
        char *settling; /* of RESULT_SETTLING */
        uint64_t settle_after_usec;
        uint64_t known_version; /* of our last write, unless others' changes are among what was there before
                                 */
        /* status.c */
        cJSON *status; /* the merge patch of it, with conditions; NULL: not made yet */
        char *status_text;
        char *told; /* the run has ended so, and this is still to be shown in its status */
        enum run_result told_result;
        size_t write_step;
        bool discovered; /* in this run */
        int wait_status;
        int http_status;            /* of the last request that was refused; 0 */
        uint64_t held_until;        /* CLOCK_BOOTTIME: by Retry-After; 0: nothing of the run was held back */
        struct process_usage usage; /* of the handler, in this run */
        bool out_of_memory;
};

bool run_is_replay(const struct run *run); /* nothing of it may reach the API server */
char **arguments_build(const struct record_watch *config);
uint64_t arguments_stamp(const struct record_watch *config); /* of the files among them, as they are now */
void run_log_line(const char *line, void *userdata);         /* userdata: the run */
/* A wrong checksum was read in the store of this watch (its own, or of what it owns or is related to): ends
 * the worker, and the next start builds that store anew. Returns -ECANCELED. */
int run_store_damaged(const struct run *run, const struct record_watch *config);
/* From the beginning, with what is related as it is now; ends in run_handler() or run_finish(). */
void run_attempt(struct run *run);
/* Says DONE and frees the run. */
void run_finish_too_large(struct run *run); /* as run->excess says */
void run_finish(struct run *run, enum run_result result, const char *format, ...) _printf_(3, 4);

/* user.c */
int user_new(const struct record_watch *config, struct process_user **ret);
void user_free(struct process_user *user);

/* limits.c: and its user. */
void limits_apply(const struct worker *worker, const struct worker_watch *watch,
                  struct process_options *options);
/* "was ended for lack of memory ...": whether a limit is why it ended. */
bool limits_explain(const struct record_watch *config, const struct process_result *result, char *buffer,
                    size_t size);

/* unselected.c: fetches what the store has forgotten, and goes on in write_prepare(). */
void unselected_fetch(struct run *run);

/* related.c: what the object depends on, as it is now. -EBADMSG: the program that names it fails, with its
 * words; -ECANCELED: the worker ends (run_store_damaged). */
int related_collect(struct run *run, struct error *error);
/* request.c: an object of a store with its kind, which lists leave out. */
void request_write_with_kind(const struct record_watch *config, const struct scan_object *object,
                             struct text *out);
/* request.c: the JSON for the handler's stdin; and the object made whole. */
int request_complete_object(const struct run *run, char **ret_json);
/* id 0: none. -E2BIG: it would be larger than handler.requestLimit allows: run->excess says how much. */
int request_build(struct run *run, uint64_t id, struct text *out);
/* What the objects of this kind would take beside `bytes` of others; NULL: no memory. */
char *request_excess(const struct run *run, const struct record_watch *kind, size_t bytes,
                     const struct store_extent *extent);
/* Without what belongs to a run; it is the watch's own. NULL on lack of memory. */
char *const *environment_of_watch(struct worker_watch *watch);
void environment_of_watch_free(struct worker_watch *watch);
char *const *environment_build(const struct run *run); /* the same; environment_free() */
void environment_free(const struct worker_watch *watch, char *const *environment);

/* write.c: our finalizer first, where the watch wants one; ends in run_handler() or run_finish(). */
void write_prepare(struct run *run);
/* The run does nothing but, if needed, put our finalizer on the object again. */
void write_unneeded(struct run *run);
void run_handler(struct run *run); /* run.c */
/* Children, patch, status, then the finalizer of what is cleaned up; ends in run_finish. */
void write_start(struct run *run);
/* For its parts: what the object is now; a merge patch to it (which carries the resourceVersion itself), and
 * what came of that. again: after somebody else's write the object is read again, and this makes the patch
 * anew; NULL: the patch is for what was read before alone. */
const char *write_current_json(const struct run *run);
const char *write_current_version(const struct run *run);
int write_patch(struct run *run, const char *subresource, const struct text *body,
                void (*on_done)(struct kube_transfer *, const struct kube_response *, void *),
                void (*again)(struct run *));
/* The object as the server has it now; *metadataOnly* watches get its metadata. */
int write_get(struct run *run,
              void (*on_done)(struct kube_transfer *, const struct kube_response *, void *));
/* Our write carried the resourceVersion, so its result is exactly what was read plus our change. */
int write_take_result(struct run *run, const struct kube_response *response);
/* The fingerprint of the object in `json`, as the watcher will compute it. */
int write_fingerprint(const struct run *run, const char *json, size_t size, uint64_t *ret);
/* A credential that was refused is to be replaced: asked for once. */
void worker_ask_refresh(struct worker *worker, const struct kube_response *response);
void write_discover(struct run *run); /* anew, once a run; goes on where it was */
void write_note_failure(struct run *run, const struct kube_response *response); /* 401, Retry-After */
/* For a request that was not about the object's own content: RETRY, unless server or rights are to blame. */
enum run_result write_result_of(const struct kube_error *error);
enum run_result write_result_not_started(int status);
void write_failed(struct run *run, const char *what, const struct kube_response *response);
void write_step_done(struct run *run);
void write_step_again(struct run *run); /* with what the object is now */
/* Likewise, after the other watches of its kind were asked anew. */
void write_siblings_again(struct run *run);

/* conflict.c: what a patch that can be made again has for its end */
void conflict_on_patched(struct kube_transfer *transfer, const struct kube_response *response,
                         void *userdata);
