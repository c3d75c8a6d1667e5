/* SPDX-License-Identifier: Apache-2.0 */
/* See death.h. */
#include "children/death.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

void child_death_describe(int status, const char *killed_why, char *buffer, size_t size)
{
        if (WIFSIGNALED(status))
                snprintf(buffer, size, "was killed by signal %s%s%s", sigabbrev_np(WTERMSIG(status)),
                         WCOREDUMP(status) ? " (core dumped)" : "", killed_why);
        else if (WEXITSTATUS(status) == 127)
                snprintf(buffer, size, "could not be executed (exit code 127)");
        else
                snprintf(buffer, size, "exited by itself with code %d", WEXITSTATUS(status));
}
