/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The runs of this worker. They begin in their order. One has the worker until it has to wait for the API server: then
 * the next one begins, up to the window. Only one handler is at work at a time, besides requests in processes that take more
 * (`parallel`), and a run that comes back from the server waits for its turn. What has no handler yet can go
 * back to the supervisor, for other workers to do: no row, no count and no handler has noticed it. So no run
 * waits for long behind another one's handler.
 *
 * A run that its process cannot take yet, as it shares it with nobody or the process is leaving, waits beside others too. It
 * keeps its place: no run of its watch that came later has a turn before it, and the supervisor gives this worker no more.
 */
#include "worker/run-state.h"

/* The run begins when there is room for it; the message is taken. 0; -EPROTO: there are too many; or that one
 * cannot be begun or given back. */
int waiting_take(struct worker *worker, struct message **message);
/* Gives all back that have no handler yet. 0, or the channel's errno. */
int waiting_return(struct worker *worker);
/* The same for one that has not begun; -ENOENT: there is none of this number. */
int waiting_return_one(struct worker *worker, uint64_t sequence);
/* A request of the run, as kube_ask(); if the worker stops, the run was cut off. Others may have the worker meanwhile. */
_warn_unused_ int run_request(struct run *run, const struct kube_request *request,
                              struct kube_answer *ret) _suspends_;
/* Likewise kube_ask_kind(), but -ECANCELED is the caller's. */
_warn_unused_ int run_ask_kind(struct run *run, const char *api_version, const char *kind,
                               struct kube_finding *ret) _suspends_;
_warn_unused_ int run_ask_all_versions(struct run *run, const char *api_version, const char *kind,
                                       struct kube_finding *ret) _suspends_;
/* Likewise fiber_sleep(). */
_warn_unused_ int run_sleep(struct run *run, uint64_t usec, const char *why) _suspends_;
/* The run goes on, or ends: it holds much, and others whose requests are not answered hold enough already. It waits outside of any
 * worker then, and does not count. 0; negative: it has ended. */
_warn_unused_ int waiting_go_on(struct run *run);
/* Gives the memory back to the system that a large run has had. */
void waiting_trim(const struct run *run);
/* How long no other run could have the worker. */
uint64_t waiting_busy_usec(const struct run *run, uint64_t now);
/* The run waits for its handler's turn, and has it until the turn is over. 0; -ESHUTDOWN: the run has ended before, as it
 * went back or the worker stops; -ECANCELED: the worker ends. */
_warn_unused_ int waiting_turn(struct run *run) _suspends_;
void waiting_turn_over(struct run *run);
/* The run waits for others that are to have one handler with it, and for its end, and holds nobody up. */
void waiting_gather(struct run *run);
void waiting_gathered(struct run *run);
/* The same for this time, or until fiber_end_sleep(&run->watch->gathering). 0; -ECANCELED. */
_warn_unused_ int waiting_gather_for(struct run *run, uint64_t usec) _suspends_;
/* The run goes back, or the worker stops, before its handler has begun. */
bool waiting_is_called_off(const struct run *run);
int waiting_call_off(struct run *run);                 /* ends it, as waiting_turn() does */
bool waiting_any_at_work(const struct worker *worker); /* a handler */
void waiting_done(struct worker *worker);
