/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Runs of the last life that had not ended, or whose end the ledger does not have. Such a run may have
 * changed the world for an object that is changed back while we are down, and its row says what was handled
 * before: the row is cleared, and the object runs once.
 *
 * Those that ran when all was killed are suspects. That is no punishment: a suspect runs as soon as nothing
 * else does, alone, and any end of that run clears it. Only when the same happens again while a suspect runs,
 * and by that nothing else, a crash is counted. So one SIGKILL costs nobody anything, and an object that
 * brings everything down each time is in quarantine after one death more than `quarantine.after`.
 */
#include "controller/controller.h"

struct noted_run {
        const char *watch, *key, *uid;
        uint64_t fingerprint; /* 0: it was not for a change */
        bool without_handler; /* the fingerprint of what was handled stays */
};

/* suspects: the run had begun; alone: no other run had. The caller commits. */
int last_life_judge(struct controller *controller, const struct noted_run *note, bool suspects, bool alone);

/* A process that runs no handler was killed (SIGKILL): by the kernel, for lack of memory, or by a handler. What runs is under the
 * same suspicion as if we had been killed. */
void last_life_suspect_runs(struct controller *controller);

/*
 * What the leader record says is hearsay: whoever may write Leases may have written it. It makes an object wait, and run alone. That
 * the object was handed to a handler it does not prove: until the watcher has shown the object its row is hearsay
 * (FINGERPRINT_HEARSAY), does not run, and goes without a word if the object is not there.
 */

/* Over which another replica crashed while it led, or that was in flight in such a crash (crashes 0). quarantine_usec: how much of
 * its quarantine is left; 0: it is in none. */
struct former_crash {
        const char *key, *uid;
        uint64_t crashes, quarantine_usec;
};
int last_life_take_crash(struct controller *controller, const struct config_watch *config,
                         const struct former_crash *crash);
/* What another replica ran when it was killed as a whole; alone: that was all. */
int last_life_take_run(struct controller *controller, const struct config_watch *config,
                       const struct noted_run *note, bool alone);

/* Called at the start. lost: the ledger was lost just now; else what a former life has noted counts. */
int ledger_lost_load(struct controller *controller, bool lost);
void ledger_lost_review(struct controller *controller); /* nothing has run for a while: maybe it is whole */
