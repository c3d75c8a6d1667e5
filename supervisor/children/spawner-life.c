/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/spawner-life.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "base/duration.h"
#include "base/exit-code.h"
#include "children/child-process.h"
#include "ipc/close-in.h"
#include "ipc/log.h"
#include "ipc/spawner/spawner-client.h"
#include "os/sandbox/landlock.h"
#include "os/sandbox/sandbox.h"
#include "os/syscall.h"
#include "supervisor/notify.h"
#include "supervisor/supervisor.h"

/* A child was killed; kills of handlers are reported with their runs. */
static const char *why_killed(struct supervisor *supervisor, int status)
{
        int64_t before = supervisor->memory_kills;

        if (before < 0 || !WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                return "";
        supervisor->memory_kills = cgroup_memory_kills();
        return supervisor->memory_kills > before ? ", by the kernel for lack of memory" : "";
}

void describe_exit(struct supervisor *supervisor, int status, char *buffer, size_t size)
{
        child_death_describe(status, why_killed(supervisor, status), buffer, size);
}

/* While the operator stops, no process is started, unless it begins again after that. */
static void spawner_exited(struct supervisor *supervisor, const char *how, bool was_killed)
{
        bool needed = supervisor->phase <= PHASE_RUNNING || supervisor->reload.restarting;
        bool is_first = supervisor->phase != PHASE_TEARDOWN;
        int pid = spawner_pid();

        spawner_ended();
        if (needed) {
                supervisor_fatal(supervisor, EXIT_CODE_SOFTWARE, NULL, NULL, "the spawner (pid %d) %s", pid,
                                 how);
                if (is_first)
                        supervisor->end.was_killed = was_killed;
        } else if (supervisor->phase != PHASE_TEARDOWN) {
                log_warning("the spawner (pid %d) %s", pid, how);
        }
}

void spawner_died(struct supervisor *supervisor, int status)
{
        char how[128];

        describe_exit(supervisor, status, how, sizeof(how));
        spawner_exited(supervisor, how, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void spawner_reap(struct supervisor *supervisor)
{
        int status;

        if (spawner_pid() > 0 && sys_reap(spawner_pid(), &status) > 0)
                spawner_died(supervisor, status);
}

void spawner_failed(struct supervisor *supervisor, int status)
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

/* No warning: it is so on many machines, and the filters for system calls hold. */
static void tell_missing_landlock(void)
{
        if (!landlock_exists())
                log_write(
                        LOG_NOTICE, NULL, NULL,
                        "this kernel has no Landlock, or it is off or forbidden here: the supervisor, watchers, gateway and "
                        "credential process are not kept from other files that their user may reach; system calls are "
                        "filtered all the same. Turn it on (the kernel's parameter lsm=), or give the operator a user of its "
                        "own");
}

/* Injected code cannot execute a program or start a process here: only the spawner does that, and it knows only
 * our own programs. After a restart in place all of this is done already. (The ledger's thread runs already:
 * Landlock does not bind it.) */
int supervisor_close_in(const struct supervisor *supervisor)
{
        const struct options *options = supervisor->options;
        const char *const path[] = {
                options->state_directory,   options->runtime_directory,    TERMINATION_LOG,
                supervisor->secrets.parent, supervisor->delegation.folder, NULL};
        int r;

        if (spawner_pid() > 0)
                return 0;
        tell_missing_landlock();
        r = spawner_start(log_target_name(LOG_TARGET_AUTO));
        return r < 0 ? r
                     : close_in("the supervisor", path, NULL,
                                &(struct sandbox){.connects = true,
                                                  .listens = true,
                                                  .local = true,
                                                  .threads = true,
                                                  .children = true,
                                                  .code = true,
                                                  .rights = true});
}
