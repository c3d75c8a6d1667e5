/* SPDX-License-Identifier: Apache-2.0 */
#include "os/assertion.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/exit-code.h"

static assertion_tell_t on_failure;
static void *on_failure_data;

void assertion_on_failure(assertion_tell_t tell, void *userdata)
{
        on_failure = tell;
        on_failure_data = userdata;
}

void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
        assertion_tell_t tell = on_failure;
        char text[512];

        snprintf(text, sizeof(text), "assertion failed in %s(), %s:%u: %s", function, file, line, assertion);
        on_failure = NULL; /* an assertion that fails meanwhile aborts */
        if (!tell) {
                fprintf(stderr, "%s\n", text);
                abort();
        }
        tell(text, on_failure_data);
        _exit(EXIT_CODE_SOFTWARE);
}
