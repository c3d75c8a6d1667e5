/* SPDX-License-Identifier: Apache-2.0 */
#include "ipc/close-in.h"

#include <errno.h>
#include <string.h>

#include "ipc/log.h"
#include "os/sandbox/landlock.h"

int close_in(const char *who, const char *const *writes, const char *const *reads,
             const struct sandbox *sandbox)
{
        int r = sandbox->rights ? 0 : sandbox_give_up_rights();

        if (r < 0)
                log_debug("%s cannot drop its root capabilities: %s", who, strerror(-r));
        r = landlock_restrict(writes, reads);
        if (r == -EOPNOTSUPP)
                log_debug("%s keeps its access to files (no Landlock)", who); /* the start reported it */
        else if (r < 0)
                log_warning("%s keeps its access to files: Landlock refuses its rules: %s", who,
                            strerror(-r));
        r = sandbox_enter(sandbox);
        if (r != -EOPNOTSUPP)
                return r;
        log_warning(
                "%s runs without its sandbox: the kernel has no system call filters (seccomp), or they are "
                "not allowed here",
                who);
        return 0;
}

int close_in_client(const char *who, const char *folder)
{
        const char *const writes[] = {folder, NULL};
        /* Folders: such files are replaced while we run. */
        const char *const reads[] = {
                "/etc",
                "/etc/resolv.conf",
                "/etc/hosts",
                "/etc/nsswitch.conf",
                "/run/systemd/resolve",
                "/run/systemd/machines",
                "/run/NetworkManager",
                "/run/resolvconf",
                "/run/connman",
                "/run/netconfig",
                "/run/nscd",
                "/var/lib/sss",
                folder,
                NULL,
        };

        return close_in(who, writes, reads,
                        &(struct sandbox){.connects = true, .threads = true, .code = true});
}
