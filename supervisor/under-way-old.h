/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One run of the last life; and the notes that older releases have left of theirs, in the runtime directory.
 */
#include "supervisor/supervisor.h"

struct noted_run {
        const char *watch, *key, *uid;
        uint64_t fingerprint; /* 0: it was not for a change */
        bool without_handler; /* what its object was handled as stays so */
};

/* Its row says nothing any more; suspects: it ran; alone: and nothing else did. */
int under_way_judge(struct supervisor *supervisor, const struct noted_run *note, bool suspects, bool alone);
int under_way_judge_old(struct supervisor *supervisor);
