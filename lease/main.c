/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled-lease: which of several replicas leads. Only the supervisor starts it. */
#include "kube/libcurl.h"
#include "lease/lease.h"

int main(int argc, char **argv)
{
        struct lease lease = {0};
        struct child child;
        int r;

        r = child_init(&child, &lease_operations, argc, argv);
        if (r < 0) {
                child_done(&child);
                return child_init_exit_code(r);
        }
        child.userdata = &lease;
        lease.child = &child;
        r = child_run(&child);
        lease_done(&lease);
        libcurl_unload();
        child_done(&child);
        return r;
}
