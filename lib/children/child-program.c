/* SPDX-License-Identifier: Apache-2.0 */
/* See child-program.h. */
#include "children/child-program.h"

#include "os/file.h"

enum spawner_program child_program(enum role role)
{
        switch (role) {
        case ROLE_CREDENTIAL:
                return SPAWNER_CREDENTIAL;
        case ROLE_WATCHER:
                return SPAWNER_WATCHER;
        case ROLE_WORKER:
                return SPAWNER_WORKER;
        case ROLE_GATEWAY:
                return SPAWNER_GATEWAY;
        case ROLE_SUPERVISOR:
        case ROLE_CONTROL:
                break;
        }
        return SPAWNER_PROGRAM_COUNT;
}

const char *child_binary(enum role role)
{
        return spawner_program(child_program(role))->binary;
}

char *child_program_path(enum role role)
{
        const struct spawner_program_info *program = spawner_program(child_program(role));

        return program_path(program->folder, program->binary);
}
