/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled-worker: runs handlers and writes their outcome to the API server. Only the supervisor starts
 * it. */
#include "kube/libcurl.h"
#include "worker/worker.h"

int main(int argc, char **argv)
{
        struct worker worker = {0};
        struct child child;
        int r;

        r = child_init(&child, &worker_operations, argc, argv);
        if (r < 0) {
                child_done(&child);
                return child_init_exit_code(r);
        }
        child.userdata = &worker;
        worker.child = &child;
        r = child_run(&child);
        worker_done(&worker);
        libcurl_unload();
        child_done(&child);
        return r;
}
