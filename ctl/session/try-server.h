/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An API server in memory (reconciled-devserver) for a trial, as our child. Only a client that knows its
 * token may ask it. */
#include <sys/types.h>

struct try_server {
        pid_t pid; /* 0: none runs */
        char *kubeconfig, *url, *token;
};

/* Starts one that keeps kubeconfig and token in `folder`. argument: more of its options, NULL-terminated. log: a file for what it
 * prints; NULL: our standard error. Returns when it answers: 0, or a negative errno; -EIO: the reason was printed, there.
 * try_server_end() in any case. */
int try_server_start(struct try_server *server, const char *folder, const char *const *argument,
                     const char *log);
void try_server_end(struct try_server *server);
