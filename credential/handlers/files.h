/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The files in a handler's folder: copies of the files that it was promised, its kubeconfig, its token. */
#include "credential/handlers/handler-access.h"

#define HANDLER_FILE_MAX ((size_t)1024 * 1024)

/* Reads a kubeconfig that a handler can be given: without a plugin, and without what is not handed on.
 * separate: for a user who may not read all that the operator does. Errors as of kubeconfig_load(). */
int handler_files_load_kubeconfig(const char *path, bool separate, struct kubeconfig *ret,
                                  struct error *error);
/* Copies all that the configuration names into the handler's folder, and goes on behind what cannot be had;
 * the first error is returned, with the key or the file in it. */
int handler_files_copy(const struct access *access, struct error *error);
/* Writes a kubeconfig, and its token as a file of its own, which client libraries read again. token: of a
 * service account; NULL: that of `config`. 0 or a negative errno with the path in the error. */
int handler_files_write_kubeconfig(const struct access *access, const struct kubeconfig *config,
                                   const char *token, struct error *error);
/* Writes the kubeconfig for the token that is there: server or certificates may be others. A failure is
 * logged. */
void handler_files_rewrite(const struct access *access);
