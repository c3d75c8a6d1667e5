/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The credentials and the access of each handler, in a folder of its own below `access_folder`. */
#include "config/config.h"

bool config_has_access(const struct config_watch *watch);
bool config_gives_access(const struct config *config); /* any of its watches */
/* The list for the credential process; texts are borrowed, config_access_done() frees the list. */
int config_access(const struct config *config, const char *access_folder, struct record_access **ret,
                  size_t *ret_count);
void config_access_done(struct record_access *access, size_t count);
/* Removes the folder and makes it again, with an empty folder in it for each watch that has access. A
 * handler's user can enter its own folder, and pass those of `above` (ours; NULL at the end). */
int config_access_folders(const struct config *config, const char *access_folder, const char *const *above,
                          struct error *error);
