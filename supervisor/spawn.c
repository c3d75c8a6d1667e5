/* SPDX-License-Identifier: Apache-2.0 */
/* Which program each kind of child is, who starts it, and what the supervisor itself can no longer do. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "ipc/close-in.h"
#include "ipc/spawner/client.h"
#include "os/syscall.h"
#include "supervisor/supervisor.h"

static const struct {
        enum spawner_program program;
        enum role role;
} kind_table[KIND_COUNT] = {
        [KIND_CREDENTIAL] = {SPAWNER_CREDENTIAL, ROLE_CREDENTIAL},
        [KIND_WATCHER] = {SPAWNER_WATCHER, ROLE_WATCHER},
        [KIND_WORKER] = {SPAWNER_WORKER, ROLE_WORKER},
        [KIND_GATEWAY] = {SPAWNER_GATEWAY, ROLE_GATEWAY},
};

const char *child_binary(enum child_kind kind)
{
        return spawner_program(kind_table[kind].program)->binary;
}

enum role child_role(enum child_kind kind)
{
        return kind_table[kind].role;
}

/* ---- the spawner's end */

/* In an end in order nothing is to be started any more, unless that is only the way to a new beginning. */
void spawner_exited(struct supervisor *supervisor, const char *how)
{
        bool needed = supervisor->phase <= PHASE_RUNNING || supervisor->reloading;
        int pid = spawner_pid();

        spawner_ended();
        if (needed)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "the spawner (pid %d) %s", pid,
                                 how);
        else if (supervisor->phase != PHASE_TEARDOWN)
                log_warning("the spawner (pid %d) %s", pid, how);
}

/* What it died of says more than that it did not answer. */
static void spawner_failed(struct supervisor *supervisor, int status)
{
        if (status == -ECONNRESET) {
                spawner_await_end();
                spawner_reap(supervisor);
        }
        if (spawner_pid() > 0)
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "the spawner (pid %d) %s",
                                 spawner_pid(),
                                 status == -ETIMEDOUT ? "hangs: no answer to a request"
                                                      : "closed its channel but did not end");
}

bool spawner_check(struct supervisor *supervisor, uint64_t now, uint64_t *longest)
{
        uint64_t silence = spawner_silence(now);
        char text[64];

        if (silence > *longest)
                *longest = silence;
        if (supervisor->phase > PHASE_RUNNING || silence <= supervisor->config->heartbeat_deadline_usec)
                return true;
        supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL,
                         "the spawner (pid %d) hangs: no heartbeat for %s", spawner_pid(),
                         duration_format(silence / 100000 * 100000, text, sizeof(text)));
        return false;
}

/* ---- starting */

int spawn_child(struct child_slot *child, int *ret_fd)
{
        const char *const argument[] = {"--log", log_target_name(LOG_TARGET_AUTO), "--log-level",
                                        log_level_name(), NULL};
        int pair[2], r;

        r = sys_socketpair_seqpacket(pair);
        if (r < 0)
                return r;
        r = spawner_run(kind_table[child->kind].program, false, argument, pair[1], &child->pid);
        close(pair[1]);
        if (r >= 0) {
                *ret_fd = pair[0];
                return 0;
        }
        close(pair[0]);
        if (r == -ECONNRESET || r == -ETIMEDOUT)
                spawner_failed(child->supervisor, r);
        else
                log_error("%s: %s", child_binary(child->kind), strerror(-r));
        return r;
}

/* Whoever gets code to run in here can have it run no program and start no process: there is nobody to do it
 * but the spawner, which knows our own programs only. A restart in place finds all of it done. (The ledger's
 * thread lives already: Landlock does not bind it.) */
int supervisor_close_in(const struct supervisor *supervisor)
{
        const struct options *options = supervisor->options;
        const char *const path[] = {
                options->state_directory,   options->runtime_directory,    TERMINATION_LOG,
                supervisor->secrets_parent, supervisor->delegation.folder, NULL};
        int r;

        if (spawner_pid() > 0)
                return 0;
        r = spawner_start(log_target_name(LOG_TARGET_AUTO));
        return r < 0 ? r
                     : close_in("the supervisor", path,
                                &(struct sandbox){.connects = true,
                                                  .listens = true,
                                                  .local = true,
                                                  .threads = true,
                                                  .signals = true,
                                                  .rights = true});
}
