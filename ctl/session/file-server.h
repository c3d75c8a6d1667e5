/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The server in memory for objects of files: of `run --object FILE` and `plan --object FILE`. */
#include "config/config.h"
#include "ctl/session/try-server.h"

/* file: manifests, loaded with status and uid; NULL-terminated. Returns as try_server_start(). */
int file_server_start(struct try_server *server, const char *folder, const char *const *file,
                      const struct config_watch *watch);
