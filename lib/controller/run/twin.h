/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The same object in the other watches of its kind. */
#include "controller/controller.h"

/* Whether one of these watches owes the object's end: the object was handed to it, and has not left it, or has
 * run since it came back. */
bool twin_owes(const struct watch *watch, const char *key, const char *uid);
/* Whether the watcher of one of them has died over it. */
bool twin_is_doubtful(const struct watch *watch, const char *key, const char *uid);
/* Replaces the version by a newer one that another watch has written last. */
#define TWIN_VERSION_SIZE 65
void twin_written(const struct watch *watch, const char *key, const char *uid,
                  char version[TWIN_VERSION_SIZE]);
/* The row of `watch`, which has left the object, is about to be removed. Watches that ran last before that run
 * again, by the same commit. 0 or a negative errno. */
int twin_rerun(const struct watch *watch, const struct ledger_row *left);
