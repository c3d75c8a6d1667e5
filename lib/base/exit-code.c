/* SPDX-License-Identifier: Apache-2.0 */
#include "base/exit-code.h"

#include <errno.h>
#include <stddef.h>

#include "base/cleanup.h"

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
        static const char *const name[] = {
                [EXIT_CODE_OK] = "OK",
                [EXIT_CODE_USAGE] = "USAGE",
                [EXIT_CODE_UNAVAILABLE] = "UNAVAILABLE",
                [EXIT_CODE_SOFTWARE] = "SOFTWARE",
                [EXIT_CODE_IO] = "IO",
                [EXIT_CODE_LEAD_LOST] = "LEAD_LOST",
                [EXIT_CODE_NO_PERMISSION] = "NO_PERMISSION",
                [EXIT_CODE_CONFIGURATION] = "CONFIGURATION",
        };

        return code >= 0 && (size_t)code < ELEMENTS(name) ? name[code] : NULL;
}
