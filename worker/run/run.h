/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One run, and its end. Every file that works on a run ends its part either with run_finish(), or with
 * run_go_on() to the next stage, or with a callback that it was given: exactly one of them, exactly once.
 * After run_finish() the run is freed, unless a status is written first.
 */
#include "process/process.h"
#include "store/record.h"
#include "store/store.h"
#include "worker/child-versions.h"
#include "worker/run/answer.h"
#include "worker/run/shown.h"
#include "worker/watch.h"

#define RUN_MESSAGE_MAX 2048 /* bytes of the message that a run ends with */
#define RUN_WRITES_MAX  20   /* writes to children that DONE tells */

/* How long a run waits in its worker for a resource that Retry-After holds back. */
#define RUN_PATIENCE_USEC USEC_PER_SEC

struct dependents;
struct park_plan;
struct run;

enum run_stage {
        RUN_STAGE_ATTEMPT, /* from the beginning, with what is related as it is now */
        RUN_STAGE_PREPARE, /* what is written before the handler: write_prepare() */
        RUN_STAGE_HANDLER,
        RUN_STAGE_ANSWER, /* carrying the answer out: write_start() */
};

/* Set by run/stages.c, so that no other file needs to know what comes next. */
struct run_driver {
        void (*go_on)(struct run *run, enum run_stage stage);
        void (*finished)(struct run *run, enum run_result result, const char *text);
};

/* How a step of write/write.c ended: write/step.h. */
enum step_end {
        STEP_DONE,
        STEP_AGAIN, /* begin it again, with the object as it is now */
};

struct run {
        struct worker *worker;
        struct worker_watch *watch;
        const struct run_driver *driver;
        struct fiber *fiber; /* that the run is */
        struct message *message; /* owns what `order` points to */
        const struct message_run *order;
        enum run_action action; /* as it is run: finalize for an object that is being deleted */
        uint64_t started;       /* CLOCK_BOOTTIME */

        struct store_object object; /* as the store had it; its JSON was the base of `json` */
        char *json;                 /* with apiVersion and kind, as the handler is given it */
        uint64_t fingerprint;       /* of `object`; for a parked attempt, of what that was about */
        bool changed;               /* since the attempt that is being undone */
        char server_version[IDENTITY_VERSION_MAX +
                            1]; /* of the object; "" if the server was not asked for it */
        char *excess;           /* why the request is too large; NULL: nothing is known against it */
        char *recorded;         /* in a replay: the request, sent in place of one that is built */
        struct {
                char *json; /* the related objects, as an array; NULL: the watch has none */
                uint64_t fingerprint;
        } related;

        struct shown shown; /* the children, as the request shows them */
        bool presented;     /* those that the store lacks were looked for */
        struct child_versions
                versions; /* of children, that this run has written or was shown by the server */

        struct {
                struct process *process; /* exec */
                char *output;            /* serve: the line that the answer points into */
                bool ran, done;
                bool not_started; /* its program cannot be started, whatever the object is */
                int wait_status;
                struct process_usage usage; /* in this run */
                bool out_of_memory;
        } handler; /* run/handler.c, run/coprocess.c */
        struct answer answer;

        struct {
                bool is_set;
                enum run_result result;
                char *text;
        } end;        /* run_finish(): the first one counts */
        bool dropped; /* the worker ends, and nobody hears of the run's end */

        bool cancelled;
        sd_event_source *cancel_timer;
        uint64_t cancel_at; /* CLOCK_BOOTTIME; 0: not planned */

        bool carrying_out; /* the handler has answered; before that, things are made ready for it */
        struct {
                size_t index; /* in the table of write/write.c */
                void (*on_end)(struct run *run, enum step_end end);
        } step;

        struct {
                struct kube_transfer *transfer;   /* NULL: none is in flight */
                struct kube_discovery *discovery; /* likewise */
                void (*on_discovered)(struct run *run);
                bool rediscovered;   /* once in this run */
                int http_status;     /* of the last request that was refused; 0 */
                uint64_t held_until; /* CLOCK_BOOTTIME, by Retry-After; 0: nothing was held back */
        } request;

        struct {
                char *json, *version; /* NULL: as read from the store */
                bool rebased;         /* it is more than what was read and our own writes */
                bool foreign; /* others have changed what triggers runs: nothing is claimed as known */
                bool foreign_essence; /* likewise, whatever the trigger is */
        } now;                        /* write/object.c: the object on the server, as far as we know */
        struct {
                uint64_t fingerprint;
                char *version;
                uint64_t known_version; /* 0 where changes of others are among what was there before */
        } own;                          /* write/object.c: what the object is by our own last write */
        struct {
                void (*on_done)(struct kube_transfer *, const struct kube_response *, void *);
                void (*again)(struct run *);
                unsigned conflicts; /* in a row */
                sd_event_source *timer;
        } patch; /* write/patch.c: in flight */
        struct {
                cJSON *patch; /* merge patch of the status, with conditions; NULL: not made yet */
                char *text;   /* the same, as it is sent */
                char *told;   /* the run has ended with this, and its status shall say so first; NULL */
                enum run_result told_result;
        } status;      /* write/status.c */
        bool released; /* our finalizer, which the watch does not want, came off before the handler ran */

        struct dependents *dependents; /* NULL: not begun */
        struct dependents *patches; /* of objects of others: dependents/patched/patches.c; NULL: not begun */
        struct {
                struct record_write item[RUN_WRITES_MAX]; /* the texts are owned */
                size_t count, left_out;
        } writes; /* what was done to children */
        struct {
                struct park_plan *resumed; /* of the same attempt, which has waited for kinds; owned; NULL */
                char *plan;                /* of RESULT_SETTLING: what the ledger keeps; NULL */
                uint64_t after_usec;       /* until the attempt is to go on */
        } parked;                          /* dependents/parked/park.c */
};

/* Its handler is told that the object is gone. */
bool run_is_of_deletion(const struct run *run);
/* Nothing of a replay may reach the API server. */
bool run_is_replay(const struct run *run);
void run_go_on(struct run *run, enum run_stage stage);
/* Ends the run: its status tells a failure, DONE is sent, the run is freed. */
void run_finish(struct run *run, enum run_result result, const char *format, ...) _printf_(3, 4);
/* Ends the run as run->excess says. */
void run_finish_too_large(struct run *run);
/* Notes what the run has done to a child, for DONE and Events; without memory it is counted alone. */
void run_note_write(struct run *run, enum child_write what, const char *object, const char *fields);
void run_forget_writes(struct run *run);
/* Logs a line of the handler's output; userdata: the run. */
void run_log_line(const char *line, void *userdata);
/* A wrong checksum was read in the store of this watch (the run's own, or one that it owns or relates to):
 * ends the worker, and the next start builds that store anew. Returns -ECANCELED. */
int run_store_damaged(const struct run *run, const struct record_watch *config);
