/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/children/reap.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/exit-code.h"
#include "children/child-process.h"
#include "ipc/log.h"
#include "ipc/spawner/spawner-client.h"
#include "os/syscall.h"
#include "store/suspect.h"
#include "supervisor/children/spawner-life.h"
#include "supervisor/folders/previous-folder.h"
#include "supervisor/supervisor.h"
#include "supervisor/teardown.h"
#include "supervisor/watches/begin-end.h"

static const struct watch *store_in_use(const struct child_slot *child)
{
        const struct supervisor *supervisor = child->supervisor;
        const struct assignment *run;
        struct slot_view view;

        if (child->process.role == ROLE_WATCHER)
                return &supervisor->controller.watch[child->index];
        run = child_is_at(child, &view);
        return run ? &supervisor->controller.watch[run->run.watch] : NULL;
}

/* A process that reads damaged pages dies of these signals. If the pages are to blame, the next reader would
 * die as well, and so at every start. A list of the API server is cheaper than that. */
static void suspect_store(const struct child_slot *child, int status)
{
        const struct watch *watch = store_in_use(child);
        int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0, r;
        char why[128];

        if (!watch || (signal != SIGSEGV && signal != SIGBUS && signal != SIGABRT))
                return;
        snprintf(why, sizeof(why), "a %s died of SIG%s while it used the store",
                 role_title(child->process.role), sigabbrev_np(signal));
        previous_folder_suspect(watch);
        r = store_suspect_mark(watch_place_of(watch)->store_folder, why);
        if (r < 0 && r != -ENOENT)
                log_error(
                        "the object store %s cannot be marked as suspect: %s; if the operator dies the same "
                        "way again, remove this folder",
                        watch_place_of(watch)->store_folder, strerror(-r));
}

/* In an orderly end a bad exit changes nothing, but is logged. Our own SIGKILL was logged before. */
static void tell_bad_end(const struct child_slot *child, int status, const char *who, const char *how)
{
        bool ours = child->killed && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

        if (child->supervisor->phase != PHASE_TEARDOWN && status != 0 && !ours)
                log_warning("the %s was told to end, and %s", who, how);
}

static void child_exited(struct child_slot *child, int status)
{
        enum child_action action;
        char how[128], who[128];

        /* Its last words say more than how it ended, but may come to us later. */
        if (child->process.channel)
                channel_read_rest(child->process.channel);
        action = child_reaction(child->process.state, EVENT_EXIT);
        child->was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        suspect_store(child, status);
        child_describe(child, who, sizeof(who));
        describe_exit(child->supervisor, status, how, sizeof(how));
        if (action == ACT_DIE)
                supervisor_fatal(child->supervisor, EXIT_CODE_SOFTWARE, child, NULL, "the %s %s", who, how);
        else
                tell_bad_end(child, status, who, how);
        child_set_state(child, CHILD_GONE);
        child->eof_timer = sd_event_source_disable_unref(child->eof_timer);
        teardown_continue(child->supervisor);
}

/* SIGCHLD coalesces, and as PID 1 or subreaper we also get processes that are not ours: drain. */
void children_reap(struct supervisor *supervisor)
{
        int status;
        pid_t pid;

        while ((pid = sys_reap(-1, &status)) > 0) {
                if (spawner_is(pid))
                        spawner_died(supervisor, status);
                for (size_t i = 0; i < supervisor->child_count; i++)
                        if (supervisor->child[i].process.pid == pid &&
                            supervisor->child[i].process.state != CHILD_GONE)
                                child_exited(&supervisor->child[i], status);
        }
        teardown_continue(supervisor);
        memory_retry_continue(supervisor);
}
