/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What waits for the server, other than a watch: setup, lists, the probe, questions about single objects, the search for
 * finalizers, missing namespaces. Each is a function on a fiber (fiber.h), which asks, waits, and goes on with the answer. None
 * of them outlives the watcher: one that is over has its fibers cancelled, and whatever waits then returns -ECANCELED.
 */
#include "kube/kube-ask.h"
#include "watcher/watcher.h"

/* Calls entry on a fiber, in a later turn. Without memory the watcher ends, and *ret is NULL. */
void asking_start(struct watcher *watcher, const char *name, void (*entry)(void *userdata), void *userdata,
                  struct fiber **ret);
/* kube_ask(), with -ECANCELED also where the fiber or the watcher is to end by now: no answer is worth anything then. */
_warn_unused_ int asking_ask(struct watcher *watcher, const struct kube_request *request,
                             struct kube_answer *ret) _suspends_;
/* Waits for the next attempt; fiber_end_sleep(sleeper) brings it forward. sleeper may be NULL. 0; -ECANCELED, the fiber or
 * the watcher is to end. */
_warn_unused_ int asking_pause(struct watcher *watcher, uint64_t usec, struct fiber **sleeper) _suspends_;
/* Ends the watcher, because a question could not be asked (status: negative errno). Returns -ECANCELED. */
int asking_failed(struct watcher *watcher, int status);
/* Unwinds all fibers: nothing waits any more. */
void asking_done(struct watcher *watcher);
