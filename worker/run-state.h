/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * One run: what its parts share, and how they end it. A run is a fiber (run/run.c), so a part is a function that waits,
 * marked _suspends_, and returns when it is through. What ends the run returns run_finish(), and each caller returns what
 * is negative; the first end counts, so a caller may word an error that was worded already.
 */
#include "fiber/fiber.h"
#include "kube/kube-ask.h"
#include "process/process.h"
#include "store/record.h"
#include "store/store.h"
#include "worker/child-versions.h"
#include "worker/run/answer.h"
#include "worker/run/shown.h"
#include "worker/watch.h"

#define RUN_MESSAGE_MAX 2048 /* bytes of the message that a run ends with */
#define RUN_WRITES_MAX  20   /* writes to children, for DONE */

/* How long a run waits in its worker for a resource that Retry-After holds back. */
#define RUN_PATIENCE_USEC USEC_PER_SEC

struct dependents;
struct park_plan;
struct run;

/* What follows in the order of a run; negative: it has ended. */
enum run_next {
        RUN_RESUMES = 1, /* a parked attempt */
        RUN_ATTEMPTS,    /* from the beginning, with what is related as it is now */
        RUN_PREPARES,    /* what is written before the handler */
        RUN_ASKS,        /* the handler */
        RUN_WRITES,      /* its answer */
};

struct run {
        struct run *next; /* in the worker's list */
        struct worker *worker;
        struct worker_watch *watch;
        struct fiber *fiber;
        const struct message_run *order;
        enum run_action action; /* as it is run: finalize for an object that is being deleted */
        uint64_t started;       /* CLOCK_BOOTTIME */
        struct {
                bool is_set;
                enum run_result result;
                char *text; /* NULL: no memory for it */
        } end;
        bool dropped;                      /* the worker ends, and nobody hears of the run's end */
        bool unanswered;                   /* a write had no answer: the server may carry it out yet */
        bool keeps_answer, is_crowded_out; /* waiting.c; likewise: */
        bool goes_back, waits_for_turn, at_work, gathers, is_aside, keeps_place;
        bool wait_told, answer_told, told_keeps_place;
        uint64_t turn_since, idle_since, idle_usec; /* CLOCK_BOOTTIME */
        bool cancelled;
        sd_event_source *cancel_timer;
        uint64_t cancel_at; /* CLOCK_BOOTTIME; 0: not planned */

        struct store_object object; /* as the store had it; its JSON was the base of `json` */
        char *json;                 /* with apiVersion and kind, as the handler is given it */
        uint64_t fingerprint;       /* of `object`; for a parked attempt, of what that was about */
        bool changed;               /* since the attempt that is being undone */
        char server_version[IDENTITY_VERSION_MAX +
                            1]; /* of the object; "" if the server was not asked for it */
        char *excess;           /* why the request is too large; NULL if it is not */
        char *recorded;         /* in a replay: the request, sent in place of one that is built */
        struct {
                bool is_known; /* the watch has such kinds, and they were looked at */
                size_t size;   /* bytes, about, of these objects */
                uint64_t fingerprint;
        } related;

        struct shown shown;  /* the children, as the request shows them */
        size_t request_size; /* of its text, which is there until the handler is done; 0 if none was built */
        bool presented;      /* those that the store lacks were looked for */
        struct child_versions
                versions; /* of children, that this run has written or was shown by the server */

        struct {
                struct process *process; /* exec; its result, and so the answer, points into it */
                struct process_result result;
                char *output; /* serve: the line that the answer points into */
                bool ran, done;
                bool failed; /* it ran and failed, by its end or its answer; nothing of the answer was written */
                bool not_started; /* its program cannot be started, whatever the object is */
                int wait_status;
                struct process_usage usage; /* in this run */
                bool out_of_memory;
        } handler;          /* run/handler.c, run/coprocess.c */
        struct text record; /* recording.c */
        struct answer answer;
        size_t answer_size; /* of its text */
        bool answered;      /* the handler has, or need not; before that, things are made ready for it */

        struct {
                bool rediscovered;   /* once in this run */
                int http_status;     /* of the last request that was refused; 0 */
                uint64_t held_until; /* CLOCK_BOOTTIME, by Retry-After; 0: nothing was held back */
        } request;
        struct {
                char *json, *version; /* NULL: as read from the store */
                bool rebased;         /* it is more than what was read and our own writes */
                bool foreign; /* others have changed what triggers runs: nothing is claimed as known */
                bool foreign_essence; /* likewise, whatever the trigger is */
                unsigned conflicts;   /* in a row */
        } now;                        /* write/object.c: the object on the server, as far as we know */
        struct {
                uint64_t fingerprint;
                char *version;
                uint64_t known_version; /* 0 where changes of others are among what was there before */
        } own;                          /* write/object.c: what the object is by our own last write */
        bool released; /* our finalizer, which the watch does not want, came off before the handler ran */

        struct dependents *dependents; /* NULL: not begun */
        struct {
                struct record_write item[RUN_WRITES_MAX]; /* the texts are owned */
                size_t count, left_out;
        } writes; /* what was done to children */
        struct {
                struct park_plan *resumed; /* of the same attempt, which has waited for kinds; owned; NULL */
                char *plan;                /* of RESULT_SETTLING: what the ledger keeps; NULL */
                char *given;               /* as of given_keep(), of the attempt that goes on; NULL */
                uint64_t after_usec;       /* until the attempt is to go on */
        } parked;                          /* dependents/parked/park.c */
};

/* Whether the run is for the object's deletion. */
bool run_is_of_deletion(const struct run *run);
/* Nothing of a replay may reach the API server. */
bool run_is_replay(const struct run *run);

/* Ends the run with this result, unless it has ended already. Returns -ESHUTDOWN, for the caller to
 * return. */
int run_finish(struct run *run, enum run_result result, const char *format, ...) _printf_(3, 4);
/* The same, as run->excess says. */
int run_finish_too_large(struct run *run);
/* The same, because there is no time for what is in flight, or for what would be next. */
int run_cut_off(struct run *run);
/* A wrong checksum was read in the store of this watch (the run's own, or one that it owns or relates to):
 * ends the worker, and the next start builds that store again. Returns -ECANCELED. */
int run_store_damaged(struct run *run, const struct record_watch *config);

/* Notes what the run has done to a child, for DONE and Events; without memory it is counted alone. */
void run_note_write(struct run *run, enum child_write what, const char *object, const char *fields);
void run_forget_writes(struct run *run);
/* Logs a line of the handler's output; userdata: the run. */
void run_log_line(const char *line, void *userdata);
