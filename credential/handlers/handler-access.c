/* SPDX-License-Identifier: Apache-2.0 */
#include "credential/handlers/handler-access.h"

#include "base/duration.h"

bool access_is_usable(const struct access *access)
{
        return !access->config->account[0] ||
               (access->expires_boottime > 0 && clock_boottime_usec() < access->expires_boottime);
}

void access_tell(struct access *access)
{
        const char *reason = access->account_trouble ? access->account_trouble
                             : access->files_trouble ? access->files_trouble
                                                     : "";

        (void)child_send(access->credential->child, MESSAGE_ACCESS,
                         &(struct message_access){
                                 .watch = access->config->watch,
                                 .usable = access_is_usable(access),
                                 .reason = reason,
                                 .exit_code = (uint64_t)access->exit_code,
                                 .failures = access->failures,
                                 .since_boottime = access->failing_boottime,
                                 .expires_realtime = access->expires_realtime,
                         });
}
