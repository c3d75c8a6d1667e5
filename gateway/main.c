/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled-gateway: parse, init, loop. */
#include <errno.h>

#include "base/exit-code.h"
#include "gateway/gateway.h"

int main(int argc, char **argv)
{
        struct gateway gateway = {.listen_fd = -1};
        int r = child_init(&gateway.child, &gateway_operations, argc, argv);

        if (r < 0) {
                child_done(&gateway.child);
                return r == -ECANCELED ? EXIT_CODE_OK : EXIT_CODE_USAGE;
        }
        gateway.child.userdata = &gateway;
        r = child_run(&gateway.child);
        gateway_done(&gateway);
        return r;
}
