/* SPDX-License-Identifier: Apache-2.0 */
#include "watcher/asking.h"

#include <errno.h>
#include <string.h>

#include "base/exit-code.h"
#include "watcher/store-failure.h"

void asking_start(struct watcher *watcher, const char *name, void (*entry)(void *userdata), void *userdata,
                  struct fiber **ret)
{
        *ret = NULL;
        if (fiber_start(watcher->fibers, name, entry, userdata, ret) < 0)
                child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                            "no memory to ask the API server (%s)", name);
}

static bool is_to_end(const struct watcher *watcher)
{
        return watcher_is_over(watcher) || fiber_is_ending(fiber_current());
}

int asking_ask(struct watcher *watcher, const struct kube_request *request, struct kube_answer *ret)
{
        int r = kube_ask(watcher->client, request, ret);

        return r >= 0 && is_to_end(watcher) ? -ECANCELED : r;
}

int asking_pause(struct watcher *watcher, uint64_t usec, struct fiber **sleeper)
{
        struct fiber *own;
        int r = fiber_sleep_at_most(usec, "its next attempt", sleeper ? sleeper : &own);

        if (r < 0 && r != -ECANCELED)
                return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                                   "no memory for a timer");
        return is_to_end(watcher) ? -ECANCELED : r;
}

int asking_failed(struct watcher *watcher, int status)
{
        if (status == -ECANCELED)
                return status;
        return child_fatal(watcher->child, EXIT_CODE_SOFTWARE, watcher->config->watch, NULL,
                           "a request cannot be started: %s", strerror(-status));
}

void asking_done(struct watcher *watcher)
{
        while (watcher->fibers && fibers_count(watcher->fibers) > 0) {
                fibers_cancel(watcher->fibers);
                fibers_turn(watcher->fibers);
        }
        fibers_free(watcher->fibers);
        watcher->fibers = NULL;
}
