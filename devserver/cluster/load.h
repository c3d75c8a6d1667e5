/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Manifests from files. */
#include "base/error.h"
#include "devserver/server.h"

/* Loads all objects of a file, which may be Lists. -EINVAL with the path and what is wrong, or the file's
 * errno. */
int load_file(struct server *server, const char *path, struct error *error);
/* "namespace/name": is made if it is not there, and its namespace as well. */
int load_account(struct server *server, const char *account, struct error *error);
