/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Objects that were finalized, and whose end was not announced yet: in memory, by hashes of key and UID. */
#include "controller/watch.h"

int finalized_note(struct watch *watch, const char *key, const char *uid); /* -ENOMEM */
bool finalized_is(const struct watch *watch, const char *key, const char *uid);
void finalized_drop(struct watch *watch, const char *key, const char *uid);
void finalized_forget(struct watch *watch); /* all of them */
