/* SPDX-License-Identifier: Apache-2.0 */
/* Which program each kind of child is. */
#include <errno.h>
#include <string.h>

#include "base/program-path.h"
#include "ipc/spawn.h"
#include "supervisor/supervisor.h"

static const struct {
        const char *binary, *folder;
        enum role role;
} kind_table[KIND_COUNT] = {
        [KIND_CREDENTIAL] = {"reconciled-credential", "credential", ROLE_CREDENTIAL},
        [KIND_WATCHER] = {"reconciled-watcher", "watcher", ROLE_WATCHER},
        [KIND_WORKER] = {"reconciled-worker", "worker", ROLE_WORKER},
        [KIND_GATEWAY] = {"reconciled-gateway", "gateway", ROLE_GATEWAY},
};

const char *child_binary(enum child_kind kind)
{
        return kind_table[kind].binary;
}

enum role child_role(enum child_kind kind)
{
        return kind_table[kind].role;
}

int spawn_child(struct child_slot *child, int *ret_fd)
{
        _cleanup_free_ char *path =
                program_path(kind_table[child->kind].folder, kind_table[child->kind].binary);

        if (!path)
                return -ENOMEM;
        if (access(path, X_OK) < 0) {
                log_error("%s: %s", path, strerror(errno));
                return -errno;
        }
        return spawn_with_channel(path, log_target_name(LOG_TARGET_AUTO), child->kind == KIND_WORKER,
                                  &child->pid, ret_fd);
}
