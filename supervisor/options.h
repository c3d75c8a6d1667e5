/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The command line and what the environment adds to it (systemd's STATE_DIRECTORY and RUNTIME_DIRECTORY). */
#include <stdbool.h>

#include "ipc/log.h"

struct options {
        const char *config_path;                   /* NULL: the default place */
        char *state_directory, *runtime_directory; /* owned, absolute */
        enum log_target log_target;
        char *record; /* owned, absolute; NULL: as the configuration says */
        bool check;   /* judge the configuration and end */
        bool discard_state;
        bool tell_dry_run; /* requests of handlers say dryRun */
};

/* 0: go on; 1: --help or --version was answered; -EINVAL: usage, or -ENOMEM, said on stderr. */
int options_parse(int argc, char **argv, struct options *ret);
void options_done(struct options *options);
