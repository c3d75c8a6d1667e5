/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The same object in the other watches of its kind. */
#include "controller/controller.h"

/* Whether one of them owes its end: it was handed to that watch, which has not left it, or has run since it is
 * back. */
bool twin_owes(const struct watch *watch, const char *key, const char *uid);
/* Whether the watcher of one of them has died over it. */
bool twin_is_doubtful(const struct watch *watch, const char *key, const char *uid);
/* Puts the version that one of them has written last in the place of an older one. */
#define TWIN_VERSION_SIZE 65
void twin_written(const struct watch *watch, const char *key, const char *uid,
                  char version[TWIN_VERSION_SIZE]);
/* The row of `watch`, which has left the object, is about to be removed. Watches that ran last before that run
 * again, by the same commit. 0 or a negative errno. */
int twin_rerun(const struct watch *watch, const struct ledger_row *left);
