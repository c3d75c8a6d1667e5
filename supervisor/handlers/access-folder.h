/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The folder for access that handlers have of their own (handler.credentials, handler.kubernetes): made
 * here, in memory, with a folder for each watch that its handler's user may read. The credential process
 * fills them.
 */
#include "base/error.h"

struct supervisor;

int access_folder_begin(struct supervisor *supervisor, struct error *error); /* negative errno */
void access_folder_end(struct supervisor *supervisor);
/* Once the spawner is there: warns of access that is not separated. -EACCES: a handler could not read its
 * own; -ENOMEM. */
int access_folder_check(const struct supervisor *supervisor, struct error *error);
