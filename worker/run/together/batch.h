/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * `batch`: a program of exec that has the requests of several runs. The first run that comes to its handler leads: it waits for
 * others for a moment, and then for the turn of all of them. The others hold nobody up meanwhile. Each goes on as soon as it
 * has its answer, but for the leader, which has the turn until nothing is left of the program.
 */
#include "worker/run/together/asked.h"

/* 0: *asked is over; -ESHUTDOWN: the run has ended before its handler, as it went back or the worker stops; -ENOMEM;
 * -ECANCELED: the worker ends. */
_warn_unused_ int batch_ask(struct run *run, struct asked *asked) _suspends_;
