/* SPDX-License-Identifier: Apache-2.0 */
/* reconciled-jq PROGRAM: whether it compiles; if not, why not on standard error. For those who do not link
 * libjq. */
#include <stdio.h>

#include "base/exit-code.h"
#include "jq/program.h"

int main(int argc, char **argv)
{
        _cleanup_error_ struct error error = ERROR_NONE;
        struct jq_program *program = NULL;

        if (argc != 2) {
                fprintf(stderr, "usage: reconciled-jq PROGRAM\n");
                return EXIT_CODE_USAGE;
        }
        if (jq_program_new(argv[1], &program, &error) < 0) {
                fprintf(stderr, "%s\n", error_message(&error));
                return EXIT_CODE_CONFIGURATION;
        }
        jq_program_free(program);
        return EXIT_CODE_OK;
}
