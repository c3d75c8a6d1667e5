/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The program of each role of a child. */
#include "ipc/role.h"
#include "ipc/spawner/spawner-program.h"

enum spawner_program child_program(enum role role); /* one of ROLE_CHILDREN */
const char *child_binary(enum role role);           /* "reconciled-watcher" */
/* The caller owns the path; NULL: no memory. */
char *child_program_path(enum role role);
