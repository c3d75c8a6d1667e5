/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exit-code.h"

#include <errno.h>
#include <stddef.h>

enum exit_code exit_code_for(int error, enum exit_code otherwise)
{
        switch (error) {
        case -ENOMEM:
        case -EMFILE:
        case -ENFILE:
        case -EAGAIN:
        case -EINTR:
        case -ENOBUFS:
                return EXIT_CODE_SOFTWARE;
        case -EIO:
        case -ENOSPC:
        case -ESTALE:
                return EXIT_CODE_IO;
        default:
                return otherwise;
        }
}

const char *exit_code_name(int code)
{
        switch ((enum exit_code)code) {
        case EXIT_CODE_OK:
                return "OK";
        case EXIT_CODE_USAGE:
                return "USAGE";
        case EXIT_CODE_UNAVAILABLE:
                return "UNAVAILABLE";
        case EXIT_CODE_SOFTWARE:
                return "SOFTWARE";
        case EXIT_CODE_IO:
                return "IO";
        case EXIT_CODE_NO_PERMISSION:
                return "NO_PERMISSION";
        case EXIT_CODE_CONFIGURATION:
                return "CONFIGURATION";
        }
        return NULL;
}
