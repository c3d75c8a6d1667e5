/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Absence that proves nothing by itself (a selector, a changed scope) is put to the server: 404 or another
 * UID means deleted; an object that is there has only left the selection. The questions wait in the store,
 * so there may be as many as objects, and none is lost by a restart. A few are asked at a time; one that
 * fails is asked again, slower and slower. An object that a stream shows again meanwhile needs no answer. An
 * answer that is not certain must never be taken for a deletion.
 */
#include "watcher/watcher.h"

int verification_new(struct verification **ret); /* 0, -ENOMEM */
void verification_free(struct verification *verification);
/* Puts one more question. owed: also where the store has no such object. Negative: the store
 * failed (fatal was said). */
int verification_add(struct watcher *watcher, const char *key, const char *uid, bool owed);
/* No question is open. */
bool verification_idle(const struct watcher *watcher);
/* Asks, as far as that is possible now. */
void verification_continue(struct watcher *watcher);
