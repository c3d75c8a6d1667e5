/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What handlers are given for themselves alone, each in a folder below `access_folder`. */
#include "config/config.h"

bool config_has_access(const struct config_watch *watch);
bool config_gives_access(const struct config *config); /* any of its watches */
bool config_access_differs(const struct config *old, const struct config *new);
/* What the credential process is told; texts are borrowed, the list is freed by config_access_done(). */
int config_access(const struct config *config, const char *access_folder, struct record_access **ret,
                  size_t *ret_count);
void config_access_done(struct record_access *access, size_t count);
/* Makes the folder, anew and empty, with one for each watch that has access. A handler's user can enter its
 * own, and reach it by `above` (NULL at the end), folders of ours. */
int config_access_folders(const struct config *config, const char *access_folder, const char *const *above,
                          struct error *error);
