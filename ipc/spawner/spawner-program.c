/* SPDX-License-Identifier: Apache-2.0 */
/* The programs that the supervisor has, and can have started. */
#include <stddef.h>

#include "ipc/spawner/spawner-program.h"

const struct spawner_program_info *spawner_program(enum spawner_program program)
{
        static const struct spawner_program_info table[SPAWNER_PROGRAM_COUNT] = {
                [SPAWNER_CREDENTIAL] = {"credential", "reconciled-credential", false, true},
                [SPAWNER_WATCHER] = {"watcher", "reconciled-watcher", false, false},
                [SPAWNER_WORKER] = {"worker", "reconciled-worker", true, false},
                [SPAWNER_GATEWAY] = {"gateway", "reconciled-gateway", false, false},
                [SPAWNER_LEASE] = {"lease", "reconciled-lease", false, false},
                [SPAWNER_JQ] = {"jq", "reconciled-jq", false, false},
        };

        return (unsigned)program < SPAWNER_PROGRAM_COUNT ? &table[program] : NULL;
}
