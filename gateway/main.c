/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled-gateway: parse, init, loop. Or, for who checks a configuration: whether a certificate and a key
 * can be used. */
#include <string.h>

#include "base/exit-code.h"
#include "gateway/gateway.h"
#include "gateway/tls.h"

static int check_certificate(const char *certificate_file, const char *key_file)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        int r = tls_start(certificate_file, key_file, &error);

        if (r < 0)
                fprintf(stderr, "%s\n", error_message(&error));
        tls_stop();
        return r < 0 ? EXIT_CODE_CONFIGURATION : EXIT_CODE_OK;
}

int main(int argc, char **argv)
{
        struct gateway gateway = {.server.listen_fd = -1};
        int r;

        if (argc == 4 && strcmp(argv[1], "--check-certificate") == 0)
                return check_certificate(argv[2], argv[3]);
        r = child_init(&gateway.child, &gateway_operations, argc, argv);
        if (r < 0) {
                child_done(&gateway.child);
                return child_init_exit_code(r);
        }
        gateway.child.userdata = &gateway;
        r = child_run(&gateway.child);
        gateway_done(&gateway);
        return r;
}
