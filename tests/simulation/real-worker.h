/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runs of one simulated worker: worker/run/run.c and what it calls, on fibers. Whatever they ask others for is asked of the
 * simulation: the store, the API server, the handler, the time; and it hears of their ends. The worker's queue is not this one's:
 * worker/waiting.c and worker/run/handler.c are replaced. Apart from simulation.h, since the controller has its own struct worker.
 *
 * A run goes on in each of these calls until it waits again, or has ended.
 */
#include "config/config.h"
#include "ipc/message.h"

struct real_worker;

/* 0, or a negative errno. `config` must live as long. */
int real_worker_new(const struct config *config, uint64_t clock_offset, struct real_worker **ret);
/* As a SIGKILL: its runs unwind, and nobody hears of them. */
void real_worker_free(struct real_worker *worker);
/* The order must live until the run's end. 0, or a negative errno. */
int real_run_begin(struct real_worker *worker, const struct message_run *order);
enum real_wait { REAL_WAITS_FOR_NOTHING, REAL_WAITS_FOR_HANDLER, REAL_WAITS_FOR_SERVER };
enum real_wait real_run_waits(const struct real_worker *worker, const struct message_run *order);
/* Its handler ends with this answer; NULL: it was asked to end, and does so. */
void real_run_answer(struct real_worker *worker, const struct message_run *order, const char *text);
void real_run_go_on(struct real_worker *worker, const struct message_run *order); /* the server answers */
/* It is to end. cut_off: at once, whatever it waits for. */
void real_run_cancel(struct real_worker *worker, const struct message_run *order, bool cut_off);

/* ---- what the simulation answers */

#define SIM_JSON_MAX 512

struct sim_read {
        char uid[16], version[24], json[SIM_JSON_MAX]; /* json "": its last state is not known */
        uint64_t fingerprint;
        bool held;
};

/* What the store of this watch has under this key; uid: of one that is gone. false: nothing. */
bool sim_read_store(const struct config_watch *watch, const char *key, struct sim_read *ret);
bool sim_read_tombstone(const struct config_watch *watch, const char *key, const char *uid,
                        struct sim_read *ret);

struct sim_reply {
        int http_status; /* 0: no answer came */
        bool other_uid;
        char json[SIM_JSON_MAX];
};

/* A request is carried out, or not. method: GET or PATCH. */
void sim_serve(const struct message_run *order, const char *method, bool of_status, const char *body,
               struct sim_reply *ret);
bool sim_server_is_slow(void); /* its answer is waited for */
uint64_t sim_time(bool realtime);
uint64_t sim_trigger(const char *json); /* its fingerprint */
/* The handler begins. */
void sim_show(const struct message_run *order, enum run_action action, const char *json);
void sim_done(const struct message_done *done);
void sim_log(const char *text);
