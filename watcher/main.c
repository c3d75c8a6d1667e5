/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled-watcher: follows one resource and keeps its store. Only the supervisor starts it. */
#include "kube/libcurl.h"
#include "watcher/watcher.h"

int main(int argc, char **argv)
{
        struct watcher watcher = {0};
        struct child child;
        int r;

        r = child_init(&child, &watcher_operations, argc, argv);
        if (r < 0) {
                child_done(&child);
                return child_init_exit_code(r);
        }
        child.userdata = &watcher;
        watcher.child = &child;
        r = child_run(&child);
        watcher_done(&watcher);
        libcurl_unload();
        child_done(&child);
        return r;
}
